// What node-postgres does with a server, on ordinary tables and on distributed ones where there are such.
'use strict';
const { ok, rejects, strictEqual } = require('assert');
const { once } = require('events');
const { Readable } = require('stream');
const { pipeline } = require('stream/promises');
const pg = require('pg');
const Cursor = require('pg-cursor');
const QueryStream = require('pg-query-stream');
const copy = require('pg-copy-streams');
const { run, same, test } = require('drivers_report');

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

// With a connection that is ended after the test.
const connected = (name, body, config = {}) =>
  test(name, async () => {
    const client = new pg.Client(config);
    client.on('error', () => {});
    await client.connect();
    try {
      await body(client);
    } finally {
      // One that waits for a server that hangs is not waited for.
      await Promise.race([client.end().catch(() => {}), sleep(2000)]);
    }
  });

// Rows as arrays, of the extended protocol when there are values and of the simple one when there are none.
const rows = async (client, text, values) => (await client.query({ text, values, rowMode: 'array' })).rows;
const value = async (client, text, values) => (await rows(client, text, values))[0][0];
const failure = async promise => {
  try {
    await promise;
  } catch (e) {
    return e;
  }
  throw new Error('no error');
};
const code = async promise => (await failure(promise)).code;

const distribute = async (client, table, column) => {
  if (await value(client, "select to_regproc('create_distributed_table') is not null")) {
    await client.query(`select create_distributed_table('${table}', '${column}')`);
  }
};
// Made anew; `kind` says whether it is spread where tables can be.
const KINDS = ['local', 'distributed', 'temporary'];
const table = async (client, kind, name, columns, column = 'k') => {
  await client.query(`drop table if exists ${name} cascade`);
  await client.query(`create ${kind === 'temporary' ? 'temporary' : ''} table ${name} (${columns})`);
  if (kind === 'distributed') await distribute(client, name, column);
};
const on = (kinds, name, body, config) =>
  kinds.forEach(kind => connected(`${name} [${kind}]`, client => body(client, kind), config));

// Connections

connected('connect: what the server reports', async client => {
  strictEqual(await value(client, 'select current_user::text'), client.user);
  strictEqual(await value(client, 'select current_database()::text'), client.database);
  strictEqual(await value(client, 'select pg_backend_pid()'), client.processID);
});
test('connect: parameters of the server', async () => {
  const client = new pg.Client();
  const told = {};
  client.connection.on('parameterStatus', m => {
    told[m.parameterName] = m.parameterValue;
  });
  await client.connect();
  same(Object.keys(told).sort(), [
    'DateStyle',
    'IntervalStyle',
    'TimeZone',
    'application_name',
    'client_encoding',
    'default_transaction_read_only',
    'in_hot_standby',
    'integer_datetimes',
    'is_superuser',
    'server_encoding',
    'server_version',
    'session_authorization',
    'standard_conforming_strings',
  ]);
  for (const name of Object.keys(told).filter(n => n !== 'is_superuser' && n !== 'session_authorization')) {
    same(await value(client, `select current_setting('${name}')`), told[name]);
  }
  await client.query("set application_name to 'told'");
  strictEqual(told.application_name, 'told');
  await client.query("set timezone to 'Asia/Tokyo'");
  strictEqual(told.TimeZone, 'Asia/Tokyo');
  await client.query("begin; set local timezone to 'Europe/Paris'");
  strictEqual(told.TimeZone, 'Europe/Paris');
  await client.query('rollback');
  strictEqual(told.TimeZone, 'Asia/Tokyo');
  await client.end();
});
connected(
  'connect: settings in the startup packet',
  async client => {
    strictEqual(await value(client, 'show application_name'), 'a name');
    strictEqual(await value(client, 'show statement_timeout'), '1234ms');
    strictEqual(await value(client, 'show lock_timeout'), '2345ms');
    strictEqual(await value(client, 'show idle_in_transaction_session_timeout'), '3456ms');
    strictEqual(await value(client, 'show search_path'), 'pg_catalog,public');
    strictEqual(await value(client, 'show work_mem'), '5MB');
    await client.query("set work_mem to '6MB'; set application_name to other");
    await client.query('reset all');
    strictEqual(await value(client, 'show work_mem'), '5MB');
    strictEqual(await value(client, 'show application_name'), 'a name');
  },
  {
    application_name: 'a name',
    statement_timeout: 1234,
    lock_timeout: 2345,
    idle_in_transaction_session_timeout: 3456,
    options: '-c search_path=pg_catalog,public --work-mem=5MB',
  },
);
test('connect: a database that is not there', async () => {
  const e = await failure(new pg.Client({ database: 'nowhere at all' }).connect());
  same([e.code, e.severity, e.message], ['3D000', 'FATAL', 'database "nowhere at all" does not exist']);
});
test('connect: a role that is not there', async () => {
  const e = await failure(new pg.Client({ user: 'nobody at all' }).connect());
  same([e.code, e.severity, e.message], ['28000', 'FATAL', 'role "nobody at all" does not exist']);
});
test('connect: a setting that cannot be', async () => {
  const e = await failure(new pg.Client({ options: '-c work_mem=no' }).connect());
  same([e.code, e.severity, e.message], ['22023', 'FATAL', 'invalid value for parameter "work_mem": "no"']);
});
test('connect: a setting that is none', async () => {
  const e = await failure(new pg.Client({ options: '-c no_such_thing=1' }).connect());
  same([e.code, e.severity], ['42704', 'FATAL']);
});
test('connect: many at once', async () => {
  const clients = Array.from({ length: 30 }, () => new pg.Client());
  await Promise.all(clients.map(c => c.connect()));
  const pids = await Promise.all(clients.map(c => value(c, 'select pg_backend_pid()')));
  strictEqual(new Set(pids).size, 30);
  await Promise.all(clients.map(c => c.end()));
});
test('connect: ended by another', async () => {
  const [a, b] = [new pg.Client(), new pg.Client()];
  await Promise.all([a.connect(), b.connect()]);
  const gone = once(a, 'error');
  strictEqual(await value(b, 'select pg_terminate_backend($1)', [a.processID]), true);
  const [e] = await gone;
  same([e.code, e.severity, e.message], ['57P01', 'FATAL', 'terminating connection due to administrator command']);
  await b.end();
});
test('connect: ended by another in a query', async () => {
  const [a, b] = [new pg.Client(), new pg.Client()];
  a.on('error', () => {});
  await Promise.all([a.connect(), b.connect()]);
  const sleeping = failure(a.query('select pg_sleep(30)'));
  while (!(await value(b, "select state = 'active' from pg_stat_activity where pid = $1", [a.processID])))
    await sleep(10);
  strictEqual(await value(b, 'select pg_terminate_backend($1)', [a.processID]), true);
  strictEqual((await sleeping).code, '57P01');
  await b.end();
});
test('connect: idle in a transaction for too long', async () => {
  const client = new pg.Client({ idle_in_transaction_session_timeout: 100 });
  await client.connect();
  const gone = once(client, 'error');
  await client.query('begin');
  const [e] = await gone;
  same([e.code, e.severity], ['25P03', 'FATAL']);
});
test('connect: idle for too long', async () => {
  const client = new pg.Client({ options: '-c idle_session_timeout=100' });
  await client.connect();
  const [e] = await once(client, 'error');
  same([e.code, e.severity], ['57P05', 'FATAL']);
});
connected(
  'connect: activity',
  async client => {
    same(
      await rows(
        client,
        'select usename::text, datname::text, application_name, state, backend_type, query ' +
          'from pg_stat_activity where pid = pg_backend_pid()',
      ),
      [
        [
          client.user,
          client.database,
          'me',
          'active',
          'client backend',
          'select usename::text, datname::text, application_name, state, backend_type, query ' +
            'from pg_stat_activity where pid = pg_backend_pid()',
        ],
      ],
    );
  },
  { application_name: 'me' },
);

// Results

