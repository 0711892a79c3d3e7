package main

import (
	"context"

	"github.com/uptrace/bun"
)

// Columns by Bun's builders, and what they hold from what is there.
func init() {
	type account struct {
		bun.BaseModel `bun:"table:account"`

		ShortName string `bun:",nullzero"`
	}
	migrations.MustRegister(func(ctx context.Context, db *bun.DB) error {
		_, err := db.NewAddColumn().Model((*account)(nil)).ColumnExpr("short_name varchar").Exec(ctx)
		if err != nil {
			return err
		}
		names := db.NewSelect().Model((*Account)(nil)).Column("tenant_id", "id").
			ColumnExpr("split_part(mail, '@', 1) AS name")
		_, err = db.NewUpdate().With("names", names).Model((*account)(nil)).TableExpr("names").
			Set("short_name = names.name").
			Where("account.tenant_id = names.tenant_id AND account.id = names.id").Exec(ctx)
		if err != nil {
			return err
		}
		_, err = db.ExecContext(ctx, "ALTER TABLE account ALTER short_name SET NOT NULL, ALTER short_name SET DEFAULT ''")
		return err
	}, func(ctx context.Context, db *bun.DB) error {
		_, err := db.NewDropColumn().Model((*account)(nil)).Column("short_name").Exec(ctx)
		return err
	})
}
