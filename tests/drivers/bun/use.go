package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/driver/pgdriver"
)

// Reads and writes by the models, and prints what comes of it.
func use(ctx context.Context, db *bun.DB) error {
	tenants, err := create(ctx, db)
	if err != nil {
		return err
	}
	for _, part := range []func(context.Context, *bun.DB, *Tenant) error{change, read, undone, wrong, copies} {
		if err := part(ctx, db, tenants[1]); err != nil {
			return err
		}
	}
	return nil
}

func create(ctx context.Context, db *bun.DB) ([]*Tenant, error) {
	tenants := []*Tenant{{Name: "one"}, {Name: "two", PlanName: "größer"}, {Name: "three"}}
	for number, tenant := range tenants {
		tenant.Settings = map[string]any{"number": number, "list": []string{"a", "é'"}}
	}
	if _, err := db.NewInsert().Model(&tenants).Exec(ctx); err != nil {
		return nil, err
	}
	for _, tenant := range tenants {
		accounts, orders := []*Account{}, []*Order{}
		for id := int64(1); id < 6; id++ {
			accounts = append(accounts, &Account{TenantID: tenant.ID, ID: id, Mail: fmt.Sprint(id, "@", tenant.Name)})
		}
		for number := range int64(20) {
			orders = append(orders, &Order{
				TenantID: tenant.ID, AccountID: 1 + number%5, Cents: number * 100, Tags: []string{"a", "größer"}[:number%3],
			})
		}
		if _, err := db.NewInsert().Model(&accounts).Exec(ctx); err != nil {
			return nil, err
		}
		if _, err := db.NewInsert().Model(&orders).Exec(ctx); err != nil {
			return nil, err
		}
		fmt.Println("created", tenant.PlanName, accounts[4].State, orders[19].ID-orders[0].ID)
	}
	return tenants, nil
}

func affected(name string, result interface{ RowsAffected() (int64, error) }, err error) {
	if err != nil {
		fmt.Println(name, err)
		return
	}
	count, err := result.RowsAffected()
	fmt.Println(name, count, err)
}

func change(ctx context.Context, db *bun.DB, tenant *Tenant) error {
	accounts := []*Account{
		{TenantID: tenant.ID, ID: 1, Mail: "first@new", Cents: 5},
		{TenantID: tenant.ID, ID: 9, Mail: "ninth@new", Cents: 7},
	}
	err := db.NewInsert().Model(&accounts).On("CONFLICT (tenant_id, id) DO UPDATE").
		Set("mail = EXCLUDED.mail").Set("cents = account.cents + EXCLUDED.cents + 1").
		Returning("id, mail, cents, state").Scan(ctx)
	fmt.Println("upsert", err)
	for _, account := range accounts {
		fmt.Println("  ", account.ID, account.Mail, account.Cents, account.State)
	}
	again := []*Account{{TenantID: tenant.ID, ID: 1, Mail: "x"}, {TenantID: tenant.ID, ID: 8, Mail: "first@new"}}
	result, err := db.NewInsert().Model(&again).On("CONFLICT DO NOTHING").Exec(ctx)
	affected("nothing", result, err)
	accounts[0].Cents, accounts[1].Cents = 70, 90
	result, err = db.NewUpdate().Model(&accounts).Column("cents").Bulk().Exec(ctx)
	affected("many at once", result, err)
	result, err = db.NewUpdate().Model((*Account)(nil)).Set("state = ?", "active").Set("cents = cents * 2").
		Where("id > ?", 3).Exec(ctx)
	affected("update", result, err)
	accounts[1].Mail = "key@new"
	result, err = db.NewUpdate().Model(accounts[1]).OmitZero().WherePK().Exec(ctx)
	affected("by key", result, err)
	result, err = db.NewDelete().Model((*Account)(nil)).Where("tenant_id = ? AND id = 9", tenant.ID).Exec(ctx)
	affected("marked", result, err)
	seen, err := db.NewSelect().Model((*Account)(nil)).Where("tenant_id = ?", tenant.ID).Count(ctx)
	fmt.Println("seen", seen, err)
	seen, err = db.NewSelect().Model((*Account)(nil)).Where("tenant_id = ?", tenant.ID).WhereDeleted().Count(ctx)
	fmt.Println("deleted", seen, err)
	result, err = db.NewDelete().Model((*Account)(nil)).WhereDeleted().Where("true").ForceDelete().Exec(ctx)
	affected("gone", result, err)
	result, err = db.NewDelete().Model((*Order)(nil)).Where("cents > 1800").Returning("NULL").Exec(ctx)
	affected("orders", result, err)
	result, err = db.NewMerge().Model(new(Account)).
		With("_data", db.NewValues(&[]*Account{{TenantID: tenant.ID, ID: 2, Mail: "merged@new"},
			{TenantID: tenant.ID, ID: 12, Mail: "new@new"}}).Column("tenant_id", "id", "mail")).
		Using("_data").On("account.tenant_id = _data.tenant_id AND account.id = _data.id").
		WhenUpdate("MATCHED", func(query *bun.UpdateQuery) *bun.UpdateQuery { return query.Set("mail = _data.mail") }).
		WhenInsert("NOT MATCHED", func(query *bun.InsertQuery) *bun.InsertQuery {
			return query.Value("tenant_id", "_data.tenant_id").Value("id", "_data.id").Value("mail", "_data.mail")
		}).Exec(ctx)
	affected("merge", result, err)
	return nil
}

