package main

import (
	"time"

	"github.com/uptrace/bun"
)

// A small table that all tenants share.
type Plan struct {
	bun.BaseModel `bun:"table:plan"`

	Name  string `bun:",pk,type:varchar(20)"`
	Cents int64  `bun:",notnull,default:0"`
}

type Tenant struct {
	bun.BaseModel `bun:"table:tenant"`

	ID       int64          `bun:",pk,identity,nullzero"`
	Name     string         `bun:",notnull,type:varchar(60)"`
	PlanName string         `bun:",notnull,type:varchar(20),nullzero,default:'free'"`
	Settings map[string]any `bun:"type:jsonb,notnull"`
	Plan     *Plan          `bun:"rel:belongs-to,join:plan_name=name"`
	Accounts []*Account     `bun:"rel:has-many,join:id=tenant_id"`
}

type Account struct {
	bun.BaseModel `bun:"table:account"`

	TenantID int64  `bun:",pk,unique:account_mail"`
	ID       int64  `bun:",pk"`
	Mail     string `bun:",notnull,unique:account_mail"`
	Cents    int64  `bun:",notnull,default:0"`
	State    string `bun:"type:state,notnull,nullzero,default:'new'"`
	// Rows that are deleted stay, marked.
	DeletedAt time.Time `bun:",soft_delete,nullzero"`
	Tenant    *Tenant   `bun:"rel:belongs-to,join:tenant_id=id"`
	Orders    []*Order  `bun:"rel:has-many,join:tenant_id=tenant_id,join:id=account_id"`
}

type Order struct {
	bun.BaseModel `bun:"table:orders,alias:o"`

	TenantID  int64    `bun:",pk"`
	ID        int64    `bun:",pk,autoincrement"`
	AccountID int64    `bun:",notnull"`
	Cents     int64    `bun:",notnull"`
	Tags      []string `bun:",array"`
	Account   *Account `bun:"rel:belongs-to,join:tenant_id=tenant_id,join:account_id=id"`
}

// The tables as a later version has them, which Bun finds out by itself.
type newerTenant struct {
	bun.BaseModel `bun:"table:tenant"`

	ID       int64          `bun:",pk,identity"`
	Name     string         `bun:",notnull"`
	PlanName string         `bun:",notnull,type:varchar(20),default:'free'"`
	Settings map[string]any `bun:"type:jsonb"`
	City     string         `bun:",nullzero"`
	Plan     *Plan          `bun:"rel:belongs-to,join:plan_name=name"`
}

type newerAccount struct {
	bun.BaseModel `bun:"table:account"`

	TenantID  int64     `bun:",pk,unique:account_mail"`
	ID        int64     `bun:",pk"`
	Mail      string    `bun:",notnull,unique:account_mail"`
	Money     int64     `bun:"cents,notnull,default:5"`
	State     string    `bun:"type:state,notnull,default:'new'"`
	Nick      string    `bun:"short_name,notnull,default:''"`
	DeletedAt time.Time `bun:",soft_delete,nullzero"`

	Tenant *newerTenant `bun:"rel:belongs-to,join:tenant_id=id"`
}

type invoice struct {
	bun.BaseModel `bun:"table:invoice"`

	TenantID int64        `bun:",pk"`
	Number   int64        `bun:",pk"`
	Total    int64        `bun:",notnull"`
	Tenant   *newerTenant `bun:"rel:belongs-to,join:tenant_id=id"`
}
