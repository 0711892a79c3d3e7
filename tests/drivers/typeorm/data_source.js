// Tenants with accounts and events: as they are first, with MODELS=2 as an application has them later, and with
// MODELS=3 after a migration by hand, and a little beyond it.
'use strict';
require('reflect-metadata');
const { join } = require('path');
const { DataSource, EntitySchema } = require('typeorm');

const stage = Number(process.env.MODELS || 1);
const from = (first, more) => (stage >= first ? more : undefined);
const listed = (...all) => all.filter(Boolean);

const Country = new EntitySchema({
  name: 'Country',
  tableName: 'country',
  columns: {
    code: { type: 'char', length: 2, primary: true },
    name: { type: 'text', comment: 'in its own words' },
  },
});
const Tenant = new EntitySchema({
  name: 'Tenant',
  tableName: 'tenant',
  columns: {
    id: { type: 'bigint', primary: true, generated: 'identity', generatedIdentity: 'BY DEFAULT' },
    // Another length would have it drop the column and add one that is empty.
    name: { type: 'varchar', length: 60 },
    made: { type: 'timestamptz', default: () => 'now()' },
  },
  relations: {
    country: {
      type: 'many-to-one',
      target: 'Country',
      joinColumn: { name: 'country', referencedColumnName: 'code' },
      nullable: false,
    },
    accounts: { type: 'one-to-many', target: 'Account', inverseSide: 'tenant' },
  },
});
const Account = new EntitySchema({
  name: 'Account',
  tableName: 'account',
  columns: {
    tenantId: { name: 'tenant_id', type: 'bigint', primary: true },
    id: { type: 'bigint', primary: true },
    mail: { type: 'text' },
    balance: { type: 'numeric', precision: stage >= 2 ? 20 : 12, scale: 2, default: 0 },
    state: {
      type: 'enum',
      enum: stage >= 2 ? ['new', 'paid', 'lost', 'closed'] : ['new', 'paid', 'closed'],
      enumName: 'state',
      default: 'new',
    },
    ...(stage === 2 ? { nick: { type: 'text', nullable: true } } : {}),
    ...from(3, { shortName: { name: 'short_name', type: 'text', default: '' } }),
  },
  relations: {
    tenant: {
      type: 'many-to-one',
      target: 'Tenant',
      inverseSide: 'accounts',
      joinColumn: { name: 'tenant_id' },
      onDelete: 'CASCADE',
    },
    events: { type: 'one-to-many', target: 'Event', inverseSide: 'owner' },
  },
  uniques: [{ name: 'account_mail', columns: ['tenantId', 'mail'] }],
  checks: [
    stage >= 2 ? { name: 'debts', expression: 'balance > -10' } : { name: 'no_debts', expression: 'balance >= 0' },
  ],
  indices: listed(from(2, { name: 'account_state', columns: ['state', 'balance'] })),
});
const Event = new EntitySchema({
  name: 'Event',
  tableName: 'event',
  columns: {
    tenantId: { name: 'tenant_id', type: 'bigint', primary: true },
    id: { type: 'bigint', primary: true, generated: 'increment' },
    account: { type: 'bigint', nullable: true },
    body: { type: 'jsonb', default: {} },
    tags: { type: 'text', array: true, default: () => "'{}'" },
    ...(stage < 2 ? { mark: { type: 'uuid', nullable: true } } : {}),
    ...from(2, { seen: { type: 'boolean', default: false } }),
    ...from(3, {
      n: { type: 'integer', asExpression: "(body ->> 'n')::integer", generatedType: 'STORED', nullable: true },
      day: { type: 'date', default: '2024-02-29' },
    }),
  },
  relations: {
    owner: {
      type: 'many-to-one',
      target: 'Account',
      inverseSide: 'events',
      joinColumn: [
        { name: 'tenant_id', referencedColumnName: 'tenantId' },
        { name: 'account', referencedColumnName: 'id' },
      ],
      onDelete: 'CASCADE',
      nullable: true,
    },
  },
  indices: listed(
    { name: 'event_account', columns: ['tenantId', 'account'], where: 'account IS NOT NULL' },
    from(2, { name: 'event_unseen', columns: ['tenantId', 'id'], where: 'NOT seen' }),
    // Its own way to say that entities do not know more.
    from(3, { name: 'event_body', columns: ['body'], synchronize: false }),
  ),
});
const Invoice = new EntitySchema({
  name: 'Invoice',
  tableName: 'invoice',
  columns: {
    tenantId: { name: 'tenant_id', type: 'bigint', primary: true },
    number: { type: 'integer', primary: true },
    total: { type: 'numeric', precision: 14, scale: 2 },
  },
  relations: { tenant: { type: 'many-to-one', target: 'Tenant', joinColumn: { name: 'tenant_id' } } },
});
const Busy = new EntitySchema({
  name: 'Busy',
  tableName: 'busy',
  type: 'view',
  expression: 'SELECT tenant_id, count(*) AS events FROM event GROUP BY tenant_id',
  columns: { tenantId: { name: 'tenant_id', type: 'bigint' }, events: { type: 'bigint' } },
});

module.exports = new DataSource({
  type: 'postgres',
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  username: process.env.PGUSER,
  database: process.env.PGDATABASE,
  entities: listed(Country, Tenant, Account, Event, from(2, Invoice), Busy),
  migrations: [join(__dirname, 'migrations', '*.js')],
});