connected('simple: several statements', async client => {
  const results = await client.query(
    'select 1 as a; create temporary table t (a int); insert into t values (1), (2); ' +
      'select * from t order by a; update t set a = a + 1; delete from t where a = 3; ; drop table t',
  );
  same(
    results.map(r => [r.command, r.rowCount, r.rows.length]),
    [
      ['SELECT', 1, 1],
      ['CREATE', null, 0],
      ['INSERT', 2, 0],
      ['SELECT', 2, 2],
      ['UPDATE', 2, 0],
      ['DELETE', 1, 0],
      ['DROP', null, 0],
    ],
  );
});
on(KINDS, 'simple: several statements are one transaction', async (client, kind) => {
  await table(client, kind, 'np_several', 'k int, v text');
  strictEqual(
    await code(
      client.query(
        "insert into np_several values (1, 'a'); insert into np_several values (2, 'b'); " +
          'select 1 / 0; insert into np_several values (3)',
      ),
    ),
    '22012',
  );
  strictEqual(await value(client, 'select count(*)::int from np_several'), 0);
  await client.query("insert into np_several values (1, 'a'); commit; insert into np_several values (2, 'b')");
  strictEqual(await code(client.query("begin; insert into np_several values (4); commit; select 'x'::int")), '22P02');
  same(await rows(client, 'select k from np_several order by k'), [[1], [2], [4]]);
});
connected('simple: nothing at all', async client => {
  for (const text of ['', ' ', ';', '-- a comment', '/* one */;']) {
    const result = await client.query(text);
    same([result.command, result.rowCount, result.rows], [null, null, []]);
  }
  const result = await client.query('', []);
  same([result.command, result.rowCount], [null, null]);
});
connected('results: tags and counts', async client => {
  const tags = [];
  for (const text of [
    'begin',
    'create table np_tags (k int primary key, v int)',
    'insert into np_tags select i, i from generate_series(1, 10) i',
    'update np_tags set v = 0 where k <= 3',
    'insert into np_tags values (1, 1) on conflict do nothing',
    'insert into np_tags values (1, 1), (11, 11) on conflict (k) do update set v = excluded.v',
    'select * from np_tags',
    'with gone as (delete from np_tags where k < 3 returning *) select * from gone',
    'table np_tags',
    'values (1), (2)',
    'declare c cursor for select * from np_tags',
    'fetch 2 from c',
    'move 2 in c',
    'fetch all from c',
    'close c',
    'merge into np_tags t using (values (5, 50), (99, 99)) s(k, v) on t.k = s.k when matched then update set v = s.v ' +
      'when not matched then insert values (s.k, s.v)',
    'explain (costs off) select 1',
    'savepoint s',
    'release s',
    'lock table np_tags',
    "comment on table np_tags is 'x'",
    "set local work_mem to '1MB'",
    'show work_mem',
    'create table np_tags_2 as select * from np_tags',
    'select * into np_tags_3 from np_tags',
    'alter table np_tags add w int',
    'truncate np_tags',
    'analyze np_tags',
    'create index on np_tags (v)',
    'create view np_tags_view as select 1',
    'create sequence np_tags_s',
    'grant select on np_tags to public',
    'do $$ begin end $$',
    'discard plans',
    'listen np_tags',
    'notify np_tags',
    'unlisten *',
    'deallocate all',
    'delete from np_tags',
    'set constraints all deferred',
    'rollback',
  ]) {
    const result = await client.query(text);
    tags.push(`${result.command} ${result.rowCount}`);
  }
  same(tags, [
    'BEGIN null',
    'CREATE null',
    'INSERT 10',
    'UPDATE 3',
    'INSERT 0',
    'INSERT 2',
    'SELECT 11',
    'SELECT 2',
    'SELECT 9',
    'SELECT 2',
    'DECLARE null',
    'FETCH 2',
    'MOVE 2',
    'FETCH 5',
    'CLOSE null',
    'MERGE 2',
    'EXPLAIN null',
    'SAVEPOINT null',
    'RELEASE null',
    'LOCK null',
    'COMMENT null',
    'SET null',
    'SHOW null',
    'SELECT 10',
    'SELECT 10',
    'ALTER null',
    'TRUNCATE null',
    'ANALYZE null',
    'CREATE null',
    'CREATE null',
    'CREATE null',
    'GRANT null',
    'DO null',
    'DISCARD null',
    'LISTEN null',
    'NOTIFY null',
    'UNLISTEN null',
    'DEALLOCATE null',
    'DELETE 0',
    'SET null',
    'ROLLBACK null',
  ]);
});
on(KINDS, 'results: counts and RETURNING', async (client, kind) => {
  await table(client, kind, 'np_counts', "k int, v text default 'd', primary key (k)");
  for (const extended of [false, true]) {
    const ask = text =>
      client.query({
        text,
        values: extended ? [] : undefined,
        queryMode: extended ? 'extended' : undefined,
        rowMode: 'array',
      });
    const told = async text => {
      const r = await ask(text);
      return [r.command, r.rowCount, r.rows];
    };
    await ask('delete from np_counts');
    same(await told('insert into np_counts select i from generate_series(1, 20) i'), ['INSERT', 20, []]);
    same(await told("insert into np_counts values (21, 'x'), (22, default) returning v, k + 1"), [
      'INSERT',
      2,
      [
        ['x', 22],
        ['d', 23],
      ],
    ]);
    same(
      await told("update np_counts set v = 'y' where k in (1, 2) returning *").then(r => [r[0], r[1], r[2].sort()]),
      [
        'UPDATE',
        2,
        [
          [1, 'y'],
          [2, 'y'],
        ],
      ],
    );
    same(await told("update np_counts set v = 'z' where k > 5"), ['UPDATE', 17, []]);
    same(await told('update np_counts set v = null where k = -1 returning k'), ['UPDATE', 0, []]);
    same(await told('insert into np_counts values (1) on conflict do nothing returning k'), ['INSERT', 0, []]);
    same(
      await told(
        "insert into np_counts values (1, 'n') on conflict (k) do update set v = excluded.v || np_counts.v " +
          'returning v',
      ),
      ['INSERT', 1, [['ny']]],
    );
    same(await told('delete from np_counts where k = 7 returning k, v'), ['DELETE', 1, [[7, 'z']]]);
    same(await told('delete from np_counts where k > 10'), ['DELETE', 12, []]);
    same(await told("select count(*)::int, min(k), max(k), string_agg(v, ',' order by k) from np_counts"), [
      'SELECT',
      1,
      [[9, 1, 10, 'ny,y,d,d,d,z,z,z,z']],
    ]);
  }
});
on(KINDS, 'results: what columns are told of', async (client, kind) => {
  await table(client, kind, 'np_fields', 'k int, "Mixed" varchar(10), n numeric(8,3), b bit(5), ts timestamptz(2)');
  const oid = await value(client, "select 'np_fields'::regclass::oid::int");
  for (const values of [undefined, [1]]) {
    const text = `select *, k + 1 as sum, 'x' from np_fields where k = ${values ? '$1' : 1}`;
    const { fields } = await client.query({ text, values });
    same(
      fields.map(f => [f.name, f.tableID, f.columnID, f.dataTypeID, f.dataTypeSize, f.dataTypeModifier, f.format]),
      [
        ['k', oid, 1, 23, 4, -1, 'text'],
        ['Mixed', oid, 2, 1043, -1, 14, 'text'],
        ['n', oid, 3, 1700, -1, ((8 << 16) | 3) + 4, 'text'],
        ['b', oid, 4, 1560, -1, 5, 'text'],
        ['ts', oid, 5, 1184, 8, 2, 'text'],
        ['sum', 0, 0, 23, 4, -1, 'text'],
        ['?column?', 0, 0, 25, -1, -1, 'text'],
      ],
    );
  }
});
connected('results: columns of the same name', async client => {
  same((await client.query('select 1 as a, 2 as a')).rows, [{ a: 2 }]);
  same(await rows(client, 'select 1 as a, 2 as a'), [[1, 2]]);
});
connected('results: no columns', async client => {
  same((await client.query('select')).rows, [{}]);
  same((await client.query('select from generate_series(1, 3)')).rowCount, 3);
});
connected('results: many rows and wide rows', async client => {
  strictEqual((await client.query('select * from generate_series(1, 100000)')).rowCount, 100000);
  const columns = Array.from({ length: 1600 }, (_, i) => `${i} as c${i}`).join(', ');
  same(
    (await rows(client, `select ${columns}`))[0],
    Array.from({ length: 1600 }, (_, i) => i),
  );
  strictEqual((await value(client, "select repeat('é', 3000000)")).length, 3000000);
});

// Values

