#!/usr/bin/env bash
# TypeORM: migrations that it writes by comparing entities with the database, by hand, schema sync; what it reads and
# writes.
. "$(dirname "$0")/lib.sh"
case $1 in
prepare) node_packages typeorm@1.1.1 pg@8.23.1 pg-query-stream@4.17.0 reflect-metadata@0.2.2 ;;
run)
    rm -rf "project.$DRIVERS_SIDE"
    cp -r "$DRIVERS_SOURCE/typeorm" "project.$DRIVERS_SIDE"
    cd "project.$DRIVERS_SIDE"
    mkdir migrations
    export NODE_NO_WARNINGS=1
    # Without the order of tables, which it takes from the catalog as it comes.
    typeorm() {
        node "$DRIVERS_WORK/node_modules/typeorm/cli.js" "$@" -d data_source.js 2>&1 |
            sed -E -e "s/project\.$DRIVERS_SIDE/project/g" -e 's/(DROP TABLE IF EXISTS) .* CASCADE/\1 … CASCADE/' \
                -e "s/\(\"(table_schema|ns\"\.\"nspname)\" = 'public' AND [a-z\"._]+ = '[a-z]+'\)/(TABLE)/g"
    }
    # When it was written decides the order: generated TIME NAME.
    generated() {
        typeorm migration:generate --outputJs --pretty --timestamp "$1" "migrations/$2"
        cat "migrations/$1-$2.js"
    }
    use() { node use.js 2>&1 | sed "s/project\.$DRIVERS_SIDE/project/g"; }
    step "migration from entities" generated 1700000000001 First
    step "an empty database" typeorm migration:run
    dump "dump of what was made"
    spread "create_reference_table('country')" "create_distributed_table('tenant', 'id')" \
        "create_distributed_table('account', 'tenant_id')" "create_distributed_table('event', 'tenant_id')"
    step "use of spread tables" use
    step "a second start" typeorm migration:run
    step "no changes" typeorm schema:log
    export MODELS=2
    step "changes" typeorm schema:log
    step "migration of what was compared" generated 1700000000002 Newer
    step "what is to be done" typeorm migration:show
    step "migrated on" typeorm migration:run --transaction each
    step "no changes after that" typeorm schema:log
    step "use after that" use
    export MODELS=3
    cp by_hand.js migrations/1700000000003-ByHand.js
    step "migrated by hand" typeorm migration:run --transaction each
    step "what was done" typeorm migration:show
    step "changes that are left" typeorm schema:log
    step "synchronized" typeorm schema:sync
    step "no changes after sync" typeorm schema:log
    step "use at the end" use
    dump "dump at the end"
    step "by hand reverted" typeorm migration:revert --transaction none
    step "newer reverted" typeorm migration:revert
    dump "dump after that"
    step "dropped" typeorm schema:drop
    dump "dump of what is left"
    ;;
esac
