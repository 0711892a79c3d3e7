// A queue beside tenants and their accounts.
package main

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
)

type (
	transaction = pgx.Tx
	queue       = river.Client[transaction]
)

func main() {
	log.SetFlags(0)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	// The server is the one that the environment names.
	pool, err := pgxpool.New(ctx, "pool_max_conns=8")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	commands := map[string]func(context.Context, *pgxpool.Pool) error{
		"up": migrate, "down": migrate, "validate": validate, "work": work, "wait": wait, "queues": queues, "bulk": bulk,
	}
	if err := commands[os.Args[1]](ctx, pool); err != nil {
		log.Fatal(err)
	}
}

func migrator(pool *pgxpool.Pool) (*rivermigrate.Migrator[transaction], error) {
	return rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
}

func migrate(ctx context.Context, pool *pgxpool.Pool) error {
	migrator, err := migrator(pool)
	if err != nil {
		return err
	}
	options := &rivermigrate.MigrateOpts{}
	if len(os.Args) > 2 {
		options.TargetVersion, _ = strconv.Atoi(os.Args[2])
	}
	result, err := migrator.Migrate(ctx, rivermigrate.Direction(os.Args[1]), options)
	if err != nil {
		return err
	}
	fmt.Println(result.Direction, len(result.Versions))
	for _, version := range result.Versions {
		fmt.Println(version.Version, version.Name)
	}
	return nil
}

func validate(ctx context.Context, pool *pgxpool.Pool) error {
	migrator, err := migrator(pool)
	if err != nil {
		return err
	}
	result, err := migrator.Validate(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Println(result.OK, result.Messages)
	return nil
}

func client(pool *pgxpool.Pool) (*queue, error) {
	return river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown:     20 * time.Millisecond,
		FetchPollInterval: 200 * time.Millisecond,
		ID:                "worker",
		Logger:            slog.New(slog.DiscardHandler),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}, "slow": {MaxWorkers: 1}},
		RetryPolicy:       soon{},
		Workers:           workers(pool),
	})
}

// Works until every job has come to its end, which the events of the client do not tell of those that fail.
func workOff(ctx context.Context, client *queue) error {
	if err := client.Start(ctx); err != nil {
		return err
	}
	if err := settle(ctx, client); err != nil {
		return err
	}
	return client.Stop(ctx)
}

func settle(ctx context.Context, client *queue) error {
	open := river.NewJobListParams().States(rivertype.JobStateAvailable, rivertype.JobStateRetryable,
		rivertype.JobStateRunning, rivertype.JobStateScheduled).First(1)
	for {
		left, err := client.JobList(ctx, open)
		if err != nil || len(left.Jobs) == 0 {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// The jobs, and what they have done.
func show(ctx context.Context, pool *pgxpool.Pool, client *queue) error {
	jobs, err := client.JobList(ctx, river.NewJobListParams().First(1000))
	if err != nil {
		return err
	}
	for _, job := range jobs.Jobs {
		fmt.Print(job.Kind, " ", string(job.EncodedArgs), " ", job.State, " ", job.Attempt, "/", job.MaxAttempts, " ",
			job.Queue, " ", job.Priority, " ", job.Tags, " ", len(job.AttemptedBy), " ", job.FinalizedAt != nil)
		for _, failure := range job.Errors {
			fmt.Print(" [", failure.Attempt, " ", failure.Error, "]")
		}
		fmt.Println()
	}
	rows, err := pool.Query(ctx, "SELECT a.tenant_id, a.id, a.balance, count(e.job) FROM account a "+
		"LEFT JOIN entry e ON e.tenant_id = a.tenant_id AND e.account_id = a.id GROUP BY 1, 2 ORDER BY 1, 2")
	if err != nil {
		return err
	}
	accounts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Tenant, ID, Balance, Entries int64 }])
	fmt.Println(accounts)
	return err
}
