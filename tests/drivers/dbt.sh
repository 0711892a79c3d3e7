#!/usr/bin/env bash
# dbt: a project that makes tables, views, incremental tables, a materialized view and snapshots of distributed tables.
. "$(dirname "$0")/lib.sh"
version=1.11.16
postgres=1.11.0
case $1 in
prepare)
    prepared "$version $postgres" || {
        python_with "dbt-core==$version" "dbt-postgres==$postgres" psycopg2-binary==2.9.13
        finished "$version $postgres"
    }
    ;;
run)
    # It writes into its project what it makes of it.
    rm -rf "project.$DRIVERS_SIDE"
    cp -r "$DRIVERS_SOURCE/dbt" "project.$DRIVERS_SIDE"
    cd "project.$DRIVERS_SIDE"
    export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0 DBT_SEND_ANONYMOUS_USAGE_STATS=false DBT_PROFILES_DIR=.
    # In one order, without the names that it makes of indexes from the time, and without what some versions of the
    # server keep of columns.
    pg_dump() {
        command pg_dump "$@" | sed -E -e 's/INDEX "?[0-9a-f]{32}"?/INDEX name/' | sort
    }
    python() { "$DRIVERS_WORK/venv/bin/python" "$@" 2>&1 | sed "s|$PWD|.|g"; }
    dbt() { python run.py "$@"; }
    # In any order, and so with any number.
    at_once() {
        dbt "$@" | without_chance | sed -E -e 's/[0-9]+ of ([0-9]+)/N of \1/' -e 's/ \.+ / /' | sort
    }
    kept() { psql -XAtc "SELECT $1, dbt_valid_to IS NULL FROM kept.$2 ORDER BY 1, 2, 3, 4, 5, 6"; }
    psql -XAtq -v ON_ERROR_STOP=1 -f source.sql
    spread "create_distributed_table('shop.tenant', 'id')" "create_distributed_table('shop.account', 'tenant_id')" \
        "create_distributed_table('shop.event', 'tenant_id')"
    from=--event-time-start to=--event-time-end
    step "first run" dbt seed -- run $from 2025-03-04 $to 2025-03-07 -- snapshot -- test
    spread "create_distributed_table('kept.account_kept', 'tenant_id')"
    step "accounts kept by the first run" kept "tenant_id, id, mail, balance, state" account_kept
    step "tenants kept by the first run" kept "id, name, country, changed, dbt_is_deleted" tenant_kept
    dump "dump after the first run" --exclude-table-data='kept.*'
    psql -XAtq -v ON_ERROR_STOP=1 -f later.sql
    LATER=yes step "second run" dbt seed -- run $from 2025-03-06 $to 2025-03-10 -- snapshot
    step "accounts kept by the second run" kept "tenant_id, id, mail, balance, state" account_kept
    step "tenants kept by the second run" kept "id, name, country, changed, dbt_is_deleted" tenant_kept
    dump "dump after the second run" --exclude-table-data='kept.*'
    step "at once, by four" at_once build --full-refresh --threads 4 $from 2025-03-05 $to 2025-03-08 -- docs generate
    step "catalog" python catalog.py
    step "accounts kept in the end" kept "tenant_id, id, mail, balance, state" account_kept
    dump "dump at the end" --exclude-table-data='kept.*'
    ;;
esac
