// Reads and writes by the entities, and prints what comes of it.
'use strict';
const { In, MoreThan, Raw } = require('typeorm');
const source = require('./data_source');

const show = (name, value) => console.log(name, JSON.stringify(value));
const range = n => [...Array(n).keys()];
const failure = async promise => {
  try {
    await promise;
  } catch (e) {
    return [e.name, e.code, e.driverError && e.driverError.constraint];
  }
  return 'no error';
};

const main = async () => {
  await source.initialize();
  const { manager } = source;
  const [countries, tenants, accounts, events, busy] = ['Country', 'Tenant', 'Account', 'Event', 'Busy'].map(name =>
    source.getRepository(name),
  );
  await countries.upsert(
    [
      { code: 'de', name: 'Germany' },
      { code: 'pe', name: 'Perú' },
    ],
    ['code'],
  );
  const made = await tenants.save(
    range(3).map(n => ({ name: `tenant ${n}`, country: { code: ['de', 'pe'][n % 2] }, made: '2024-02-29T12:00:00Z' })),
  );
  const ids = made.map(tenant => tenant.id);
  const [first, second, third] = ids;
  show('tenants', ids);
  await source.transaction(async inside => {
    for (const tenantId of ids) {
      await inside.save(
        'Account',
        range(5).map(id => ({ tenantId, id: String(id), mail: `${id}@there`, balance: id / 4 })),
        { chunk: 2 },
      );
    }
    await inside.insert(
      'Event',
      ids.flatMap(tenantId =>
        range(20).map(n => ({ tenantId, account: n % 5, body: { n }, tags: ['a', 'é'].slice(0, n % 3) })),
      ),
    );
  });
  show(
    'joined',
    await events
      .createQueryBuilder('e')
      .innerJoin('e.owner', 'a')
      .innerJoin('a.tenant', 't')
      .leftJoin('t.country', 'c')
      .select(['c.name AS name', 'a.id AS id', 'count(*) AS n', 'sum(a.balance) AS balance'])
      .groupBy('c.name, a.id')
      .having('a.id > :least', { least: 2 })
      .orderBy('c.name')
      .addOrderBy('a.id', 'DESC')
      .getRawMany(),
  );
  // A query for the keys of what is to be taken, and one with all that belongs to them.
  show(
    'with what belongs to it',
    await tenants.find({
      select: {
        id: true,
        country: { name: true },
        accounts: { id: true, balance: true, events: { id: true, body: true } },
      },
      relations: { country: true, accounts: { events: true } },
      where: { id: In(ids), accounts: { id: MoreThan(3) } },
      order: { id: 'DESC', accounts: { id: 'ASC', events: { id: 'DESC' } } },
      skip: 1,
      take: 2,
    }),
  );
  show(
    'counted',
    await events.findAndCount({ select: { body: true }, where: { tenantId: second }, order: { id: 'ASC' }, take: 2 }),
  );
  show(
    'in a subquery',
    await accounts
      .createQueryBuilder('a')
      .select('a.id')
      .where(q => `a.tenantId IN ${q.subQuery().select('max(t.id)').from('Tenant', 't').getQuery()}`)
      .orderBy('a.id')
      .getMany(),
  );
  show(
    'upsert',
    await accounts
      .upsert(
        [
          { tenantId: first, id: '1', mail: 'other', balance: 7 },
          { tenantId: first, id: '9', mail: '9@there', balance: 9 },
        ],
        { conflictPaths: ['tenantId', 'id'], skipUpdateIfNoValuesChanged: true },
      )
      .then(result => result.identifiers),
  );
  show('updated', (await accounts.update({ id: In(['3', '4']) }, { state: 'paid' })).affected);
  show('more', (await accounts.increment({ tenantId: third }, 'balance', 2.5)).affected);
  show(
    'returned',
    (
      await accounts
        .createQueryBuilder()
        .update()
        .set({ mail: () => "'0@' || tenant_id" })
        .where({ tenantId: second, id: '0' })
        .returning(['mail'])
        .execute()
    ).raw,
  );
  const one = await accounts.findOneByOrFail({ tenantId: second, id: '2' });
  one.balance = '12.50';
  one.mail = 'two@there';
  await accounts.save(one);
  show('saved', await accounts.findOneBy({ tenantId: second, mail: 'two@there' }));
  show('json', await events.countBy({ body: Raw(column => `${column} @> :part`, { part: { n: 3 } }) }));
  show('sums', [await accounts.sum('balance', { tenantId: first }), await events.maximum('id', { tenantId: first })]);
  show('exists', [await events.existsBy({ tenantId: first }), await events.existsBy({ tenantId: '-1' })]);
  show(
    'view',
    (await busy.find({ where: { tenantId: In(ids) }, order: { tenantId: 'ASC' } })).map(row => row.events),
  );
  let rows = 0;
  for await (const row of await events.createQueryBuilder('e').select('e.body').stream()) {
    rows += row.e_body.n;
  }
  show('streamed', rows);
  show(
    'locked',
    await manager.transaction('READ COMMITTED', inside =>
      inside.find('Event', {
        select: { account: true, tags: true },
        where: { tenantId: first },
        order: { id: 'ASC' },
        take: 2,
        lock: { mode: 'pessimistic_write', onLocked: 'skip_locked' },
      }),
    ),
  );
  await manager
    .transaction(async inside => {
      await inside.delete('Event', { tenantId: first });
      await inside.transaction(inner => inner.update('Account', { tenantId: first }, { balance: 0 }));
      show('inside', await inside.countBy('Event', { tenantId: first }));
      throw new Error('changed our mind');
    })
    .catch(e => show('rolled back', e.message));
  await manager.transaction(async inside => {
    const twice = { tenantId: first, id: '1', mail: 'x' };
    show('unique', await failure(inside.transaction(inner => inner.insert('Account', twice))));
    show('after that', await inside.sum('Account', 'balance', { tenantId: first }));
  });
  show('foreign key', await failure(tenants.insert({ name: 'x', country: { code: 'xx' } })));
  show('check', await failure(accounts.insert({ tenantId: first, id: '77', mail: 'c', balance: -100 })));
  show('no value', await failure(accounts.insert({ tenantId: first, id: '78' })));
  await accounts.remove(await accounts.findBy({ tenantId: second, id: '4' }));
  show('gone with it', (await tenants.delete(third)).affected);
  show('left', await events.countBy({ tenantId: In(ids) }));
};

main()
  .catch(e => {
    console.log(e);
    process.exitCode = 1;
  })
  .finally(() => source.destroy());
