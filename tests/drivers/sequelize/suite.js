// What Sequelize does with a server: models, associations, transactions and migrations, with tables that are spread
// where they can be.
'use strict';
const { ok, strictEqual } = require('assert');
const { Sequelize, DataTypes, Op, QueryTypes, Transaction } = require('sequelize');
const { Umzug, SequelizeStorage } = require('umzug');
const cls = require('cls-hooked').createNamespace('drivers');
const { run, same, test } = require('drivers_report');

const { fn, col, literal, where, cast } = Sequelize;
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));

const database = (more = {}) =>
  new Sequelize(process.env.PGDATABASE, process.env.PGUSER, undefined, {
    dialect: 'postgres',
    host: process.env.PGHOST,
    port: Number(process.env.PGPORT),
    logging: false,
    pool: { max: 4 },
    ...more,
  });
const KINDS = ['local', 'distributed'];
const on = (name, body, more) =>
  KINDS.forEach(kind =>
    test(`${name} [${kind}]`, async () => {
      const db = database(more);
      try {
        await body(db, kind);
      } finally {
        await Promise.race([db.close(), sleep(2000)]);
      }
    }),
  );
const alone = (name, body, more) =>
  test(name, async () => {
    const db = database(more);
    try {
      await body(db);
    } finally {
      await Promise.race([db.close(), sleep(2000)]);
    }
  });
const select = (db, sql, more) => db.query(sql, { type: QueryTypes.SELECT, ...more });

// Spreads a table by a column, or puts a copy on all nodes, where there is such a thing.
const spread = async (db, kind, table, column) => {
  const [{ there }] = await select(db, "select to_regproc('create_distributed_table') is not null as there");
  if (kind !== 'distributed' || !there) return;
  if (column) await db.query(`select create_distributed_table('"${table}"', '${column}')`);
  else await db.query(`select create_reference_table('"${table}"')`);
};
const failure = async promise => {
  try {
    await promise;
  } catch (e) {
    return e;
  }
  throw new Error('no error');
};

// Types

const EVERY = {
  k: { type: DataTypes.INTEGER, primaryKey: true },
  string: DataTypes.STRING,
  short: DataTypes.STRING(10),
  fixed: DataTypes.CHAR(5),
  text: DataTypes.TEXT,
  citext: DataTypes.CITEXT,
  small: DataTypes.SMALLINT,
  int: DataTypes.INTEGER,
  big: DataTypes.BIGINT,
  real: DataTypes.REAL,
  float: DataTypes.FLOAT,
  double: DataTypes.DOUBLE,
  decimal: DataTypes.DECIMAL(10, 2),
  bool: DataTypes.BOOLEAN,
  date: DataTypes.DATE,
  day: DataTypes.DATEONLY,
  time: DataTypes.TIME,
  uuid: DataTypes.UUID,
  mood: DataTypes.ENUM('sad', 'happy'),
  strings: DataTypes.ARRAY(DataTypes.STRING),
  ints: DataTypes.ARRAY(DataTypes.INTEGER),
  moods: DataTypes.ARRAY(DataTypes.ENUM('on', 'off')),
  json: DataTypes.JSON,
  jsonb: DataTypes.JSONB,
  blob: DataTypes.BLOB,
  range: DataTypes.RANGE(DataTypes.INTEGER),
  dates: DataTypes.RANGE(DataTypes.DATE),
  decimals: DataTypes.RANGE(DataTypes.DECIMAL),
  hstore: DataTypes.HSTORE,
  inet: DataTypes.INET,
  cidr: DataTypes.CIDR,
  mac: DataTypes.MACADDR,
};
const VALUES = {
  k: 1,
  string: 'añ€😀\'"\\',
  short: 'short',
  fixed: 'ab   ',
  text: 'x'.repeat(10000),
  citext: 'CiText',
  small: -1,
  int: 2147483647,
  big: '9007199254740993',
  real: 1.5,
  float: -2.5,
  double: 1e300,
  decimal: '12.50',
  bool: true,
  date: new Date('2024-02-29T12:34:56.789Z'),
  day: '2024-02-29',
  time: '12:34:56',
  uuid: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
  mood: 'happy',
  strings: ['a', 'b "c"', ''],
  ints: [1, 2, 3],
  moods: ['on', 'off'],
  json: { a: [1, null, { b: 'c' }] },
  jsonb: { a: { b: [1, 2] }, t: 'x' },
  blob: Buffer.from([0, 1, 255]),
  range: [
    { value: 1, inclusive: true },
    { value: 5, inclusive: false },
  ],
  dates: [
    { value: new Date('2024-01-01T00:00:00Z'), inclusive: true },
    { value: null, inclusive: false },
  ],
  decimals: [
    { value: '1.5', inclusive: true },
    { value: '2.5', inclusive: true },
  ],
  hstore: { a: '1', b: null },
  inet: '10.1.2.3',
  cidr: '10.0.0.0/8',
  mac: '08:00:2b:01:02:03',
};
on('types: values come back', async (db, kind) => {
  await db.query('create extension if not exists citext; create extension if not exists hstore');
  const Every = db.define('sq_every', EVERY, { timestamps: false });
  await Every.sync({ force: true });
  await spread(db, kind, 'sq_everies', 'k');
  const made = await Every.create(VALUES);
  same(made.get({ plain: true }), VALUES);
  same((await Every.findByPk(1)).get({ plain: true }), VALUES);
  await Every.bulkCreate([{ ...VALUES, k: 2 }, { k: 3 }]);
  same((await Every.findByPk(2, { raw: true })).big, VALUES.big);
  same(
    await Every.findByPk(3, { raw: true }),
    Object.fromEntries(Object.keys(EVERY).map(c => [c, c === 'k' ? 3 : null])),
  );
  const found = async condition =>
    (await Every.findAll({ where: condition, order: ['k'], attributes: ['k'] })).map(r => r.k);
  same(await found({ strings: { [Op.contains]: ['a'] } }), [1, 2]);
  same(await found({ ints: { [Op.overlap]: [3, 9] } }), [1, 2]);
  same(await found({ ints: [1, 2, 3] }), [1, 2]);
  same(await found({ int: { [Op.any]: literal('array[1, 2147483647]') } }), [1, 2]);
  same(await found({ range: { [Op.contains]: 4 } }), [1, 2]);
  same(await found({ range: { [Op.contains]: 5 } }), []);
  same(await found({ range: { [Op.overlap]: [4, 8] } }), [1, 2]);
  same(await found({ range: { [Op.adjacent]: [5, 8] } }), [1, 2]);
  same(await found({ range: { [Op.strictLeft]: [6, 8] } }), [1, 2]);
  same(await found({ jsonb: { [Op.contains]: { t: 'x' } } }), [1, 2]);
  same(await found({ 'jsonb.t': 'x', k: 1 }), [1]);
  same(await found({ jsonb: { a: { b: { [Op.ne]: null } } } }), [1, 2]);
  same(await found({ json: { a: { [Op.not]: null } } }), [1, 2]);
  same(await found({ hstore: { [Op.contains]: { a: '1' } } }), [1, 2]);
  same(await found({ citext: 'CITEXT' }), [1, 2]);
  same(await found({ mood: 'happy', moods: { [Op.contains]: ['on'] } }), [1, 2]);
  same(
    await found({ uuid: VALUES.uuid, blob: VALUES.blob, date: VALUES.date, inet: VALUES.inet, k: { [Op.in]: [2, 3] } }),
    [2],
  );
  same(await found({ decimal: { [Op.between]: [12, '12.51'] }, day: { [Op.lte]: '2024-02-29' } }), [1, 2]);
  same(
    await found({ string: { [Op.like]: 'a%' }, text: { [Op.iRegexp]: '^X+$' }, short: { [Op.notILike]: '%LONG%' } }),
    [1, 2],
  );
  same(await found({ [Op.or]: [{ k: 3 }, { [Op.not]: { bool: true } }] }), [3]);
  const e = await failure(Every.update({ mood: 'glad' }, { where: { k: 1 } }));
  strictEqual(e.name, 'SequelizeDatabaseError');
  strictEqual(e.original.code, '22P02');
  await Every.update({ strings: [], jsonb: null, mood: 'sad', ints: null }, { where: { k: 1 } });
  const changed = await Every.findByPk(1, { attributes: ['strings', 'jsonb', 'mood', 'ints'], raw: true });
  same(changed, { strings: [], jsonb: null, mood: 'sad', ints: null });
});

// Rows

