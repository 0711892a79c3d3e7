package main

import (
	"github.com/lib/pq"
	"gorm.io/gorm"
)

// A small table that all tenants share.
type Plan struct {
	Name  string  `gorm:"primaryKey;size:20"`
	Price float64 `gorm:"type:numeric(8,2);not null;default:0;check:plan_price,price >= 0;comment:a month"`
}

type Label struct {
	ID   int64  `gorm:"primaryKey"`
	Name string `gorm:"uniqueIndex;not null"`
}

type Tenant struct {
	ID       int64          `gorm:"primaryKey"`
	Name     string         `gorm:"size:60;not null;index"`
	PlanName string         `gorm:"size:20;not null"`
	Plan     Plan           `gorm:"foreignKey:PlanName;references:Name"`
	Settings map[string]any `gorm:"type:jsonb;serializer:json;not null;default:'{}'"`
	Accounts []Account      `gorm:"foreignKey:TenantID"`
}

type Account struct {
	TenantID int64   `gorm:"primaryKey;autoIncrement:false;uniqueIndex:account_mail,priority:1"`
	ID       int64   `gorm:"primaryKey;autoIncrement:false"`
	Mail     string  `gorm:"not null;uniqueIndex:account_mail,priority:2"`
	Balance  float64 `gorm:"type:numeric(12,2);not null;default:0"`
	State    string  `gorm:"type:state;not null;default:new"`
	Orders   []Order `gorm:"foreignKey:TenantID,AccountID;references:TenantID,ID"`
	// Rows that are deleted stay, marked.
	DeletedAt gorm.DeletedAt `gorm:"index"`
}

type Order struct {
	TenantID  int64          `gorm:"primaryKey;autoIncrement:false"`
	ID        int64          `gorm:"primaryKey;autoIncrement"`
	AccountID int64          `gorm:"not null"`
	Total     float64        `gorm:"type:numeric(12,2);not null"`
	Tags      pq.StringArray `gorm:"type:text[];not null;default:'{}';index:order_tags,type:gin"`
	Lines     []Line         `gorm:"foreignKey:TenantID,OrderID;references:TenantID,ID;constraint:OnDelete:CASCADE"`
	Labels    []Label        `gorm:"many2many:order_labels;joinForeignKey:TenantID,OrderID;joinReferences:LabelID"`
}

type Line struct {
	TenantID int64 `gorm:"primaryKey;autoIncrement:false"`
	OrderID  int64 `gorm:"primaryKey;autoIncrement:false"`
	Number   int   `gorm:"primaryKey;autoIncrement:false"`
	Text     string
	Count    int `gorm:"not null;default:1;check:count > 0"`
}

var models = []any{&Plan{}, &Label{}, &Tenant{}, &Account{}, &Order{}, &Line{}}

// The models of a later version, of the same tables: columns wider, new, with defaults and indexes.
type newerAccount struct {
	TenantID int64   `gorm:"primaryKey;autoIncrement:false"`
	ID       int64   `gorm:"primaryKey;autoIncrement:false"`
	Mail     string  `gorm:"not null;size:120"`
	Balance  float64 `gorm:"type:numeric(20,4);not null;default:0;check:account_balance,balance > -100"`
	Nick     *string `gorm:"size:40;index:account_nick,expression:lower(nick),where:nick IS NOT NULL"`
	Logins   int     `gorm:"not null;default:0"`
}

type newerOrder struct {
	TenantID int64         `gorm:"primaryKey;autoIncrement:false"`
	ID       int64         `gorm:"primaryKey;autoIncrement"`
	Note     string        `gorm:"not null;default:none;comment:for people"`
	Scores   pq.Int64Array `gorm:"type:bigint[]"`
}

type Invoice struct {
	TenantID int64   `gorm:"primaryKey;autoIncrement:false"`
	Number   int     `gorm:"primaryKey;autoIncrement:false"`
	PlanName *string `gorm:"size:20"`
	Plan     *Plan   `gorm:"foreignKey:PlanName;references:Name"`
	Total    float64 `gorm:"type:numeric(12,2);not null"`
}

func (newerAccount) TableName() string { return "accounts" }
func (newerOrder) TableName() string   { return "orders" }

var newerModels = []any{&newerAccount{}, &newerOrder{}, &Invoice{}}
