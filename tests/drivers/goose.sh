#!/usr/bin/env bash
# goose (migrations in SQL and in Go), in a program of our own: its commands, and its newer API with a session lock.
. "$(dirname "$0")/lib.sh"
version=3.30.0
pgx=5.13.0
project=$DRIVERS_SOURCE/goose
case $1 in
prepare)
    go_program goose "github.com/pressly/goose/v3@v$version" "github.com/jackc/pgx/v5@v$pgx"
    ;;
run)
    # Its durations below a millisecond, and the times of its lists, which are padded.
    day='(Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} [ 0-9]{2} [0-9:]{8} [0-9]{4}'
    goose() { bin/goose "$@" 2>&1 | sed -E -e 's/[0-9.]+(µs|ns)\b/DURATION/g' -e "s/$day/TIME/"; }
    fails() { ! "$@"; }
    on() { goose "$1" "$project/migrations" "${@:2}"; }
    step "nothing yet" on status
    step "an empty database" on up-to 3
    dump "dump of what was made" --exclude-table-data=goose_db_version
    step "use of local tables" goose use
    spread "create_reference_table('plan')" "create_distributed_table('tenant', 'id')" \
        "create_distributed_table('account', 'tenant_id')" "create_distributed_table('orders', 'tenant_id')" \
        "create_distributed_table('event', 'tenant_id')"
    step "use of spread tables" goose use
    step "status in between" on status
    step "one by one" on up-by-one
    step "all of it" on up
    step "a second start" on up
    step "its version" on version
    step "under its lock" goose provide "$project/migrations"
    step "use after that" goose use
    dump "dump at the end" --exclude-table-data=goose_db_version
    step "one that fails" fails goose up "$project/failing"
    step "status after that" on status
    dump "dump after that" --exclude-table-data=goose_db_version
    step "down" on down
    step "redone" on redo
    step "down to what was made" on down-to 3
    dump "dump of that" --exclude-table-data=goose_db_version
    step "all gone" on reset
    step "nothing again" on status
    dump "dump of what is left" --exclude-table-data=goose_db_version
    ;;
esac
