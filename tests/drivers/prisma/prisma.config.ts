// How Prisma reaches the server that the environment names: without its native engine.
import { PrismaPg } from '@prisma/adapter-pg';
import { Pool } from 'pg';
import { defineConfig } from 'prisma/config';

const pool = new Pool({ max: 4, idleTimeoutMillis: 200, allowExitOnIdle: true });
// The engine asks catalogs for values of types that the adapter does not know: "char", name and name[].
const known = new Map([
  [18, 1042],
  [19, 25],
  [1003, 1009],
]);
pool.on('connect', client =>
  client.connection.prependListener('rowDescription', ({ fields }) => {
    for (const field of fields) field.dataTypeID = known.get(field.dataTypeID) ?? field.dataTypeID;
  }),
);

export default defineConfig({
  schema: 'schema.prisma',
  migrations: { path: 'migrations' },
  experimental: { adapter: true },
  engine: 'js',
  adapter: async () => new PrismaPg(pool, { disposeExternalPool: true }),
});
