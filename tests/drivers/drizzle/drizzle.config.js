// How drizzle-kit reaches the server that the environment names.
'use strict';

module.exports = {
  dialect: 'postgresql',
  schema: './schema.js',
  out: './drizzle',
  dbCredentials: {
    host: process.env.PGHOST,
    port: Number(process.env.PGPORT),
    user: process.env.PGUSER,
    database: process.env.PGDATABASE,
    ssl: false,
  },
};
