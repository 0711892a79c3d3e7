"""What a Python program does with psycopg 3: create, load, distribute, query, transactions, pipelines, server-side
cursors, COPY, cancel. The connection comes from PGHOST, PGPORT, PGUSER and PGDATABASE; PGHERD_PLAIN=1 says that there
is nothing to distribute. Prints what it did; any surprise is an exception."""

import asyncio
import datetime as dt
import decimal
import os
import sys
import threading
import time
import traceback
import uuid

import psycopg
from psycopg import errors
from psycopg.rows import dict_row, namedtuple_row
from psycopg.types.json import Jsonb

PLAIN = bool(os.environ.get("PGHERD_PLAIN"))


def step(name):
    print("step", name, flush=True)


def expect(found, expected):
    assert found == expected, f"found {found!r}, expected {expected!r}"


def fails(kind, function):
    try:
        function()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}")


def create(conn):
    step("create, load and distribute")
    conn.execute("DROP TABLE IF EXISTS items, people, kinds")
    conn.execute("""CREATE TABLE people (id bigint PRIMARY KEY, name text, score numeric, born date, seen timestamptz,
        key uuid, data jsonb, raw bytea, tags text[], ok bool, gap interval, ratio float8)""")
    conn.execute("CREATE TABLE items (person bigint REFERENCES people (id), id serial, what text, PRIMARY KEY (person, id))")
    conn.execute("CREATE TABLE kinds (id int PRIMARY KEY, name text)")
    with conn.cursor() as cur:
        cur.executemany("INSERT INTO people (id, name, score) VALUES (%s, %s, %s)", [(i, f"p{i}", decimal.Decimal(i) / 4) for i in range(1, 51)])
        expect(cur.rowcount, 50)
    if not PLAIN:
        conn.execute("ALTER TABLE items DROP CONSTRAINT items_person_fkey")
        conn.execute("SELECT create_distributed_table(%s, %s)", ("people", "id"))
        conn.execute("SELECT create_distributed_table('items', 'person')")
        conn.execute("SELECT create_reference_table('kinds')")
        conn.execute("ALTER TABLE items ADD CONSTRAINT items_person_fkey FOREIGN KEY (person) REFERENCES people (id)")
    conn.execute("INSERT INTO kinds VALUES (1, 'one'), (2, 'two')")


def types(conn):
    step("values of many types, as text and as binary")
    row = (1000, "ünïcode ✓", decimal.Decimal("12.340"), dt.date(2020, 2, 29), dt.datetime(2021, 1, 1, 12, 30, tzinfo=dt.timezone.utc),
           uuid.UUID(int=77), {"a": [1, None]}, b"\x00\xff'\\", ["x", None, "y,z"], True, dt.timedelta(days=3, seconds=5), 0.1)
    for n, binary in enumerate((False, True)):
        with conn.cursor(binary=binary) as cur:
            mark = "%b" if binary else "%t"
            values = (row[0] + n,) + row[1:6] + (Jsonb(row[6]),) + row[7:]
            cur.execute(f"INSERT INTO people VALUES ({', '.join([mark] * 12)}) RETURNING *", values)
            expect(cur.fetchone(), (row[0] + n,) + row[1:])
            cur.execute(f"SELECT * FROM people WHERE id = {mark}", (row[0] + n,))
            expect(cur.fetchone(), (row[0] + n,) + row[1:])
            cur.execute(f"SELECT count(*), sum(score), avg(ratio), max(born), bool_and(ok) FROM people WHERE id >= {mark}", (1000,))
            expect(cur.fetchone()[0], n + 1)
            for kind in (2**14, 2**30, 2**40):
                expect(cur.execute(f"SELECT id FROM people WHERE id = {mark}", (kind,)).fetchone(), None)
    conn.execute("DELETE FROM people WHERE id >= 1000")
    expect(conn.execute("SELECT id FROM people WHERE id = ANY(%s) ORDER BY id", ([3, 1, 99],)).fetchall(), [(1,), (3,)])
    expect(conn.execute("SELECT id FROM people WHERE id = %s", (None,)).fetchall(), [])


