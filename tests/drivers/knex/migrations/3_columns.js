// What is done to tables that have rows: columns, types, names, keys, checks, and values in the same transaction.
'use strict';

exports.up = async knex => {
  await knex.schema.alterTable('account', t => {
    t.text('nick');
    t.boolean('active').notNullable().defaultTo(true);
    t.dropColumn('plan');
  });
  await knex('account').update({ nick: knex.raw("split_part(mail, '@', 1)") });
  await knex.schema.alterTable('account', t => {
    t.dropNullable('nick');
    t.text('nick').defaultTo('').alter({ alterType: false, alterNullable: false });
    t.renameColumn('nick', 'short_name');
    t.decimal('balance', 20, 4).notNullable().defaultTo(1).alter();
    t.index(['tenant_id', knex.raw('lower(short_name)')], 'account_short_name');
    t.dropUnique(['tenant_id', 'mail']);
    t.unique(['tenant_id', 'mail'], { indexName: 'account_mail', deferrable: 'deferred' });
    t.dropChecks('account_balance');
    t.check('balance > -10', undefined, 'account_debts');
  });
  await knex.schema.alterTable('event', t => {
    t.specificType('tags', 'varchar(40)[]').notNullable().alter();
    t.check('cardinality(tags) < 10', undefined, 'event_tags');
    t.dropForeign(['tenant_id', 'account']);
    t.foreign(['tenant_id', 'account'], 'event_of_account').references(['tenant_id', 'id']).inTable('account');
    t.dropIndex('body', 'event_body');
    t.comment('what happened');
  });
  for (const { tenant_id, events } of await knex('busy').orderBy('tenant_id')) {
    await knex('tenant')
      .where({ id: tenant_id })
      .update({ name: knex.raw('name || ?', [` (${events})`]) });
  }
};
exports.down = async knex => {
  await knex.schema.alterTable('event', t => {
    t.comment('');
    t.index('body', 'event_body', 'gin');
    t.dropForeign(['tenant_id', 'account'], 'event_of_account');
    t.foreign(['tenant_id', 'account']).references(['tenant_id', 'id']).inTable('account').onDelete('cascade');
    t.dropChecks('event_tags');
    t.specificType('tags', 'text[]').notNullable().alter();
  });
  await knex.schema.alterTable('account', t => {
    t.dropChecks('account_debts');
    t.check('balance >= 0', undefined, 'account_balance');
    t.dropUnique(['tenant_id', 'mail'], 'account_mail');
    t.unique(['tenant_id', 'mail']);
    t.dropIndex([], 'account_short_name');
    t.decimal('balance', 12, 2).notNullable().defaultTo(0).alter();
    t.dropColumns('short_name', 'active');
    t.enu('plan', ['free', 'full']).defaultTo('free');
  });
};
