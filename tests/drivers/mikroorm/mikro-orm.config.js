// How MikroORM reaches the server that the environment names, and where it keeps what it writes.
'use strict';
const { defineConfig } = require('@mikro-orm/postgresql');
const { EntityGenerator } = require('@mikro-orm/entity-generator');
const { Migrator } = require('@mikro-orm/migrations');
const { SeedManager } = require('@mikro-orm/seeder');

module.exports = defineConfig({
  host: process.env.PGHOST,
  port: Number(process.env.PGPORT),
  user: process.env.PGUSER,
  dbName: process.env.PGDATABASE,
  entities: require('./entities'),
  extensions: [EntityGenerator, Migrator, SeedManager],
  migrations: { path: 'migrations', emit: 'js', fileName: (_, name) => name, snapshotName: 'snapshot' },
  seeder: { path: '.', defaultSeeder: 'Seed', glob: 'Seed.js' },
  metadataCache: { enabled: false },
});
