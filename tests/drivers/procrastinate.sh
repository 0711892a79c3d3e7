#!/usr/bin/env bash
# procrastinate, a queue: an older version's schema and jobs, its migrations, workers, retries, locks.
. "$(dirname "$0")/lib.sh"
version=3.10.0
older=2.15.1
case $1 in
prepare)
    prepared "$version $older" || {
        python_with "procrastinate==$version" 'psycopg[binary,pool]==3.3.9'
        rm -rf older
        venv/bin/pip install --quiet --disable-pip-version-check --no-deps --target older "procrastinate==$older"
        finished "$version $older"
    }
    ;;
run)
    export PYTHONDONTWRITEBYTECODE=1 PROCRASTINATE_APP=jobs.app
    at() { export PYTHONPATH=$DRIVERS_SOURCE/procrastinate${1:+:$DRIVERS_WORK/$1}; }
    # Rows in one order, and without what some versions of the server keep of columns.
    pg_dump() {
        command pg_dump "$@" | without_chance |
            if [[ $* == *--inserts* ]]; then sort; else cat; fi
    }
    python() { "$DRIVERS_WORK/venv/bin/python" "$@"; }
    refused() { ! "$@"; }
    procrastinate() { python -m procrastinate "$@"; }
    # Its migrations are files for psql, in the order of their names; those since a version.
    migrate() {
        local directory file
        directory=$(procrastinate schema --migrations-path)
        for file in "$directory"/*.sql; do
            file=${file##*/}
            [[ $file < $1 ]] || { say "$file" && psql -XAtq -v ON_ERROR_STOP=1 -f "$directory/$file"; } || return 1
        done
    }
    at older
    step "an older version's schema" procrastinate schema --apply
    psql -XAtqc "CREATE TABLE done (tenant_id bigint, job bigint, what jsonb, PRIMARY KEY (tenant_id, job))"
    dump "dump of what was made"
    spread "create_distributed_table('done', 'tenant_id')"
    step "jobs of the older version" python -m use older
    at ""
    step "migrated" migrate 03.
    step "it is well" procrastinate healthchecks
    step "old jobs are worked off" procrastinate worker --one-shot --concurrency 1
    step "jobs" python -m use newer
    step "a job by its program" procrastinate defer jobs.note '{"tenant": 3, "what": "é"}' --queueing-lock cli
    step "twice" procrastinate defer jobs.note '{"tenant": 3}' --queueing-lock cli --ignore-already-enqueued
    step "worked off by its program" procrastinate worker --one-shot --concurrency 1 --queues default
    step "its shell" procrastinate shell list_jobs
    step "woken by NOTIFY" python -m use woken
    dump "dump at the end"
    step "many at once" python -m use many
    step "a schema that is there" refused procrastinate schema --apply
    step "all gone" psql -XAtc "DROP SCHEMA public CASCADE" -c "CREATE SCHEMA public"
    step "this version's schema" procrastinate schema --apply
    dump "dump of that"
    ;;
esac
