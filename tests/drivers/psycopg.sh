#!/usr/bin/env bash
# psycopg's own tests: of Debian's source package, since the registry's has none, or of an unpacked source tree that
# PGHERD_PSYCOPG_SOURCE names. They run with the version of psycopg that they belong to.
. "$(dirname "$0")/lib.sh"

# The version of a source tree. It has been written in three files, one after another.
tree_version() {
    sed -nE 's/^(__version__|version) *= *"?([0-9][0-9.]*)"?$/\2/p' \
        "$1"/psycopg/{pyproject.toml,setup.cfg,psycopg/version.py} 2>/dev/null | head -n 1
}

case $1 in
prepare)
    tree=${PGHERD_PSYCOPG_SOURCE:-}
    from=${tree:+$tree $(tree_version "$tree")}
    prepared "${from:=debian}" || {
        if [ -n "$tree" ]; then
            rm -rf source
            mkdir source
            cp -r "$tree/tests" "$tree/tools" "$tree/pyproject.toml" source
        else
            (debian_source psycopg3 3) && [ -d source/tests ] ||
                not_to_be_had "no source package psycopg3: let PGHERD_PSYCOPG_SOURCE name a source tree of psycopg"
            tree=source
        fi
        version=$(tree_version "$tree")
        # Until 3.1 its asynchronous tests ran with another plugin.
        plugin=anyio==4.16.0
        [[ $version != 3.[01].* ]] || plugin=pytest-asyncio==0.21.2
        python_with "psycopg==$version" pytest==7.4.4 "$plugin" pproxy==2.7.9
        # Not every version has one; the other implementation needs libpq.
        venv/bin/pip install --quiet --disable-pip-version-check "psycopg-binary==$version" ||
            say "psycopg $version has no compiled part: it runs with this machine's libpq"
        # The installed one.
        rm -rf source/psycopg source/psycopg_c source/psycopg_pool
        finished "$from"
    }
    ;;
run)
    cd source
    # Its tests keep a note in pytest's cache while they run, and both sides run at once.
    pytest_cache=$(mktemp -d)
    trap 'rm -rf "$pytest_cache"' EXIT
    export PSYCOPG_TEST_DSN="host=$PGHOST port=$PGPORT user=$PGUSER dbname=$PGDATABASE"
    # Left out: what depends on time, the pool, which has versions of its own, and what asks no server.
    tests=(tests --ignore tests/pool --ignore tests/crdb --ignore tests/test_typing.py
        --ignore tests/test_conninfo_attempts.py --ignore tests/test_conninfo_attempts_async.py)
    run_pytest -m "not slow and not flakey and not timing" "${tests[@]}"
    # Of the slow ones not those about the client's memory and its sockets.
    run_pytest -m "slow and not flakey and not timing and not mypy" -k "not leak and not test_waiting" "${tests[@]}"
    ;;
esac
