package main

import (
	"errors"
	"fmt"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// Reads and writes by the models, and prints what comes of it.
func use(db *gorm.DB) error {
	var before int64
	if err := db.Model(&Tenant{}).Count(&before).Error; err != nil {
		return err
	}
	tenants, err := create(db, before)
	if err != nil {
		return err
	}
	for _, part := range []func(*gorm.DB, *Tenant) error{upsert, read, labels, change, undone, wrong} {
		if err := part(db, tenants[1]); err != nil {
			return err
		}
	}
	return nil
}

// Whole trees of rows with one call.
func create(db *gorm.DB, before int64) ([]*Tenant, error) {
	var labels []Label
	if err := db.Order("id").Find(&labels).Error; err != nil {
		return nil, err
	}
	var tenants []*Tenant
	for number := range int64(3) {
		tenant := &Tenant{Name: fmt.Sprintf("tenant %d", before+number), PlanName: "free"}
		tenant.Settings = map[string]any{"number": number, "list": []string{"a", "é"}}
		if number == 1 {
			tenant.PlanName = "größer"
		}
		for id := range int64(4) {
			account := Account{ID: id + 1, Mail: fmt.Sprintf("%d@%s", id, tenant.Name), Balance: float64(id) / 4}
			for item := range id {
				order := Order{Total: float64(10*id + item), Tags: []string{"new", "größer", "'{}'"}[:item]}
				order.Lines = []Line{{Number: 1, Text: "one", Count: 1}, {Number: 2, Text: "two", Count: int(id) + 1}}
				order.Labels = labels[:item]
				account.Orders = append(account.Orders, order)
			}
			tenant.Accounts = append(tenant.Accounts, account)
		}
		tenants = append(tenants, tenant)
	}
	if err := db.Create(tenants).Error; err != nil {
		return nil, err
	}
	var orders []Order
	for number := range 120 {
		orders = append(orders, Order{TenantID: tenants[0].ID, AccountID: 1, Total: float64(number)})
	}
	result := db.Create(&orders)
	fmt.Println("created", result.RowsAffected, orders[119].ID-orders[0].ID, orders[0].Tags)
	return tenants, result.Error
}

func upsert(db *gorm.DB, tenant *Tenant) error {
	key := []clause.Column{{Name: "tenant_id"}, {Name: "id"}}
	accounts := []Account{
		{TenantID: tenant.ID, ID: 1, Mail: "first@new", Balance: 5},
		{TenantID: tenant.ID, ID: 9, Mail: "ninth@new", Balance: 7},
	}
	result := db.Clauses(clause.OnConflict{
		Columns: key, DoUpdates: clause.AssignmentColumns([]string{"mail", "balance"}),
	}).Create(&accounts)
	fmt.Println("upsert", result.RowsAffected, result.Error)
	result = db.Clauses(clause.OnConflict{Columns: key, DoUpdates: clause.Assignments(map[string]any{
		"balance": gorm.Expr("accounts.balance + excluded.balance"),
	})}, clause.Returning{}).Create(&accounts)
	fmt.Println("added", result.RowsAffected, result.Error, accounts[0].Balance, accounts[1].Balance)
	result = db.Clauses(clause.OnConflict{DoNothing: true}).Create(&accounts)
	fmt.Println("nothing", result.RowsAffected, result.Error)
	result = db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&Plan{Name: "free", Price: 1})
	fmt.Println("all", result.RowsAffected, result.Error)
	var found Account
	result = db.Where(Account{TenantID: tenant.ID, Mail: "made@new"}).Attrs(Account{ID: 10}).FirstOrCreate(&found)
	fmt.Println("made", found.ID, found.State, result.RowsAffected, result.Error)
	return nil
}

