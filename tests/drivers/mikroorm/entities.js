// Tenants with accounts and events: as they are first, and with MODELS=2 and 3 as an application has them later.
'use strict';
const { BigIntType, EntitySchema } = require('@mikro-orm/core');

const stage = Number(process.env.MODELS || 1);
const from = (first, more) => (stage >= first ? more : undefined);
const listed = (...all) => all.filter(Boolean);
const number = new BigIntType('number');

const Country = new EntitySchema({
  name: 'Country',
  comment: 'where tenants are',
  properties: {
    code: { type: 'character', length: 2, primary: true },
    name: { type: 'text', comment: 'in its own words' },
  },
});
const Tenant = new EntitySchema({
  name: 'Tenant',
  properties: {
    id: { type: number, primary: true, autoincrement: true },
    name: { type: 'string', length: stage >= 2 ? 80 : 60 },
    country: { kind: 'm:1', entity: () => 'Country', fieldName: 'country', deleteRule: 'restrict' },
    made: { type: 'datetime', defaultRaw: 'now()' },
    accounts: { kind: '1:m', entity: () => 'Account', mappedBy: 'tenant' },
  },
});
const Account = new EntitySchema({
  name: 'Account',
  properties: {
    tenant: { kind: 'm:1', entity: () => 'Tenant', primary: true, deleteRule: 'cascade' },
    id: { type: number, primary: true, autoincrement: false },
    mail: { type: 'text' },
    balance: { type: 'decimal', precision: stage >= 2 ? 20 : 12, scale: 2, default: 0 },
    state: {
      enum: true,
      items: stage >= 2 ? ['new', 'paid', 'closed', 'lost'] : ['new', 'paid', 'closed'],
      nativeEnumName: 'state',
      default: 'new',
    },
    plan: { enum: true, items: ['free', 'full'], default: 'free' },
    ...from(2, { nick: { type: 'text', nullable: true } }),
    events: { kind: '1:m', entity: () => 'Event', mappedBy: 'owner' },
  },
  uniques: [{ name: 'account_mail', properties: ['tenant', 'mail'] }],
  checks: [
    stage >= 2 ? { name: 'debts', expression: 'balance > -10' } : { name: 'no_debts', expression: 'balance >= 0' },
  ],
  indexes: listed(
    from(2, {
      name: 'account_lower',
      expression: 'create index "account_lower" on "account" ("tenant_id", lower("mail"))',
    }),
  ),
});
const Event = new EntitySchema({
  name: 'Event',
  properties: {
    tenant: { kind: 'm:1', entity: () => 'Tenant', primary: true, deleteRule: 'cascade' },
    id: { type: number, primary: true, autoincrement: true },
    owner: {
      kind: 'm:1',
      entity: () => 'Account',
      nullable: true,
      joinColumns: ['tenant_id', 'account'],
      ownColumns: ['account'],
      referencedColumnNames: ['tenant_id', 'id'],
      deleteRule: 'cascade',
    },
    body: { type: 'json', defaultRaw: `'{}'` },
    tags: { type: 'array', columnType: 'text[]', defaultRaw: `'{}'` },
    ...(stage < 2 ? { mark: { type: 'uuid', nullable: true } } : {}),
    ...from(2, { seen: { type: 'boolean', default: false } }),
    ...from(3, {
      n: { type: 'integer', generated: "((body ->> 'n')::integer) stored", nullable: true },
      day: { type: 'date', defaultRaw: "'2024-02-29'" },
    }),
  },
  checks: listed(from(3, { name: 'event_tags', expression: 'cardinality(tags) < 10' })),
  indexes: listed(
    { name: 'event_body', properties: ['body'], type: 'gin' },
    from(3, { name: 'event_seen', properties: ['tenant', 'seen'] }),
  ),
});
const Invoice = new EntitySchema({
  name: 'Invoice',
  properties: {
    tenant: { kind: 'm:1', entity: () => 'Tenant', primary: true },
    number: { type: 'integer', primary: true, autoincrement: false },
    total: { type: 'decimal', precision: 14, scale: 2 },
  },
});

module.exports = listed(Country, Tenant, Account, Event, from(2, Invoice));
