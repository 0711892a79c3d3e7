"""Puts jobs into the queue and works them off; prints what comes of it."""

import asyncio
import logging
import sys

import psycopg
from jobs import app, fails, note, told
from procrastinate import exceptions, jobs

# What goes wrong in jobs is what they are for.
logging.disable(logging.CRITICAL)
manager = app.job_manager


async def listed():
    for job in sorted(await manager.list_jobs_async(), key=lambda job: job.id):
        print("   ", job.id, job.task_name, job.queue, job.status, job.priority, job.attempts, job.lock, end=" ")
        print(job.task_kwargs)


async def work(**options):
    await app.run_worker_async(wait=False, install_signal_handlers=False, **options)


async def older():
    """Of a version that knows less."""
    for n in range(4):
        await note.defer_async(tenant=n, what=n)
    await told.configure(lock="l", queueing_lock="q").defer_async(what="with locks")
    await told.configure(schedule_at=None, schedule_in={"weeks": 500}).defer_async(what="in years")
    try:
        await told.configure(queueing_lock="q").defer_async(what="twice")
    except exceptions.AlreadyEnqueued as error:
        print(error)
    await work(queues=["told"], concurrency=1)
    await listed()


async def newer():
    for priority in (1, 3, 2):
        await told.configure(priority=priority).defer_async(what=priority)
    await told.batch_defer_async(*({"what": f"of many: {n}"} for n in range(20)))
    for tenant in range(5):
        await note.defer_async(tenant=tenant, what=["é", None])
    print("two tries less one", await fails.defer_async(name="once", times=1) > 0)
    await fails.defer_async(name="always", times=9)
    unwanted = await told.defer_async(what="unwanted")
    print("cancelled", await manager.cancel_job_by_id_async(unwanted), await manager.get_job_status_async(unwanted))
    removed = await told.defer_async(what="removed")
    print("removed", await manager.cancel_job_by_id_async(removed, delete_job=True))
    for _ in range(2):
        periodic = told.configure(task_kwargs={"timestamp": 1700000000, "what": "at times"}).job
        print("periodic", await manager.defer_periodic_job(periodic, "hourly", 1700000000))
    try:
        await told.configure(queueing_lock="q").batch_defer_async({"what": "first"}, {"what": "second"})
    except exceptions.AlreadyEnqueued as error:
        print(error)
    await work(queues=["told"], concurrency=1)
    await work(concurrency=1, delete_jobs="successful")
    await listed()
    for queue in await manager.list_queues_async():
        print(queue)
    for task in await manager.list_tasks_async():
        print(task)
    for lock in await manager.list_locks_async():
        print(lock)
    print("stalled", list(await manager.get_stalled_jobs()))
    await manager.delete_old_jobs(0, queue="told", include_failed=True)
    await listed()


async def many():
    """By two workers at once, with jobs that exclude each other."""
    for tenant in range(12):
        lock = note.configure(lock=f"lock {tenant % 3}" if tenant % 2 else None)
        await lock.batch_defer_async(*({"tenant": tenant, "what": "many"} for _ in range(5)))
    await asyncio.gather(work(concurrency=4, name="a"), work(concurrency=3, name="b", delete_jobs="always"))
    # What they have left: a worker that finds only jobs whose locks are taken stops.
    await work(concurrency=1)
    for queue in await manager.list_queues_async(queue="default"):
        print(queue["todo"], queue["doing"], queue["failed"])
    async with await psycopg.AsyncConnection.connect() as connection:
        cursor = await connection.execute(
            "SELECT tenant_id, count(*) FROM done WHERE what @> '{\"what\": \"many\"}' GROUP BY 1 ORDER BY 1"
        )
        print(*await cursor.fetchall())


async def woken():
    """By what the database notifies it of: it would look by itself only in ten minutes."""
    worker = asyncio.create_task(
        app.run_worker_async(fetch_job_polling_interval=600, install_signal_handlers=False, concurrency=2)
    )
    await asyncio.sleep(2)
    job = await told.defer_async(what="woken")
    for _ in range(600):
        if await manager.get_job_status_async(job) == jobs.Status.SUCCEEDED:
            break
        await asyncio.sleep(0.1)
    print(await manager.get_job_status_async(job))
    worker.cancel()
    await asyncio.gather(worker, return_exceptions=True)


async def main():
    async with app.open_async():
        await {"older": older, "newer": newer, "woken": woken, "many": many}[sys.argv[1]]()


asyncio.run(main())
