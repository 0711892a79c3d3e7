// A table that is made when others are distributed already, with rows out of them.
'use strict';

exports.up = async knex => {
  await knex.schema.createTable('bill', t => {
    t.bigInteger('tenant_id').notNullable();
    t.integer('number').notNullable();
    t.decimal('total', 14, 2).notNullable();
    t.primary(['tenant_id', 'number']);
  });
  await knex('bill').insert(
    knex('account').select('tenant_id', knex.raw('1')).sum('balance').where('balance', '>', 0).groupBy('tenant_id'),
  );
  await knex.schema.renameTable('bill', 'invoice');
  await knex.schema.alterTable('invoice', t => t.foreign('tenant_id').references('tenant.id').onDelete('cascade'));
};
exports.down = knex => knex.schema.dropTable('invoice');
