// Tenants with accounts and events: as they are first, and with MODELS=2 and 3 as an application has them later.
'use strict';
const { relations, sql } = require('drizzle-orm');
const pg = require('drizzle-orm/pg-core');

const stage = Number(process.env.MODELS || 1);
const from = (first, more) => (stage >= first ? more : undefined);
const listed = (...all) => all.filter(Boolean);

const state = pg.pgEnum('state', listed('new', 'paid', from(2, 'lost'), 'closed'));

const country = pg.pgTable('country', {
  code: pg.char('code', { length: 2 }).primaryKey(),
  name: pg.text('name').notNull(),
});

const tenant = pg.pgTable('tenant', {
  id: pg.bigint('id', { mode: 'number' }).primaryKey().generatedByDefaultAsIdentity(),
  name: pg.varchar('name', { length: stage >= 2 ? 80 : 60 }).notNull(),
  country: pg
    .char('country', { length: 2 })
    .notNull()
    .references(() => country.code, { onDelete: 'restrict' }),
  made: pg.timestamp('made', { withTimezone: true, mode: 'string' }).notNull().defaultNow(),
});

const account = pg.pgTable(
  'account',
  {
    tenantId: pg
      .bigint('tenant_id', { mode: 'number' })
      .notNull()
      .references(() => tenant.id, { onDelete: 'cascade' }),
    id: pg.bigint('id', { mode: 'number' }).notNull(),
    mail: pg.text('mail').notNull(),
    balance: pg
      .numeric('balance', { precision: stage >= 2 ? 20 : 12, scale: 2 })
      .notNull()
      .default('0'),
    state: state('state').notNull().default('new'),
    ...from(2, { nick: pg.text('nick'), active: pg.boolean('active').notNull().default(true) }),
  },
  t =>
    listed(
      pg.primaryKey({ columns: [t.tenantId, t.id] }),
      pg.unique('account_mail').on(t.tenantId, t.mail),
      pg.check('account_balance', stage >= 2 ? sql`${t.balance} > -10` : sql`${t.balance} >= 0`),
      from(2, pg.index('account_lower').on(t.tenantId, sql`lower(${t.mail})`)),
      // Only push can, which has no transaction.
      from(3, pg.index('account_last').on(t.tenantId, t.id.desc().nullsLast()).concurrently()),
    ),
);

const event = pg.pgTable(
  'event',
  {
    tenantId: pg.bigint('tenant_id', { mode: 'number' }).notNull(),
    id: pg.bigserial('id', { mode: 'number' }).notNull(),
    account: pg.bigint('account', { mode: 'number' }),
    body: pg.jsonb('body').notNull().default({}),
    tags: pg.text('tags').array().notNull().default([]),
    ...(stage < 2 ? { mark: pg.uuid('mark').default('00000000-0000-0000-0000-000000000000') } : {}),
    ...from(3, {
      n: pg.integer('n').generatedAlwaysAs(sql`(body ->> 'n')::integer`),
      day: pg.date('day').notNull().default('2024-02-29'),
    }),
  },
  t =>
    listed(
      pg.primaryKey({ columns: [t.tenantId, t.id] }),
      pg
        .foreignKey({
          name: 'event_account',
          columns: [t.tenantId, t.account],
          foreignColumns: [account.tenantId, account.id],
        })
        .onDelete('cascade'),
      stage < 3 ? pg.index('event_body').using('gin', t.body) : undefined,
      from(
        2,
        pg
          .index('event_tagged')
          .on(t.tenantId, t.id)
          .where(sql`cardinality(${t.tags}) > 0`),
      ),
      from(3, pg.check('event_tags', sql`cardinality(${t.tags}) < 10`)),
    ),
);

const invoice = pg.pgTable(
  'invoice',
  {
    tenantId: pg
      .bigint('tenant_id', { mode: 'number' })
      .notNull()
      .references(() => tenant.id),
    number: pg.integer('number').notNull(),
    total: pg.numeric('total', { precision: 14, scale: 2 }).notNull(),
  },
  t => [pg.primaryKey({ name: 'invoice_pk', columns: [t.tenantId, t.number] })],
);

const busy = pg.pgView('busy').as(q =>
  q
    .select({ tenantId: event.tenantId, events: sql`count(*)`.as('events') })
    .from(event)
    .groupBy(event.tenantId),
);

module.exports = {
  state,
  country,
  tenant,
  account,
  event,
  busy,
  ...from(2, { invoice }),
  tenantRelations: relations(tenant, ({ one, many }) => ({
    accounts: many(account),
    place: one(country, { fields: [tenant.country], references: [country.code] }),
  })),
  accountRelations: relations(account, ({ one, many }) => ({
    tenant: one(tenant, { fields: [account.tenantId], references: [tenant.id] }),
    events: many(event),
  })),
  eventRelations: relations(event, ({ one }) => ({
    owner: one(account, { fields: [event.tenantId, event.account], references: [account.tenantId, account.id] }),
  })),
};
