// Reads and writes by the client, and prints what comes of it.
'use strict';
const { PrismaPg } = require('@prisma/adapter-pg');
const { Prisma, PrismaClient } = require('./client');

const prisma = new PrismaClient({ adapter: new PrismaPg({ max: 4 }) });
BigInt.prototype.toJSON = function () {
  return Number(this);
};
const show = (name, value) => console.log(name, JSON.stringify(value));
const range = n => [...Array(n).keys()];
const failure = async promise => {
  try {
    await promise;
  } catch (e) {
    return [e.name, e.code, e.meta && (e.meta.target || e.meta.driverAdapterError?.cause)];
  }
  return 'no error';
};

const main = async () => {
  for (const [code, name] of Object.entries({ de: 'Germany', pe: 'Perú' })) {
    await prisma.country.upsert({ where: { code }, create: { code, name }, update: { name } });
  }
  const made = '2024-02-29T12:00:00Z';
  const ids = [];
  for (const n of range(3)) {
    // All that belongs to it with it.
    const tenant = await prisma.tenant.create({
      data: {
        name: `tenant ${n}`,
        country: { connect: { code: ['de', 'pe'][n % 2] } },
        made,
        accounts: { create: range(5).map(id => ({ id, mail: `${id}@there`, balance: id / 4 })) },
      },
      select: { id: true, accounts: { select: { mail: true } } },
    });
    ids.push(tenant.id);
  }
  const [first, second, third] = ids;
  show('tenants', ids);
  const events = ids.flatMap(tenantId =>
    range(20).map(n => ({ tenantId, accountId: n % 5, body: { n }, tags: ['a', 'é'].slice(0, n % 3) })),
  );
  show('events', await prisma.event.createMany({ data: events }));
  for (const relationLoadStrategy of ['join', 'query']) {
    show(
      'with what belongs to it',
      await prisma.tenant.findMany({
        relationLoadStrategy,
        where: { id: { in: ids }, accounts: { some: { state: 'new' } } },
        orderBy: { id: 'desc' },
        take: 2,
        select: {
          id: true,
          country: { select: { name: true } },
          _count: { select: { accounts: true } },
          accounts: {
            select: { mail: true, balance: true, events: { select: { body: true }, orderBy: { id: 'desc' }, take: 2 } },
            orderBy: { id: 'asc' },
            take: 2,
            skip: 1,
          },
        },
      }),
    );
  }
  show(
    'grouped',
    await prisma.event.groupBy({
      by: ['accountId'],
      where: { tenantId: { in: ids }, owner: { balance: { gte: 0.5 } } },
      _count: true,
      _max: { accountId: true },
      having: { accountId: { gt: 2 } },
      orderBy: { accountId: 'asc' },
    }),
  );
  show(
    'aggregated',
    await prisma.account.aggregate({
      where: { tenantId: first },
      _sum: { balance: true },
      _avg: { balance: true },
      _count: true,
    }),
  );
  const one = { tenantId_id: { tenantId: first, id: 1 } };
  show(
    'upsert',
    await prisma.account.upsert({
      where: one,
      create: { tenantId: first, id: 1, mail: 'other' },
      update: { balance: { increment: 7 } },
    }),
  );
  show('updated', await prisma.account.updateMany({ where: { id: { gt: 3 } }, data: { state: 'paid' } }));
  show(
    'returned',
    await prisma.account.updateManyAndReturn({
      where: { tenantId: second, id: 0 },
      data: { balance: { multiply: 3 }, mail: '0@elsewhere' },
      select: { mail: true },
    }),
  );
  show(
    'ignored',
    await prisma.account.createMany({
      data: [
        { tenantId: second, id: 1, mail: 'x' },
        { tenantId: second, id: 9, mail: '9@there' },
      ],
      skipDuplicates: true,
    }),
  );
  const json = { path: ['n'], gte: 15 };
  show('json', await prisma.event.count({ where: { tenantId: { in: ids }, body: json } }));
  show('arrays', await prisma.event.count({ where: { tenantId: first, tags: { hasEvery: ['a', 'é'] } } }));
  show(
    'none',
    await prisma.account.count({ where: { tenantId: { in: ids }, events: { none: { tags: { isEmpty: true } } } } }),
  );
  show(
    'pages',
    (
      await prisma.account.findMany({ cursor: one, skip: 1, take: 3, orderBy: [{ tenantId: 'asc' }, { id: 'asc' }] })
    ).map(account => account.id),
  );
  show(
    'distinct',
    await prisma.account.findMany({ distinct: ['state'], orderBy: { state: 'asc' }, select: { state: true } }),
  );
  show(
    'raw',
    await prisma.$queryRaw`SELECT c.name, count(*) AS n FROM tenant t JOIN country c ON c.code = t.country
      WHERE t.id IN (${Prisma.join(ids)}) GROUP BY 1 ORDER BY 1`,
  );
  show('raw', await prisma.$executeRaw`UPDATE event SET tags = tags || ${['raw']} WHERE tenant_id = ${first}`);
  await prisma
    .$transaction(
      async inside => {
        await inside.event.deleteMany({ where: { tenantId: first } });
        show('inside', await inside.event.count({ where: { tenantId: first } }));
        throw new Error('changed our mind');
      },
      { isolationLevel: 'ReadCommitted', timeout: 30000, maxWait: 10000 },
    )
    .catch(e => show('rolled back', e.message));
  show(
    'together',
    await prisma.$transaction([
      prisma.account.update({ where: one, data: { state: 'closed' }, select: { state: true } }),
      prisma.event.count({ where: { tenantId: first } }),
    ]),
  );
  show('unique', await failure(prisma.account.create({ data: { tenantId: first, id: 1, mail: 'x' } })));
  show('unique', await failure(prisma.account.create({ data: { tenantId: first, id: 70, mail: '2@there' } })));
  show('foreign key', await failure(prisma.tenant.create({ data: { name: 'x', code: 'xx', made } })));
  show(
    'not there',
    await failure(prisma.account.update({ where: { tenantId_id: { tenantId: first, id: 99 } }, data: { mail: 'x' } })),
  );
  show(
    'deleted',
    await prisma.account.delete({ where: { tenantId_id: { tenantId: second, id: 4 } }, select: { mail: true } }),
  );
  show('gone with it', await prisma.tenant.delete({ where: { id: third }, select: { name: true } }));
  show('left', await prisma.event.count({ where: { tenantId: { in: ids } } }));
};

main()
  .catch(e => {
    console.log(e);
    process.exitCode = 1;
  })
  .finally(() => prisma.$disconnect());