const person = async (db, kind, more = {}) => {
  const Person = db.define(
    'SqPerson',
    {
      id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true },
      name: { type: DataTypes.STRING, allowNull: false },
      age: { type: DataTypes.INTEGER, defaultValue: 18, validate: { min: 0 } },
      ...more.columns,
    },
    { tableName: 'sq_person', ...more.options },
  );
  await Person.sync({ force: true });
  await spread(db, kind, 'sq_person', 'id');
  return Person;
};
on('rows: create, find, update, destroy', async (db, kind) => {
  const Person = await person(db, kind);
  const ann = await Person.create({ name: 'Ann' });
  same([ann.id, ann.age], [1, 18]);
  ok(ann.createdAt instanceof Date);
  const bob = await Person.build({ name: 'Bob', age: 30 }).save();
  strictEqual(bob.id, 2);
  same((await Person.findOne({ where: { name: 'Bob' } })).age, 30);
  strictEqual(await Person.findByPk(99), null);
  bob.age = 31;
  await bob.save();
  strictEqual((await bob.reload()).age, 31);
  await bob.increment('age', { by: 4 });
  await bob.decrement({ age: 2 });
  strictEqual((await bob.reload()).age, 33);
  same(await Person.update({ age: literal('age + 1') }, { where: { id: [1, 2] } }), [2]);
  const [count, changed] = await Person.update({ age: 50 }, { where: { name: 'Ann' }, returning: true });
  same([count, changed.length, changed[0].age], [1, 1, 50]);
  await Person.increment({ age: 1 }, { where: {} });
  same(await Person.findAll({ order: ['id'], raw: true, attributes: ['name', 'age'] }), [
    { name: 'Ann', age: 51 },
    { name: 'Bob', age: 35 },
  ]);
  await ann.destroy();
  strictEqual(await Person.destroy({ where: { age: { [Op.gt]: 100 } } }), 0);
  strictEqual(await Person.destroy({ where: { name: 'Bob' } }), 1);
  strictEqual(await Person.count(), 0);
  const cat = await Person.create({ name: 'Cat' });
  strictEqual(cat.id, 3);
  await Person.truncate({ restartIdentity: true });
  strictEqual((await Person.create({ name: 'Dan' })).id, 1);
});
on('rows: findOrCreate and upsert', async (db, kind) => {
  const Person = await person(db, kind);
  const [ann, made] = await Person.findOrCreate({ where: { id: 5 }, defaults: { name: 'Ann' } });
  same([ann.name, made], ['Ann', true]);
  const [again, second] = await Person.findOrCreate({ where: { id: 5 }, defaults: { name: 'Bob' } });
  same([again.name, second], ['Ann', false]);
  const [built, fresh] = await Person.findOrBuild({ where: { id: 6 }, defaults: { name: 'Cat' } });
  same([built.isNewRecord, fresh], [true, true]);
  const many = await Promise.all(
    [1, 2, 3, 4, 5, 6].map(() => Person.findOrCreate({ where: { id: 77 }, defaults: { name: 'Once' } })),
  );
  strictEqual(many.filter(([, m]) => m).length, 1);
  const [up] = await Person.upsert({ id: 5, name: 'Ann 2', age: 44 });
  same([up.id, up.name, up.age], [5, 'Ann 2', 44]);
  const [inserted] = await Person.upsert({ id: 8, name: 'New' }, { returning: ['id', 'age'] });
  same([inserted.id, inserted.age], [8, 18]);
  same(await Person.findAll({ order: ['id'], raw: true, attributes: ['id', 'name', 'age'] }), [
    { id: 5, name: 'Ann 2', age: 44 },
    { id: 8, name: 'New', age: 18 },
    { id: 77, name: 'Once', age: 18 },
  ]);
  const [created, wasMade] = await Person.findCreateFind({ where: { id: 9 }, defaults: { name: 'Nine' } });
  same([created.name, wasMade], ['Nine', true]);
});
on('rows: many at once', async (db, kind) => {
  const Person = await person(db, kind);
  const rows = await Person.bulkCreate(Array.from({ length: 500 }, (_, i) => ({ name: `p${i}`, age: i % 50 })));
  same(
    rows.map(r => r.id),
    Array.from({ length: 500 }, (_, i) => i + 1),
  );
  const again = await Person.bulkCreate(
    [
      { id: 1, name: 'one', age: 99 },
      { id: 501, name: 'new' },
    ],
    { updateOnDuplicate: ['name', 'age'], returning: true },
  );
  same(
    again.map(r => [r.id, r.name]).sort((a, b) => a[0] - b[0]),
    [
      [1, 'one'],
      [501, 'new'],
    ],
  );
  await Person.bulkCreate(
    [
      { id: 2, name: 'ignored' },
      { id: 600, name: 'kept' },
    ],
    { ignoreDuplicates: true },
  );
  same(
    (await Person.findAll({ where: { id: [1, 2, 501, 600] }, order: ['id'] })).map(p => [p.name, p.age]),
    [
      ['one', 99],
      ['p1', 1],
      ['new', 18],
      ['kept', 18],
    ],
  );
  const e = await failure(
    Person.bulkCreate([
      { id: 700, name: 'x' },
      { id: 1, name: 'y' },
    ]),
  );
  strictEqual(e.name, 'SequelizeUniqueConstraintError');
  strictEqual(await Person.findByPk(700), null);
  strictEqual(await Person.count(), 502);
  await Person.bulkCreate([{ id: 1, name: 'a', age: 1 }], {
    updateOnDuplicate: ['age'],
    conflictAttributes: ['id'],
    conflictWhere: {},
  });
  strictEqual((await Person.findByPk(1)).name, 'one');
});
on('rows: what is counted, grouped and sorted', async (db, kind) => {
  const Person = await person(db, kind);
  await Person.bulkCreate(Array.from({ length: 60 }, (_, i) => ({ name: `p${i % 4}`, age: i })));
  same(
    [
      await Person.count(),
      await Person.count({ where: { age: { [Op.lt]: 10 } } }),
      await Person.sum('age'),
      await Person.max('age'),
      await Person.min('age'),
    ],
    [60, 10, 1770, 59, 0],
  );
  same(await Person.count({ distinct: true, col: 'name' }), 4);
  same(
    (await Person.count({ group: ['name'] })).sort((a, b) => (a.name < b.name ? -1 : 1)),
    ['p0', 'p1', 'p2', 'p3'].map(name => ({ name, count: 15 })),
  );
  same(
    await Person.findAll({
      attributes: [
        'name',
        [fn('count', col('id')), 'n'],
        [fn('avg', col('age')), 'mean'],
        [cast(fn('max', col('age')), 'text'), 'oldest'],
      ],
      group: ['name'],
      having: where(fn('max', col('age')), Op.gte, 58),
      order: [['name', 'DESC']],
      raw: true,
    }),
    [
      { name: 'p3', n: '15', mean: '31.0000000000000000', oldest: '59' },
      { name: 'p2', n: '15', mean: '30.0000000000000000', oldest: '58' },
    ],
  );
  const { count, rows } = await Person.findAndCountAll({
    where: { name: { [Op.in]: ['p1', 'p2'] } },
    order: [['age', 'DESC'], 'id'],
    limit: 3,
    offset: 2,
  });
  same([count, rows.map(r => r.age)], [30, [54, 53, 50]]);
  same(
    (
      await Person.findAll({
        order: [fn('mod', col('age'), 7), literal('age desc')],
        limit: 4,
        raw: true,
        attributes: ['age'],
      })
    ).map(r => r.age),
    [56, 49, 42, 35],
  );
  same(
    (
      await Person.findAll({ attributes: [[fn('DISTINCT', col('name')), 'name']], order: [['name', 'ASC']], raw: true })
    ).map(r => r.name),
    ['p0', 'p1', 'p2', 'p3'],
  );
  same((await Person.findAll({ where: { age: { [Op.in]: literal('(select max(age) from sq_person)') } } })).length, 1);
  same(await Person.aggregate('age', 'sum', { where: { id: 7 }, plain: true }), 6);
});
on('rows: hidden when they are destroyed', async (db, kind) => {
  const Person = await person(db, kind, { options: { paranoid: true } });
  await Person.bulkCreate([{ name: 'a' }, { name: 'b' }]);
  await (await Person.findOne({ where: { name: 'a' } })).destroy();
  same([await Person.count(), await Person.count({ paranoid: false })], [1, 2]);
  await Person.restore({ where: { name: 'a' } });
  strictEqual(await Person.count(), 2);
  await Person.destroy({ where: { name: 'a' }, force: true });
  strictEqual(await Person.count({ paranoid: false }), 1);
});
on('rows: optimistic locks', async (db, kind) => {
  const Person = await person(db, kind, { options: { version: true } });
  const ann = await Person.create({ name: 'Ann' });
  strictEqual(ann.version, 0);
  const other = await Person.findByPk(ann.id);
  await ann.update({ age: 20 });
  strictEqual((await Person.findByPk(ann.id)).version, 1);
  const e = await failure(other.update({ age: 30 }));
  strictEqual(e.name, 'SequelizeOptimisticLockError');
  same([(await Person.findByPk(ann.id)).age, e.where.version], [20, 0]);
});
on('rows: scopes, hooks, getters', async (db, kind) => {
  const Person = await person(db, kind, {
    columns: {
      upper: {
        type: DataTypes.VIRTUAL,
        get() {
          return this.name.toUpperCase();
        },
      },
    },
    options: {
      scopes: { grown: { where: { age: { [Op.gte]: 18 } } }, named: name => ({ where: { name } }) },
      defaultScope: { order: ['id'] },
      hooks: {
        beforeCreate: p => {
          p.name = `${p.name}!`;
        },
      },
    },
  });
  await Person.create({ name: 'a', age: 5 });
  await Person.create({ name: 'b' });
  same(
    (await Person.findAll()).map(p => p.upper),
    ['A!', 'B!'],
  );
  same(
    (await Person.scope('grown').findAll()).map(p => p.name),
    ['b!'],
  );
  same(await Person.scope(['grown', { method: ['named', 'a!'] }]).count(), 0);
});

