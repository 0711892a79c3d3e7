// Tenants with orders, kept by GORM.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"
	"time"

	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// definitions tells what GORM does to the tables, and nothing of what it reads to decide that.
type definitions struct{}

func (definitions) LogMode(logger.LogLevel) logger.Interface      { return definitions{} }
func (definitions) Info(context.Context, string, ...any)          {}
func (definitions) Warn(_ context.Context, text string, _ ...any) { fmt.Println("warning:", text) }
func (definitions) Error(context.Context, string, ...any)         {}
func (definitions) Trace(_ context.Context, _ time.Time, statement func() (string, int64), err error) {
	text, _ := statement()
	// A table's constraints come in no order.
	if strings.HasPrefix(text, "CREATE TABLE") {
		text, _, _ = strings.Cut(text, "CONSTRAINT")
	}
	if word, _, _ := strings.Cut(text, " "); slices.Contains([]string{"CREATE", "ALTER", "DROP", "COMMENT"}, word) {
		fmt.Println(text)
		if err != nil {
			fmt.Println(err)
		}
	}
}

func main() {
	log.SetFlags(0)
	// The server is the one that the environment names.
	db, err := gorm.Open(postgres.New(postgres.Config{DSN: "TimeZone=UTC"}),
		&gorm.Config{Logger: definitions{}, TranslateError: true, CreateBatchSize: 50})
	if err != nil {
		log.Fatal(err)
	}
	commands := map[string]func(*gorm.DB) error{
		"migrate": migrate, "use": use, "inspect": inspect, "newer": newer, "alter": alter, "drop": drop,
	}
	if err := commands[os.Args[1]](db); err != nil {
		log.Fatal(err)
	}
}

// The tables of the first version.
func migrate(db *gorm.DB) error {
	var there bool
	if err := db.Raw("SELECT to_regtype('state') IS NOT NULL").Scan(&there).Error; err != nil {
		return err
	}
	if !there {
		if err := db.Exec("CREATE TYPE state AS ENUM ('new', 'active', 'closed')").Error; err != nil {
			return err
		}
	}
	if err := db.AutoMigrate(models...); err != nil {
		return err
	}
	plans := []Plan{{Name: "free"}, {Name: "größer", Price: 49.5}}
	for _, plan := range plans {
		if err := db.FirstOrCreate(&plan, Plan{Name: plan.Name}).Error; err != nil {
			return err
		}
	}
	labels := []Label{{Name: "urgent"}, {Name: "gift"}, {Name: "late"}}
	for _, label := range labels {
		if err := db.Where(Label{Name: label.Name}).FirstOrCreate(&label).Error; err != nil {
			return err
		}
	}
	return nil
}

// Those of the second one: the type gets a value before a model uses it.
func newer(db *gorm.DB) error {
	if err := db.Exec("ALTER TYPE state ADD VALUE IF NOT EXISTS 'lost'").Error; err != nil {
		return err
	}
	return db.AutoMigrate(newerModels...)
}

// Steps by its migrator, as one writes them by hand.
func alter(db *gorm.DB) error {
	type account struct {
		TenantID int64  `gorm:"primaryKey;autoIncrement:false"`
		ID       int64  `gorm:"primaryKey;autoIncrement:false"`
		Alias    string `gorm:"not null;size:80;default:none"`
		Logins   int64  `gorm:"not null;default:1"`
		Balance  float64
	}
	type line struct {
		TenantID int64 `gorm:"primaryKey;autoIncrement:false"`
		OrderID  int64 `gorm:"primaryKey;autoIncrement:false;index:line_order,option:CONCURRENTLY"`
		Number   int   `gorm:"primaryKey;autoIncrement:false"`
	}
	accounts, lines := db.Table("accounts").Migrator(), db.Table("lines").Migrator()
	for _, step := range []struct {
		name string
		run  func() error
	}{
		{"fill", func() error {
			return db.Exec("UPDATE accounts SET nick = split_part(mail, '@', 1) WHERE nick IS NULL").Error
		}},
		{"rename column", func() error { return accounts.RenameColumn(&account{}, "nick", "alias") }},
		{"alter column", func() error { return accounts.AlterColumn(&account{}, "Alias") }},
		{"alter number", func() error { return accounts.AlterColumn(&account{}, "Logins") }},
		{"drop constraint", func() error { return accounts.DropConstraint(&newerAccount{}, "account_balance") }},
		{"create constraint", func() error { return accounts.CreateConstraint(&newerAccount{}, "account_balance") }},
		{"rename index", func() error { return accounts.RenameIndex(&newerAccount{}, "account_nick", "account_alias") }},
		{"drop index", func() error { return accounts.DropIndex(&newerAccount{}, "account_alias") }},
		{"index beside others", func() error { return lines.CreateIndex(&line{}, "line_order") }},
		{"drop foreign key", func() error { return db.Migrator().DropConstraint(&Order{}, "Lines") }},
		{"create foreign key", func() error { return db.Migrator().CreateConstraint(&Order{}, "Lines") }},
		{"drop column", func() error { return db.Migrator().DropColumn(&newerOrder{}, "scores") }},
		{"rename table", func() error { return db.Migrator().RenameTable("invoices", "bills") }},
		{"and back", func() error { return db.Migrator().RenameTable("bills", "invoices") }},
		{"create view", func() error {
			query := db.Model(&Tenant{}).Select("plan_name, count(*) AS tenants").Group("plan_name")
			return db.Migrator().CreateView("plan_use", gorm.ViewOption{Replace: true, Query: query})
		}},
	} {
		fmt.Println(step.name, step.run())
	}
	return nil
}

func drop(db *gorm.DB) error {
	if err := db.Migrator().DropView("plan_use"); err != nil {
		return err
	}
	tables := append([]any{"order_labels", &Invoice{}}, models...)
	if err := db.Migrator().DropTable(tables...); err != nil {
		return err
	}
	return db.Exec("DROP TYPE state").Error
}

// What its migrator reads from the catalogs.
func inspect(db *gorm.DB) error {
	migrator := db.Migrator()
	tables, err := migrator.GetTables()
	if err != nil {
		return err
	}
	slices.Sort(tables)
	for _, table := range tables {
		columns, err := migrator.ColumnTypes(table)
		if err != nil {
			return err
		}
		for _, column := range columns {
			whole, _ := column.ColumnType()
			length, _ := column.Length()
			precision, scale, _ := column.DecimalSize()
			nullable, _ := column.Nullable()
			key, _ := column.PrimaryKey()
			unique, _ := column.Unique()
			counts, _ := column.AutoIncrement()
			usual, _ := column.DefaultValue()
			comment, _ := column.Comment()
			fmt.Println(table, column.Name(), column.DatabaseTypeName(), whole, length, precision, scale,
				nullable, key, unique, counts, usual, comment)
		}
		indexes, err := migrator.GetIndexes(table)
		if err != nil {
			return err
		}
		slices.SortFunc(indexes, func(a, b gorm.Index) int { return strings.Compare(a.Name(), b.Name()) })
		for _, index := range indexes {
			unique, _ := index.Unique()
			columns := index.Columns()
			slices.Sort(columns)
			fmt.Println(table, index.Name(), columns, unique)
		}
	}
	fmt.Println(migrator.HasConstraint(&Order{}, "Lines"), migrator.HasIndex(&Order{}, "order_tags"),
		migrator.HasColumn(&Account{}, "Nick"), migrator.CurrentDatabase() == os.Getenv("PGDATABASE"))
	return nil
}
