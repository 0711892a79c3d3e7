#!/usr/bin/env bash
# Tortoise ORM, by asyncpg and by psycopg, with migrations of aerich, found and by hand, and with its own.
. "$(dirname "$0")/lib.sh"
version=1.1.9
aerich=0.10.1
case $1 in
prepare)
    prepared "$version $aerich" || {
        python_with "tortoise-orm==$version" "aerich==$aerich" asyncpg==0.32.0 'psycopg[binary,pool]==3.3.9'
        finished "$version $aerich"
    }
    ;;
run)
    # Migrations that it writes are the side's own.
    rm -rf "project.$DRIVERS_SIDE"
    cp -r "$DRIVERS_SOURCE/tortoise" "project.$DRIVERS_SIDE"
    cd "project.$DRIVERS_SIDE"
    # It goes through sets of names: in one order.
    export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
    python() { "$DRIVERS_WORK/venv/bin/python" "$@" 2>&1 | sed "s|$PWD|.|g"; }
    # The names of its migrations have the time in them.
    untimed() { sed -E 's/[0-9]{14}/TIME/g' | without_chance; }
    aerich() { "$DRIVERS_WORK/venv/bin/aerich" "$@" 2>&1 | untimed; }
    tortoise() { "$DRIVERS_WORK/venv/bin/tortoise" -c settings.OWN "$@" 2>&1 | sed "s|$PWD|.|g"; }
    # Rows in one order, and without what some versions of the server keep of columns.
    pg_dump() {
        command pg_dump "$@" | untimed |
            if [[ $* == *--inserts* ]]; then sort; else cat; fi
    }
    # It asks for tables and columns in no order.
    inspected() { aerich inspectdb | sort; }
    by_hand() { cp "later/$1" migrations/models/; }
    state="CREATE TYPE state AS ENUM ('new', 'paid', 'closed')"
    step "tables" aerich init-db --pre "$state"
    by_hand 1_keys.py
    step "what is to do" aerich heads
    step "keys with the tenant" aerich upgrade
    step "tables that are there" aerich init-db
    dump "dump of what was made"
    step "models of local tables" inspected
    spread "create_reference_table('country')" "create_reference_table('feature')"
    spread "create_distributed_table('tenant', 'id')" "create_distributed_table('tenant_feature', 'tenant_id')" \
        "create_distributed_table('account', 'tenant_id')"
    spread "create_distributed_table('event', 'tenant_id')"
    step "use of spread tables" python use.py
    DRIVER=psycopg step "use of spread tables by psycopg" python use.py
    step "rows saved whole" python use.py save
    step "models of spread tables" inspected
    step "no changes" aerich migrate --no-input
    step "nothing to do" aerich upgrade
    export MODELS=newer
    step "changes" aerich migrate --name newer --no-input
    step "what was found" sed '/^MODELS_STATE/,$d' migrations/models/2_*_newer.py
    step "upgraded" aerich upgrade
    step "no changes to that" aerich migrate --no-input
    by_hand 3_concurrently.py
    by_hand 4_values.py
    step "upgraded by hand" aerich upgrade
    step "all its migrations" aerich history
    step "use of newer models" python use.py
    DRIVER=psycopg step "use of newer models by psycopg" python use.py
    step "models of newer tables" inspected
    dump "dump at the end"
    step "downgraded" aerich downgrade -v 2 --yes
    unset MODELS
    step "use after that" python use.py
    dump "dump after that"
    step "downgraded once more" aerich downgrade -v 1 --yes
    dump "dump of keys as before"
    # The same by Tortoise ORM's own migrations, with accounts and events that stay on the coordinator.
    step "all gone" psql -XAtq -c "DROP SCHEMA public CASCADE" -c "CREATE SCHEMA public" -c "$state"
    step "a place for steps" tortoise init
    step "first step" tortoise makemigrations
    step "its statements" tortoise sqlmigrate models 0001
    step "first step taken" tortoise migrate
    spread "create_reference_table('country')" "create_reference_table('feature')" \
        "create_distributed_table('tenant', 'id')" "create_distributed_table('tenant_feature', 'tenant_id')"
    psql -XAtq -c "INSERT INTO country VALUES ('de', 'Germany'), ('pe', 'Perú'), ('tv', 'Tuvalu')" \
        -c "INSERT INTO feature VALUES ('blue'), ('red')"
    step "use of local accounts" python use.py
    step "local rows saved whole" python use.py save
    step "no step" tortoise makemigrations
    export MODELS=newer
    step "second step" tortoise makemigrations --name newer
    step "second step taken" tortoise migrate
    step "no step more" tortoise makemigrations
    step "nothing to take" tortoise migrate
    step "steps" tortoise history
    step "use of newer models with local accounts" python use.py
    dump "dump of steps"
    step "a step back" tortoise downgrade models 0001_initial
    unset MODELS
    step "use after the step back" python use.py
    dump "dump after the step back"
    ;;
esac