// Errors

on('errors: constraints', async (db, kind) => {
  const Person = await person(db, kind);
  await Person.create({ name: 'Ann' });
  const twice = await failure(Person.create({ id: 1, name: 'Bob' }));
  same(
    [
      twice.name,
      twice.fields,
      twice.errors.map(e => [e.message, e.path, e.value]),
      twice.original.constraint,
      twice.original.table,
    ],
    ['SequelizeUniqueConstraintError', { id: '1' }, [['id must be unique', 'id', '1']], 'sq_person_pkey', 'sq_person'],
  );
  const none = await failure(Person.bulkCreate([{ name: null }]));
  same([none.name, none.original.code, none.original.column], ['SequelizeDatabaseError', '23502', 'name']);
  strictEqual((await failure(Person.create({}))).name, 'SequelizeValidationError');
  strictEqual((await failure(Person.create({ name: 'x', age: -1 }))).name, 'SequelizeValidationError');
  const unknown = await failure(Person.findAll({ where: { nothing: 1 } }));
  same(
    [unknown.name, unknown.original.code, unknown.message],
    ['SequelizeDatabaseError', '42703', 'column SqPerson.nothing does not exist'],
  );
  await db.query('alter table sq_person add constraint grown check (age < 200)');
  const old = await failure(Person.create({ name: 'Old', age: 300 }));
  same([old.name, old.original.code, old.original.constraint], ['SequelizeDatabaseError', '23514', 'grown']);
});
on('errors: a foreign key', async (db, kind) => {
  const Team = db.define(
    'sq_team',
    { id: { type: DataTypes.INTEGER, primaryKey: true } },
    { timestamps: false, freezeTableName: true },
  );
  const Badge = db.define(
    'sq_badge',
    { teamId: { type: DataTypes.INTEGER, primaryKey: true } },
    { timestamps: false, freezeTableName: true },
  );
  Team.hasOne(Badge, { foreignKey: 'teamId', onDelete: 'RESTRICT' });
  Badge.belongsTo(Team, { foreignKey: 'teamId', onDelete: 'RESTRICT' });
  await db.sync({ force: true });
  await spread(db, kind, 'sq_team', 'id');
  await spread(db, kind, 'sq_badge', 'teamId');
  await Team.create({ id: 1 });
  await Badge.create({ teamId: 1 });
  const orphan = await failure(Badge.create({ teamId: 2 }));
  same(
    [orphan.name, orphan.table, orphan.index, orphan.original.detail],
    [
      'SequelizeForeignKeyConstraintError',
      'sq_badge',
      'sq_badge_teamId_fkey',
      'Key (teamId)=(2) is not present in table "sq_team".',
    ],
  );
  const used = await failure(Team.destroy({ where: { id: 1 } }));
  same(
    [used.name, used.index, used.original.detail],
    [
      'SequelizeForeignKeyConstraintError',
      'sq_badge_teamId_fkey',
      'Key (id)=(1) is still referenced from table "sq_badge".',
    ],
  );
  await db.getQueryInterface().dropTable('sq_badge');
  await db.getQueryInterface().dropTable('sq_team');
});
alone('errors: an exclusion constraint', async db => {
  const qi = db.getQueryInterface();
  await db.query(
    'drop table if exists sq_booking; create table sq_booking (during int4range, exclude using gist (during with &&))',
  );
  await qi.bulkInsert('sq_booking', [{ during: literal("'[1,5)'") }]);
  const e = await failure(qi.bulkInsert('sq_booking', [{ during: literal("'[4,9)'") }]));
  same(
    [e.name, e.constraint, e.table, e.original.code],
    ['SequelizeExclusionConstraintError', 'sq_booking_during_excl', 'sq_booking', '23P01'],
  );
});
test('errors: connecting', async () => {
  const nowhere = new Sequelize('nowhere at all', process.env.PGUSER, undefined, {
    dialect: 'postgres',
    host: process.env.PGHOST,
    port: process.env.PGPORT,
    logging: false,
  });
  const e = await failure(nowhere.authenticate());
  same([e.name, e.original.code], ['SequelizeConnectionError', '3D000']);
  await nowhere.close();
});

// Associations

