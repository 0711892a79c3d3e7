#!/usr/bin/env bash
# River (a queue): its migrations, and jobs that are made and worked off together with an application's own tables.
. "$(dirname "$0")/lib.sh"
version=0.51.2
project=$DRIVERS_SOURCE/river
case $1 in
prepare)
    river=github.com/riverqueue/river
    go_program river "$river@v$version" "$river/riverdriver/riverpgxv5@v$version" "$river/rivertype@v$version"
    ;;
run)
    river() { bin/river "$@" 2>&1; }
    # When its jobs and queues were made is no two runs' own.
    jobs=(--exclude-table-data='river*')
    step "nothing yet" river validate
    step "an older version" river up 4
    dump "dump of the older version" "${jobs[@]}"
    step "the newest version" river up
    step "a second start" river up
    step "valid" river validate
    dump "dump of the newest version" "${jobs[@]}"
    step "the application's tables" psql -X -q -v ON_ERROR_STOP=1 -f "$project/tables.sql"
    step "jobs" river work
    spread "create_reference_table('plan')" "create_distributed_table('tenant', 'id')" \
        "create_distributed_table('account', 'tenant_id')" "create_distributed_table('entry', 'tenant_id')"
    step "jobs beside spread tables" river work
    step "a second start after that" river up
    step "those that wait" river wait
    step "queues" river queues
    step "in bulk" river bulk
    dump "dump at the end" "${jobs[@]}"
    step "down by one" river down
    step "and up again" river up
    step "all gone" river down -1
    dump "dump of what is left" "${jobs[@]}"
    ;;
esac
