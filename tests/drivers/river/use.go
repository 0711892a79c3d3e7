package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// Jobs of every kind, from an empty queue; what they do to the tables stays.
func work(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, "TRUNCATE river_job; TRUNCATE entry"); err != nil {
		return err
	}
	client, err := client(pool)
	if err != nil {
		return err
	}
	// With the application's transaction, or not at all.
	for _, kept := range []bool{true, false} {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		for tenant := range int64(4) {
			_, err := tx.Exec(ctx, "UPDATE account SET balance = balance + 100 WHERE tenant_id = $1", tenant+1)
			if err != nil {
				return err
			}
			for account := range int64(3) {
				job := Charge{tenant + 1, account + 1, tenant*10 + account}
				if _, err := client.InsertTx(ctx, tx, job, &river.InsertOpts{Tags: []string{"first"}}); err != nil {
					return err
				}
			}
		}
		if kept {
			err = tx.Commit(ctx)
		} else {
			err = tx.Rollback(ctx)
		}
		if err != nil {
			return err
		}
	}
	for _, close := range []Close{{1, "first"}, {1, "again"}, {2, "first"}} {
		result, err := client.Insert(ctx, close, nil)
		if err != nil {
			return err
		}
		fmt.Println("close", close.Tenant, string(result.Job.EncodedArgs), result.UniqueSkippedAsDuplicate)
	}
	results, err := client.InsertMany(ctx, []river.InsertManyParams{
		{Args: Close{2, "many"}},
		{Args: Close{3, "many"}},
		{Args: Charge{1, 9, 1}, InsertOpts: &river.InsertOpts{MaxAttempts: 2}},
	})
	if err != nil {
		return err
	}
	for _, result := range results {
		fmt.Println("many", string(result.Job.EncodedArgs), result.UniqueSkippedAsDuplicate)
	}
	for priority, way := range []string{"works", "fails once", "fails", "panics", "cancels", "snoozes"} {
		options := &river.InsertOpts{MaxAttempts: 2, Priority: priority%4 + 1}
		if _, err := client.Insert(ctx, Odd{way}, options); err != nil {
			return err
		}
	}
	if err := workOff(ctx, client); err != nil {
		return err
	}
	return show(ctx, pool, client)
}

// Jobs for later, and what is done to jobs from outside.
func wait(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, "TRUNCATE river_job"); err != nil {
		return err
	}
	client, err := client(pool)
	if err != nil {
		return err
	}
	later := &river.InsertOpts{ScheduledAt: time.Now().Add(time.Hour)}
	var ids []int64
	for _, way := range []string{"works", "deleted", "cancelled", "waits"} {
		result, err := client.Insert(ctx, Odd{way}, later)
		if err != nil {
			return err
		}
		fmt.Println(result.Job.State)
		ids = append(ids, result.Job.ID)
	}
	pending, err := client.Insert(ctx, Odd{"pending"}, &river.InsertOpts{Pending: true})
	if err != nil {
		return err
	}
	job, err := client.JobRetry(ctx, ids[0])
	fmt.Println("retried", job.State, err)
	job, err = client.JobDelete(ctx, ids[1])
	fmt.Println("deleted", job.State, err)
	job, err = client.JobCancel(ctx, ids[2])
	fmt.Println("cancelled", job.State, err)
	_, err = client.JobGet(ctx, ids[1])
	fmt.Println("gone", errors.Is(err, rivertype.ErrNotFound))
	soon, err := client.Insert(ctx, Odd{"soon"}, &river.InsertOpts{ScheduledAt: time.Now().Add(time.Second)})
	if err != nil {
		return err
	}
	fmt.Println("soon", soon.Job.State, pending.Job.State)
	ended, stop := client.Subscribe(river.EventKindJobCompleted)
	defer stop()
	if err := client.Start(ctx); err != nil {
		return err
	}
	// Its leader finds out what is due, every few seconds.
	for range 2 {
		select {
		case event := <-ended:
			fmt.Println(event.Kind, string(event.Job.EncodedArgs))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := client.Stop(ctx); err != nil {
		return err
	}
	_, err = client.JobCancel(ctx, ids[3])
	if err != nil {
		return err
	}
	found, err := client.JobList(ctx, river.NewJobListParams().Kinds("odd").States(rivertype.JobStateCancelled).
		Where("args->>'way' = @way", river.NamedArgs{"way": "waits"}))
	fmt.Println("found", len(found.Jobs), err)
	return show(ctx, pool, client)
}

// A queue that stands still while another one goes on.
func queues(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, "TRUNCATE river_job"); err != nil {
		return err
	}
	client, err := client(pool)
	if err != nil {
		return err
	}
	told, stop := client.Subscribe(river.EventKindJobCompleted, river.EventKindQueuePaused, river.EventKindQueueResumed)
	defer stop()
	if err := client.Start(ctx); err != nil {
		return err
	}
	next := func() error {
		select {
		case event := <-told:
			fmt.Print(event.Kind)
			if event.Queue != nil {
				fmt.Print(" ", event.Queue.Name)
			}
			if event.Job != nil {
				fmt.Print(" ", event.Job.Queue)
			}
			fmt.Println()
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := client.QueuePause(ctx, "slow", nil); err != nil {
		return err
	}
	if err := next(); err != nil {
		return err
	}
	for _, name := range []string{"slow", river.QueueDefault} {
		if _, err := client.Insert(ctx, Odd{"works"}, &river.InsertOpts{Queue: name}); err != nil {
			return err
		}
	}
	if err := next(); err != nil {
		return err
	}
	state, err := client.QueueGet(ctx, "slow")
	if err != nil {
		return err
	}
	fmt.Println("paused", state.PausedAt != nil)
	if err := client.QueueResume(ctx, "slow", nil); err != nil {
		return err
	}
	for range 2 {
		if err := next(); err != nil {
			return err
		}
	}
	list, err := client.QueueList(ctx, river.NewQueueListParams())
	if err != nil {
		return err
	}
	for _, each := range list.Queues {
		fmt.Println(each.Name, each.PausedAt != nil)
	}
	return client.Stop(ctx)
}

// Many at once, by COPY and by INSERT.
func bulk(ctx context.Context, pool *pgxpool.Pool) error {
	if _, err := pool.Exec(ctx, "TRUNCATE river_job; TRUNCATE entry"); err != nil {
		return err
	}
	client, err := client(pool)
	if err != nil {
		return err
	}
	var jobs []river.InsertManyParams
	for number := range int64(400) {
		jobs = append(jobs, river.InsertManyParams{Args: Charge{1 + number%4, 1 + number%3, number % 7}})
	}
	count, err := client.InsertManyFast(ctx, jobs)
	fmt.Println("fast", count, err)
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	results, err := client.InsertManyTx(ctx, tx, jobs[:100])
	fmt.Println("many", len(results), err)
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	if err := workOff(ctx, client); err != nil {
		return err
	}
	var done, attempts, entries, amount int64
	err = pool.QueryRow(ctx, "SELECT count(*), sum(attempt) FROM river_job WHERE state = 'completed'").
		Scan(&done, &attempts)
	if err != nil {
		return err
	}
	err = pool.QueryRow(ctx, "SELECT count(*), sum(amount)::bigint FROM entry").Scan(&entries, &amount)
	fmt.Println(done, attempts, entries, amount)
	return err
}
