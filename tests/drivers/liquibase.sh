#!/usr/bin/env bash
# Liquibase's command line: changelogs in SQL and XML, forth and back, and its comparison with a database.
. "$(dirname "$0")/lib.sh"
project=$DRIVERS_SOURCE/liquibase
case $1 in
prepare)
    java_libraries liquibase
    command -v java >/dev/null || fail "java is missing" "apt-get install openjdk-17-jre-headless"
    ;;
run)
    # Files that it writes are the side's own.
    rm -rf "project.$DRIVERS_SIDE"
    cp -r "$project" "project.$DRIVERS_SIDE"
    cd "project.$DRIVERS_SIDE"
    export LIQUIBASE_ANALYTICS_ENABLED=false LIQUIBASE_SHOW_BANNER=false LIQUIBASE_COMMAND_USERNAME=$PGUSER
    export LIQUIBASE_COMMAND_URL=jdbc:postgresql://$PGHOST:$PGPORT/$PGDATABASE
    export LIQUIBASE_COMMAND_CHANGELOG_FILE=changelog.xml
    # The numbers in what it makes are milliseconds.
    liquibase() {
        java -Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Duser.timezone=UTC -Duser.language=en \
            -cp "$DRIVERS_WORK/libraries/*" liquibase.integration.commandline.LiquibaseCommandLine "$@" 2>&1 |
            sed -E -e "s/project\.$DRIVERS_SIDE/project/g" -e 's/\b[0-9]{10,13}\b/NUMBER/g'
    }
    fails() { ! "$@"; }
    # Errors are part of what it says.
    use() { psql -XAt -v VERBOSITY=terse -f use.sql 2>&1 | sed 's/^psql:use.sql:[0-9]*: //'; }
    # Its changes come in no order, with times as numbers.
    written() { sed -E -e '/<.?(databaseChangeLog|changeSet)/d' "$1" | sort; }
    times=(--exclude-table-data=databasechangelog --exclude-table-data=databasechangeloglock)
    step "an empty database" liquibase update-to-tag --tag=made
    dump "dump of what was made" "${times[@]}"
    step "use of local tables" use
    spread "create_reference_table('plan')" "create_distributed_table('tenant', 'id')" \
        "create_distributed_table('account', 'tenant_id')" "create_distributed_table('orders', 'tenant_id')"
    step "use of spread tables" use
    step "a second start" liquibase update-to-tag --tag=made
    step "what is to come" liquibase status --verbose
    liquibase snapshot --snapshot-format=json --output-file=made.json
    step "forth, back and forth" liquibase update-testing-rollback
    step "a second start after that" liquibase update
    step "use after that" use
    dump "dump at the end" "${times[@]}"
    step "what differs from then" liquibase diff --reference-url="offline:postgresql?snapshot=made.json"
    step "what differs from now" liquibase diff --reference-url="$LIQUIBASE_COMMAND_URL" \
        --reference-username="$PGUSER"
    step "a changelog of all" liquibase generate-changelog --changelog-file=all.xml
    step "what it has of all" written all.xml
    step "one that fails" fails liquibase update --changelog-file=failing.xml
    step "use after all" use
    step "back" liquibase rollback --tag=made
    dump "dump of what was made again" "${times[@]}"
    step "all gone" liquibase drop-all
    dump "dump of what is left" "${times[@]}"
    ;;
esac