func read(ctx context.Context, db *bun.DB, tenant *Tenant) error {
	whole := new(Tenant)
	err := db.NewSelect().Model(whole).Relation("Plan").
		Relation("Accounts", func(query *bun.SelectQuery) *bun.SelectQuery { return query.Order("id") }).
		Relation("Accounts.Orders", func(query *bun.SelectQuery) *bun.SelectQuery { return query.Order("o.id") }).
		Where("tenant.id = ?", tenant.ID).Scan(ctx)
	if err != nil {
		return err
	}
	fmt.Println(whole.Name, whole.Plan.Name, whole.Plan.Cents, whole.Settings)
	for _, account := range whole.Accounts {
		fmt.Print(account.ID, " ", account.Mail, " ", account.Cents, " ", account.State, ":")
		for _, order := range account.Orders {
			fmt.Print(" ", order.Cents, order.Tags)
		}
		fmt.Println()
	}
	var orders []Order
	count, err := db.NewSelect().Model(&orders).Relation("Account.Tenant").Where("? = ANY (o.tags)", "größer").
		OrderExpr("o.tenant_id DESC, o.id").Limit(3).ScanAndCount(ctx)
	fmt.Println("orders", count, err)
	for _, order := range orders {
		fmt.Println("  ", order.Account.Tenant.Name, order.Account.Mail, order.Cents)
	}
	var sums []struct {
		PlanName string
		Orders   int
		Cents    int64
	}
	each := db.NewSelect().Model((*Order)(nil)).Column("tenant_id").ColumnExpr("count(*) AS orders").
		ColumnExpr("sum(cents) AS cents").Group("tenant_id")
	err = db.NewSelect().With("each", each).TableExpr("each").Join("JOIN tenant ON tenant.id = each.tenant_id").
		Column("plan_name").ColumnExpr("sum(orders) AS orders").ColumnExpr("sum(cents) AS cents").
		Group("plan_name").Order("plan_name").Scan(ctx, &sums)
	fmt.Println("sums", sums, err)
	there, err := db.NewSelect().Model((*Tenant)(nil)).Where("settings @> ?", `{"number": 2}`).Exists(ctx)
	fmt.Println("json", there, err)
	var mails []string
	err = db.NewSelect().Model((*Account)(nil)).Column("mail").Where("tenant_id = ?", tenant.ID).
		Where("id IN (?)", bun.In([]int{1, 2, 3})).Order("mail").Scan(ctx, &mails)
	fmt.Println("mails", mails, err)
	var locked []int64
	err = db.NewSelect().Model((*Account)(nil)).Column("id").Where("tenant_id = ?", tenant.ID).Order("id").
		For("UPDATE SKIP LOCKED").Scan(ctx, &locked)
	fmt.Println("locked", locked, err)
	first := db.NewSelect().Model((*Plan)(nil)).ColumnExpr("name AS word")
	second := db.NewSelect().Model((*Tenant)(nil)).ColumnExpr("name AS word")
	var words []string
	err = db.NewSelect().TableExpr("(?) AS words", first.Union(second)).Column("word").Order("word").Scan(ctx, &words)
	fmt.Println("words", words, err)
	return nil
}

// Transactions that are given up, in part and as a whole.
func undone(ctx context.Context, db *bun.DB, tenant *Tenant) error {
	give := errors.New("given up")
	err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
		result, err := tx.NewDelete().Model((*Order)(nil)).Where("tenant_id = ? AND cents < 500", tenant.ID).Exec(ctx)
		affected("deleted", result, err)
		inner := tx.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
			if _, err := tx.NewTruncateTable().Model((*Order)(nil)).Exec(ctx); err != nil {
				return err
			}
			return give
		})
		count, err := tx.NewSelect().Model((*Order)(nil)).Where("tenant_id = ?", tenant.ID).Count(ctx)
		fmt.Println("inner", inner, count, err)
		return give
	})
	count, failed := db.NewSelect().Model((*Order)(nil)).Where("tenant_id = ?", tenant.ID).Count(ctx)
	fmt.Println("outer", err, count)
	return failed
}

func wrong(ctx context.Context, db *bun.DB, tenant *Tenant) error {
	for _, model := range []any{
		&Account{TenantID: tenant.ID, ID: 77, Mail: "first@new"},
		&Tenant{Name: "x", PlanName: "nothing", Settings: map[string]any{}},
		&Order{TenantID: tenant.ID, AccountID: 99},
		&Account{TenantID: tenant.ID, ID: 78, Mail: "x", State: "nowhere"},
		&Plan{Name: "a name that is longer than it may be"},
	} {
		_, err := db.NewInsert().Model(model).Exec(ctx)
		var refused pgdriver.Error
		if !errors.As(err, &refused) {
			return fmt.Errorf("not refused: %w", err)
		}
		fmt.Println(refused.Field('C'), refused.Field('M'), refused.Field('n'), refused.IntegrityViolation())
	}
	return nil
}

// What is its driver's own: COPY.
func copies(ctx context.Context, db *bun.DB, tenant *Tenant) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	var lines bytes.Buffer
	for number := range 100 {
		fmt.Fprintf(&lines, "%d\t%d\t%d\t{copied}\n", tenant.ID, 1+number%5, number)
	}
	result, err := pgdriver.CopyFrom(ctx, conn, &lines, "COPY orders (tenant_id, account_id, cents, tags) FROM STDIN")
	affected("copied", result, err)
	var out bytes.Buffer
	result, err = pgdriver.CopyTo(ctx, conn, &out, "COPY (SELECT account_id, count(*), sum(cents) FROM orders "+
		"WHERE tags = '{copied}' GROUP BY 1 ORDER BY 1) TO STDOUT (FORMAT csv)")
	affected("copied out", result, err)
	fmt.Print(out.String())
	deleted, err := db.NewDelete().Model((*Order)(nil)).Where("tags = '{copied}'").Exec(ctx)
	affected("deleted", deleted, err)
	return nil
}
