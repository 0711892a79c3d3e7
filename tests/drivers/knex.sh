#!/usr/bin/env bash
# Knex (query builder for Node.js): migrations and seeds by its program, and what it reads and writes.
. "$(dirname "$0")/lib.sh"
case $1 in
prepare) node_packages knex@3.3.0 pg@8.23.1 pg-query-stream@4.17.0 ;;
run)
    rm -rf "project.$DRIVERS_SIDE"
    cp -r "$DRIVERS_SOURCE/knex" "project.$DRIVERS_SIDE"
    cd "project.$DRIVERS_SIDE"
    knex() { "$DRIVERS_WORK/node_modules/.bin/knex" "$@" 2>&1 | sed "s/project\.$DRIVERS_SIDE/project/g"; }
    use() { node use.js 2>&1 | sed "s/project\.$DRIVERS_SIDE/project/g"; }
    # Its own table tells when each migration ran.
    dumped() { dump "$1" --exclude-table-data='knex_migrations*'; }
    step "an empty database" knex migrate:up
    step "seeds" knex seed:run
    step "tables" knex migrate:up
    dumped "dump of what was made"
    spread "create_reference_table('country')" "create_distributed_table('tenant', 'id')" \
        "create_distributed_table('account', 'tenant_id')" "create_distributed_table('event', 'tenant_id')"
    step "use of spread tables" use
    step "seeds once more" knex seed:run
    step "what is to be done" knex migrate:list
    step "migrated on" knex migrate:latest
    step "a second start" knex migrate:latest
    step "what was done" knex migrate:list
    step "where it is" knex migrate:currentVersion
    step "use after that" use
    dumped "dump at the end"
    step "the batch rolled back" knex migrate:rollback
    dumped "dump after that"
    step "up once more" knex migrate:latest
    step "one down" knex migrate:down
    step "all gone" knex migrate:rollback --all
    dumped "dump of what is left"
    step "left by one that was interrupted" knex migrate:unlock
    ;;
esac
