// How Knex reaches the server that the environment names.
'use strict';

module.exports = {
  client: 'pg',
  connection: {
    host: process.env.PGHOST,
    port: Number(process.env.PGPORT),
    user: process.env.PGUSER,
    database: process.env.PGDATABASE,
  },
  pool: { min: 0, max: 4 },
};
