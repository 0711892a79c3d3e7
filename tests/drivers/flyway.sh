#!/usr/bin/env bash
# Flyway by its Java interface: versioned, repeatable and Java migrations, callbacks, baseline, repair, clean.
. "$(dirname "$0")/lib.sh"
project=$DRIVERS_SOURCE/flyway
case $1 in
prepare)
    java_program flyway
    ;;
run)
    # Files that change are the side's own.
    rm -rf "project.$DRIVERS_SIDE"
    cp -r "$project" "project.$DRIVERS_SIDE"
    cd "project.$DRIVERS_SIDE"
    # Where a step of several nodes' fails, pgherd's hint says how far it has come: that is meant.
    flyway() {
        java -Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone=UTC -Duser.language=en \
            -Dorg.slf4j.simpleLogger.showThreadName=false -Dorg.slf4j.simpleLogger.showLogName=false \
            -cp "$DRIVERS_WORK/classes:$DRIVERS_WORK/libraries/*" drivers.Main "$@" 2>&1 |
            sed -e "s/project\.$DRIVERS_SIDE/project/g" -e '/^ *Hint: Operation [0-9]* is half done/d'
    }
    fails() { ! "$@"; }
    query() { psql -XAt -v ON_ERROR_STOP=1 "$@"; }
    spread_all() {
        spread "create_reference_table('plan')" "create_distributed_table('tenant', 'id')" \
            "create_distributed_table('account', 'tenant_id')" "create_distributed_table('orders', 'tenant_id')"
    }
    step "a role for its callback" query -c "CREATE ROLE flyway_reader"
    step "an empty database" flyway info migrate target=3 info
    dump "dump of what was made" --exclude-table-data=flyway_schema_history
    step "use of local tables" flyway use
    spread_all
    step "use of spread tables, a second start" flyway use migrate target=3 validate
    step "migrated on" flyway migrate validate info
    step "a second start after that, use" flyway migrate use
    dump "dump at the end" --exclude-table-data=flyway_schema_history
    echo "-- changed" >>sql/R__reports.sql
    step "a repeatable one has changed" flyway info migrate
    echo "-- changed" >>sql/V1__tables.sql
    step "a versioned one has changed" fails flyway validate
    step "repaired" flyway repair validate
    failing=locations=filesystem:sql,filesystem:failing
    step "one that fails" fails flyway migrate "$failing"
    step "nothing of it is left" flyway info "$failing"
    step "one that fails without a transaction" fails flyway migrate "${failing}_beside"
    step "what it says then" flyway info "${failing}_beside"
    step "the index that it has left" query -c "DROP INDEX account_first"
    step "repaired again, use" flyway repair info "${failing}_beside" use
    dump "dump after that" --exclude-table-data=flyway_schema_history
    step "all gone" flyway clean
    dump "dump of what is left" --exclude-table-data=flyway_schema_history
    step "made by hand" query -q -f sql/V1__tables.sql -f sql/V2__rows.sql -c "CREATE TABLE other ()"
    spread_all
    step "not without a baseline" fails flyway migrate
    step "a baseline" flyway baseline baselineVersion=2 info migrate use
    dump "dump of that" --exclude-table-data=flyway_schema_history
    step "all gone once more" flyway clean
    step "nor the role" query -c "DROP ROLE flyway_reader"
    ;;
esac