def query(conn):
    step("queries")
    expect(conn.execute("SELECT count(*), min(id), max(id) FROM people").fetchone(), (50, 1, 50))
    expect(conn.execute("SELECT name FROM people WHERE id = %s", (7,)).fetchone(), ("p7",))
    expect(conn.execute("SELECT sum(score) FROM people").fetchone(), (decimal.Decimal("318.75"),))
    expect([r[0] for r in conn.execute("SELECT id FROM people ORDER BY score DESC LIMIT 3 OFFSET %s", (2,))], [48, 47, 46])
    with conn.cursor(row_factory=dict_row) as cur:
        expect(cur.execute("SELECT id, name FROM people WHERE id = 2").fetchone(), {"id": 2, "name": "p2"})
    with conn.cursor(row_factory=namedtuple_row) as cur:
        expect(cur.execute("SELECT k.name AS kind, p.name FROM people p JOIN kinds k ON k.id = p.id ORDER BY 1").fetchall()[0].kind, "one")
    cur = conn.execute("SELECT id, name, score FROM people WHERE id = 1")
    expect([(c.name, c.type_code) for c in cur.description], [("id", 20), ("name", 25), ("score", 1700)])
    for i in range(12):  # psycopg prepares the statement on the server at the fifth time
        expect(conn.execute("SELECT name FROM people WHERE id = %s", (1 + i % 5,)).fetchone(), (f"p{1 + i % 5}",))
        expect(conn.execute("SELECT count(*) FROM people WHERE id > %s", (i,)).fetchone(), (50 - i,))
    cur = conn.execute("SELECT name FROM people WHERE id = %s", (9,), prepare=True)
    expect(cur.fetchone(), ("p9",))
    cur = conn.execute("UPDATE people SET score = score + 1 WHERE id <= 10")
    expect((cur.rowcount, cur.statusmessage), (10, "UPDATE 10"))
    conn.execute("UPDATE people SET score = score - 1 WHERE id <= 10")
    with conn.cursor() as cur:
        cur.executemany("INSERT INTO items (person, what) VALUES (%s, %s) RETURNING id", [(p, f"i{p}") for p in (1, 2, 3)], returning=True)
        ids = []
        while True:
            ids.append(cur.fetchone()[0])
            if not cur.nextset():
                break
        expect(len(set(ids)), 3)


def transactions(conn):
    step("transactions and savepoints")
    with conn.transaction():
        conn.execute("UPDATE people SET name = 'tx' WHERE id IN (1, 2, 3)")
        expect(conn.info.transaction_status.name, "INTRANS")
        try:
            with conn.transaction():
                conn.execute("DELETE FROM items")
                conn.execute("INSERT INTO people (id) VALUES (5)")
        except errors.UniqueViolation as error:
            expect((error.diag.constraint_name, error.diag.table_name, error.diag.schema_name), ("people_pkey", "people", "public"))
            expect(error.diag.message_detail, "Key (id)=(5) already exists.")
        expect(conn.execute("SELECT count(*) FROM items").fetchone(), (3,))
        expect(conn.execute("SELECT count(*) FROM people WHERE name = 'tx'").fetchone(), (3,))
    expect(conn.info.transaction_status.name, "IDLE")
    try:
        with conn.transaction():
            conn.execute("UPDATE people SET name = 'lost'")
            raise KeyError
    except KeyError:
        pass
    expect(conn.execute("SELECT count(*) FROM people WHERE name = 'lost'").fetchone(), (0,))
    conn.execute("UPDATE people SET name = 'p' || id")


def mistakes(conn):
    step("errors keep the connection usable")
    fails(errors.UndefinedTable, lambda: conn.execute("SELECT * FROM nowhere"))
    fails(errors.UndefinedColumn, lambda: conn.execute("SELECT nope FROM people WHERE id = %s", (1,)))
    fails(errors.SyntaxError, lambda: conn.execute("SELEC 1"))
    fails(errors.DivisionByZero, lambda: conn.execute("SELECT 1 / (id - id) FROM people"))
    fails(errors.InvalidTextRepresentation, lambda: conn.execute("SELECT * FROM people WHERE id = %s", ("x",)))
    fails(errors.NotNullViolation, lambda: conn.execute("INSERT INTO people (name) VALUES ('x')"))
    fails(errors.ForeignKeyViolation, lambda: conn.execute("INSERT INTO items (person, what) VALUES (999, 'x')"))
    expect(conn.execute("SELECT 1").fetchone(), (1,))