// Posts by their key, comments and tags of posts beside them, authors and tags on all nodes.
const blog = async (db, kind) => {
  const options = { timestamps: false, freezeTableName: true };
  const Author = db.define('sq_author', { name: DataTypes.STRING }, options);
  const Post = db.define(
    'sq_post',
    { title: { type: DataTypes.STRING, defaultValue: 'untitled' }, stars: DataTypes.INTEGER },
    options,
  );
  const Comment = db.define(
    'sq_comment',
    {
      postId: { type: DataTypes.INTEGER, primaryKey: true },
      n: { type: DataTypes.INTEGER, primaryKey: true },
      text: DataTypes.STRING,
    },
    options,
  );
  const Tag = db.define('sq_tag', { name: { type: DataTypes.STRING, unique: true } }, options);
  const PostTag = db.define('sq_post_tag', { weight: { type: DataTypes.INTEGER, defaultValue: 1 } }, options);
  Author.hasMany(Post, { as: 'posts', foreignKey: 'authorId' });
  Post.belongsTo(Author, { as: 'author', foreignKey: 'authorId' });
  Post.hasMany(Comment, { as: 'comments', foreignKey: 'postId', onDelete: 'CASCADE' });
  Comment.belongsTo(Post, { as: 'post', foreignKey: 'postId' });
  Post.belongsToMany(Tag, { as: 'tags', through: PostTag, foreignKey: 'postId' });
  Tag.belongsToMany(Post, { as: 'posts', through: PostTag, foreignKey: 'tagId' });
  await db.sync({ force: true });
  await spread(db, kind, 'sq_author');
  await spread(db, kind, 'sq_tag');
  await spread(db, kind, 'sq_post', 'id');
  await spread(db, kind, 'sq_comment', 'postId');
  await spread(db, kind, 'sq_post_tag', 'postId');
  return { Author, Post, Comment, Tag, PostTag };
};
const filled = async (db, kind) => {
  const models = await blog(db, kind);
  const { Author, Post, Comment, Tag, PostTag } = models;
  await Author.bulkCreate([{ name: 'Ann' }, { name: 'Bob' }, { name: 'Cat' }]);
  await Post.bulkCreate(
    Array.from({ length: 12 }, (_, i) => ({ title: `post ${i + 1}`, stars: i % 5, authorId: (i % 2) + 1 })),
  );
  await Comment.bulkCreate(Array.from({ length: 30 }, (_, i) => ({ postId: (i % 10) + 1, n: i, text: `c${i}` })));
  await Tag.bulkCreate([{ name: 'red' }, { name: 'green' }, { name: 'blue' }]);
  await PostTag.bulkCreate(Array.from({ length: 12 }, (_, i) => ({ postId: i + 1, tagId: (i % 3) + 1, weight: i })));
  return models;
};
on('associations: made by sync', async (db, kind) => {
  await blog(db, kind);
  same(
    await select(
      db,
      `select conrelid::regclass::text as t, pg_get_constraintdef(oid) as d from pg_constraint
    where conrelid::regclass::text like 'sq\\_%' and contype = 'f'
     and confrelid::regclass::text in ('sq_author', 'sq_post', 'sq_tag') order by 1, 2`,
    ),
    [
      { t: 'sq_comment', d: 'FOREIGN KEY ("postId") REFERENCES sq_post(id) ON UPDATE CASCADE ON DELETE CASCADE' },
      { t: 'sq_post', d: 'FOREIGN KEY ("authorId") REFERENCES sq_author(id) ON UPDATE CASCADE ON DELETE SET NULL' },
      { t: 'sq_post_tag', d: 'FOREIGN KEY ("postId") REFERENCES sq_post(id) ON UPDATE CASCADE ON DELETE CASCADE' },
      { t: 'sq_post_tag', d: 'FOREIGN KEY ("tagId") REFERENCES sq_tag(id) ON UPDATE CASCADE ON DELETE CASCADE' },
    ],
  );
  // Once more, over what is there.
  await db.sync();
  await db.sync({ force: true });
});
on('associations: read with others', async (db, kind) => {
  const { Author, Post, Comment, Tag } = await filled(db, kind);
  const ann = await Author.findByPk(1, {
    include: { association: 'posts', include: ['comments', 'tags'] },
    order: [
      ['posts', 'id'],
      ['posts', 'comments', 'n'],
    ],
  });
  same(
    ann.posts.map(p => [p.id, p.comments.map(c => c.n), p.tags.map(t => t.name)]),
    [
      [1, [0, 10, 20], ['red']],
      [3, [2, 12, 22], ['blue']],
      [5, [4, 14, 24], ['green']],
      [7, [6, 16, 26], ['red']],
      [9, [8, 18, 28], ['blue']],
      [11, [], ['green']],
    ],
  );
  const page = await Post.findAndCountAll({
    include: ['comments', { association: 'author', required: true }],
    order: [['stars', 'DESC'], 'id', ['comments', 'n']],
    limit: 3,
    offset: 1,
    distinct: true,
  });
  same(
    [page.count, page.rows.map(p => [p.id, p.author.name, p.comments.length])],
    [
      12,
      [
        [10, 'Bob', 3],
        [4, 'Bob', 3],
        [9, 'Ann', 3],
      ],
    ],
  );
  const tagged = await Post.findAndCountAll({
    include: { association: 'tags', where: { name: 'red' }, through: { where: { weight: { [Op.gt]: 0 } } } },
    order: ['id'],
    limit: 2,
    distinct: true,
  });
  same(
    [tagged.count, tagged.rows.map(p => [p.id, p.tags[0].sq_post_tag.weight])],
    [
      3,
      [
        [4, 3],
        [7, 6],
      ],
    ],
  );
  same(
    await Post.findAll({
      include: { association: 'comments', required: true, attributes: [] },
      attributes: ['id', [fn('count', col('comments.n')), 'n']],
      group: [col('sq_post.id')],
      order: ['id'],
      limit: 2,
      subQuery: false,
      raw: true,
    }),
    [
      { id: 1, n: '3' },
      { id: 2, n: '3' },
    ],
  );
  const separate = await Post.findAll({
    include: { association: 'comments', separate: true, order: [['n', 'DESC']], limit: 1 },
    where: { id: [1, 2, 11] },
    order: ['id'],
  });
  same(
    separate.map(p => p.comments.map(c => c.n)),
    [[20], [21], []],
  );
  same(
    (await Comment.findAll({ include: { association: 'post', where: { stars: { [Op.gte]: 4 } } }, order: ['n'] })).map(
      c => [c.n, c.post.title],
    ),
    [
      [4, 'post 5'],
      [9, 'post 10'],
      [14, 'post 5'],
      [19, 'post 10'],
      [24, 'post 5'],
      [29, 'post 10'],
    ],
  );
  same(
    (await Author.findAll({ include: 'posts', where: { '$posts.id$': null } })).map(a => a.name),
    ['Cat'],
  );
  same(await Author.count({ include: { association: 'posts', required: true }, distinct: true }), 2);
  same(
    (await Tag.findAll({ include: { association: 'posts', include: 'author' }, order: ['id', [col('posts.id')]] })).map(
      t => t.posts.map(p => p.author.name[0]).join(''),
    ),
    ['ABAB', 'BABA', 'ABAB'],
  );
  same(
    (
      await Post.findAll({
        attributes: { include: [[literal('(select count(*) from sq_comment c where c."postId" = sq_post.id)'), 'n']] },
        where: { id: { [Op.lte]: 11, [Op.gte]: 10 } },
        order: ['id'],
      })
    ).map(p => p.get('n')),
    ['3', '0'],
  );
});
on('associations: by their methods', async (db, kind) => {
  const { Author, Post, Comment, Tag } = await filled(db, kind);
  const bob = await Author.findOne({ where: { name: 'Bob' } });
  same(
    [
      (await bob.getPosts({ where: { stars: 1 } })).length,
      await bob.countPosts(),
      await bob.hasPost(2),
      await bob.hasPost(1),
    ],
    [2, 6, true, false],
  );
  const post = await bob.createPost({ title: 'new' });
  same([post.id, post.authorId], [13, 2]);
  await post.createComment({ n: 1, text: 'first' });
  await post.addComment(await Comment.create({ postId: 13, n: 2, text: 'second' }));
  same(
    (await post.getComments({ order: ['n'] })).map(c => c.text),
    ['first', 'second'],
  );
  await post.setTags([1, 3]);
  await post.addTag(2, { through: { weight: 7 } });
  await post.removeTag(3);
  await post.createTag({ name: 'grey' });
  same(
    (await post.getTags({ order: ['id'] })).map(t => [t.name, t.sq_post_tag.weight]),
    [
      ['red', 1],
      ['green', 7],
      ['grey', 1],
    ],
  );
  await post.setTags([await Tag.findByPk(2)]);
  same(await post.countTags(), 1);
  await post.setAuthor(await Author.findOne({ where: { name: 'Cat' } }));
  strictEqual((await post.getAuthor()).name, 'Cat');
  await bob.setPosts([2, 4]);
  strictEqual(await Post.count({ where: { authorId: null } }), 4);
  // What goes with it.
  await post.destroy();
  strictEqual(await Comment.count({ where: { postId: 13 } }), 0);
  await bob.destroy();
  strictEqual(await Post.count({ where: { authorId: null } }), 6);
  await Tag.destroy({ where: { name: 'red' } });
  strictEqual((await Post.findByPk(1, { include: 'tags' })).tags.length, 0);
  await Author.update({ id: 100 }, { where: { name: 'Ann' } });
  strictEqual(await Post.count({ where: { authorId: 100 } }), 6);
});
on('associations: created together', async (db, kind) => {
  const { Author, Post } = await blog(db, kind);
  const ann = await Author.create(
    {
      name: 'Ann',
      posts: [{ title: 'a', tags: [{ name: 'x' }, { name: 'y' }], comments: [{ n: 1, text: 'c' }] }, { title: 'b' }],
    },
    { include: [{ association: 'posts', include: ['tags', 'comments'] }] },
  );
  same(
    ann.posts.map(p => p.authorId),
    [ann.id, ann.id],
  );
  const read = await Post.findOne({
    where: { title: 'a' },
    include: ['tags', 'comments', 'author'],
    order: [['tags', 'name']],
  });
  same([read.tags.map(t => t.name), read.comments.map(c => c.text), read.author.name], [['x', 'y'], ['c'], 'Ann']);
});
on('associations: changed by sync', async (db, kind) => {
  await filled(db, kind);
  const Post = db.models.sq_post;
  Post.rawAttributes.title.type = new DataTypes.STRING(100);
  Post.rawAttributes.extra = { type: DataTypes.INTEGER, defaultValue: 7, allowNull: false };
  delete Post.rawAttributes.stars;
  Post.refreshAttributes();
  await db.sync({ alter: true });
  const columns = await db.getQueryInterface().describeTable('sq_post');
  same(
    Object.entries(columns).map(([n, c]) => [n, c.type, c.allowNull, c.defaultValue]),
    [
      ['id', 'INTEGER', false, 'nextval(sq_post_id_seq::regclass)'],
      ['title', 'CHARACTER VARYING(100)', true, 'untitled'],
      ['authorId', 'INTEGER', true, null],
      ['extra', 'INTEGER', false, '7'],
    ],
  );
  strictEqual(await Post.sum('extra'), 84);
  strictEqual(await Post.count({ include: { association: 'author', required: true } }), 12);
  await db.sync({ alter: { drop: false } });
});