func read(db *gorm.DB, tenant *Tenant) error {
	byID := func(db *gorm.DB) *gorm.DB { return db.Order("id") }
	var whole Tenant
	err := db.Joins("Plan").Preload("Accounts", byID).Preload("Accounts.Orders", byID).
		Preload("Accounts.Orders.Lines", func(db *gorm.DB) *gorm.DB { return db.Order("number") }).
		Preload("Accounts.Orders.Labels", byID).First(&whole, tenant.ID).Error
	if err != nil {
		return err
	}
	fmt.Println(whole.Plan.Name, whole.Plan.Price, whole.Settings)
	for _, account := range whole.Accounts {
		fmt.Println(account.ID, account.Balance, account.State, len(account.Orders))
		for _, order := range account.Orders {
			fmt.Println("  ", order.Total, order.Tags, len(order.Lines), len(order.Labels))
		}
	}
	var sums []struct {
		PlanName string
		State    string
		Orders   int64
		Total    float64
	}
	err = db.Model(&Order{}).Select("tenants.plan_name, accounts.state, count(*) AS orders, sum(orders.total) AS total").
		Joins("JOIN accounts ON accounts.tenant_id = orders.tenant_id AND accounts.id = orders.account_id").
		Joins("JOIN tenants ON tenants.id = orders.tenant_id").
		Group("tenants.plan_name, accounts.state").Having("count(*) > ?", 1).Order("1, 2").Scan(&sums).Error
	fmt.Println("sums", sums, err)
	var mails []string
	err = db.Model(&Account{}).Where("tenant_id IN (?)", db.Model(&Tenant{}).Select("max(id)")).
		Order("mail").Pluck("mail", &mails).Error
	fmt.Println("mails", len(mails), err)
	var count int64
	err = db.Model(&Tenant{}).Where("settings @> ?::jsonb", `{"number": 1}`).Count(&count).Error
	fmt.Println("json", count, err)
	err = db.Model(&Order{}).Where("? = ANY (tags)", "größer").Distinct("tenant_id").Count(&count).Error
	fmt.Println("tags", count, err)
	var batch []Order
	sizes := []int{}
	result := db.Where("tenant_id = ?", tenant.ID-1).FindInBatches(&batch, 50, func(*gorm.DB, int) error {
		sizes = append(sizes, len(batch))
		return nil
	})
	fmt.Println("batches", sizes, result.RowsAffected, result.Error)
	rows, err := db.Model(&Line{}).Where("tenant_id = ?", tenant.ID).Order("order_id, number").Limit(3).Offset(1).Rows()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var line Line
		if err := db.ScanRows(rows, &line); err != nil {
			return err
		}
		fmt.Println("line", line.Number, line.Text, line.Count)
	}
	return rows.Err()
}

// Associations of many with many.
func labels(db *gorm.DB, tenant *Tenant) error {
	var order Order
	if err := db.Where("tenant_id = ?", tenant.ID).Order("id DESC").First(&order).Error; err != nil {
		return err
	}
	var all []Label
	if err := db.Order("id").Find(&all).Error; err != nil {
		return err
	}
	many := func() *gorm.Association { return db.Model(&order).Association("Labels") }
	fmt.Println("labels", many().Count())
	fmt.Println("append", many().Append(&all[2]), many().Count())
	fmt.Println("delete", many().Delete(&all[0]), many().Count())
	fmt.Println("replace", many().Replace(all), many().Count())
	fmt.Println("clear", many().Clear(), many().Count())
	return nil
}