def pipelines(conn):
    step("pipelines")
    with conn.pipeline() as pipeline:
        cursors = [conn.execute("SELECT name FROM people WHERE id = %s", (i,)) for i in range(1, 31)]
        cursors.append(conn.execute("SELECT count(*) FROM people"))
        pipeline.sync()
        expect([c.fetchone()[0] for c in cursors], [f"p{i}" for i in range(1, 31)] + [50])
    with conn.pipeline():
        conn.execute("INSERT INTO people (id, name) VALUES (201, 'pipe')")
        conn.execute("INSERT INTO people (id, name) VALUES (202, 'pipe')")
    expect(conn.execute("SELECT count(*) FROM people WHERE name = 'pipe'").fetchone(), (2,))

    def broken():
        with conn.pipeline():
            conn.execute("INSERT INTO people (id, name) VALUES (203, 'pipe')")
            conn.execute("INSERT INTO people (id, name) VALUES (201, 'pipe')")
            conn.execute("INSERT INTO people (id, name) VALUES (204, 'pipe')")

    fails(errors.UniqueViolation, broken)
    expect(conn.execute("SELECT count(*) FROM people WHERE id > 202").fetchone(), (0,))
    with conn.transaction(), conn.pipeline():
        conn.execute("DELETE FROM people WHERE id = 201")
        conn.execute("DELETE FROM people WHERE id = 202")
    expect(conn.execute("SELECT count(*) FROM people").fetchone(), (50,))


def cursors(conn):
    step("server-side cursors")
    with conn.transaction():
        with conn.cursor(name="named") as cur:
            cur.itersize = 7
            cur.execute("SELECT id FROM people WHERE id > %s ORDER BY id", (5,))
            expect(cur.fetchmany(3), [(6,), (7,), (8,)])
            expect(conn.execute("SELECT count(*) FROM items").fetchone(), (3,))
            expect([r[0] for r in cur], list(range(9, 51)))
        with conn.cursor(name="scrolled", scrollable=True) as cur:
            cur.execute("SELECT id, name FROM people ORDER BY id")
            cur.scroll(10)
            expect(cur.fetchone(), (11, "p11"))
            cur.scroll(-5)
            expect(cur.fetchone(), (7, "p7"))
    with conn.cursor(name="held", withhold=True) as cur:
        cur.execute("SELECT id FROM people ORDER BY id DESC")
        expect(cur.fetchmany(2), [(50,), (49,)])
    with conn.cursor() as cur:
        expect(sum(r[0] for r in cur.stream("SELECT id FROM people")), 1275)