// Each customer's rows together: the key of all tables begins with it.
const shop = async (db, kind) => {
  const options = { timestamps: false, freezeTableName: true };
  const id = { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4, primaryKey: true };
  const Store = db.define('sq_store', { id, name: { type: DataTypes.STRING, allowNull: false } }, options);
  const Product = db.define(
    'sq_product',
    {
      storeId: { type: DataTypes.UUID, primaryKey: true },
      sku: { type: DataTypes.STRING(20), primaryKey: true },
      price: DataTypes.DECIMAL(10, 2),
      tags: DataTypes.ARRAY(DataTypes.TEXT),
      info: DataTypes.JSONB,
    },
    { ...options, indexes: [{ fields: ['info'], using: 'gin' }] },
  );
  const Sale = db.define(
    'sq_sale',
    {
      storeId: { type: DataTypes.UUID, primaryKey: true },
      id: { type: DataTypes.BIGINT, primaryKey: true, autoIncrement: true },
      sku: DataTypes.STRING(20),
      amount: { type: DataTypes.INTEGER, validate: { min: 1 } },
      at: { type: DataTypes.DATE(3), defaultValue: DataTypes.NOW },
    },
    options,
  );
  Store.hasMany(Product, { as: 'products', foreignKey: 'storeId' });
  Product.belongsTo(Store, { as: 'store', foreignKey: 'storeId' });
  Store.hasMany(Sale, { as: 'sales', foreignKey: 'storeId' });
  Sale.belongsTo(Store, { as: 'store', foreignKey: 'storeId' });
  await db.sync({ force: true });
  await spread(db, kind, 'sq_store', 'id');
  await spread(db, kind, 'sq_product', 'storeId');
  await spread(db, kind, 'sq_sale', 'storeId');
  const stores = await Store.bulkCreate(['a', 'b', 'c', 'd'].map(name => ({ name })));
  await Product.bulkCreate(
    stores.flatMap((store, i) =>
      Array.from({ length: 5 }, (_, j) => ({
        storeId: store.id,
        sku: `s${j}`,
        price: `${i}.${j}0`,
        tags: [`t${j % 2}`, 'all'],
        info: { size: j, color: j % 2 ? 'red' : 'blue', deep: { n: [i, j] } },
      })),
    ),
  );
  await Sale.bulkCreate(
    stores.flatMap((store, i) =>
      Array.from({ length: 10 }, (_, j) => ({
        storeId: store.id,
        sku: `s${j % 5}`,
        amount: j + 1,
        at: new Date(Date.UTC(2024, i, j + 1)),
      })),
    ),
  );
  return { Store, Product, Sale, stores };
};
on('customers: pages, sums and joins', async (db, kind) => {
  const { Store, Product, Sale, stores } = await shop(db, kind);
  const [a] = stores;
  const page = await Store.findAndCountAll({
    include: [
      { association: 'products', where: { price: { [Op.gte]: '1.20' } } },
      { association: 'sales', required: false, where: { amount: { [Op.gt]: 9 } } },
    ],
    order: [
      ['name', 'DESC'],
      ['products', 'sku'],
    ],
    limit: 2,
    distinct: true,
  });
  same(
    [page.count, page.rows.map(s => [s.name, s.products.length, s.sales.map(x => x.amount)])],
    [
      3,
      [
        ['d', 5, [10]],
        ['c', 5, [10]],
      ],
    ],
  );
  same(
    await Store.findAll({
      attributes: ['name', [fn('sum', col('sales.amount')), 'sold']],
      include: { association: 'sales', attributes: [] },
      group: ['sq_store.id'],
      order: ['name'],
      raw: true,
    }),
    ['a', 'b', 'c', 'd'].map(name => ({ name, sold: '55' })),
  );
  same(
    await db.query(
      `with best as (select "storeId", sku, sum(amount) as n,
    rank() over (partition by "storeId" order by sum(amount) desc) as r
    from sq_sale group by 1, 2)
    select name, sku, n::int from best join sq_store on id = "storeId" where r = 1 order by name`,
      { type: QueryTypes.SELECT },
    ),
    ['a', 'b', 'c', 'd'].map(name => ({ name, sku: 's4', n: 15 })),
  );
  same(
    (
      await Sale.findAll({
        attributes: [
          [fn('date_trunc', 'month', col('at')), 'month'],
          [fn('count', '*'), 'n'],
        ],
        group: ['month'],
        order: [[literal('month'), 'DESC']],
        limit: 2,
        raw: true,
      })
    ).map(r => [r.month.toISOString(), r.n]),
    [
      ['2024-04-01T00:00:00.000Z', '10'],
      ['2024-03-01T00:00:00.000Z', '10'],
    ],
  );
  same(
    await Product.count({ where: { info: { color: 'red', size: { [Op.gt]: 1 } }, tags: { [Op.contains]: ['t1'] } } }),
    4,
  );
  same((await Product.findAll({ where: { storeId: a.id, 'info.deep.n[1]': null }, order: ['sku'] })).length, 5);
  same(
    (
      await Product.findAll({
        where: { storeId: a.id },
        order: [[literal("(info->>'size')::int"), 'DESC']],
        limit: 2,
        attributes: ['sku'],
      })
    ).map(p => p.sku),
    ['s4', 's3'],
  );
  same(
    (
      await Product.findAll({
        where: {
          [Op.and]: [{ storeId: { [Op.in]: stores.slice(0, 2).map(x => x.id) } }, where(fn('lower', col('sku')), 's1')],
        },
        include: 'store',
        order: [['store', 'name']],
      })
    ).map(p => [p.store.name, p.price]),
    [
      ['a', '0.10'],
      ['b', '1.10'],
    ],
  );
  same(await Sale.sum('amount', { where: { storeId: a.id, at: { [Op.between]: ['2024-01-02', '2024-01-04'] } } }), 9);
  strictEqual(
    await Store.count({
      where: literal('exists (select from sq_sale s where s."storeId" = sq_store.id and s.amount > 10)'),
    }),
    0,
  );
  strictEqual(
    await Store.count({ where: { id: { [Op.in]: literal('(select "storeId" from sq_product where price > 3.3)') } } }),
    1,
  );
});
on('customers: changes', async (db, kind) => {
  const { Store, Product, Sale, stores } = await shop(db, kind);
  const [a, b] = stores;
  await Product.upsert({ storeId: a.id, sku: 's0', price: '9.99', info: { new: true } });
  await Product.bulkCreate(
    [
      { storeId: a.id, sku: 's1', price: '8.00' },
      { storeId: b.id, sku: 's9', price: '7.00' },
    ],
    { updateOnDuplicate: ['price'] },
  );
  same(
    (await Product.findAll({ where: { price: { [Op.gt]: 5 } }, order: ['price'] })).map(p => [p.sku, p.price, p.tags]),
    [
      ['s9', '7.00', null],
      ['s1', '8.00', ['t1', 'all']],
      ['s0', '9.99', ['t0', 'all']],
    ],
  );
  const product = await Product.findOne({ where: { storeId: a.id, sku: 's2' } });
  product.set('info.color', 'green');
  product.tags = [...product.tags, 'more'];
  await product.save();
  same((await product.reload()).info, { size: 2, color: 'green', deep: { n: [0, 2] } });
  await Product.update(
    { tags: fn('array_append', col('tags'), 'x'), info: literal(`info || '{"seen": true}'`) },
    { where: { storeId: b.id, sku: { [Op.lt]: 's5' } } },
  );
  strictEqual(await Product.count({ where: { tags: { [Op.overlap]: ['x', 'more'] } } }), 6);
  strictEqual(await Product.count({ where: { info: { [Op.contains]: { seen: true } } } }), 5);
  const sale = await a.createSale({ sku: 's1', amount: 100 });
  strictEqual(sale.id, '41');
  await sale.increment('amount');
  strictEqual((await Sale.findOne({ where: { storeId: a.id }, order: [['amount', 'DESC']] })).amount, 101);
  strictEqual((await failure(a.createSale({ amount: 0 }))).name, 'SequelizeValidationError');
  strictEqual(
    (await failure(Sale.create({ storeId: '00000000-0000-4000-8000-000000000000', amount: 1 }))).name,
    'SequelizeForeignKeyConstraintError',
  );
  await db.transaction(async transaction => {
    const locked = await Store.findByPk(b.id, {
      transaction,
      lock: { level: transaction.LOCK.UPDATE, of: Store },
      include: { association: 'products', required: true },
    });
    strictEqual(locked.products.length, 6);
    await Sale.destroy({ where: { storeId: b.id, amount: { [Op.lte]: 5 } }, transaction });
    await Sale.update({ amount: 50 }, { where: { storeId: [a.id, b.id], sku: 's3' }, transaction });
  });
  same(await Sale.sum('amount', { where: { storeId: b.id } }), 6 + 7 + 8 + 50 + 10);
  await b.destroy();
  same([await Product.count(), await Sale.count()], [15, 31]);
  await Store.truncate({ cascade: true });
  same([await Product.count(), await Sale.count()], [0, 0]);
});
on('customers: by a key of text, with parents of the same table', async (db, kind) => {
  const Node = db.define(
    'sq_node',
    { path: { type: DataTypes.STRING, primaryKey: true }, parentPath: DataTypes.STRING, size: DataTypes.BIGINT },
    { freezeTableName: true },
  );
  Node.hasMany(Node, { as: 'children', foreignKey: 'parentPath', constraints: false });
  Node.belongsTo(Node, { as: 'parent', foreignKey: 'parentPath', constraints: false });
  await Node.sync({ force: true });
  await spread(db, kind, 'sq_node', 'path');
  await Node.bulkCreate([
    { path: '/', size: 0 },
    { path: '/a', parentPath: '/' },
    { path: '/b', parentPath: '/' },
    { path: '/a/ä é', parentPath: '/a', size: '9007199254740993' },
  ]);
  const root = await Node.findByPk('/', {
    include: { association: 'children', include: 'children' },
    order: [['children', 'path']],
  });
  same(
    root.children.map(c => [c.path, c.children.map(d => [d.path, d.size])]),
    [
      ['/a', [['/a/ä é', '9007199254740993']]],
      ['/b', []],
    ],
  );
  same(
    (await Node.findByPk('/a/ä é', { include: { association: 'parent', include: 'parent' } })).parent.parent.path,
    '/',
  );
  same(
    await select(
      db,
      `with recursive t as (select path, 0 as depth from sq_node where path = '/' union all
    select n.path, depth + 1 from t join sq_node n on n."parentPath" = t.path) select path, depth from t order by path`,
    ),
    [
      { path: '/', depth: 0 },
      { path: '/a', depth: 1 },
      { path: '/a/ä é', depth: 2 },
      { path: '/b', depth: 1 },
    ],
  );
  await Node.update({ size: literal('coalesce(size, 0) + 1') }, { where: { path: { [Op.startsWith]: '/a' } } });
  same(
    (await Node.findAll({ order: ['path'], raw: true, attributes: ['size'] })).map(n => n.size),
    ['0', '1', '9007199254740994', null],
  );
  const before = (await Node.findByPk('/b')).updatedAt;
  await sleep(5);
  const changed = await (await Node.findByPk('/b')).update({ size: 1 });
  ok(changed.updatedAt > before);
  same((await Node.findByPk('/b')).updatedAt, changed.updatedAt);
});
on('customers: each in a schema of its own', async (db, kind) => {
  const Note = db.define('sq_note', { text: DataTypes.STRING }, { timestamps: false, freezeTableName: true });
  for (const name of ['sq_one', 'sq_two']) {
    await db.dropSchema(name);
    await db.createSchema(name);
    await Note.schema(name).sync();
    await spread(db, kind, `${name}"."sq_note`, 'id');
    await Note.schema(name).bulkCreate([{ text: name }, { text: 'both' }]);
  }
  same(await Note.schema('sq_two').findAll({ order: ['id'], raw: true }), [
    { id: 1, text: 'sq_two' },
    { id: 2, text: 'both' },
  ]);
  same(await Note.schema('sq_one').count({ where: { text: ['both', 'sq_two'] } }), 1);
  await db.dropSchema('sq_one');
  await db.dropSchema('sq_two');
  same(
    (await db.showAllSchemas()).filter(s => /^sq_/.test(s)),
    [],
  );
});