func change(db *gorm.DB, tenant *Tenant) error {
	result := db.Model(&Account{}).Where("balance > ?", 0.3).Updates(map[string]any{
		"state": "active", "balance": gorm.Expr("balance * ?", 2),
	})
	fmt.Println("updated", result.RowsAffected, result.Error)
	var active []Account
	result = db.Model(&active).Clauses(clause.Returning{Columns: []clause.Column{{Name: "id"}, {Name: "state"}}}).
		Where("tenant_id = ? AND id = 2", tenant.ID).Update("state", "closed")
	fmt.Println("returned", len(active), active[0].State, result.Error)
	account := Account{TenantID: tenant.ID, ID: 3}
	if err := db.Take(&account).Error; err != nil {
		return err
	}
	account.Mail = "saved@new"
	fmt.Println("saved", db.Save(&account).Error)
	result = db.Delete(&Account{}, "tenant_id = ? AND id > 8", tenant.ID)
	fmt.Println("marked", result.RowsAffected, result.Error)
	var seen, there int64
	db.Model(&Account{}).Where("tenant_id = ?", tenant.ID).Count(&seen)
	db.Unscoped().Model(&Account{}).Where("tenant_id = ?", tenant.ID).Count(&there)
	fmt.Println("seen", seen, "of", there)
	result = db.Where("total > ?", 100).Delete(&Order{})
	fmt.Println("orders", result.RowsAffected, result.Error)
	result = db.Exec("DELETE FROM order_labels WHERE tenant_id >= ?", tenant.ID)
	fmt.Println("their labels", result.RowsAffected, result.Error)
	result = db.Select(clause.Associations).Delete(&Account{TenantID: tenant.ID, ID: 4})
	fmt.Println("with what it has", result.RowsAffected, result.Error)
	result = db.Unscoped().Delete(&Account{}, "deleted_at IS NOT NULL")
	fmt.Println("deleted", result.RowsAffected, result.Error)
	result = db.Unscoped().Where("tenant_id = ?", tenant.ID+1).Delete(&Order{})
	fmt.Println("its orders", result.RowsAffected, result.Error)
	return db.Unscoped().Select("Accounts").Delete(&Tenant{ID: tenant.ID + 1}).Error
}

// Transactions that are given up, in part and as a whole.
func undone(db *gorm.DB, tenant *Tenant) error {
	give := errors.New("given up")
	err := db.Transaction(func(tx *gorm.DB) error {
		var locked []Account
		err := tx.Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).Where("tenant_id = ?", tenant.ID).
			Order("id").Find(&locked).Error
		fmt.Println("locked", len(locked), err)
		inner := tx.Transaction(func(tx *gorm.DB) error {
			fmt.Println("all", tx.Where("true").Delete(&Line{}).Error)
			return give
		})
		var lines int64
		tx.Model(&Line{}).Where("tenant_id = ?", tenant.ID).Count(&lines)
		fmt.Println("inner", inner, lines > 0)
		tx.SavePoint("here")
		failed := tx.Create(&Account{TenantID: tenant.ID, ID: 1, Mail: "x"}).Error
		fmt.Println("failed", failed, tx.RollbackTo("here").Error)
		fmt.Println("renamed", tx.Model(tenant).Update("name", "renamed").Error)
		return give
	})
	fmt.Println("outer", err)
	var name string
	err = db.Model(&Tenant{}).Where("id = ?", tenant.ID).Pluck("left(name, 6)", &name).Error
	fmt.Println("name", name)
	return err
}

// Errors, as GORM names them.
func wrong(db *gorm.DB, tenant *Tenant) error {
	err := db.Create(&Account{TenantID: tenant.ID, ID: 77, Mail: "first@new"}).Error
	fmt.Println(err, errors.Is(err, gorm.ErrDuplicatedKey))
	err = db.Create(&Tenant{Name: "x", PlanName: "nothing"}).Error
	fmt.Println(err, errors.Is(err, gorm.ErrForeignKeyViolated))
	err = db.Create(&Order{TenantID: tenant.ID, AccountID: 99, Total: 1}).Error
	fmt.Println(err, errors.Is(err, gorm.ErrForeignKeyViolated))
	err = db.Model(&Line{}).Where("number = 1").Update("count", 0).Error
	fmt.Println(err, errors.Is(err, gorm.ErrCheckConstraintViolated))
	fmt.Println(db.Model(&Account{}).Where("id = 1").Update("state", "nowhere").Error)
	fmt.Println(db.First(&Account{}, "tenant_id = ? AND id = 1000", tenant.ID).Error)
	fmt.Println(db.Delete(&Plan{}, "true").Error)
	fmt.Println(db.Delete(&Order{}).Error)
	return nil
}
