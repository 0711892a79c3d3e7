#!/usr/bin/env bash
# MikroORM: migrations that it writes from entities, its comparison with the database, seeds; its unit of work.
. "$(dirname "$0")/lib.sh"
version=6.6.16
packages=()
for part in core knex postgresql migrations seeder entity-generator cli; do
    packages+=("@mikro-orm/$part@$version")
done
case $1 in
prepare) node_packages "${packages[@]}" ;;
run)
    rm -rf "project.$DRIVERS_SIDE"
    cp -r "$DRIVERS_SOURCE/mikroorm" "project.$DRIVERS_SIDE"
    cd "project.$DRIVERS_SIDE"
    mkdir migrations
    export MIKRO_ORM_CLI_CONFIG=mikro-orm.config.js NO_COLOR=1
    orm() {
        "$DRIVERS_WORK/node_modules/.bin/mikro-orm" "$@" 2>&1 |
            sed -e "s/project\.$DRIVERS_SIDE/project/g" -e '/^ts-node not installed/d'
    }
    # Its name decides the order.
    generated() {
        orm migration:create --name="$1"
        sed -E 's/(Migration)[0-9]{14}/\1TIME/g' "migrations/$1.js"
    }
    use() { node use.js 2>&1 | sed "s/project\.$DRIVERS_SIDE/project/g"; }
    # Its own table tells when each migration ran.
    dumped() { dump "$1" --exclude-table-data='mikro_orm_migrations*'; }
    step "migration from entities" generated a_first
    cp a_key.js migrations/
    step "an empty database" orm migration:up
    step "seeds" orm seeder:run
    dumped "dump of what was made"
    spread "create_reference_table('country')" "create_distributed_table('tenant', 'id')" \
        "create_distributed_table('account', 'tenant_id')" "create_distributed_table('event', 'tenant_id')"
    step "use of spread tables" use
    step "a second start" orm migration:up
    step "checked" orm migration:check
    step "no changes" orm schema:update --dump
    step "what it reads from the database" orm generate-entities --dump
    export MODELS=2
    step "changes" orm schema:update --dump
    step "migration of what has changed" generated b_newer
    cp c_by_hand.js migrations/
    step "what is to be done" orm migration:pending
    step "migrated on" orm migration:up
    step "a third start" orm migration:up
    step "no changes after that" orm schema:update --dump
    step "use after that" use
    export MODELS=3
    step "newest entities by comparison" orm schema:update --run
    step "nothing is left" orm schema:update --dump
    step "use at the end" use
    dumped "dump at the end"
    export MODELS=2
    step "compared back" orm schema:update --run
    step "one down" orm migration:down
    step "two down" orm migration:down
    dumped "dump after that"
    step "all gone" orm schema:drop --run --drop-migrations-table
    dumped "dump of what is left"
    ;;
esac