// Transactions

on('transactions: managed', async (db, kind) => {
  const Person = await person(db, kind);
  const result = await db.transaction(async transaction => {
    await Person.create({ name: 'a' }, { transaction });
    strictEqual(await Person.count(), 0);
    strictEqual(await Person.count({ transaction }), 1);
    return 'done';
  });
  strictEqual(result, 'done');
  const e = await failure(
    db.transaction(async transaction => {
      await Person.bulkCreate([{ name: 'b' }, { name: 'c' }, { name: 'd' }], { transaction });
      throw new Error('no');
    }),
  );
  strictEqual(e.message, 'no');
  same(
    (await Person.findAll()).map(p => p.name),
    ['a'],
  );
  const aborted = await failure(
    db.transaction(async transaction => {
      await failure(Person.create({ id: 1, name: 'twice' }, { transaction }));
      await Person.count({ transaction });
    }),
  );
  strictEqual(aborted.original.code, '25P02');
  const committed = [];
  await db.transaction(async transaction => {
    transaction.afterCommit(() => committed.push(transaction.finished));
    await Person.update({ age: 99 }, { where: {}, transaction });
  });
  same([committed, (await Person.findOne()).age], [['commit'], 99]);
});
on('transactions: one inside another', async (db, kind) => {
  const Person = await person(db, kind);
  const outer = await db.transaction();
  await Person.create({ name: 'outer' }, { transaction: outer });
  const inner = await db.transaction({ transaction: outer });
  await Person.bulkCreate([{ name: 'inner' }, { name: 'inner 2' }], { transaction: inner });
  await failure(Person.create({ id: 1, name: 'twice' }, { transaction: inner }));
  await inner.rollback();
  const third = await db.transaction({ transaction: outer });
  await Person.create({ name: 'third' }, { transaction: third });
  await third.commit();
  same(
    (await Person.findAll({ transaction: outer, order: ['id'] })).map(p => p.name),
    ['outer', 'third'],
  );
  await outer.commit();
  strictEqual(await Person.count(), 2);
});
on('transactions: isolation and locks', async (db, kind) => {
  const Person = await person(db, kind);
  await Person.bulkCreate([{ name: 'a' }, { name: 'b' }]);
  for (const level of Object.values(Transaction.ISOLATION_LEVELS)) {
    await db.transaction({ isolationLevel: level }, async transaction => {
      const [{ transaction_isolation: told }] = await select(db, 'show transaction_isolation', { transaction });
      strictEqual(told.toUpperCase(), level);
      strictEqual(await Person.count({ transaction }), 2);
    });
  }
  await db.transaction(async transaction => {
    const row = await Person.findByPk(1, { transaction, lock: transaction.LOCK.UPDATE });
    strictEqual(row.name, 'a');
    await db
      .transaction(async other => {
        same(
          (await Person.findAll({ transaction: other, lock: true, skipLocked: true })).map(p => p.name),
          ['b'],
        );
        same((await Person.findAll({ transaction: other, lock: other.LOCK.KEY_SHARE, where: { id: 2 } })).length, 1);
        await db.query("set local lock_timeout to '100ms'", { transaction: other });
        const e = await failure(Person.update({ age: 1 }, { where: { id: 1 }, transaction: other }));
        strictEqual(e.original.code, '55P03');
        // What has failed is given up by itself when the block ends.
        throw new Error('end');
      })
      .catch(e => strictEqual(e.message, 'end'));
  });
  const first = await db.transaction({ isolationLevel: Transaction.ISOLATION_LEVELS.REPEATABLE_READ });
  await Person.findByPk(1, { transaction: first });
  await Person.update({ age: 40 }, { where: { id: 1 } });
  const late = await failure(Person.update({ age: 41 }, { where: { id: 1 }, transaction: first }));
  strictEqual(late.original.code, '40001');
  await first.rollback();
});
on('transactions: side by side', async (db, kind) => {
  const Person = await person(db, kind);
  await Person.bulkCreate(Array.from({ length: 10 }, (_, i) => ({ name: `p${i}`, age: 0 })));
  await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      db.transaction(async transaction => {
        const row = await Person.findByPk((i % 10) + 1, { transaction, lock: true });
        row.age += 1;
        await row.save({ transaction });
      }),
    ),
  );
  same(
    (await Person.findAll({ order: ['id'] })).map(p => p.age),
    Array(10).fill(4),
  );
});
for (const kind of KINDS) {
  test(`transactions: found by themselves (CLS) [${kind}]`, async () => {
    Sequelize.useCLS(cls);
    const db = database();
    try {
      const Person = await person(db, kind);
      const e = await failure(
        db.transaction(async () => {
          await Person.create({ name: 'a' });
          strictEqual(await Person.count(), 1);
          strictEqual(await Person.count({ transaction: null }), 0);
          throw new Error('no');
        }),
      );
      strictEqual(e.message, 'no');
      strictEqual(await Person.count(), 0);
      await db.transaction(async () => {
        await Person.create({ name: 'b' });
        await Person.findOrCreate({ where: { id: 50 }, defaults: { name: 'c' } });
      });
      strictEqual(await Person.count(), 2);
    } finally {
      Sequelize._cls = undefined;
      await db.close();
    }
  });
}

// Queries as they are written

