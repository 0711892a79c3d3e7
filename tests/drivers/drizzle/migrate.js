// What an application does when it starts.
'use strict';
const { drizzle } = require('drizzle-orm/node-postgres');
const { migrate } = require('drizzle-orm/node-postgres/migrator');
const { Pool } = require('pg');

const pool = new Pool();
migrate(drizzle(pool), { migrationsFolder: 'drizzle' })
  .then(() => pool.query('SELECT count(*) FROM drizzle.__drizzle_migrations'))
  .then(({ rows }) => console.log(rows))
  .finally(() => pool.end());
