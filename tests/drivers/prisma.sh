#!/usr/bin/env bash
# Prisma: its schema engine as WebAssembly (the native one is no package), over its adapter for node-postgres, and its
# client.
. "$(dirname "$0")/lib.sh"
version=6.19.3
# What its packages would download when they are installed is not used.
export npm_config_ignore_scripts=true PRISMA_HIDE_UPDATE_MESSAGE=1 CHECKPOINT_DISABLE=1
export NO_COLOR=1
case $1 in
prepare) node_packages "prisma@$version" "@prisma/client@$version" "@prisma/adapter-pg@$version" pg@8.23.1 ;;
run)
    rm -rf "project.$DRIVERS_SIDE"
    cp -r "$DRIVERS_SOURCE/prisma" "project.$DRIVERS_SIDE"
    cd "project.$DRIVERS_SIDE"
    # Models have to name one, and it is not used.
    export DATABASE_URL=postgresql://nowhere
    prisma() { "$DRIVERS_WORK/node_modules/.bin/prisma" "$@" 2>&1 | sed "s/project\.$DRIVERS_SIDE/project/g"; }
    # Models as they are from here on, with the client that is made of them.
    models() {
        cp "$1.prisma" schema.prisma
        prisma generate --no-hints
    }
    # A migration of what differs: migration NAME OPTION…
    migration() {
        mkdir -p "migrations/$1"
        "$DRIVERS_WORK/node_modules/.bin/prisma" migrate diff "${@:2}" --to-schema-datamodel=schema.prisma --script \
            >"migrations/$1/migration.sql" 2>/dev/null
        cat "migrations/$1/migration.sql"
    }
    by_hand() {
        mkdir -p "migrations/$1"
        cp "$1.sql" "migrations/$1/migration.sql"
    }
    use() { node use.js 2>&1 | sed "s/project\.$DRIVERS_SIDE/project/g"; }
    # Its own table tells when each migration ran.
    dumped() { dump "$1" --exclude-table-data=_prisma_migrations; }
    step "models" models first
    step "migration from models" migration 1_first --from-empty
    step "an empty database" prisma migrate deploy
    dumped "dump of what was made"
    spread "create_reference_table('country')" "create_distributed_table('tenant', 'id')" \
        "create_distributed_table('account', 'tenant_id')" "create_distributed_table('event', 'tenant_id')"
    step "use of spread tables" use
    step "a second start" prisma migrate deploy
    step "nothing is to be done" prisma migrate status
    step "what it reads from the database" prisma db pull --print
    step "newer models" models newer
    step "migration of what differs" migration 2_newer --from-schema-datamodel=first.prisma
    step "migrated on" prisma migrate deploy
    spread "create_distributed_table('invoice', 'tenant_id')"
    by_hand 3_by_hand
    by_hand 4_concurrently
    step "migrated by hand" prisma migrate deploy
    step "use after that" use
    step "newest models" models newest
    step "migration of what differs then" migration 5_newest --from-schema-datamodel=newer.prisma
    step "migrated once more" prisma migrate deploy
    step "what it reads after that" prisma db pull --print
    step "use at the end" use
    dumped "dump at the end"
    ;;
esac