on('queries: binds and replacements', async (db, kind) => {
  const Person = await person(db, kind);
  await Person.bulkCreate([
    { name: "O'Neil", age: 1 },
    { name: 'b', age: 2 },
  ]);
  same(
    await select(db, 'select name from sq_person where name = :name and age in (:ages)', {
      replacements: { name: "O'Neil", ages: [1, 5] },
    }),
    [{ name: "O'Neil" }],
  );
  same(
    await select(db, 'select name from sq_person where age > ? and name <> ? order by id', { replacements: [1, 'x'] }),
    [{ name: 'b' }],
  );
  same(
    await select(db, 'select $1::text as a, $2::int + age as b from sq_person where id = $3', { bind: ['x', 5, 1] }),
    [{ a: 'x', b: 6 }],
  );
  same(await select(db, "select $name as n, '$$x' as d", { bind: { name: 'n' } }), [{ n: 'n', d: '$x' }]);
  const people = await db.query('select * from sq_person order by id', { model: Person, mapToModel: true });
  same(
    people.map(p => [p instanceof Person, p.name]),
    [
      [true, "O'Neil"],
      [true, 'b'],
    ],
  );
  same(
    await db.query('insert into sq_person (name, "createdAt", "updatedAt") values (\'c\', now(), now()) returning id', {
      type: QueryTypes.INSERT,
    }),
    [[{ id: 3 }], 1],
  );
  same((await db.query('update sq_person set age = 9 where id > 1', { type: QueryTypes.UPDATE }))[1], 2);
  same(await db.query('delete from sq_person where id = 3', { type: QueryTypes.BULKDELETE }), 1);
  const [rows, meta] = await db.query('select 1 as a; select 2 as b');
  same(rows, [{ a: 1 }, { b: 2 }]);
  strictEqual(meta.length, 2);
  same(await select(db, 'select 1 as "a.b", 2 as "a.c"', { nest: true }), [{ a: { b: 1, c: 2 } }]);
  same(await select(db, 'select count(*)::int as n from sq_person', { plain: true }), { n: 2 });
});
alone('queries: what the server is', async db => {
  await db.authenticate();
  ok(/^\d+\.\d+/.test(await db.databaseVersion()));
  const qi = db.getQueryInterface();
  ok((await qi.showAllSchemas()).every(s => !/pgherd|citus/.test(s)));
  same(await select(db, 'show timezone'), [{ TimeZone: '<+00>-00' }]);
});
test('queries: settings of connections', async () => {
  const db = database({
    timezone: '+05:30',
    dialectOptions: { application_name: 'sq app', statement_timeout: 300, lock_timeout: 400 },
  });
  const [row] = await select(
    db,
    "select current_setting('application_name') a, current_setting('statement_timeout') s, " +
      "current_setting('lock_timeout') l, " +
      "current_setting('client_min_messages') m, current_setting('standard_conforming_strings') c, " +
      'extract(timezone from now())::int z',
  );
  same(row, { a: 'sq app', s: '300ms', l: '400ms', m: 'warning', c: 'on', z: 19800 });
  const e = await failure(db.query('select pg_sleep(5)'));
  same([e.name, e.original.code], ['SequelizeDatabaseError', '57014']);
  await db.close();
});
alone(
  'queries: a pool whose connections are ended',
  async db => {
    const [{ pid }] = await select(db, 'select pg_backend_pid() as pid');
    const other = database({ pool: { max: 1 } });
    strictEqual((await select(other, `select pg_terminate_backend(${pid}) as done`))[0].done, true);
    await sleep(200);
    same(await select(db, 'select 1 as one'), [{ one: 1 }]);
    await other.close();
  },
  { pool: { max: 1 } },
);

// Definitions

