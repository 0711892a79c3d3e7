#!/usr/bin/env bash
# pgx's own tests (Go), of its module.
. "$(dirname "$0")/lib.sh"
version=5.13.0
# Each package with tests that talk to a server, and those of the protocol.
packages=". pgconn pgproto3 pgtype pgtype/zeronull pgxpool stdlib tracelog"
case $1 in
prepare)
    prepared "$version" || {
        needs_go
        chmod -R u+w go 2>/dev/null || true
        rm -rf go source bin
        mkdir go bin
        # A module's directory is read-only, and a build outside of a module would be one of what uses it.
        (cd go && go mod init suite && go mod download "github.com/jackc/pgx/v5@v$version")
        cp -r "go/mod/github.com/jackc/pgx/v5@v$version" source
        chmod -R u+w source
        cd source
        for package in $packages; do
            go test -c -o "../bin/$(tr / _ <<<"$package").test" "./$package"
        done
        cd ..
        # Programs are all that a run needs.
        chmod -R u+w go
        rm -rf go
        finished "$version"
    }
    ;;
run)
    psql -X -q -v ON_ERROR_STOP=1 -f source/testsetup/postgresql_setup.sql
    export PGX_TEST_DATABASE="host=$PGHOST port=$PGPORT user=$PGUSER dbname=$PGDATABASE"
    export PGX_TEST_TCP_CONN_STRING=$PGX_TEST_DATABASE
    # Its tests of configurations look at the environment.
    unset PGHOST PGPORT PGUSER PGDATABASE PGCONNECT_TIMEOUT
    for package in $packages; do
        # With a mark before each line that tells how a test ended, so that nothing that a test prints looks like one;
        # and without the names of temporary directories.
        (cd "source/$package" && "$DRIVERS_WORK/bin/$(tr / _ <<<"$package").test" -test.v=test2json -test.timeout 4m) |
            tee /dev/stderr | sed -nE "s,^.*\x16 *--- (PASS|FAIL|SKIP): (.*) \([0-9.]+s\)\$,\1 $package/\2,p" |
            sed -e 's/^PASS /PASSED /' -e 's/^FAIL /FAILED /' -e 's/^SKIP /SKIPPED /' \
                -e "s,='[^']*/Test[A-Za-z]*[0-9]*/,='," >>"$DRIVERS_RESULTS" || true
    done
    ;;
esac
