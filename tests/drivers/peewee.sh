#!/usr/bin/env bash
# peewee: tables by its models, changes by playhouse.migrate, models by introspection (pwiz, reflection).
. "$(dirname "$0")/lib.sh"
version=4.5.3
case $1 in
prepare)
    prepared "$version" || {
        python_with "peewee==$version" 'psycopg[binary]==3.3.9' psycopg2-binary==2.9.13
        finished "$version"
    }
    ;;
run)
    export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$DRIVERS_SOURCE/peewee
    python() { "$DRIVERS_WORK/venv/bin/python" "$@"; }
    pwiz() {
        python -m pwiz -e postgresql -H "$PGHOST" -p "$PGPORT" -u "$PGUSER" "$@" "$PGDATABASE" |
            grep -vE '^(database = |# (python|Date|Peewee))'
    }
    step "tables" python -m schema create
    step "tables that are there" python -m schema create
    dump "dump of what was made"
    step "use of local tables" python -m use
    step "models of local tables" pwiz
    spread "create_reference_table('country')" "create_distributed_table('tenant', 'id')" \
        "create_distributed_table('account', 'tenant_id')" "create_distributed_table('event', 'tenant_id')"
    step "use of spread tables" python -m use
    PEEWEE=psycopg3 step "use of spread tables by psycopg 3" python -m use
    step "models of spread tables" pwiz
    step "tables that are spread" python -m schema create
    step "migrated on" python -m schema migrate
    export MODELS=newer
    step "tables of newer models" python -m schema create
    spread "create_distributed_table('invoice', 'tenant_id')"
    step "use of newer models" python -m use
    PEEWEE=psycopg3 step "use of newer models by psycopg 3" python -m use
    step "models of all tables, views too" pwiz -v -o -i
    step "what reflection finds" python -m schema reflect
    dump "dump at the end"
    step "migrated back" python -m schema back
    unset MODELS
    step "use after that" python -m use
    dump "dump after that"
    step "all gone" python -m schema drop
    dump "dump of what is left"
    ;;
esac
