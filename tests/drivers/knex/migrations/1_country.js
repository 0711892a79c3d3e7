// A lookup table, which a seed fills.
'use strict';

exports.up = knex =>
  knex.schema.createTable('country', t => {
    t.string('code', 2).primary();
    t.string('name').notNullable().comment('in its own words');
    t.comment('where tenants are');
  });
exports.down = knex => knex.schema.dropTable('country');
