// Reads and writes, and prints what comes of it.
'use strict';
const knex = require('knex')(require('./knexfile'));

const show = (name, value) => console.log(name, JSON.stringify(value));
const range = n => [...Array(n).keys()];
const failure = async promise => {
  try {
    await promise;
  } catch (e) {
    return [e.code, e.constraint || e.message];
  }
  return 'no error';
};

const main = async () => {
  const at = '2024-02-29T12:00:00Z';
  const made = await knex('tenant').insert(
    range(3).map(n => ({ name: `tenant ${n}`, country: ['de', 'pe'][n % 2], created_at: at, updated_at: at })),
    ['id'],
  );
  const tenants = made.map(row => Number(row.id)).sort((a, b) => a - b);
  show('tenants', tenants);
  await knex.transaction(async trx => {
    for (const tenant_id of tenants) {
      await trx('account').insert(range(5).map(id => ({ tenant_id, id, mail: `${id}@there`, balance: id / 4 })));
    }
    const events = tenants.flatMap(tenant_id =>
      range(20).map(n => ({ tenant_id, account: n % 5, body: { n }, tags: ['a', 'é'].slice(0, n % 3) })),
    );
    await trx.batchInsert('event', events, 25);
  });
  show(
    'joined',
    await knex('event as e')
      .join('account as a', { 'a.tenant_id': 'e.tenant_id', 'a.id': 'e.account' })
      .join('tenant as t', 't.id', 'a.tenant_id')
      .leftJoin('country as c', 'c.code', 't.country')
      .select('c.name', 'a.id')
      .count('* as n')
      .sum({ balance: 'a.balance' })
      .groupBy('c.name', 'a.id')
      .having('a.id', '>', 2)
      .orderBy(['c.name', { column: 'a.id', order: 'desc' }]),
  );
  show(
    'with',
    await knex
      .with('rich', knex('account').where('balance', '>=', 0.75).whereIn('tenant_id', tenants))
      .from('rich')
      .select('tenant_id', knex.raw('row_number() OVER (PARTITION BY tenant_id ORDER BY id)::int AS place'), 'id')
      .orderBy(['tenant_id', 'place']),
  );
  show(
    'upsert',
    await knex('account')
      .insert({ tenant_id: tenants[0], id: 1, mail: 'other', balance: 7 })
      .onConflict(['tenant_id', 'id'])
      .merge({ balance: knex.raw('account.balance + excluded.balance') })
      .returning(['balance', 'mail']),
  );
  show(
    'ignored',
    await knex('account')
      .insert([
        { tenant_id: tenants[1], id: 1, mail: 'x' },
        { tenant_id: tenants[1], id: 9, mail: '9@there' },
      ])
      .onConflict(['tenant_id', 'id'])
      .ignore()
      .returning('id'),
  );
  show('updated', await knex('account').where('id', '>', 3).update({ state: 'paid' }));
  show(
    'updated from another',
    await knex('account')
      .updateFrom('tenant')
      .whereRaw('tenant.id = account.tenant_id')
      .where('tenant.country', 'pe')
      .where('account.id', 0)
      .update({ mail: knex.raw("'0@' || tenant.country || ??", ['account.tenant_id']) }),
  );
  show('more', await knex('account').where({ tenant_id: tenants[2] }).increment('balance', 2.5));
  show(
    'json',
    await knex('event')
      .whereJsonPath('body', '$.n', '>', 15)
      .whereIn('tenant_id', tenants)
      .orderBy(['tenant_id', 'id'])
      .jsonExtract('body', '$.n', 'n')
      .limit(5),
  );
  show('superset', await knex('event').whereJsonSupersetOf('body', { n: 3 }).count());
  show('arrays', await knex('event').whereRaw('? = ANY (tags)', ['é']).countDistinct('account'));
  show(
    'exists',
    await knex('tenant').whereExists(knex('event').whereRaw('tenant.id = tenant_id')).pluck('id').orderBy('id'),
  );
  show('distinct', await knex('account').distinctOn('state').select('state', 'id').orderBy(['state', 'id']));
  show(
    'view',
    (await knex('busy').whereIn('tenant_id', tenants).orderBy('tenant_id')).map(row => row.events),
  );
  show(
    'union',
    await knex('account')
      .max('id')
      .union([knex('event').max('account')], true),
  );
  let rows = 0;
  for await (const row of knex('event').select('body').stream()) rows += row.body.n;
  show('streamed', rows);
  show(
    'locked',
    await knex.transaction(trx =>
      trx('event').where({ tenant_id: tenants[0] }).orderBy('id').forUpdate().skipLocked().first('account', 'tags'),
    ),
  );
  await knex
    .transaction(async trx => {
      await trx('event').where({ tenant_id: tenants[0] }).del();
      await trx.transaction(inner => inner('account').where({ tenant_id: tenants[0] }).update({ balance: 0 }));
      show('inside', await trx('event').where({ tenant_id: tenants[0] }).count());
      throw new Error('changed our mind');
    })
    .catch(e => show('rolled back', e.message));
  await knex.transaction(async trx => {
    const inner = trx.transaction(inner => inner('account').insert({ tenant_id: tenants[0], id: 1, mail: 'x' }));
    show('unique', await failure(inner));
    show('after that', await trx('account').where({ tenant_id: tenants[0] }).sum('balance'));
  });
  show(
    'foreign key',
    await failure(knex('tenant').insert({ name: 'x', country: 'xx', created_at: at, updated_at: at })),
  );
  show('check', await failure(knex('account').insert({ tenant_id: tenants[0], id: 77, mail: 'c', balance: -100 })));
  show('no value', await failure(knex('account').insert({ tenant_id: tenants[0], id: 78 })));
  show('deleted', await knex('account').where({ tenant_id: tenants[1], id: 9 }).del(['id', 'mail']));
  show(
    'gone with it',
    await knex('tenant')
      .where({ id: tenants[2] })
      .del()
      .catch(e => [e.code, e.constraint]),
  );
  show('info', await knex('account').columnInfo());
  show('is there', [await knex.schema.hasTable('event'), await knex.schema.hasColumn('account', 'short_name')]);
};

main()
  .catch(e => {
    console.log(e);
    process.exitCode = 1;
  })
  .finally(() => knex.destroy());
