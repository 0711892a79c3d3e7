// What cannot be done in a transaction.
'use strict';

exports.config = { transaction: false };
exports.up = async knex => {
  await knex.raw('CREATE INDEX CONCURRENTLY event_body_path ON event USING gin (body jsonb_path_ops)');
  await knex.raw("ALTER TYPE state ADD VALUE IF NOT EXISTS 'lost' BEFORE 'closed'");
  await knex.raw("ALTER TYPE state RENAME VALUE 'new' TO 'fresh'");
};
exports.down = async knex => {
  await knex.raw("ALTER TYPE state RENAME VALUE 'fresh' TO 'new'");
  await knex.raw('DROP INDEX CONCURRENTLY event_body_path');
};
