#!/usr/bin/env bash
# River (a queue): its migrations, and jobs that are made and worked off together with an application's own tables.
. "$(dirname "$0")/lib.sh"
version=0.51.2
project=$DRIVERS_SOURCE/river
# Everything of Go's is kept in the suite's own directory.
export GOPATH=$DRIVERS_WORK/go GOMODCACHE=$DRIVERS_WORK/go/mod GOCACHE=$DRIVERS_WORK/go/cache GOFLAGS=-mod=mod
case $1 in
prepare)
    versions="$version $(cat "$project"/*.go | sha256sum)"
    prepared "$versions" || {
        command -v go >/dev/null || fail "go is missing" "apt-get install golang-go (1.25 or newer)"
        chmod -R u+w go 2>/dev/null || true
        rm -rf go program
        mkdir go program
        cp "$project"/*.go program
        cd program
        go mod init suite
        river=github.com/riverqueue/river
        go get "$river@v$version" "$river/riverdriver/riverpgxv5@v$version" "$river/rivertype@v$version"
        go build -o ../bin/river .
        cd ..
        # The program is all that a run needs.
        chmod -R u+w go
        rm -rf go
        finished "$versions"
    }
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