connected('extended: many parameters', async client => {
  const list = Array.from({ length: 5000 }, (_, i) => i);
  same(
    await rows(
      client,
      `select ${list
        .slice(0, 1000)
        .map(i => `$${i + 1}::int`)
        .join(', ')}`,
      list.slice(0, 1000),
    ),
    [list.slice(0, 1000)],
  );
  strictEqual(
    await value(
      client,
      `select count(*)::int from generate_series(1, 10000) i where i in (${list.map(i => `$${i + 1}`).join(', ')})`,
      list,
    ),
    4999,
  );
  strictEqual(await value(client, 'select length($1::text)', ['x'.repeat(5000000)]), 5000000);
});
const TYPES = [
  ['bool', 'true', true],
  ['int2', '-32768', -32768],
  ['int4', '2147483647', 2147483647],
  ['int8', '9223372036854775807', '9223372036854775807'],
  ['numeric', '-12345678901234567890.123456789', '-12345678901234567890.123456789'],
  ['numeric', 'NaN', 'NaN'],
  ['numeric', '-Infinity', '-Infinity'],
  ['numeric(10,4)', '1.5', '1.5000'],
  ['float4', '1.5', 1.5],
  ['float8', '1e300', 1e300],
  ['float8', 'NaN', NaN],
  ['float8', '-Infinity', -Infinity],
  ['text', 'añ€😀\'"\\', 'añ€😀\'"\\'],
  ['varchar(3)', 'abc', 'abc'],
  ['char(5)', 'ab', 'ab   '],
  ['"char"', 'x', 'x'],
  ['name', 'n', 'n'],
  ['bytea', '\\x00ff10', Buffer.from([0, 255, 16])],
  ['uuid', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'],
  ['json', '{"a":  [1, null]}', { a: [1, null] }],
  ['jsonb', '{"b": {"c": 1.50}, "a": "x"}', { b: { c: 1.5 }, a: 'x' }],
  ['xml', '<a>1</a>', '<a>1</a>'],
  ['date', '2024-02-29', new Date(2024, 1, 29)],
  ['time', '01:02:03.456', '01:02:03.456'],
  ['timetz', '01:02:03+05:30', '01:02:03+05:30'],
  ['timestamp', '2024-02-29 12:34:56.789', new Date(2024, 1, 29, 12, 34, 56, 789)],
  ['timestamptz', '2024-02-29 12:34:56.789+02', new Date('2024-02-29T10:34:56.789Z')],
  ['timestamptz', 'infinity', Infinity],
  ['inet', '10.1.2.3/8', '10.1.2.3/8'],
  ['cidr', '10.0.0.0/8', '10.0.0.0/8'],
  ['macaddr', '08:00:2b:01:02:03', '08:00:2b:01:02:03'],
  ['bit(4)', '1010', '1010'],
  ['varbit', '101', '101'],
  ['money', '12.34', '$12.34'],
  ['point', '(1,2)', { x: 1, y: 2 }],
  ['circle', '<(1,2),3>', { x: 1, y: 2, radius: 3 }],
  ['box', '(3,4),(1,2)', '(3,4),(1,2)'],
  ['path', '((0,0),(1,1))', '((0,0),(1,1))'],
  ['polygon', '((0,0),(1,1),(1,0))', '((0,0),(1,1),(1,0))'],
  ['int4range', '[1,5)', '[1,5)'],
  ['numrange', '(,2.5]', '(,2.5]'],
  ['tstzrange', 'empty', 'empty'],
  ['int4multirange', '{[1,3), [5,7)}', '{[1,3),[5,7)}'],
  ['tsvector', "'a':1 'b':2", "'a':1 'b':2"],
  ['tsquery', "'a' & !'b'", "'a' & !'b'"],
  ['oid', '4000000000', 4000000000],
  ['regclass', 'pg_class', 'pg_class'],
  ['pg_lsn', '16/B374D848', '16/B374D848'],
  ['int4[]', '{1,NULL,3}', [1, null, 3]],
  [
    'int4[]',
    '{{1,2},{3,4}}',
    [
      [1, 2],
      [3, 4],
    ],
  ],
  ['text[]', '{a,"b c",NULL,"x\\"y"}', ['a', 'b c', null, 'x"y']],
  ['bool[]', '{t,f}', [true, false]],
  ['float8[]', '{1.5,-2}', [1.5, -2]],
  ['numeric[]', '{1.10}', [1.1]],
  ['jsonb[]', '{"{\\"a\\": 1}"}', [{ a: 1 }]],
  ['uuid[]', '{}', []],
  ['bytea[]', '{"\\\\x01"}', [Buffer.from([1])]],
  ['timestamptz[]', '{"2024-01-01 00:00:00+00"}', [new Date('2024-01-01T00:00:00Z')]],
  ['int8[]', '{1}', ['1']],
];
for (const kind of KINDS) {
  connected(`types: as text [${kind}]`, async client => {
    const columns = TYPES.map(([type], i) => `c${i} ${type}`).join(', ');
    await table(client, kind, 'np_types', `k int, ${columns}`);
    const texts = TYPES.map(([, text]) => text);
    await client.query(`insert into np_types values (1, ${TYPES.map((_, i) => `$${i + 1}`).join(', ')})`, texts);
    const [[, ...got]] = await rows(client, 'select * from np_types where k = 1');
    TYPES.forEach(([type, , expected], i) => same([type, got[i]], [type, expected]));
    const [[, ...again]] = await rows(client, 'select * from np_types where k = $1', [1]);
    same(again, got);
    // And back as a value of JavaScript.
    await client.query('delete from np_types');
    const values = TYPES.map(([type, text, v]) =>
      /range|point|circle|^json|money/.test(type) || v instanceof Date || Number.isFinite(v) === false ? text : v,
    );
    await client.query(`insert into np_types values (1, ${TYPES.map((_, i) => `$${i + 1}`).join(', ')})`, values);
    same(await rows(client, 'select * from np_types'), [[1, ...got]]);
  });
}
on(KINDS, 'types: binary results', async (client, kind) => {
  await table(
    client,
    kind,
    'np_binary',
    'k int, a int2, b int8, c float8, d bool, e bytea, f numeric, g int4[], h text',
  );
  await client.query(
    "insert into np_binary values (7, 2, 72623859790382856, 2.5, true, '\\x0102', 12.0004, '{1,2,3}', 'text')",
  );
  for (const text of ['select * from np_binary where k = $1', 'select * from np_binary where k >= $1 order by k']) {
    // As they come, since it has no parsers of binary values for some types; it spoils bytes above 127 before.
    const types = { getTypeParser: () => v => Buffer.from(v).toString('hex') };
    const result = await client.query({ text, values: [7], binary: true, rowMode: 'array', types });
    same(
      result.fields.map(f => f.format),
      Array(9).fill('binary'),
    );
    same(result.rows, [
      [
        '00000007',
        '0002',
        '0102030405060708',
        '4004000000000000',
        '01',
        '0102',
        '0002000000000004000c0004',
        '0000000100000000000000170000000300000001000000040000000100000004000000020000000400000003',
        '74657874',
      ],
    ]);
  }
});
connected('types: of our own', async client => {
  await client.query(
    "drop type if exists np_mood cascade; create type np_mood as enum ('sad', 'so so', 'happy'); " +
      'drop type if exists np_pair cascade; create type np_pair as (a int, b np_mood); ' +
      'drop domain if exists np_small cascade; create domain np_small as int check (value < 10)',
  );
  const oid = await value(client, "select 'np_mood'::regtype::oid::int");
  const result = await client.query(
    "select $1::np_mood as m, array['sad', $2]::np_mood[] as l, row(1, 'happy')::np_pair as p, " + '$3::np_small as s',
    ['so so', 'happy', 3],
  );
  same(result.rows, [{ m: 'so so', l: '{sad,happy}', p: '(1,happy)', s: 3 }]);
  strictEqual(result.fields[0].dataTypeID, oid);
  strictEqual(await code(client.query('select $1::np_mood', ['glad'])), '22P02');
  strictEqual(await code(client.query('select $1::np_small', [10])), '23514');
  same(await rows(client, 'select enumlabel from pg_enum where enumtypid = $1 order by enumsortorder', [oid]), [
    ['sad'],
    ['so so'],
    ['happy'],
  ]);
  await client.query("alter type np_mood add value 'glad' before 'happy'");
  same(await value(client, 'select enum_range(null::np_mood)'), '{sad,"so so",glad,happy}');
});
on(KINDS, 'types: an enum, a domain and a composite in a table', async (client, kind) => {
  await client.query(
    "drop type if exists np_state cascade; create type np_state as enum ('new', 'done'); " +
      'drop type if exists np_size cascade; create type np_size as (w int, h int); ' +
      "drop domain if exists np_word cascade; create domain np_word as text check (value ~ '^[a-z]+$')",
  );
  await table(client, kind, 'np_own', "k int, s np_state default 'new', z np_size, w np_word, l np_state[]");
  await client.query('insert into np_own values ($1, $2, $3, $4, $5)', [1, 'done', '(1,2)', 'word', ['new', 'done']]);
  await client.query('insert into np_own (k) values (2)');
  same(await rows(client, 'select s, z, (z).h, w, l from np_own order by k'), [
    ['done', '(1,2)', 2, 'word', '{new,done}'],
    ['new', null, null, null, null],
  ]);
  same(await rows(client, 'select k from np_own where s = $1', ['done']), [[1]]);
  same(await rows(client, 'select s, count(*)::int from np_own group by s order by s desc'), [
    ['done', 1],
    ['new', 1],
  ]);
  strictEqual(await code(client.query('insert into np_own values (3, $1)', ['old'])), '22P02');
  const e = await failure(client.query('insert into np_own (k, w) values (3, $1)', ['W']));
  same([e.code, e.dataType, e.constraint], ['23514', 'np_word', 'np_word_check']);
});

// Prepared statements

on(KINDS, 'prepared: named', async (client, kind) => {
  await table(client, kind, 'np_prepared', 'k int, v text');
  for (let i = 0; i < 20; i++) {
    await client.query({ name: 'put', text: 'insert into np_prepared values ($1, $2)', values: [i, `v${i}`] });
  }
  for (let i = 0; i < 20; i++) {
    same(
      await client
        .query({ name: 'get', text: 'select v from np_prepared where k = $1', values: [i] })
        .then(r => r.rows),
      [{ v: `v${i}` }],
    );
  }
  same(
    await rows(
      client,
      'select name, statement, parameter_types::text, from_sql from pg_prepared_statements order by name',
    ),
    [
      ['get', 'select v from np_prepared where k = $1', '{integer}', false],
      ['put', 'insert into np_prepared values ($1, $2)', '{integer,text}', false],
    ],
  );
  await client.query('deallocate get');
  strictEqual(
    await code(client.query({ name: 'get', text: 'select v from np_prepared where k = $1', values: [1] })),
    '26000',
  );
});
on(KINDS, 'prepared: the table changes', async (client, kind) => {
  await table(client, kind, 'np_changing', 'k int, v text');
  // The client keeps in mind which names it has prepared.
  const get = (name = 'one') =>
    client.query({ name, text: 'select * from np_changing where k = $1', values: [1], rowMode: 'array' });
  await client.query("insert into np_changing values (1, 'a')");
  for (let i = 0; i < 7; i++) same((await get()).rows, [[1, 'a']]);
  await client.query('alter table np_changing add w int default 5');
  const e = await failure(get());
  same([e.code, e.message, e.routine], ['0A000', 'cached plan must not change result type', 'RevalidateCachedQuery']);
  await client.query('alter table np_changing drop w');
  same((await get()).rows, [[1, 'a']]);
  same((await get('two')).rows, [[1, 'a']]);
  await client.query("alter table np_changing alter v type json using '{}'");
  strictEqual(await code(get('two')), '0A000');
  same(await rows(client, 'select * from np_changing where k = $1', [1]), [[1, {}]]);
});
connected('prepared: the search path changes', async client => {
  await client.query(
    'drop schema if exists np_a cascade; drop schema if exists np_b cascade; create schema np_a; create schema np_b; ' +
      'create table np_a.t (v text); create table np_b.t (v text); ' +
      "insert into np_a.t values ('a'); insert into np_b.t values ('b')",
  );
  const get = () =>
    client.query({ name: 'get', text: 'select v from t', values: [], rowMode: 'array' }).then(r => r.rows);
  await client.query('set search_path to np_a');
  same(await get(), [['a']]);
  await client.query('set search_path to np_b');
  same(await get(), [['b']]);
  await client.query('drop schema np_a cascade; drop schema np_b cascade');
});
on(KINDS, 'prepared: PREPARE and EXECUTE', async (client, kind) => {
  await table(client, kind, 'np_sql', 'k int, v text');
  await client.query('prepare put (int, text) as insert into np_sql values ($1, $2) returning v');
  same(await rows(client, "execute put (1, 'x')"), [['x']]);
  await client.query("execute put (2, 'y')");
  same(await rows(client, 'select * from np_sql order by k'), [
    [1, 'x'],
    [2, 'y'],
  ]);
  strictEqual(await code(client.query('execute put (1)')), '42601');
  strictEqual(await code(client.query('prepare put as select 1')), '42P05');
  await client.query('deallocate put');
  strictEqual(await code(client.query("execute put (1, 'x')")), '26000');
});
connected('prepared: errors in Parse', async client => {
  strictEqual(await code(client.query('select $1::nothing', [1])), '42704');
  strictEqual(await code(client.query('select $2::int', [1])), '42P18');
  strictEqual(
    await code(
      client
        .query('select 1; select 2', [])
        .then(() => client.query({ text: 'select 1; select 2', values: [], queryMode: 'extended' })),
    ),
    '42601',
  );
  strictEqual(await code(client.query('select $1::int', ['x'])), '22P02');
  strictEqual(await code(client.query('select $1::int', [1, 2])), '08P01');
  same(await rows(client, 'select $1::int', [1]), [[1]]);
});

// Errors

const FIELDS = [
  'severity',
  'code',
  'message',
  'detail',
  'hint',
  'position',
  'internalPosition',
  'internalQuery',
  'where',
  'schema',
  'table',
  'column',
  'dataType',
  'constraint',
  'routine',
];
const fields = e => Object.fromEntries(FIELDS.filter(f => e[f] !== undefined).map(f => [f, e[f]]));
for (const kind of KINDS) {
  const schema = kind === 'temporary' ? undefined : 'public';
  const named = (e, more) => {
    const got = fields(e);
    if (kind === 'temporary') {
      ok(/^pg_temp_/.test(got.schema));
      delete got.schema;
    } else {
      strictEqual(got.schema, schema);
      delete got.schema;
    }
    same(got, { severity: 'ERROR', ...more });
  };
  for (const protocol of ['simple', 'extended']) {
    connected(`errors: constraints, ${protocol} [${kind}]`, async client => {
      await table(
        client,
        kind,
        'np_errors',
        'k int primary key, v text not null, c int constraint positive check (c > 0)',
      );
      const ask = text => client.query({ text, queryMode: protocol === 'extended' ? 'extended' : undefined });
      await ask("insert into np_errors values (1, 'a', 1)");
      named(await failure(ask("insert into np_errors values (1, 'b', 1)")), {
        code: '23505',
        message: 'duplicate key value violates unique constraint "np_errors_pkey"',
        detail: 'Key (k)=(1) already exists.',
        table: 'np_errors',
        constraint: 'np_errors_pkey',
        routine: '_bt_check_unique',
      });
      named(await failure(ask('insert into np_errors (k) values (2)')), {
        code: '23502',
        message: 'null value in column "v" of relation "np_errors" violates not-null constraint',
        detail: 'Failing row contains (2, null, null).',
        table: 'np_errors',
        column: 'v',
        routine: 'ExecConstraints',
      });
      named(await failure(ask("insert into np_errors values (2, 'a', -1)")), {
        code: '23514',
        message: 'new row for relation "np_errors" violates check constraint "positive"',
        detail: 'Failing row contains (2, a, -1).',
        table: 'np_errors',
        constraint: 'positive',
        routine: 'ExecConstraints',
      });
      named(await failure(ask("insert into np_errors values (null, 'a', 1)")), {
        code: '23502',
        message: 'null value in column "k" of relation "np_errors" violates not-null constraint',
        detail: 'Failing row contains (null, a, 1).',
        table: 'np_errors',
        column: 'k',
        routine: 'ExecConstraints',
      });
      named(await failure(ask("insert into np_errors values (3, 'a', 1), (3, 'b', 1)")), {
        code: '23505',
        message: 'duplicate key value violates unique constraint "np_errors_pkey"',
        detail: 'Key (k)=(3) already exists.',
        table: 'np_errors',
        constraint: 'np_errors_pkey',
        routine: '_bt_check_unique',
      });
      named(await failure(ask('update np_errors set c = 0 where k = 1')), {
        code: '23514',
        message: 'new row for relation "np_errors" violates check constraint "positive"',
        detail: 'Failing row contains (1, a, 0).',
        table: 'np_errors',
        constraint: 'positive',
        routine: 'ExecConstraints',
      });
      named(await failure(ask('update np_errors set v = null')), {
        code: '23502',
        message: 'null value in column "v" of relation "np_errors" violates not-null constraint',
        detail: 'Failing row contains (1, null, 1).',
        table: 'np_errors',
        column: 'v',
        routine: 'ExecConstraints',
      });
      same(await rows(client, 'select * from np_errors'), [[1, 'a', 1]]);
    });
    connected(`errors: names and values, ${protocol} [${kind}]`, async client => {
      await table(client, kind, 'np_errors', 'k int, v text');
      const ask = text => client.query({ text, queryMode: protocol === 'extended' ? 'extended' : undefined });
      await ask("insert into np_errors values (1, 'a'), (0, 'b')");
      const told = async text => fields(await failure(ask(text)));
      same(await told('select w from np_errors'), {
        severity: 'ERROR',
        code: '42703',
        message: 'column "w" does not exist',
        position: '8',
        routine: 'errorMissingColumn',
      });
      same(await told('select kk from np_errors'), {
        severity: 'ERROR',
        code: '42703',
        message: 'column "kk" does not exist',
        hint: 'Perhaps you meant to reference the column "np_errors.k".',
        position: '8',
        routine: 'errorMissingColumn',
      });
      same(await told('select * from np_errors, nowhere'), {
        severity: 'ERROR',
        code: '42P01',
        message: 'relation "nowhere" does not exist',
        position: '26',
        routine: 'parserOpenTable',
      });
      same(await told('select k fro np_errors'), {
        severity: 'ERROR',
        code: '42601',
        message: 'syntax error at or near "np_errors"',
        position: '14',
        routine: 'scanner_yyerror',
      });
      same(await told('select k + v from np_errors'), {
        severity: 'ERROR',
        code: '42883',
        message: 'operator does not exist: integer + text',
        hint: 'No operator matches the given name and argument types. You might need to add explicit type casts.',
        position: '10',
        routine: 'op_error',
      });
      same(await told('select nothing(k) from np_errors'), {
        severity: 'ERROR',
        code: '42883',
        message: 'function nothing(integer) does not exist',
        hint: 'No function matches the given name and argument types. You might need to add explicit type casts.',
        position: '8',
        routine: 'ParseFuncOrColumn',
      });
      same(await told('select v, count(*) from np_errors'), {
        severity: 'ERROR',
        code: '42803',
        message: 'column "np_errors.v" must appear in the GROUP BY clause or be used in an aggregate function',
        position: '8',
        routine: 'check_ungrouped_columns_walker',
      });
      same(await told('select 10 / k from np_errors'), {
        severity: 'ERROR',
        code: '22012',
        message: 'division by zero',
        routine: 'int4div',
      });
      same(await told('select v::int from np_errors where k = 1'), {
        severity: 'ERROR',
        code: '22P02',
        message: 'invalid input syntax for type integer: "a"',
        routine: 'pg_strtoint32',
      });
      same(await told("insert into np_errors values ('x', 'y')"), {
        severity: 'ERROR',
        code: '22P02',
        message: 'invalid input syntax for type integer: "x"',
        position: '31',
        routine: 'pg_strtoint32',
      });
      same(await told('insert into np_errors values (1, 2, 3)'), {
        severity: 'ERROR',
        code: '42601',
        message: 'INSERT has more expressions than target columns',
        position: '37',
        routine: 'transformInsertRow',
      });
      same(await told('insert into np_errors (k, k) values (1, 2)'), {
        severity: 'ERROR',
        code: '42701',
        message: 'column "k" specified more than once',
        position: '27',
        routine: 'checkInsertTargets',
      });
      same(await told('update np_errors set w = 1'), {
        severity: 'ERROR',
        code: '42703',
        message: 'column "w" of relation "np_errors" does not exist',
        position: '22',
        routine: 'transformUpdateTargetList',
      });
      same(await told('insert into np_errors values (3000000000)'), {
        severity: 'ERROR',
        code: '22003',
        message: 'integer out of range',
        routine: 'int84',
      });
    });
  }
  connected(`errors: a foreign key [${kind}]`, async client => {
    // Both by the same key, so that they can be on any number of servers.
    await table(client, kind, 'np_parent', 'k int primary key');
    await table(client, kind, 'np_child', 'k int primary key constraint up references np_parent on delete restrict');
    await client.query('insert into np_parent values (1); insert into np_child values (1)');
    named(await failure(client.query('insert into np_child values (2)')), {
      code: '23503',
      message: 'insert or update on table "np_child" violates foreign key constraint "up"',
      detail: 'Key (k)=(2) is not present in table "np_parent".',
      table: 'np_child',
      constraint: 'up',
      routine: 'ri_ReportViolation',
    });
    named(await failure(client.query('delete from np_parent')), {
      code: '23503',
      message: 'update or delete on table "np_parent" violates foreign key constraint "up" on table "np_child"',
      detail: 'Key (k)=(1) is still referenced from table "np_child".',
      table: 'np_child',
      constraint: 'up',
      routine: 'ri_ReportViolation',
    });
    await client.query('drop table np_child, np_parent');
  });
}
connected('errors: raised with everything', async client => {
  for (const queryMode of [undefined, 'extended']) {
    const e = await failure(
      client.query({
        queryMode,
        text: `do $$ begin
      raise exception using message = 'the message', detail = 'the detail', hint = 'the hint', errcode = 'ABC12',
        schema = 'sch', table = 'tab', column = 'col', datatype = 'typ', constraint = 'con';
      end $$`,
      }),
    );
    same(fields(e), {
      severity: 'ERROR',
      code: 'ABC12',
      message: 'the message',
      detail: 'the detail',
      hint: 'the hint',
      where: 'PL/pgSQL function inline_code_block line 2 at RAISE',
      schema: 'sch',
      table: 'tab',
      column: 'col',
      dataType: 'typ',
      constraint: 'con',
      routine: 'exec_stmt_raise',
    });
    const inside = await failure(client.query({ queryMode, text: "do $$ begin execute 'select 1 +'; end $$" }));
    same(fields(inside), {
      severity: 'ERROR',
      code: '42601',
      message: 'syntax error at end of input',
      internalPosition: '11',
      internalQuery: 'select 1 +',
      where: 'PL/pgSQL function inline_code_block line 1 at EXECUTE',
      routine: 'scanner_yyerror',
    });
  }
});
connected('notices', async client => {
  const got = [];
  client.on('notice', n => got.push(fields(n)));
  await client.query(
    "do $$ begin raise notice 'one %', 1; " +
      "raise warning 'two' using hint = 'h', detail = 'd', errcode = 'ABC34'; end $$",
  );
  await client.query('drop table if exists np_not_there');
  await client.query(
    "set client_min_messages to debug; do $$ begin raise log 'not me'; raise debug 'three'; end $$; " +
      'reset client_min_messages',
  );
  await client.query('set client_min_messages to error; drop table if exists np_not_there; reset client_min_messages');
  await client.query('rollback');
  await client.query('begin; begin; rollback');
  const seen = got.filter(n => n.severity !== 'DEBUG' || n.message === 'three');
  same(seen, [
    {
      severity: 'NOTICE',
      code: '00000',
      message: 'one 1',
      where: 'PL/pgSQL function inline_code_block line 1 at RAISE',
      routine: 'exec_stmt_raise',
    },
    {
      severity: 'WARNING',
      code: 'ABC34',
      message: 'two',
      detail: 'd',
      hint: 'h',
      where: 'PL/pgSQL function inline_code_block line 1 at RAISE',
      routine: 'exec_stmt_raise',
    },
    {
      severity: 'NOTICE',
      code: '00000',
      message: 'table "np_not_there" does not exist, skipping',
      routine: 'DropErrorMsgNonExistent',
    },
    {
      severity: 'LOG',
      code: '00000',
      message: 'not me',
      where: 'PL/pgSQL function inline_code_block line 1 at RAISE',
      routine: 'exec_stmt_raise',
    },
    {
      severity: 'DEBUG',
      code: '00000',
      message: 'three',
      where: 'PL/pgSQL function inline_code_block line 1 at RAISE',
      routine: 'exec_stmt_raise',
    },
    {
      severity: 'WARNING',
      code: '25P01',
      message: 'there is no transaction in progress',
      routine: 'UserAbortTransactionBlock',
    },
    {
      severity: 'WARNING',
      code: '25001',
      message: 'there is already a transaction in progress',
      routine: 'BeginTransactionBlock',
    },
  ]);
});

// Transactions

on(KINDS, 'transactions: savepoints', async (client, kind) => {
  await table(client, kind, 'np_tx', 'k int primary key, v text');
  await client.query('begin');
  await client.query("insert into np_tx values (1, 'a')");
  await client.query('savepoint one');
  await client.query("insert into np_tx values (2, 'b'), (3, 'c')");
  strictEqual(await code(client.query("insert into np_tx values (1, 'again')")), '23505');
  const e = await failure(client.query('select 1'));
  same(
    [e.code, e.message],
    ['25P02', 'current transaction is aborted, commands ignored until end of transaction block'],
  );
  strictEqual(await code(client.query('select $1::int', [1])), '25P02');
  strictEqual(await code(client.query('release one')), '25P02');
  await client.query('rollback to one');
  await client.query("insert into np_tx values (4, 'd')");
  await client.query('savepoint two');
  await client.query("update np_tx set v = v || '!'");
  await client.query('release two');
  strictEqual(await code(client.query('rollback to two')), '3B001');
  await client.query('rollback to savepoint one');
  await client.query("insert into np_tx values (5, 'e')");
  await client.query('commit');
  same(await rows(client, 'select * from np_tx order by k'), [
    [1, 'a'],
    [5, 'e'],
  ]);
});
on(KINDS, 'transactions: a commit that is a rollback', async (client, kind) => {
  await table(client, kind, 'np_tx', 'k int');
  await client.query('begin');
  await client.query('insert into np_tx values (1)');
  await client.query('select 1 / 0').catch(() => {});
  strictEqual((await client.query('commit')).command, 'ROLLBACK');
  same(await rows(client, 'select * from np_tx'), []);
  await client.query('start transaction isolation level repeatable read read only');
  strictEqual(await value(client, 'show transaction_isolation'), 'repeatable read');
  const insert = client.query('insert into np_tx values (1)');
  if (kind === 'temporary') {
    strictEqual((await insert).rowCount, 1);
  } else {
    strictEqual(await code(insert), '25006');
  }
  await client.query('rollback');
});
on(['local', 'distributed'], 'transactions: two sessions', async (client, kind) => {
  const other = new pg.Client();
  await other.connect();
  try {
    await table(client, kind, 'np_two', 'k int primary key, v int');
    await client.query('insert into np_two select i, 0 from generate_series(1, 10) i');
    await client.query('begin');
    await client.query('update np_two set v = v + 1');
    strictEqual(await value(other, 'select sum(v)::int from np_two'), 0);
    await other.query("set lock_timeout to '100ms'");
    const e = await failure(other.query('update np_two set v = 5 where k = 3'));
    same([e.code, e.message], ['55P03', 'canceling statement due to lock timeout']);
    strictEqual(await code(other.query('select * from np_two where k = 3 for update nowait')), '55P03');
    same(await rows(other, 'select * from np_two where k = 3 for update skip locked'), []);
    await other.query('reset lock_timeout');
    const waits = other.query('update np_two set v = v + 10 where k = 3 returning v');
    await sleep(50);
    await client.query('commit');
    same((await waits).rows, [{ v: 11 }]);
    // A row that has changed since.
    await client.query('begin isolation level repeatable read; select count(*) from np_two');
    await other.query('update np_two set v = 7 where k = 1');
    const late = await failure(client.query('update np_two set v = 8 where k = 1'));
    same([late.code, late.message], ['40001', 'could not serialize access due to concurrent update']);
    await client.query('rollback');
    // Each waits for the other.
    await client.query('begin; update np_two set v = 0 where k = 1');
    await other.query('begin; update np_two set v = 0 where k = 2');
    const both = [
      client.query('update np_two set v = 1 where k = 2'),
      other.query('update np_two set v = 1 where k = 1'),
    ];
    const ends = await Promise.allSettled(both);
    const failed = ends.filter(end => end.status === 'rejected').map(end => [end.reason.code, end.reason.message]);
    same(failed, [['40P01', 'deadlock detected']]);
    await Promise.all([client.query('rollback'), other.query('rollback')]);
  } finally {
    await other.end();
  }
});
on(['local', 'distributed'], 'transactions: prepared', async (client, kind) => {
  await table(client, kind, 'np_2pc', 'k int primary key');
  await client.query('begin; insert into np_2pc select generate_series(1, 10)');
  strictEqual((await client.query("prepare transaction 'np one'")).command, 'PREPARE');
  same(await rows(client, 'select * from np_2pc'), []);
  same(await rows(client, "select gid, owner::text, database::text from pg_prepared_xacts where gid = 'np one'"), [
    ['np one', client.user, client.database],
  ]);
  strictEqual(await code(client.query("begin; insert into np_2pc values (11); prepare transaction 'np one'")), '42710');
  await client.query("commit prepared 'np one'");
  strictEqual(await value(client, 'select count(*)::int from np_2pc'), 10);
  await client.query("begin; delete from np_2pc; prepare transaction 'np two'");
  await client.query("rollback prepared 'np two'");
  strictEqual(await value(client, 'select count(*)::int from np_2pc'), 10);
  strictEqual(await code(client.query("commit prepared 'np two'")), '42704');
});
connected('transactions: what cannot be in one', async client => {
  await client.query('begin');
  strictEqual(await code(client.query('vacuum')), '25001');
  await client.query('rollback; begin');
  strictEqual(await code(client.query('create database np_in_tx')), '25001');
  await client.query('rollback');
  strictEqual(await code(client.query('savepoint x')), '25P01');
  strictEqual(await code(client.query('declare c cursor for select 1')), '25P01');
  strictEqual(await code(client.query('lock table pg_class')), '25P01');
});
connected('transactions: chained', async client => {
  await client.query('begin isolation level serializable');
  await client.query('commit and chain');
  strictEqual(await value(client, 'show transaction_isolation'), 'serializable');
  await client.query('rollback and no chain');
  strictEqual(await value(client, 'show transaction_isolation'), 'read committed');
});
on(['local'], 'transactions: a constraint that is checked at the end', async (client, kind) => {
  await table(client, kind, 'np_late', 'k int unique deferrable initially deferred');
  await client.query('begin; insert into np_late values (1), (1)');
  strictEqual(await code(client.query('commit')), '23505');
  strictEqual((await client.query('rollback')).command, 'ROLLBACK');
});

// Cancel and timeouts

on(['local', 'distributed'], 'cancel: by its number', async (client, kind) => {
  const other = new pg.Client();
  await other.connect();
  await table(client, kind, 'np_cancel', 'k int');
  await client.query('insert into np_cancel select generate_series(1, 100)');
  for (const [text, values] of [
    ['select pg_sleep(30)'],
    ['select pg_sleep($1)', [30]],
    ['select pg_sleep(1) from np_cancel'],
    ['select count(*) from np_cancel a, np_cancel b, np_cancel c, np_cancel d, np_cancel e'],
  ]) {
    const e = failure(client.query(text, values));
    while (!(await value(other, "select state = 'active' from pg_stat_activity where pid = $1", [client.processID])))
      await sleep(10);
    await sleep(50);
    strictEqual(await value(other, 'select pg_cancel_backend($1)', [client.processID]), true);
    const { code: c, message } = await e;
    same([c, message], ['57014', 'canceling statement due to user request']);
  }
  await other.end();
  same(await rows(client, 'select 1'), [[1]]);
});
connected('cancel: by a request', async client => {
  const query = new pg.Query('select pg_sleep(30)');
  const ended = new Promise((resolve, reject) =>
    query.once('error', resolve).once('end', () => reject(new Error('not cancelled'))),
  );
  client.query(query);
  await sleep(200);
  // On a connection of its own.
  new pg.Client().cancel(client, query);
  strictEqual((await ended).code, '57014');
  same(await rows(client, 'select 1'), [[1]]);
});
on(['local', 'distributed'], 'timeouts: of statements', async (client, kind) => {
  await table(client, kind, 'np_slow', 'k int');
  await client.query('insert into np_slow select generate_series(1, 50)');
  await client.query("set statement_timeout to '100ms'");
  for (const [text, values] of [
    ['select pg_sleep(10)'],
    ['select pg_sleep($1)', [10]],
    ['select pg_sleep(1) from np_slow'],
    ['update np_slow set k = k where pg_sleep(1) is not null and k = 3'],
  ]) {
    const e = await failure(client.query(text, values));
    same([e.code, e.message], ['57014', 'canceling statement due to statement timeout']);
  }
  await client.query('begin');
  await client.query("set local statement_timeout to '5s'");
  await client.query('select pg_sleep(0.2)');
  await client.query('commit');
  strictEqual(await code(client.query('select pg_sleep(10)')), '57014');
});
test('timeouts: of the client', async () => {
  const client = new pg.Client({ query_timeout: 100 });
  client.on('error', () => {});
  await client.connect();
  await rejects(client.query('select pg_sleep(1)'), /Query read timeout/);
  await client.end();
});

// Cursors and streams

for (const kind of KINDS) {
  connected(`cursors: some rows at a time [${kind}]`, async client => {
    await table(client, kind, 'np_cursor', 'k int, v text');
    await client.query("insert into np_cursor select i, 'v' || i from generate_series(1, 1000) i");
    for (const text of ['select k from np_cursor where k <= $1 order by k', 'select k from np_cursor where k <= $1']) {
      await client.query('begin');
      const cursor = client.query(new Cursor(text, [900], { rowMode: 'array' }));
      const seen = [];
      const sizes = [];
      for (;;) {
        const part = await cursor.read(250);
        sizes.push(part.length);
        if (part.length === 0) break;
        seen.push(...part.map(r => r[0]));
      }
      same(sizes, [250, 250, 250, 150, 0]);
      same(
        seen.sort((a, b) => a - b),
        Array.from({ length: 900 }, (_, i) => i + 1),
      );
      await cursor.close();
      await client.query('commit');
    }
    // Outside of a transaction, and left in the middle.
    const cursor = client.query(new Cursor('select * from np_cursor order by k'));
    same(
      (await cursor.read(2)).map(r => r.v),
      ['v1', 'v2'],
    );
    await cursor.close();
    strictEqual(await value(client, 'select count(*)::int from np_cursor'), 1000);
    // An error after the first rows.
    const bad = client.query(new Cursor('select 1 / (500 - k) from (select k from np_cursor order by k offset 0) s'));
    strictEqual((await bad.read(100)).length, 100);
    strictEqual(await code(bad.read(1000)), '22012');
    strictEqual(await code(client.query(new Cursor('select nothing')).read(1)), '42703');
    same(await rows(client, 'select 1'), [[1]]);
  });
  connected(`cursors: changes that return rows [${kind}]`, async client => {
    await table(client, kind, 'np_cursor', 'k int, v text');
    const cursor = client.query(
      new Cursor("insert into np_cursor select i, 'x' from generate_series(1, 10) i returning k"),
    );
    strictEqual((await cursor.read(3)).length, 3);
    strictEqual((await cursor.read(30)).length, 7);
    await cursor.close();
    strictEqual(await value(client, 'select count(*)::int from np_cursor'), 10);
  });
  connected(`cursors: streams [${kind}]`, async client => {
    await table(client, kind, 'np_stream', 'k int, v text');
    await client.query("insert into np_stream select i, repeat('x', 100) from generate_series(1, 5000) i");
    let sum = 0;
    for await (const row of client.query(
      new QueryStream('select * from np_stream where k > $1', [1000], { batchSize: 300 }),
    )) {
      sum += row.k;
    }
    strictEqual(sum, 12002000);
    let seen = 0;
    const stream = client.query(new QueryStream('select * from np_stream', [], { batchSize: 10 }));
    for await (const row of stream) {
      ok(row.k > 0);
      if (++seen === 25) break;
    }
    same(await rows(client, 'select 1'), [[1]]);
  });
  connected(`cursors: of SQL [${kind}]`, async client => {
    await table(client, kind, 'np_declared', 'k int');
    await client.query('insert into np_declared select generate_series(1, 20)');
    await client.query('begin; declare c scroll cursor for select k from np_declared order by k');
    same(await rows(client, 'fetch 3 from c'), [[1], [2], [3]]);
    same(await rows(client, 'fetch last from c'), [[20]]);
    same(await rows(client, 'fetch backward 2 from c'), [[19], [18]]);
    same(await rows(client, 'fetch absolute 5 from c'), [[5]]);
    same(await rows(client, 'fetch relative -2 from c'), [[3]]);
    strictEqual((await client.query('move forward all in c')).rowCount, 17);
    same(
      await rows(client, 'select name, statement, is_scrollable, is_holdable from pg_cursors'),
      [['c', 'declare c scroll cursor for select k from np_declared order by k', true, false]].map(r => [
        r[0],
        `begin; ${r[1]}`,
        r[2],
        r[3],
      ]),
    );
    await client.query('close c');
    strictEqual(await code(client.query('fetch c')), '34000');
    await client.query('rollback; begin; declare h cursor with hold for select k from np_declared order by k; commit');
    same(await rows(client, 'fetch 2 from h'), [[1], [2]]);
    await client.query('close all');
  });
}

// COPY

for (const kind of KINDS) {
  connected(`copy: in and out [${kind}]`, async client => {
    await table(client, kind, 'np_copy', 'k int primary key, v text, n numeric');
    const lines = Array.from({ length: 3000 }, (_, i) => `${i}\tv\\t${i}\t${i % 7 ? i / 2 : '\\N'}\n`);
    const into = client.query(copy.from('copy np_copy from stdin'));
    await pipeline(Readable.from(lines), into);
    strictEqual(into.rowCount, 3000);
    same(await rows(client, 'select v, n from np_copy where k in (7, 8) order by k'), [
      ['v\t7', null],
      ['v\t8', '4'],
    ]);
    const collect = async text => {
      const chunks = [];
      const out = client.query(copy.to(text));
      for await (const chunk of out) chunks.push(chunk);
      return [Buffer.concat(chunks).toString(), out.rowCount];
    };
    const [all, count] = await collect('copy np_copy to stdout');
    strictEqual(count, 3000);
    same(
      all
        .split('\n')
        .filter(l => l)
        .map(l => l + '\n')
        .sort(),
      [...lines].sort(),
    );
    same(
      await collect(
        'copy (select k, v, n from np_copy where k between 6 and 8 order by k) to stdout ' +
          "with (format csv, header, force_quote (v), null 'none')",
      ),
      ['k,v,n\n6,"v\t6",3\n7,"v\t7",none\n8,"v\t8",4\n', 3],
    );
    same(await collect('copy (select 1 where false) to stdout'), ['', 0]);
    const csv = client.query(
      copy.from("copy np_copy (v, k) from stdin with (format csv, header true, delimiter ';', quote '''')"),
    );
    await pipeline(Readable.from(["v;k\n'a;''b';100", '01\n;10002\n']), csv);
    strictEqual(csv.rowCount, 2);
    same(await rows(client, 'select * from np_copy where k > 10000 order by k'), [
      [10001, "a;'b", null],
      [10002, null, null],
    ]);
  });
  connected(`copy: errors [${kind}]`, async client => {
    await table(client, kind, 'np_copy', 'k int primary key, v int');
    const put = (text, lines) => failure(pipeline(Readable.from(lines), client.query(copy.from(text))));
    const told = e => [e.code, e.message, e.where];
    same(told(await put('copy np_copy from stdin', ['1\t1\n', '2\tx\n', '3\t3\n'])), [
      '22P02',
      'invalid input syntax for type integer: "x"',
      'COPY np_copy, line 2, column v: "x"',
    ]);
    same(told(await put('copy np_copy from stdin', ['1\t1\n', 'y\t2\n'])), [
      '22P02',
      'invalid input syntax for type integer: "y"',
      'COPY np_copy, line 2, column k: "y"',
    ]);
    same(told(await put('copy np_copy from stdin', ['1\t1\n', '2\n'])), [
      '22P04',
      'missing data for column "v"',
      'COPY np_copy, line 2: "2"',
    ]);
    same(told(await put('copy np_copy from stdin', ['1\t1\t1\n'])), [
      '22P04',
      'extra data after last expected column',
      'COPY np_copy, line 1: "1\t1\t1"',
    ]);
    same(told(await put('copy np_copy from stdin', ['1\t1\n1\t2\n'])), [
      '23505',
      'duplicate key value violates unique constraint "np_copy_pkey"',
      'COPY np_copy, line 2',
    ]);
    strictEqual((await put('copy np_copy from nowhere', ['1\t1\n'])).code, '42601');
    strictEqual((await put('copy np_nowhere from stdin', ['1\t1\n'])).code, '42P01');
    const given = client.query(copy.from('copy np_copy from stdin'));
    given.on('error', () => {});
    given.write('5\t5\n');
    await sleep(20);
    given.destroy(new Error('enough'));
    same(await rows(client, 'select * from np_copy'), []);
    await client.query('begin; insert into np_copy values (1, 1)');
    strictEqual((await put('copy np_copy from stdin', ['1\t1\n'])).code, '23505');
    strictEqual(await code(client.query('select 1')), '25P02');
    await client.query('rollback');
  });
}
connected('copy: much out', async client => {
  const out = client.query(copy.to("copy (select i, repeat('x', 1000) from generate_series(1, 20000) i) to stdout"));
  let bytes = 0;
  for await (const chunk of out) bytes += chunk.length;
  strictEqual(bytes, 20000 * 1002 + 88894);
});

// Notifications

test('notify: between sessions', async () => {
  const [a, b] = [new pg.Client(), new pg.Client()];
  await Promise.all([a.connect(), b.connect()]);
  const got = [];
  a.on('notification', n => got.push([n.channel, n.payload, n.processId]));
  const until = async n => {
    for (let i = 0; got.length < n && i < 500; i++) await sleep(10);
  };
  await a.query('listen np_one; listen "Np Two"');
  await b.query("notify np_one, 'hello'");
  await b.query("select pg_notify('Np Two', $1)", ['x'.repeat(7000)]);
  await until(2);
  await b.query("begin; notify np_one, 'gone'; rollback");
  await b.query("begin; notify np_one, 'same'; notify np_one, 'same'; notify np_one");
  await sleep(30);
  strictEqual(got.length, 2);
  await b.query('commit');
  await until(4);
  await a.query("notify np_one, 'self'");
  same(got, [
    ['np_one', 'hello', b.processID],
    ['Np Two', 'x'.repeat(7000), b.processID],
    ['np_one', 'same', b.processID],
    ['np_one', '', b.processID],
    ['np_one', 'self', a.processID],
  ]);
  same(await rows(a, 'select * from pg_listening_channels() order by 1'), [['Np Two'], ['np_one']]);
  await a.query('unlisten np_one');
  await b.query('notify np_one, \'nobody\'; notify "Np Two"');
  await until(6);
  strictEqual(got.length, 6);
  strictEqual(await code(a.query("select pg_notify('c', $1)", ['x'.repeat(8000)])), '22023');
  await Promise.all([a.end(), b.end()]);
});

// Pools

test('pool: more queries than connections', async () => {
  const pool = new pg.Pool({ max: 5 });
  const pids = await Promise.all(
    Array.from({ length: 100 }, (_, i) =>
      pool.query('select $1::int as i, pg_backend_pid() as pid', [i]).then(r => {
        strictEqual(r.rows[0].i, i);
        return r.rows[0].pid;
      }),
    ),
  );
  ok(new Set(pids).size <= 5);
  strictEqual(pool.totalCount, 5);
  await pool.end();
});
for (const kind of ['local', 'distributed']) {
  test(`pool: transactions side by side [${kind}]`, async () => {
    const pool = new pg.Pool({ max: 8 });
    const first = await pool.connect();
    await table(first, kind, 'np_pool', 'k int primary key, v int');
    await first.query('insert into np_pool select i, 0 from generate_series(1, 20) i');
    first.release();
    await Promise.all(
      Array.from({ length: 80 }, async (_, i) => {
        const client = await pool.connect();
        try {
          await client.query('begin');
          await client.query('update np_pool set v = v + 1 where k = $1', [(i % 20) + 1]);
          await client.query(i % 4 === 3 ? 'rollback' : 'commit');
        } finally {
          client.release();
        }
      }),
    );
    same((await pool.query('select sum(v)::int as s, max(v) as m from np_pool')).rows, [{ s: 60, m: 4 }]);
    await pool.end();
  });
}
test('pool: a connection that is ended by another', async () => {
  const pool = new pg.Pool({ max: 1 });
  const errors = [];
  pool.on('error', e => errors.push(e.code));
  const pid = (await pool.query('select pg_backend_pid() as pid')).rows[0].pid;
  const other = new pg.Client();
  await other.connect();
  await other.query('select pg_terminate_backend($1)', [pid]);
  for (let i = 0; errors.length === 0 && i < 500; i++) await sleep(10);
  same(errors, ['57P01']);
  ok((await pool.query('select pg_backend_pid() as pid')).rows[0].pid !== pid);
  await other.end();
  await pool.end();
});
test('pool: what a session has set stays with it', async () => {
  const pool = new pg.Pool({ max: 2 });
  const [a, b] = [await pool.connect(), await pool.connect()];
  await a.query(
    "set work_mem to '7MB'; create temporary table np_own_temporary (a int); prepare p as select 1; " +
      'select pg_advisory_lock(77)',
  );
  strictEqual(await value(a, 'show work_mem'), '7MB');
  ok((await value(b, 'show work_mem')) !== '7MB');
  strictEqual(await code(b.query('select * from np_own_temporary')), '42P01');
  strictEqual(await code(b.query('execute p')), '26000');
  strictEqual(await value(b, 'select pg_try_advisory_lock(77)'), false);
  await a.query('discard all');
  strictEqual(await code(a.query('select * from np_own_temporary')), '42P01');
  strictEqual(await code(a.query('execute p')), '26000');
  strictEqual(await value(b, 'select pg_try_advisory_lock(77)'), true);
  strictEqual(await value(b, 'select pg_advisory_unlock(77)'), true);
  [a, b].forEach(c => c.release());
  await pool.end();
});

// What is asked of the catalog

on(['local', 'distributed'], 'catalog: a table', async (client, kind) => {
  await table(
    client,
    kind,
    'np_catalog',
    "k int primary key, v varchar(20) default 'x' not null, n numeric(10,2), " +
      'a int[] , s serial, g int generated always as (k * 2) stored, constraint n_positive check (n > 0)',
  );
  await client.query(
    'create index np_catalog_v on np_catalog (lower(v), n desc) where n > 1; ' +
      "comment on table np_catalog is 'the table'; comment on column np_catalog.v is 'the column'",
  );
  same(
    await rows(
      client,
      `select column_name::text, data_type::text, is_nullable::text, column_default::text,
    character_maximum_length::int,
    numeric_precision::int, numeric_scale::int, udt_name::text, is_generated::text from information_schema.columns
    where table_schema = 'public' and table_name = $1 order by ordinal_position`,
      ['np_catalog'],
    ),
    [
      ['k', 'integer', 'NO', null, null, 32, 0, 'int4', 'NEVER'],
      ['v', 'character varying', 'NO', "'x'::character varying", 20, null, null, 'varchar', 'NEVER'],
      ['n', 'numeric', 'YES', null, null, 10, 2, 'numeric', 'NEVER'],
      ['a', 'ARRAY', 'YES', null, null, null, null, '_int4', 'NEVER'],
      ['s', 'integer', 'NO', "nextval('np_catalog_s_seq'::regclass)", null, 32, 0, 'int4', 'NEVER'],
      ['g', 'integer', 'YES', null, null, 32, 0, 'int4', 'ALWAYS'],
    ],
  );
  same(
    await rows(
      client,
      `select conname::text, contype::text, pg_get_constraintdef(oid) from pg_constraint
    where conrelid = 'np_catalog'::regclass order by 1`,
    ),
    [
      ['n_positive', 'c', 'CHECK ((n > (0)::numeric))'],
      ['np_catalog_pkey', 'p', 'PRIMARY KEY (k)'],
    ],
  );
  same(
    await rows(client, "select indexname::text, indexdef from pg_indexes where tablename = 'np_catalog' order by 1"),
    [
      ['np_catalog_pkey', 'CREATE UNIQUE INDEX np_catalog_pkey ON public.np_catalog USING btree (k)'],
      [
        'np_catalog_v',
        'CREATE INDEX np_catalog_v ON public.np_catalog USING btree (lower((v)::text), n DESC) ' +
          'WHERE (n > (1)::numeric)',
      ],
    ],
  );
  same(
    await rows(
      client,
      `select obj_description('np_catalog'::regclass), col_description('np_catalog'::regclass, 2),
    pg_get_serial_sequence('np_catalog', 's'), to_regclass('np_catalog')::text, to_regclass('np_nowhere')::text`,
    ),
    [['the table', 'the column', 'public.np_catalog_s_seq', 'np_catalog', null]],
  );
  same(
    await rows(
      client,
      `select c.relname::text, c.relkind::text, c.relpersistence::text, n.nspname::text, r.rolname = current_user,
    c.relhasindex, c.relispartition
    from pg_class c join pg_namespace n on n.oid = relnamespace join pg_roles r on r.oid = relowner
    where relname like 'np\\_catalog%' order by 1`,
    ),
    [
      ['np_catalog', 'r', 'p', 'public', true, true, false],
      ['np_catalog_pkey', 'i', 'p', 'public', true, false, false],
      ['np_catalog_s_seq', 'S', 'p', 'public', true, false, false],
      ['np_catalog_v', 'i', 'p', 'public', true, false, false],
    ],
  );
  same(
    await rows(
      client,
      "select table_name::text, table_type::text from information_schema.tables where table_name like 'np\\_catalog%'",
    ),
    [['np_catalog', 'BASE TABLE']],
  );
  await client.query('insert into np_catalog (k, n) values (4, 1.5), (5, 2.555)');
  same(await rows(client, 'select k, v, n, s, g from np_catalog order by k'), [
    [4, 'x', '1.50', 1, 8],
    [5, 'x', '2.56', 2, 10],
  ]);
  same(
    await rows(client, "select currval('np_catalog_s_seq')::int, lastval()::int, nextval('np_catalog_s_seq')::int"),
    [[2, 2, 3]],
  );
  await client.query('drop table np_catalog');
  strictEqual(await value(client, "select count(*)::int from pg_class where relname like 'np\\_catalog%'"), 0);
});
on(['local', 'distributed'], 'catalog: only what a client has made is there', async (client, kind) => {
  const names = () =>
    rows(
      client,
      "select nspname || '.' || relname from pg_class c join pg_namespace n on n.oid = relnamespace " +
        "where nspname !~ '^pg_' and nspname <> 'information_schema' order by 1",
    );
  const before = await names();
  await table(client, kind, 'np_listed', 'k int primary key, v text');
  await client.query("insert into np_listed select i, 'x' from generate_series(1, 100) i");
  const after = (await names()).map(r => r[0]).filter(n => !before.some(b => b[0] === n));
  same(after, ['public.np_listed', 'public.np_listed_pkey']);
  same(await rows(client, "select nspname::text from pg_namespace where nspname !~ '^pg_(toast|temp)' order by 1"), [
    ['information_schema'],
    ['pg_catalog'],
    ['public'],
  ]);
  same(await rows(client, 'select extname::text from pg_extension order by 1'), [['plpgsql']]);
  same(
    await rows(client, "select relname::text, n_live_tup >= 0 from pg_stat_user_tables where relname = 'np_listed'"),
    [['np_listed', true]],
  );
  strictEqual(
    await value(client, "select pg_total_relation_size('np_listed') > 0 and pg_table_size('np_listed') > 0"),
    true,
  );
  await client.query('drop table np_listed');
});
connected('catalog: functions and views', async client => {
  await client.query(
    'create or replace function np_add(a int, b int default 2) returns int language sql immutable ' +
      'as $$ select a + b $$; create or replace view np_view as select np_add(1) as three; ' +
      'create or replace procedure np_proc(inout a int) language plpgsql as $$ begin a := a * 2; end $$',
  );
  same(await rows(client, 'select np_add($1), np_add($1, b => $2), three from np_view', [5, 6]), [[7, 11, 3]]);
  same(await rows(client, 'call np_proc($1)', [21]), [[42]]);
  same(
    await rows(
      client,
      "select pg_get_viewdef('np_view'), pg_get_function_arguments('np_add'::regproc), " +
        "pg_get_function_result('np_add'::regproc)",
    ),
    [[' SELECT np_add(1) AS three;', 'a integer, b integer DEFAULT 2', 'integer']],
  );
  await client.query('drop view np_view; drop function np_add; drop procedure np_proc');
});
connected('large objects', async client => {
  await client.query('begin');
  const oid = await value(client, 'select lo_create(0)');
  const fd = await value(client, 'select lo_open($1, 393216)', [oid]);
  strictEqual(await value(client, 'select lowrite($1, $2)', [fd, Buffer.from('hello world')]), 11);
  strictEqual(await value(client, 'select lo_lseek($1, 6, 0)', [fd]), 6);
  same(await value(client, 'select loread($1, 100)', [fd]), Buffer.from('world'));
  await client.query('commit');
  same(await value(client, 'select lo_get($1)', [oid]), Buffer.from('hello world'));
  strictEqual(await value(client, 'select lo_unlink($1)', [oid]), 1);
  strictEqual(await code(client.query('select lo_get($1)', [oid])), '42704');
});

run();
