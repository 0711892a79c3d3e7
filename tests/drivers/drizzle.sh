#!/usr/bin/env bash
# Drizzle: drizzle-kit writes migrations from models, carries them out and compares models with the database; its ORM.
. "$(dirname "$0")/lib.sh"
case $1 in
prepare) node_packages drizzle-orm@0.45.4 drizzle-kit@0.31.11 pg@8.23.1 ;;
run)
    rm -rf "project.$DRIVERS_SIDE"
    cp -r "$DRIVERS_SOURCE/drizzle" "project.$DRIVERS_SIDE"
    cd "project.$DRIVERS_SIDE"
    # Without what a spinner says meanwhile.
    kit() {
        "$DRIVERS_WORK/node_modules/.bin/drizzle-kit" "$@" 2>&1 |
            sed -E -e "s/project\.$DRIVERS_SIDE/project/g" -e 's/\x1b\[[0-9;?]*[A-Za-z]//g' | grep -v '^\[.\]'
    }
    use() { node use.js 2>&1 | sed "s/project\.$DRIVERS_SIDE/project/g"; }
    # The place of a file's name is told by the order in which they were written.
    written() { cat drizzle/*_"$1".sql; }
    by_hand() {
        kit generate --custom --name=by_hand
        cat by_hand.sql >"$(echo drizzle/*_by_hand.sql)"
    }
    pulled() {
        kit pull --config=pull.config.js >pull.log || cat pull.log
        # It asks about all tables at once, and writes them as the answers come.
        cat pulled/schema.ts pulled/relations.ts | grep -v '^import' | sort
    }
    # When a migration was written.
    dumped() { dump "$1" --exclude-table-data='drizzle.*'; }
    step "migrations from models" kit generate --name=first
    step "what they are" written first
    step "an empty database" kit migrate
    dumped "dump of what was made"
    spread "create_reference_table('country')" "create_distributed_table('tenant', 'id')" \
        "create_distributed_table('account', 'tenant_id')" "create_distributed_table('event', 'tenant_id')"
    step "use of spread tables" use
    step "a second start" kit migrate
    step "nothing to push" kit push --verbose --force
    step "what it reads from the database" pulled
    export MODELS=2
    step "newer models" kit generate --name=newer
    step "what is new" written newer
    step "values by hand" by_hand
    step "migrated on" kit migrate
    step "a third start" kit migrate
    step "migrated by the ORM" node migrate.js
    step "no changes" kit generate
    step "checked" kit check
    step "use after that" use
    step "nothing to push after that" kit push --verbose --force
    export MODELS=3
    step "newest models pushed" kit push --verbose --force
    step "nothing is left to push" kit push --verbose --force
    step "what it reads after that" pulled
    step "use at the end" use
    dumped "dump at the end"
    export MODELS=2
    step "pushed back" kit push --verbose --force
    dumped "dump after that"
    ;;
esac
