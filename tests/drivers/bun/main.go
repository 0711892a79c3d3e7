// Tenants with orders, kept by Bun.
package main

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/driver/pgdriver"
	"github.com/uptrace/bun/migrate"
)

func main() {
	log.SetFlags(0)
	ctx := context.Background()
	// The server is the one that the environment names.
	db := bun.NewDB(sql.OpenDB(pgdriver.NewConnector(
		pgdriver.WithAddr(os.Getenv("PGHOST")+":"+os.Getenv("PGPORT")), pgdriver.WithInsecure(true),
		pgdriver.WithUser(os.Getenv("PGUSER")), pgdriver.WithDatabase(os.Getenv("PGDATABASE")),
	)), pgdialect.New())
	if err := run(ctx, db, os.Args[1], os.Args[2:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, db *bun.DB, command string, words []string) error {
	all := migrations
	if len(words) == 0 {
		if err := all.Discover(os.DirFS("migrations")); err != nil {
			return err
		}
	} else {
		// Only the first one, as the first version has it.
		all = migrate.NewMigrations()
		all.Add(migrations.Sorted()[0])
	}
	migrator := migrate.NewMigrator(db, all, migrate.WithMarkAppliedOnSuccess(true))
	switch command {
	case "migrate":
		if err := migrator.Init(ctx); err != nil {
			return err
		}
		group, err := migrator.Migrate(ctx)
		return tell(group, err)
	case "rollback":
		group, err := migrator.Rollback(ctx)
		return tell(group, err)
	case "status":
		states, err := migrator.MigrationsWithStatus(ctx)
		fmt.Println(states)
		fmt.Println("to come:", states.Unapplied())
		fmt.Println("last:", states.LastGroup())
		return err
	case "lock":
		return migrator.Lock(ctx)
	case "unlock":
		return migrator.Unlock(ctx)
	case "compare":
		return compare(ctx, db)
	case "auto":
		auto, err := newer(db)
		if err != nil {
			return err
		}
		group, err := auto.Migrate(ctx)
		return tell(group, err)
	case "drop":
		_, err := db.NewDropTable().Model((*invoice)(nil)).Exec(ctx)
		return err
	default:
		return use(ctx, db)
	}
}

func tell(group *migrate.MigrationGroup, err error) error {
	if group == nil || group.IsZero() {
		fmt.Println("nothing to do")
	} else {
		fmt.Println(group)
	}
	return err
}

// What makes the database as the newer models are.
func newer(db *bun.DB) (*migrate.AutoMigrator, error) {
	return migrate.NewAutoMigrator(db, migrate.WithExcludeTable("orders"), migrate.WithMigrationsDirectoryAuto("auto"),
		migrate.WithModel((*Plan)(nil), (*newerTenant)(nil), (*newerAccount)(nil), (*invoice)(nil)))
}

// The statements of that, which come in no order.
func compare(ctx context.Context, db *bun.DB) error {
	auto, err := newer(db)
	if err != nil {
		return err
	}
	files, err := auto.CreateTxSQLMigrations(ctx)
	for _, file := range files {
		fmt.Println(file.Name)
		lines := strings.Split(strings.TrimPrefix(file.Content, "SET statement_timeout = 0;"), "\n")
		slices.Sort(lines)
		fmt.Println(strings.Join(lines, "\n"))
		if err := os.Remove("auto/" + file.Name); err != nil {
			return err
		}
	}
	return err
}