on('definitions: tables and columns', async (db, kind) => {
  const qi = db.getQueryInterface();
  await qi.dropTable('sq_renamed');
  await qi.dropTable('sq_made', { cascade: true });
  await db.query('drop type if exists enum_sq_made_state, enum_sq_made_kind');
  await qi.createTable(
    'sq_made',
    {
      id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true },
      name: { type: DataTypes.STRING(50), allowNull: false, comment: 'the name' },
      state: { type: DataTypes.ENUM('new', 'old'), defaultValue: 'new' },
      at: { type: DataTypes.DATE, defaultValue: fn('now') },
    },
    { comment: 'made' },
  );
  await spread(db, kind, 'sq_made', 'id');
  await qi.bulkInsert(
    'sq_made',
    Array.from({ length: 20 }, (_, i) => ({ name: `n${i}` })),
  );
  ok(await qi.tableExists('sq_made'));
  ok((await qi.showAllTables()).includes('sq_made'));
  strictEqual(await qi.tableExists('sq_nothing'), false);
  const told = async () =>
    Object.entries(await qi.describeTable('sq_made')).map(([n, c]) => [
      n,
      c.type,
      c.allowNull,
      c.defaultValue,
      c.comment,
      c.special,
      c.primaryKey,
    ]);
  same(await told(), [
    ['id', 'INTEGER', false, 'nextval(sq_made_id_seq::regclass)', null, [], true],
    ['name', 'CHARACTER VARYING(50)', false, null, 'the name', [], false],
    ['state', 'USER-DEFINED', true, 'new', null, ['new', 'old'], false],
    ['at', 'TIMESTAMP WITH TIME ZONE', true, 'now()', null, [], false],
  ]);
  await qi.addColumn('sq_made', 'score', { type: DataTypes.DECIMAL(8, 2), defaultValue: 1.5, allowNull: false });
  await qi.addColumn('sq_made', 'kind', { type: DataTypes.ENUM('a', 'b') });
  await qi.addColumn('sq_made', 'tags', { type: DataTypes.ARRAY(DataTypes.STRING), defaultValue: [] });
  same(await select(db, 'select sum(score) as s, count(kind)::int as k, max(tags::text) as t from sq_made'), [
    { s: '30.00', k: 0, t: '{}' },
  ]);
  await qi.changeColumn('sq_made', 'name', { type: DataTypes.TEXT, allowNull: true, defaultValue: 'none' });
  await qi.changeColumn('sq_made', 'score', { type: DataTypes.INTEGER, allowNull: false, defaultValue: null });
  await qi.changeColumn('sq_made', 'state', { type: DataTypes.ENUM('new', 'old'), defaultValue: 'old' });
  await db.query("alter type enum_sq_made_state add value 'gone'");
  await qi.renameColumn('sq_made', 'at', 'madeAt');
  await qi.removeColumn('sq_made', 'kind');
  same(await told(), [
    ['id', 'INTEGER', false, 'nextval(sq_made_id_seq::regclass)', null, [], true],
    ['name', 'TEXT', true, 'none', 'the name', [], false],
    ['state', 'USER-DEFINED', true, 'old', null, ['new', 'old', 'gone'], false],
    ['madeAt', 'TIMESTAMP WITH TIME ZONE', true, 'now()', null, [], false],
    ['score', 'INTEGER', false, 'NULL', null, [], false],
    ['tags', 'ARRAY', true, '(ARRAY[]', null, [], false],
  ]);
  await qi.bulkUpdate('sq_made', { state: 'gone', score: 5 }, { id: { [Op.lte]: 5 } });
  await qi.bulkDelete('sq_made', { id: { [Op.gt]: 15 } });
  same(
    await select(
      db,
      'select state, count(*)::int as n, sum(score)::int as s from sq_made group by state order by state',
    ),
    [
      { state: 'new', n: 10, s: 20 },
      { state: 'gone', n: 5, s: 25 },
    ],
  );
  await qi.renameTable('sq_made', 'sq_renamed');
  same(
    (await qi.showAllTables()).filter(t => /^sq_(made|renamed)/.test(t)),
    ['sq_renamed'],
  );
  same(await select(db, 'select count(*)::int as n from sq_renamed'), [{ n: 15 }]);
  await qi.dropTable('sq_renamed');
  await qi.dropEnum('enum_sq_made_state');
  strictEqual(await qi.tableExists('sq_renamed'), false);
});
on('definitions: indexes', async (db, kind) => {
  const qi = db.getQueryInterface();
  const Item = db.define(
    'sq_item',
    {
      k: { type: DataTypes.INTEGER, primaryKey: true },
      name: DataTypes.STRING,
      data: DataTypes.JSONB,
      n: DataTypes.INTEGER,
    },
    {
      timestamps: false,
      freezeTableName: true,
      indexes: [{ fields: ['name'] }, { fields: ['data'], using: 'gin', operator: 'jsonb_path_ops' }],
    },
  );
  await Item.sync({ force: true });
  await spread(db, kind, 'sq_item', 'k');
  await qi.addIndex('sq_item', ['k', 'n'], { unique: true });
  await qi.addIndex('sq_item', {
    fields: [fn('lower', col('name')), { name: 'n', order: 'DESC' }],
    name: 'sq_item_lower',
    where: { n: { [Op.gt]: 5 } },
  });
  await qi.addIndex('sq_item', ['n'], { concurrently: true, name: 'sq_item_n' });
  const indexes = await qi.showIndex('sq_item');
  same(
    indexes
      .map(i => [i.name, i.unique, i.primary, i.fields.map(f => f.attribute)])
      .sort((a, b) => (a[0] < b[0] ? -1 : 1)),
    [
      ['sq_item_data', false, false, ['data']],
      ['sq_item_k_n', true, false, ['k', 'n']],
      ['sq_item_lower', false, false, ['n']],
      ['sq_item_n', false, false, ['n']],
      ['sq_item_name', false, false, ['name']],
      ['sq_item_pkey', true, true, ['k']],
    ],
  );
  strictEqual(
    indexes.find(i => i.name === 'sq_item_lower').definition,
    'CREATE INDEX sq_item_lower ON public.sq_item USING btree (lower((name)::text), n DESC) WHERE (n > 5)',
  );
  await qi.removeIndex('sq_item', 'sq_item_lower');
  await qi.removeIndex('sq_item', ['k', 'n']);
  strictEqual((await qi.showIndex('sq_item')).length, 4);
  await Item.sync({ alter: true });
  strictEqual((await qi.showIndex('sq_item')).length, 4);
});
on('definitions: constraints', async (db, kind) => {
  const qi = db.getQueryInterface();
  await db.query('drop table if exists sq_low; drop table if exists sq_high');
  await qi.createTable('sq_high', { k: { type: DataTypes.INTEGER } });
  await qi.createTable('sq_low', { k: { type: DataTypes.INTEGER, allowNull: false }, v: { type: DataTypes.INTEGER } });
  await spread(db, kind, 'sq_high', 'k');
  await spread(db, kind, 'sq_low', 'k');
  await qi.addConstraint('sq_high', { fields: ['k'], type: 'primary key', name: 'sq_high_k' });
  await qi.addConstraint('sq_low', { fields: ['k', 'v'], type: 'unique', name: 'sq_low_once' });
  await qi.addConstraint('sq_low', {
    fields: ['v'],
    type: 'check',
    name: 'sq_low_positive',
    where: { v: { [Op.gt]: 0 } },
  });
  await qi.addConstraint('sq_low', {
    fields: ['k'],
    type: 'foreign key',
    name: 'sq_low_up',
    references: { table: 'sq_high', field: 'k' },
    onDelete: 'cascade',
    onUpdate: 'cascade',
  });
  same(
    (await qi.showConstraint('sq_low'))
      .map(c => [c.constraintName, c.constraintType])
      .filter(([name]) => !/not_null$/.test(name))
      .sort(),
    [
      ['sq_low_once', 'UNIQUE'],
      ['sq_low_positive', 'CHECK'],
      ['sq_low_up', 'FOREIGN KEY'],
    ].sort(),
  );
  const references = await qi.getForeignKeyReferencesForTable('sq_low');
  same(
    references.map(r => [r.constraintName, r.columnName, r.referencedTableName, r.referencedColumnName, r.tableSchema]),
    [['sq_low_up', 'k', 'sq_high', 'k', 'public']],
  );
  await qi.bulkInsert('sq_high', [{ k: 1 }, { k: 2 }]);
  await qi.bulkInsert('sq_low', [
    { k: 1, v: 1 },
    { k: 1, v: 2 },
    { k: 2, v: 1 },
  ]);
  strictEqual((await failure(qi.bulkInsert('sq_low', [{ k: 1, v: 1 }]))).name, 'SequelizeUniqueConstraintError');
  strictEqual((await failure(qi.bulkInsert('sq_low', [{ k: 3, v: 1 }]))).name, 'SequelizeForeignKeyConstraintError');
  strictEqual((await failure(qi.bulkInsert('sq_low', [{ k: 1, v: 0 }]))).original.constraint, 'sq_low_positive');
  await qi.bulkDelete('sq_high', { k: 1 });
  same(await select(db, 'select k, v from sq_low'), [{ k: 2, v: 1 }]);
  for (const name of ['sq_low_once', 'sq_low_positive', 'sq_low_up']) await qi.removeConstraint('sq_low', name);
  // Its NOT NULL.
  strictEqual((await qi.showConstraint('sq_low')).length, 1);
  const e = await failure(qi.removeConstraint('sq_low', 'sq_low_up'));
  same([e.name, e.original.code], ['SequelizeUnknownConstraintError', '42704']);
});
alone('definitions: schemas and functions', async db => {
  const qi = db.getQueryInterface();
  await qi.dropSchema('sq_schema');
  await qi.createSchema('sq_schema');
  ok((await qi.showAllSchemas()).includes('sq_schema'));
  const Own = db.define(
    'own',
    { a: DataTypes.INTEGER },
    { schema: 'sq_schema', timestamps: false, freezeTableName: true },
  );
  await Own.sync();
  await Own.create({ a: 5 });
  same(await Own.findAll({ raw: true }), [{ id: 1, a: 5 }]);
  same((await qi.describeTable('own', { schema: 'sq_schema' })).a.type, 'INTEGER');
  await qi.createFunction('sq_twice', [{ type: 'integer', name: 'a' }], 'integer', 'plpgsql', 'return a * 2;');
  same(await select(db, 'select sq_twice(4) as n'), [{ n: 8 }]);
  await qi.renameFunction('sq_twice', [{ type: 'integer', name: 'a' }], 'sq_double');
  await qi.dropFunction('sq_double', [{ type: 'integer', name: 'a' }]);
  await qi.dropSchema('sq_schema');
  strictEqual((await failure(Own.findAll())).original.code, '42P01');
});
on('definitions: migrations', async (db, kind) => {
  const qi = db.getQueryInterface();
  await db.query('drop table if exists "SequelizeMeta", sq_moved cascade');
  const umzug = new Umzug({
    context: qi,
    storage: new SequelizeStorage({ sequelize: db }),
    logger: undefined,
    migrations: [
      {
        name: '1-make',
        up: async () => {
          await qi.createTable('sq_moved', { k: { type: DataTypes.BIGINT, primaryKey: true }, v: DataTypes.STRING });
          await spread(db, kind, 'sq_moved', 'k');
        },
        down: () => qi.dropTable('sq_moved'),
      },
      {
        name: '2-fill',
        up: () =>
          qi.bulkInsert('sq_moved', [
            { k: 1, v: 'a' },
            { k: 2, v: 'b' },
          ]),
        down: () => qi.bulkDelete('sq_moved', {}),
      },
      {
        name: '3-alter',
        up: () =>
          db.transaction(async transaction => {
            await qi.addColumn('sq_moved', 'w', { type: DataTypes.INTEGER, defaultValue: 3 }, { transaction });
            await qi.renameColumn('sq_moved', 'v', 'value', { transaction });
            await qi.addIndex('sq_moved', ['value'], { transaction });
            await qi.bulkInsert('sq_moved', [{ k: 3, value: 'c' }], { transaction });
          }),
        down: () =>
          db.transaction(async transaction => {
            await qi.bulkDelete('sq_moved', { k: 3 }, { transaction });
            await qi.removeIndex('sq_moved', ['value'], { transaction });
            await qi.renameColumn('sq_moved', 'value', 'v', { transaction });
            await qi.removeColumn('sq_moved', 'w', { transaction });
          }),
      },
    ],
  });
  strictEqual((await umzug.up()).length, 3);
  same(await select(db, 'select k, value, w from sq_moved order by k'), [
    { k: '1', value: 'a', w: 3 },
    { k: '2', value: 'b', w: 3 },
    { k: '3', value: 'c', w: 3 },
  ]);
  same(
    (await umzug.executed()).map(m => m.name),
    ['1-make', '2-fill', '3-alter'],
  );
  await umzug.down();
  same(await select(db, 'select * from sq_moved order by k'), [
    { k: '1', v: 'a' },
    { k: '2', v: 'b' },
  ]);
  await umzug.up();
  await umzug.down({ to: 0 });
  strictEqual(await qi.tableExists('sq_moved'), false);
  same(await umzug.executed(), []);
});
alone('definitions: everything dropped', async db => {
  const qi = db.getQueryInterface();
  await db.drop();
  await qi.dropAllTables();
  same(
    (await qi.showAllTables()).filter(t => /^sq_/.test(t)),
    [],
  );
  await qi.dropAllEnums();
  same(await select(db, "select typname from pg_type where typname like 'enum_sq%'"), []);
});

run();
