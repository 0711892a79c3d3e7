// Reads and writes by a unit of work, and prints what comes of it.
'use strict';
const { LockMode, MikroORM, raw } = require('@mikro-orm/postgresql');
const config = require('./mikro-orm.config');

const show = (name, value) => console.log(name, JSON.stringify(value));
const range = n => [...Array(n).keys()];
const failure = async promise => {
  try {
    await promise;
  } catch (e) {
    return [e.name, e.code, e.constraint];
  }
  return 'no error';
};

const main = async orm => {
  const em = orm.em.fork();
  // It orders and batches what has been noted by then.
  const made = range(3).map(n =>
    em.create('Tenant', { name: `tenant ${n}`, country: ['de', 'pe'][n % 2], made: new Date('2024-02-29T12:00:00Z') }),
  );
  for (const tenant of made) {
    const accounts = range(5).map(id =>
      em.create('Account', { tenant, id, mail: `${id}@there`, balance: String(id / 4) }),
    );
    for (const n of range(20)) {
      em.create('Event', { tenant, owner: accounts[n % 5], body: { n }, tags: ['a', 'é'].slice(0, n % 3) });
    }
  }
  await em.flush();
  const ids = made.map(tenant => tenant.id);
  const [first, second, third] = ids;
  show('tenants', ids);
  em.clear();
  show(
    'with what belongs to it',
    (
      await em.find(
        'Tenant',
        { id: ids, accounts: { id: { $gt: 3 } } },
        {
          fields: ['id', 'country.name', 'accounts.balance', 'accounts.events.body'],
          populate: ['country', 'accounts.events'],
          orderBy: { id: 'desc', accounts: { id: 'asc', events: { id: 'desc' } } },
          limit: 2,
        },
      )
    ).map(tenant => JSON.parse(JSON.stringify(tenant))),
  );
  em.clear();
  const [found, count] = await em.findAndCount('Event', { tenant: second }, { orderBy: { id: 'asc' }, limit: 2 });
  show('counted', [count, found.map(event => [event.body, event.tags])]);
  show(
    'joined',
    await em
      .createQueryBuilder('Event', 'e')
      .select(['c.name', 'a.id', raw('count(*) as n'), raw('sum(a.balance) as balance')])
      .join('e.owner', 'a')
      .join('a.tenant', 't')
      .leftJoin('t.country', 'c')
      .groupBy(['c.name', 'a.id'])
      .having({ 'a.id': { $gt: 2 } })
      .orderBy({ 'c.name': 'asc', 'a.id': 'desc' })
      .execute('all', false),
  );
  const upserted = await em.upsert('Account', { tenant: first, id: 1, mail: 'other', balance: '7' });
  show('upsert', [upserted.mail, upserted.balance]);
  const many = await em.upsertMany('Account', [
    { tenant: first, id: 2, mail: 'two@there', balance: '2' },
    { tenant: first, id: 9, mail: '9@there', balance: '9' },
  ]);
  show(
    'upserted',
    many.map(account => [account.id, account.balance, account.state]),
  );
  show('updated', await em.nativeUpdate('Account', { id: [3, 4] }, { state: 'paid' }));
  show('more', await em.nativeUpdate('Account', { tenant: third }, { balance: raw('balance + 2.5') }));
  em.clear();
  for (const account of await em.find('Account', { tenant: second }, { orderBy: { id: 'asc' } })) {
    account.mail = `${account.id}@elsewhere`;
    account.balance = String(account.id);
  }
  const last = await em.findOneOrFail('Event', { tenant: second, body: { n: 19 } });
  last.body = { ...last.body, more: ['é', null] };
  last.tags.push('changed');
  em.remove(await em.findOneOrFail('Event', { tenant: second, body: { n: 18 } }));
  await em.flush();
  em.clear();
  show('flushed', await em.count('Account', { mail: { $like: '%@elsewhere' }, tenant: second }));
  const changed = await em.findOneOrFail(
    'Event',
    { tenant: second, tags: { $contains: ['changed'] } },
    { populate: ['owner'] },
  );
  show('changed', [changed.body, changed.tags, changed.owner.mail]);
  show('json', await em.count('Event', { body: { n: { $gte: 15 } }, tenant: ids }));
  show(
    'some',
    (await em.find('Tenant', { id: ids, accounts: { $some: { balance: { $gt: 5 } } } })).map(tenant => tenant.id),
  );
  show('none', (await em.find('Tenant', { id: ids, accounts: { $none: { state: 'paid' } } })).length);
  await em.transactional(async inside => {
    const locked = await inside.find(
      'Event',
      { tenant: first },
      { orderBy: { id: 'asc' }, limit: 2, lockMode: LockMode.PESSIMISTIC_PARTIAL_WRITE },
    );
    show(
      'locked',
      locked.map(event => event.tags),
    );
  });
  await em
    .transactional(async inside => {
      await inside.nativeDelete('Event', { tenant: first });
      await inside.transactional(inner => inner.nativeUpdate('Account', { tenant: first }, { balance: 0 }));
      show('inside', await inside.count('Event', { tenant: first }));
      throw new Error('changed our mind');
    })
    .catch(e => show('rolled back', e.message));
  await em.transactional(async inside => {
    const twice = { tenant: first, id: 1, mail: 'x', balance: 0 };
    show('unique', await failure(inside.transactional(inner => inner.insert('Account', twice))));
    show('after that', await inside.count('Account', { tenant: first }));
  });
  show('foreign key', await failure(em.insert('Tenant', { name: 'x', country: 'xx', made: new Date(0) })));
  show('check', await failure(em.insert('Account', { tenant: first, id: 77, mail: 'c', balance: -100 })));
  show('no value', await failure(em.insert('Account', { tenant: first, id: 78 })));
  show('gone', await em.nativeDelete('Account', { tenant: second, id: 4 }));
  show('gone with it', await em.nativeDelete('Tenant', { id: third }));
  show('left', await em.count('Event', { tenant: ids }));
};

MikroORM.init(config).then(orm =>
  main(orm)
    .catch(e => {
      console.log(e);
      process.exitCode = 1;
    })
    .finally(() => orm.close(true)),
);
