package main

import (
	"context"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/migrate"
)

// The migrations in Go, beside those in SQL; a name is its file's.
var migrations = migrate.NewMigrations()

func init() {
	models := []any{(*Plan)(nil), (*Tenant)(nil), (*Account)(nil), (*Order)(nil)}
	migrations.MustRegister(func(ctx context.Context, db *bun.DB) error {
		return db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if _, err := tx.ExecContext(ctx, "CREATE TYPE state AS ENUM ('new', 'active', 'closed')"); err != nil {
				return err
			}
			for _, model := range models {
				table := tx.NewCreateTable().Model(model).WithForeignKeys()
				// It makes none of columns that are part of the primary key.
				switch model.(type) {
				case *Account:
					table.ForeignKey("(tenant_id) REFERENCES tenant (id)")
				case *Order:
					table.ForeignKey("(tenant_id, account_id) REFERENCES account (tenant_id, id) ON DELETE CASCADE")
				}
				if _, err := table.Exec(ctx); err != nil {
					return err
				}
			}
			_, err := tx.NewCreateIndex().Model((*Order)(nil)).Index("orders_tags").Using("gin").Column("tags").Exec(ctx)
			if err != nil {
				return err
			}
			plans := []Plan{{Name: "free"}, {Name: "größer", Cents: 4950}}
			_, err = tx.NewInsert().Model(&plans).Exec(ctx)
			return err
		})
	}, func(ctx context.Context, db *bun.DB) error {
		for i := len(models) - 1; i >= 0; i-- {
			if _, err := db.NewDropTable().Model(models[i]).IfExists().Exec(ctx); err != nil {
				return err
			}
		}
		_, err := db.ExecContext(ctx, "DROP TYPE state")
		return err
	})
}
