// Tenants with orders and events, migrated by goose.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	// The server is the one that the environment names.
	db, err := sql.Open("pgx", "")
	if err == nil {
		err = goose.SetDialect("postgres")
	}
	if err != nil {
		log.Fatal(err)
	}
	switch command := os.Args[1]; command {
	case "use":
		err = use(ctx, db)
	case "provide":
		err = provide(ctx, db, os.Args[2])
	default:
		err = goose.RunContext(ctx, command, db, os.Args[2], os.Args[3:]...)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// The same migrations by its provider, with an advisory lock of the session.
func provide(ctx context.Context, db *sql.DB, directory string) error {
	locker, err := lock.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS(directory), goose.WithSessionLocker(locker))
	if err != nil {
		return err
	}
	results, err := provider.Up(ctx)
	fmt.Println("applied", len(results), err)
	pending, err := provider.HasPending(ctx)
	fmt.Println("pending", pending, err)
	states, err := provider.Status(ctx)
	for _, state := range states {
		fmt.Println(state.State, state.Source.Type, state.Source.Version)
	}
	return err
}

// Reads and writes, and prints what comes of it.
func use(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	var tenant int64
	err = tx.QueryRowContext(ctx, "INSERT INTO tenant (name, plan) SELECT 'used', max(name) FROM plan RETURNING id").
		Scan(&tenant)
	if err != nil {
		return err
	}
	// What the newer columns are to hold has to be said once they are there.
	var newer bool
	err = tx.QueryRowContext(ctx, "SELECT count(*) = 1 FROM information_schema.columns "+
		"WHERE table_name = 'account' AND column_name = 'short_name'").Scan(&newer)
	if err != nil {
		return err
	}
	columns, values := "tenant_id, id, mail", "$1, $2, $3"
	if newer {
		columns, values = columns+", short_name", values+", $3"
	}
	account, err := tx.PrepareContext(ctx, fmt.Sprintf("INSERT INTO account (%s) VALUES (%s) "+
		"ON CONFLICT (tenant_id, id) DO UPDATE SET balance = account.balance + 1 RETURNING balance", columns, values))
	if err != nil {
		return err
	}
	for number := range 6 {
		var balance string
		id := 1 + number%4
		if err := account.QueryRowContext(ctx, tenant, id, fmt.Sprintf("%d@used", id)).Scan(&balance); err != nil {
			return err
		}
		fmt.Println("account", id, balance)
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO orders (tenant_id, account_id, total, tags) "+
		"SELECT a.tenant_id, a.id, n + a.id / 4.0, ARRAY['a', 'é'] FROM account a, generate_series(1, 10) n "+
		"WHERE a.tenant_id = $1 ORDER BY a.id, n", tenant)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO event SELECT $1, n, date '2024-06-01' + n * 100, "+
		"jsonb_build_object('n', n) FROM generate_series(1, 9) n", tenant)
	if err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	result, err := db.ExecContext(ctx, "UPDATE orders SET state = 'paid' WHERE total > 8")
	if err != nil {
		return err
	}
	paid, _ := result.RowsAffected()
	fmt.Println("paid", paid)
	for _, query := range []string{
		"SELECT plan, state, orders FROM spent ORDER BY plan, state, orders",
		"SELECT p.name, count(DISTINCT t.id), sum(o.total) FROM plan p LEFT JOIN tenant t ON t.plan = p.name " +
			"LEFT JOIN orders o ON o.tenant_id = t.id GROUP BY 1 ORDER BY 1",
		"SELECT tableoid::regclass, count(*), sum((body->>'n')::int) FROM event GROUP BY tableoid " +
			"ORDER BY tableoid::regclass::text",
		"SELECT revision, tags[2], count(*) FROM orders WHERE tags @> ARRAY['é'] GROUP BY 1, 2 ORDER BY 1, 2",
	} {
		if err := print(ctx, db, query); err != nil {
			return err
		}
	}
	for _, wrong := range []string{
		"INSERT INTO tenant (name, plan) VALUES ('x', 'nothing')",
		"INSERT INTO orders (tenant_id, account_id, total) SELECT max(id), -1, 1 FROM tenant",
		"UPDATE account SET mail = '1@used' WHERE mail = '2@used'",
		"UPDATE plan SET price = -1",
		"DELETE FROM plan",
		"UPDATE orders SET state = 'nowhere'",
	} {
		_, err := db.ExecContext(ctx, wrong)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) {
			return fmt.Errorf("%s: %w", wrong, err)
		}
		fmt.Println(refused.Code, refused.Message, refused.TableName, refused.ConstraintName)
	}
	return undone(ctx, db, tenant)
}

// A transaction that is given up, in part and as a whole.
func undone(ctx context.Context, db *sql.DB, tenant int64) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, statement := range []string{
		"DELETE FROM orders WHERE total < 5",
		"SAVEPOINT here",
		"DELETE FROM orders",
		"ROLLBACK TO here",
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	var left int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM orders WHERE tenant_id = $1", tenant).Scan(&left); err != nil {
		return err
	}
	if err := tx.Rollback(); err != nil {
		return err
	}
	fmt.Println("left", left)
	result, err := db.ExecContext(ctx, "DELETE FROM account WHERE tenant_id = $1 AND id = 4", tenant)
	if err != nil {
		return err
	}
	deleted, _ := result.RowsAffected()
	fmt.Println("deleted", deleted)
	return print(ctx, db, "SELECT count(*), sum(total) FROM orders")
}

func print(ctx context.Context, db *sql.DB, query string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	for rows.Next() {
		values, places := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			return err
		}
		for i, value := range values {
			if i > 0 {
				fmt.Print(" ")
			}
			fmt.Print(value.String)
		}
		fmt.Println()
	}
	return rows.Err()
}
