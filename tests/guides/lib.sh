# What the guides share. A guide is a script of the commands that people type, with checks of what they print; it runs
# against whatever PGHOST, PGPORT, PGUSER and PGDATABASE name. PGHERD_GUIDE_PLAIN=1 says that this is one plain
# PostgreSQL with plain_stubs.sql loaded: checks of distribution itself are left out, everything else must hold too.
set -uo pipefail
export PSQLRC=/dev/null PAGER=cat
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
failures=0
finish() {
    local status=$?
    rm -rf "$work"
    [ "$status" = 0 ] || exit "$status"
    [ "$failures" = 0 ] || { printf '%s checks failed\n' "$failures"; exit 1; }
}
trap finish EXIT

on_cluster() { [ -z "${PGHERD_GUIDE_PLAIN:-}" ]; }

say() { printf '\n== %s\n' "$*"; }

failed() {
    failures=$((failures + 1))
    printf 'not ok - %s\n' "$1"
    shift
    printf '%s\n' "$@" | sed 's/^/    /'
}

# check WHAT EXPECTED ACTUAL
check() {
    if [ "$2" = "$3" ]; then printf 'ok - %s\n' "$1"; else failed "$1" "expected: $2" "found:    $3"; fi
}

# check_match WHAT REGEX TEXT: some line of TEXT matches.
check_match() {
    if grep -Eq -- "$2" <<<"$3"; then printf 'ok - %s\n' "$1"; else failed "$1" "no line matches: $2" "in:" "$3"; fi
}

# check_lines WHAT COUNT REGEX TEXT: that many lines match.
check_lines() { check "$1" "$2" "$(printf '%s\n' "$4" | grep -Ec -- "$3")"; }

# One value, as text.
sql() { psql -XAtq -v ON_ERROR_STOP=1 -c "$1" 2>&1; }

# The answer and the notices of what a guide types into psql, given on standard input.
typed() { psql -X -v ON_ERROR_STOP=1 2>&1; }

# must WHAT COMMAND…: runs it; its output is shown when it fails, and kept in $output.
must() {
    local what=$1
    shift
    if output=$("$@" 2>&1); then printf 'ok - %s\n' "$what"; else failed "$what" "command: $*" "$output"; fi
}
