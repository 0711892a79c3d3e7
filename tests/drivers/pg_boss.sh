#!/usr/bin/env bash
# pg-boss: a queue in a partitioned table; its schema as an older version made it, migrated by the newer one.
. "$(dirname "$0")/lib.sh"
case $1 in
# Newer Node.js than there may be, as a package.
prepare) node_packages node@22.23.3 pg-boss@12.38.0 older-boss@npm:pg-boss@12.5.4 pg@8.23.1 ;;
run)
    # Its modules are found beside the program that asks for them.
    rm -rf "project.$DRIVERS_SIDE"
    cp -r "$DRIVERS_SOURCE/pg_boss" "project.$DRIVERS_SIDE"
    cd "project.$DRIVERS_SIDE"
    export PATH="$DRIVERS_WORK/node_modules/.bin:$PATH"
    with() { node suite.mjs "$@" 2>&1 | sed "s/project\.$DRIVERS_SIDE/project/g"; }
    # Its rows have times and numbers by chance.
    dumped() { dump "$1" --exclude-table-data='pgboss.*'; }
    step "an older version's schema" with older
    dumped "dump of the older schema"
    step "migrated" with migrated
    dumped "dump of what was migrated"
    step "a second start" with started
    step "no drift" with drift
    step "the application's tables" with tables
    spread "create_reference_table('country')" "create_distributed_table('tenant', 'id')" \
        "create_distributed_table('sale', 'tenant_id')"
    for part in queues jobs rows failures keys policies workers woken flow published planned maintained; do
        step "$part" with "$part"
    done
    step "no drift after that" with drift
    step "what is left" with left
    dumped "dump at the end"
    ;;
esac
