package main

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/pressly/goose/v3"
)

// What is easier to say in Go than in SQL, between the files in migrations.
func init() {
	goose.AddNamedMigrationContext("00003_first_tenants.go", firstTenants, noTenants)
	goose.AddNamedMigrationNoTxContext("00006_discounts.go", discounts, noDiscounts)
}

func firstTenants(ctx context.Context, tx *sql.Tx) error {
	insert, err := tx.PrepareContext(ctx, "INSERT INTO tenant (name, settings) VALUES ($1, $2) RETURNING id")
	if err != nil {
		return err
	}
	defer insert.Close()
	for number := range 4 {
		var id int64
		settings := fmt.Sprintf(`{"number": %d}`, number)
		if err := insert.QueryRowContext(ctx, fmt.Sprintf("first %d", number), settings).Scan(&id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT INTO account (tenant_id, id, mail) SELECT $1, n, 'first' || n FROM "+
			"generate_series(1, 3) n", id)
		if err != nil {
			return err
		}
	}
	return nil
}

func noTenants(ctx context.Context, tx *sql.Tx) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM account USING tenant "+
		"WHERE account.tenant_id = tenant.id AND tenant.name LIKE 'first %'")
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM tenant WHERE name LIKE 'first %'")
	return err
}

// In batches, each its own transaction, as one does with many rows.
func discounts(ctx context.Context, db *sql.DB) error {
	if _, err := db.ExecContext(ctx, "ALTER TABLE orders ADD COLUMN discount numeric(4, 2)"); err != nil {
		return err
	}
	for {
		result, err := db.ExecContext(ctx, "UPDATE orders SET discount = total / 10 WHERE (tenant_id, id) IN "+
			"(SELECT tenant_id, id FROM orders WHERE discount IS NULL ORDER BY tenant_id, id LIMIT 50)")
		if err != nil {
			return err
		}
		count, err := result.RowsAffected()
		if err != nil {
			return err
		}
		fmt.Println("discounts", count)
		if count == 0 {
			break
		}
	}
	_, err := db.ExecContext(ctx, "ALTER TABLE orders ALTER COLUMN discount SET NOT NULL, "+
		"ALTER COLUMN discount SET DEFAULT 0")
	return err
}

func noDiscounts(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "ALTER TABLE orders DROP COLUMN discount")
	return err
}
