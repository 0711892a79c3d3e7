// Reads and writes by the models, and prints what comes of it.
'use strict';
const { drizzle } = require('drizzle-orm/node-postgres');
const o = require('drizzle-orm');
const { unionAll } = require('drizzle-orm/pg-core');
const { Pool } = require('pg');
const schema = require('./schema');

const { account, busy, country, event, tenant } = schema;
const { and, asc, count, desc, eq, gt, inArray, max, sql, sum } = o;
const pool = new Pool({ max: 4 });
const db = drizzle(pool, { schema });
const show = (name, value) => console.log(name, JSON.stringify(value));
const range = n => [...Array(n).keys()];
const failure = async promise => {
  try {
    await promise;
  } catch (e) {
    const { code, constraint, message } = e.cause || e;
    return [code, constraint || message];
  }
  return 'no error';
};

const main = async () => {
  await db
    .insert(country)
    .values([
      { code: 'de', name: 'Germany' },
      { code: 'pe', name: 'Perú' },
    ])
    .onConflictDoNothing();
  const made = await db
    .insert(tenant)
    .values(range(3).map(n => ({ name: `tenant ${n}`, country: ['de', 'pe'][n % 2], made: '2024-02-29T12:00:00Z' })))
    .returning({ id: tenant.id });
  const tenants = made.map(row => row.id).sort((a, b) => a - b);
  const [first, second, third] = tenants;
  show('tenants', tenants);
  await db.transaction(async tx => {
    for (const tenantId of tenants) {
      await tx
        .insert(account)
        .values(range(5).map(id => ({ tenantId, id, mail: `${id}@there`, balance: String(id / 4) })));
    }
    await tx
      .insert(event)
      .values(
        tenants.flatMap(tenantId =>
          range(20).map(n => ({ tenantId, account: n % 5, body: { n }, tags: ['a', 'é'].slice(0, n % 3) })),
        ),
      );
  });
  show(
    'joined',
    await db
      .select({ name: country.name, id: account.id, n: count(), balance: sum(account.balance) })
      .from(event)
      .innerJoin(account, and(eq(account.tenantId, event.tenantId), eq(account.id, event.account)))
      .innerJoin(tenant, eq(tenant.id, account.tenantId))
      .leftJoin(country, eq(country.code, tenant.country))
      .groupBy(country.name, account.id)
      .having(gt(account.id, 2))
      .orderBy(asc(country.name), desc(account.id)),
  );
  // One statement with lateral joins and aggregates of JSON.
  show(
    'with what belongs to it',
    await db.query.tenant.findMany({
      columns: { id: true },
      where: inArray(tenant.id, tenants),
      orderBy: asc(tenant.id),
      with: {
        place: { columns: { name: true } },
        accounts: {
          columns: { id: true, balance: true },
          orderBy: asc(account.id),
          limit: 2,
          with: { events: { columns: { body: true, tags: true }, orderBy: desc(event.id), limit: 2 } },
        },
      },
    }),
  );
  show(
    'first with its owner',
    await db.query.event.findFirst({
      columns: { body: true },
      where: and(eq(event.tenantId, second), sql`(${event.body} ->> 'n')::int = 7`),
      with: { owner: { columns: { mail: true }, with: { tenant: { columns: { country: true } } } } },
    }),
  );
  const rich = db.$with('rich').as(db.select().from(account).where(gt(account.balance, '0.5')));
  show(
    'with',
    await db
      .with(rich)
      .select({
        tenant: rich.tenantId,
        place: sql`row_number() OVER (PARTITION BY ${rich.tenantId} ORDER BY ${rich.id})::int`,
      })
      .from(rich)
      .where(inArray(rich.tenantId, tenants))
      .orderBy(rich.tenantId, sql`2`),
  );
  show(
    'upsert',
    await db
      .insert(account)
      .values({ tenantId: first, id: 1, mail: 'other', balance: '7' })
      .onConflictDoUpdate({
        target: [account.tenantId, account.id],
        set: { balance: sql`${account.balance} + excluded.balance` },
      })
      .returning({ balance: account.balance, mail: account.mail }),
  );
  show('updated', (await db.update(account).set({ state: 'paid' }).where(gt(account.id, 3))).rowCount);
  show(
    'updated from another',
    await db
      .update(account)
      .set({ mail: sql`'0@' || ${tenant.country}` })
      .from(tenant)
      .where(and(eq(tenant.id, account.tenantId), eq(tenant.id, second), eq(account.id, 0)))
      .returning({ mail: account.mail, country: tenant.country }),
  );
  const prepared = db
    .select({ n: count(), last: max(event.account) })
    .from(event)
    .where(and(eq(event.tenantId, sql.placeholder('tenant')), o.arrayContains(event.tags, sql.placeholder('tags'))))
    .prepare('tagged');
  for (const one of tenants) show('prepared', await prepared.execute({ tenant: one, tags: ['é'] }));
  show('count', await db.$count(event, eq(event.tenantId, first)));
  show(
    'exists',
    (
      await db
        .select({ id: tenant.id })
        .from(tenant)
        .where(o.exists(db.select().from(event).where(eq(event.tenantId, tenant.id))))
        .orderBy(tenant.id)
    ).length,
  );
  show(
    'distinct',
    await db
      .selectDistinctOn([account.state], { state: account.state, id: account.id })
      .from(account)
      .orderBy(account.state, account.id),
  );
  show(
    'view',
    (await db.select().from(busy).where(inArray(busy.tenantId, tenants)).orderBy(busy.tenantId)).map(row => row.events),
  );
  show(
    'union',
    await unionAll(db.select({ n: max(account.id) }).from(account), db.select({ n: max(event.account) }).from(event)),
  );
  show(
    'locked',
    await db.transaction(
      tx =>
        tx
          .select({ account: event.account, tags: event.tags })
          .from(event)
          .where(eq(event.tenantId, first))
          .orderBy(event.id)
          .limit(2)
          .for('update', { skipLocked: true }),
      { isolationLevel: 'read committed', accessMode: 'read write' },
    ),
  );
  await db
    .transaction(async tx => {
      await tx.delete(event).where(eq(event.tenantId, first));
      await tx.transaction(inner => inner.update(account).set({ balance: '0' }).where(eq(account.tenantId, first)));
      show('inside', await tx.$count(event, eq(event.tenantId, first)));
      tx.rollback();
    })
    .catch(e => show('rolled back', e.message));
  await db.transaction(async tx => {
    show(
      'unique',
      await failure(tx.transaction(inner => inner.insert(account).values({ tenantId: first, id: 1, mail: 'x' }))),
    );
    show(
      'after that',
      await tx
        .select({ sum: sum(account.balance) })
        .from(account)
        .where(eq(account.tenantId, first)),
    );
  });
  show('foreign key', await failure(db.insert(tenant).values({ name: 'x', country: 'xx' })));
  show('check', await failure(db.insert(account).values({ tenantId: first, id: 77, mail: 'c', balance: '-100' })));
  show('enum', await failure(db.update(account).set({ state: 'no' }).where(eq(account.tenantId, first))));
  show(
    'deleted',
    await db
      .delete(account)
      .where(and(eq(account.tenantId, second), eq(account.id, 4)))
      .returning({ id: account.id, mail: account.mail }),
  );
  show('gone with it', (await db.delete(tenant).where(eq(tenant.id, third))).rowCount);
  show('left', await db.select({ n: count() }).from(event).where(inArray(event.tenantId, tenants)));
};

main()
  .catch(e => {
    console.log(e);
    process.exitCode = 1;
  })
  .finally(() => pool.end());
