#!/usr/bin/env bash
# SQLAlchemy's tests of its PostgreSQL dialect and the suite for dialects, of its source package.
. "$(dirname "$0")/lib.sh"
version=2.0.58
case $1 in
prepare)
    prepared "$version" || {
        python_with "sqlalchemy==$version" pytest==8.4.2 'psycopg[binary]==3.2.13' greenlet
        python_source sqlalchemy "$version"
        finished "$version"
    }
    ;;
run)
    # Its tests use schemas that have to be there, in a database of each run's own.
    cp -r source "source.$DRIVERS_SIDE.$$"
    trap 'rm -rf "$DRIVERS_WORK/source.$DRIVERS_SIDE.$$"' EXIT
    cd "source.$DRIVERS_SIDE.$$"
    "$DRIVERS_WORK/venv/bin/python" -c 'import psycopg
c = psycopg.connect("", autocommit=True)
c.execute("create schema test_schema")
c.execute("create schema test_schema_2")
c.execute("create extension hstore")
c.execute("create extension citext")
c.execute("set default_text_search_config to \"pg_catalog.english\"")'
    PYTHONPATH=$PWD/lib run_pytest --maxfail 1000000 \
        --dburi "postgresql+psycopg://$PGUSER@$PGHOST:$PGPORT/$PGDATABASE" \
        test/dialect/postgresql test/dialect/test_suite.py
    ;;
esac
