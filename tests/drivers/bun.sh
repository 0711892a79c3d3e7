#!/usr/bin/env bash
# Bun with its own driver: migrations in Go and SQL in groups, models that it compares with the database.
. "$(dirname "$0")/lib.sh"
version=1.3.0
driver=1.2.18
project=$DRIVERS_SOURCE/bun
case $1 in
prepare)
    bun=github.com/uptrace/bun
    go_program bun "$bun@v$version" "$bun/dialect/pgdialect@v$version" "$bun/driver/pgdriver@v$driver"
    ;;
run)
    # Files that it writes are the side's own, and the numbers in their names are times.
    rm -rf "project.$DRIVERS_SIDE"
    cp -r "$project" "project.$DRIVERS_SIDE"
    cd "project.$DRIVERS_SIDE"
    mkdir auto
    bun() { "$DRIVERS_WORK/bin/bun" "$@" 2>&1 | sed -E 's/20[0-9]{12}_public/TIME_public/g'; }
    fails() { ! "$@"; }
    step "an empty database" bun migrate first
    dump "dump of what was made" --exclude-table-data=bun_migrations
    step "use of local tables" bun use
    spread "create_reference_table('plan')" "create_distributed_table('tenant', 'id')" \
        "create_distributed_table('account', 'tenant_id')" "create_distributed_table('orders', 'tenant_id')"
    step "use of spread tables" bun use
    step "a second start" bun migrate first
    step "what is to come" bun status
    step "migrated on" bun migrate
    step "a second start after that" bun migrate
    step "use after that" bun use
    dump "dump of that" --exclude-table-data=bun_migrations
    step "the group taken back" bun rollback
    dump "dump without it" --exclude-table-data=bun_migrations
    step "migrated again" bun migrate
    step "what differs from models" bun compare
    step "made as the models are" bun auto
    step "nothing differs" bun compare
    step "use at the end" bun use
    step "locked" bun lock
    step "not while it is locked" fails bun lock
    step "unlocked" bun unlock
    dump "dump at the end" --exclude-table-data=bun_migrations
    step "what was done" bun status
    step "a table dropped" bun drop
    step "the second group taken back" bun rollback
    step "the first group taken back" bun rollback
    dump "dump of what is left" --exclude-table-data=bun_migrations
    ;;
esac
