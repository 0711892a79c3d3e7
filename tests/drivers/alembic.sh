#!/usr/bin/env bash
# Alembic (migrations of SQLAlchemy's tables): revisions by hand and by its comparison of models with the database.
. "$(dirname "$0")/lib.sh"
version=1.20.1
case $1 in
prepare)
    prepared "$version" || {
        python_with "alembic==$version" sqlalchemy==2.1.9 'psycopg[binary]==3.3.9'
        finished "$version"
    }
    ;;
run)
    # Revisions that it writes are the side's own.
    project=project.$DRIVERS_SIDE
    rm -rf "$project"
    cp -r "$DRIVERS_SOURCE/alembic" "$project"
    cd "$project"
    mv versions/third.py .
    # It goes through sets of names: in one order.
    export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
    # Without its directory and the addresses of objects.
    python() {
        "$DRIVERS_WORK/venv/bin/python" "$@" 2>&1 |
            sed -E -e "s|$DRIVERS_WORK/$project|project|g" -e 's/0x[0-9a-f]+/0x/g'
    }
    alembic() { python -m alembic "$@"; }
    refused() { ! "$@"; }
    step "an empty database" alembic upgrade first
    step "made by hand" alembic upgrade second
    dump "dump of what was made"
    step "use of local tables" python use.py
    spread "create_reference_table('country')" "create_distributed_table('tenant', 'id')" \
        "create_distributed_table('account', 'tenant_id')" "create_distributed_table('event', 'tenant_id')"
    step "use of spread tables" python use.py
    step "a second start" alembic upgrade second
    step "no changes" alembic check
    mv third.py versions
    step "migrated on" alembic upgrade third
    step "use after that" python use.py
    dump "dump of what was migrated"
    export MODELS=newer
    step "changes" refused alembic check
    step "found by comparison" alembic revision --autogenerate -m newer --rev-id fourth
    step "what was found" cat versions/fourth_newer.py
    step "upgraded" alembic upgrade head
    step "nothing is left" alembic check
    step "its heads" alembic current -v
    step "use of newer models" python use.py
    dump "dump at the end"
    unset MODELS
    step "downgraded" alembic downgrade second
    rm versions/third.py versions/fourth*
    step "no changes again" alembic check
    dump "dump after that"
    step "as SQL" alembic upgrade first:second --sql
    step "all gone" alembic downgrade base
    dump "dump of what is left"
    ;;
esac