def copying(conn):
    step("COPY")
    with conn.cursor() as cur:
        with cur.copy("COPY people (id, name, raw, tags) FROM STDIN") as copy:
            for i in range(300, 340):
                copy.write_row((i, f"c\t{i}\n\\", bytes([i % 256]), ["a", None]))
        expect(cur.rowcount, 40)
        expect(conn.execute("SELECT name, raw FROM people WHERE id = 305").fetchone(), ("c\t305\n\\", bytes([305 % 256])))
        with cur.copy("COPY people (id, name, score, born) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["int8", "text", "numeric", "date"])
            for i in range(400, 420):
                copy.write_row((i, f"b{i}", decimal.Decimal("1.50"), dt.date(2020, 1, 1)))
        expect(conn.execute("SELECT count(*), sum(score), min(born) FROM people WHERE id >= 400").fetchone(), (20, decimal.Decimal("30.00"), dt.date(2020, 1, 1)))
        with cur.copy("COPY (SELECT id, name, score FROM people WHERE id >= 400 ORDER BY id) TO STDOUT (FORMAT binary)") as copy:
            copy.set_types(["int8", "text", "numeric"])
            rows = list(copy.rows())
        expect((len(rows), rows[0]), (20, (400, "b400", decimal.Decimal("1.50"))))
        with cur.copy("COPY people (id, name) TO STDOUT") as copy:
            expect(len(list(copy.rows())), 110)

        def broken():
            with cur.copy("COPY people (id, name) FROM STDIN") as copy:
                copy.write_row((500, "x"))
                copy.write_row((300, "dup"))

        fails(errors.UniqueViolation, broken)

        def given_up():
            with cur.copy("COPY people (id, name) FROM STDIN") as copy:
                copy.write_row((500, "x"))
                raise KeyError

        fails(KeyError, given_up)
    expect(conn.execute("SELECT count(*) FROM people WHERE id >= 500").fetchone(), (0,))
    expect(conn.execute("DELETE FROM people WHERE id >= 300").rowcount, 60)


def cancel(conn):
    step("cancel")
    for sql in ("SELECT pg_sleep(30)", "SELECT count(pg_sleep(5)) FROM people"):
        timer = threading.Timer(0.5, conn.cancel)
        timer.start()
        begun = time.monotonic()
        fails(errors.QueryCanceled, lambda: conn.execute(sql))
        assert time.monotonic() - begun < 8, "not at once"
        timer.join()
    expect(conn.execute("SELECT name FROM people WHERE id = 4").fetchone(), ("p4",))
    conn.execute("SET statement_timeout = '300ms'")
    fails(errors.QueryCanceled, lambda: conn.execute("SELECT pg_sleep(10) FROM people WHERE id = 3"))
    conn.execute("RESET statement_timeout")


def session(conn):
    step("session")
    notices = []
    conn.add_notice_handler(lambda diag: notices.append(diag.message_primary))
    conn.execute("DO $$ BEGIN RAISE NOTICE 'noted'; END $$")
    expect(notices, ["noted"])
    conn.execute("SET timezone = 'Asia/Tokyo'")
    expect(conn.info.timezone.key, "Asia/Tokyo")
    expect(conn.execute("SHOW timezone").fetchone(), ("Asia/Tokyo",))
    conn.execute("RESET timezone")
    conn.execute("CREATE TEMP TABLE mine (a int)")
    conn.execute("INSERT INTO mine VALUES (1)")
    expect(conn.execute("SELECT p.name FROM mine JOIN people p ON p.id = mine.a").fetchone(), ("p1",))
    with psycopg.connect(autocommit=True) as other:
        fails(errors.UndefinedTable, lambda: other.execute("SELECT * FROM mine"))
        conn.execute("LISTEN channel")
        other.execute("NOTIFY channel, 'hello'")
        notify = next(iter(conn.notifies(timeout=10, stop_after=1)), None)
        expect(notify and notify.payload, "hello")
    conn.execute("UNLISTEN *")


async def asynchronous():
    step("async")

    async def one(i):
        async with await psycopg.AsyncConnection.connect(autocommit=True) as conn:
            for k in range(1, 6):
                cur = await conn.execute("SELECT name FROM people WHERE id = %s", (k + i,))
                expect(await cur.fetchone(), (f"p{k + i}",))
            async with conn.transaction():
                await conn.execute("UPDATE people SET score = score + 1 WHERE id = %s", (1,))

    before = (await (await (await psycopg.AsyncConnection.connect(autocommit=True)).execute("SELECT score FROM people WHERE id = 1")).fetchone())[0]
    await asyncio.gather(*(one(i) for i in range(10)))
    async with await psycopg.AsyncConnection.connect(autocommit=True) as conn:
        expect((await (await conn.execute("SELECT score FROM people WHERE id = 1")).fetchone())[0], before + 10)


def without_autocommit():
    step("without autocommit")
    with psycopg.connect() as conn:
        conn.execute("UPDATE people SET name = 'kept' WHERE id IN (10, 20, 30)")
        conn.commit()
        conn.execute("UPDATE people SET name = 'dropped'")
        conn.rollback()
        expect(conn.execute("SELECT name, count(*) FROM people WHERE id IN (10, 20, 30) GROUP BY name").fetchall(), [("kept", 3)])
        fails(errors.UndefinedTable, lambda: conn.execute("SELECT * FROM nowhere"))
        fails(errors.InFailedSqlTransaction, lambda: conn.execute("SELECT 1"))
        conn.rollback()
        expect(conn.execute("SELECT 1").fetchone(), (1,))
    with psycopg.connect() as conn:
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        conn.read_only = True
        expect(conn.execute("SELECT count(*) FROM people").fetchone(), (50,))
        fails(errors.ReadOnlySqlTransaction, lambda: conn.execute("DELETE FROM people WHERE id = 1"))


def connected(part):
    def run():
        with psycopg.connect(autocommit=True) as conn:
            part(conn)

    return run


# Every part is run, so that one report names all that is wrong.
failed = 0
parts = [connected(p) for p in (create, types, query, transactions, mistakes, pipelines, cursors, copying, cancel, session)]
for run in [*parts, lambda: asyncio.run(asynchronous()), without_autocommit]:
    try:
        run()
    except Exception:
        traceback.print_exc()
        failed += 1
with psycopg.connect(autocommit=True) as connection:
    connection.execute("DROP TABLE items, people, kinds")
print("failed:", failed)
if failed:
    sys.exit(1)
print("all done")
