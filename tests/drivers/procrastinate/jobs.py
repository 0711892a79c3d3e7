"""The application's tasks. What they do is seen in a table that is distributed, and in what they print."""

import procrastinate
import psycopg
from psycopg.types.json import Jsonb

app = procrastinate.App(connector=procrastinate.PsycopgConnector(kwargs={}))
tries = {}


@app.task(name="jobs.note", pass_context=True)
async def note(context, tenant, what=None):
    async with await psycopg.AsyncConnection.connect(autocommit=True) as connection:
        row = (tenant, context.job.id, Jsonb({"what": what}))
        await connection.execute("INSERT INTO done VALUES (%s, %s, %s)", row)


@app.task(name="jobs.told", queue="told")
async def told(what, timestamp=None):
    print("told", what)


@app.task(name="jobs.fails", queue="told", retry=procrastinate.RetryStrategy(max_attempts=3, wait=0))
async def fails(name, times):
    tries[name] = tries.get(name, 0) + 1
    print("try", tries[name], "of", name)
    if tries[name] <= times:
        raise ValueError(name)
