package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
)

// Charge books an amount, and is done with the same transaction.
type Charge struct {
	Tenant  int64 `json:"tenant"`
	Account int64 `json:"account"`
	Amount  int64 `json:"amount"`
}

func (Charge) Kind() string { return "charge" }

type charger struct {
	river.WorkerDefaults[Charge]
	pool *pgxpool.Pool
}

func (w *charger) Work(ctx context.Context, job *river.Job[Charge]) error {
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	_, err = tx.Exec(ctx, "INSERT INTO entry (tenant_id, account_id, job, amount) VALUES ($1, $2, $3, $4)",
		job.Args.Tenant, job.Args.Account, job.ID, job.Args.Amount)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "UPDATE account SET balance = balance - $3 WHERE tenant_id = $1 AND id = $2",
		job.Args.Tenant, job.Args.Account, job.Args.Amount)
	if err != nil {
		return err
	}
	if _, err := river.JobCompleteTx[*riverpgxv5.Driver](ctx, tx, job); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// Close is asked for once for each tenant, however often it is put in.
type Close struct {
	Tenant int64  `json:"tenant" river:"unique"`
	Note   string `json:"note"`
}

func (Close) Kind() string { return "close" }

func (Close) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: "slow", UniqueOpts: river.UniqueOpts{ByArgs: true}}
}

type closer struct {
	river.WorkerDefaults[Close]
	pool *pgxpool.Pool
}

func (w *closer) Work(ctx context.Context, job *river.Job[Close]) error {
	// A job may make others, in the transaction of what it reads.
	tx, err := w.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	var price int64
	err = tx.QueryRow(ctx, "SELECT p.price FROM tenant t JOIN plan p ON p.name = t.plan WHERE t.id = $1 FOR SHARE OF t",
		job.Args.Tenant).Scan(&price)
	if err != nil {
		return err
	}
	client := river.ClientFromContext[transaction](ctx)
	if _, err := client.InsertTx(ctx, tx, Charge{job.Args.Tenant, 1, price}, nil); err != nil {
		return err
	}
	return tx.Commit(ctx)
}

// Odd does as its way says.
type Odd struct {
	Way string `json:"way"`
}

func (Odd) Kind() string { return "odd" }

type oddWorker struct {
	river.WorkerDefaults[Odd]
}

func (oddWorker) Work(_ context.Context, job *river.Job[Odd]) error {
	switch job.Args.Way {
	case "fails once":
		if job.Attempt == 1 {
			return errors.New("not the first time")
		}
	case "fails":
		return fmt.Errorf("attempt %d", job.Attempt)
	case "panics":
		panic("größer")
	case "cancels":
		return river.JobCancel(errors.New("of no use"))
	case "snoozes":
		if !snoozed(job.Metadata) {
			return river.JobSnooze(10 * time.Millisecond)
		}
	}
	return nil
}

func snoozed(metadata []byte) bool { return string(metadata) != "{}" }

func workers(pool *pgxpool.Pool) *river.Workers {
	all := river.NewWorkers()
	river.AddWorker(all, &charger{pool: pool})
	river.AddWorker(all, &closer{pool: pool})
	river.AddWorker(all, oddWorker{})
	return all
}

// What has failed is tried again at once.
type soon struct{}

func (soon) NextRetry(*rivertype.JobRow) time.Time { return time.Now().Add(10 * time.Millisecond) }
