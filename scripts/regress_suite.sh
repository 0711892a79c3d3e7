#!/usr/bin/env bash
# Gets PostgreSQL's regression suite: Debian's source package of PostgreSQL 15, and the libraries that the suite loads,
# built against the installed server's version. Does nothing where all is there.
#
#   scripts/regress_suite.sh DIRECTORY
#
# Afterwards DIRECTORY has sources/ (the tree's src/test/regress) and libraries/ (regress.so, refint.so, autoinc.so).
# Packages come from where apt gets them on this machine; its lists of sources are made in DIRECTORY, nothing of the
# system's changes and root is not needed. Nothing of it is ever committed.
#
# Without such packages: PGHERD_REGRESS_SOURCE names an unpacked source tree of PostgreSQL 15, and the headers of
# package postgresql-server-dev-15 (or pg_config's) are taken where they are installed.
set -euo pipefail

major=15
bin=${PGHERD_TEST_PG_BIN:-/usr/lib/postgresql/$major/bin}

say() { printf 'regress: %s\n' "$*"; }

fail() {
    printf 'regress: error: %s\n' "$1" >&2
    shift
    local line
    for line in "$@"; do printf '    %s\n' "$line" >&2; done
    exit 1
}

[ $# = 1 ] || fail "usage: scripts/regress_suite.sh DIRECTORY"
mkdir -p "$1"
directory=$(cd "$1" && pwd)

version=$("$bin/postgres" --version 2>/dev/null | sed -n 's/^postgres (PostgreSQL) \([0-9.]*\).*/\1/p' || true)
[ -n "$version" ] || fail "$bin/postgres does not run" "scripts/deps.sh regress installs it; or set PGHERD_TEST_PG_BIN"
[ "${version%%.*}" = "$major" ] || fail "$bin has PostgreSQL $version; the suite is that of $major"

# Made whole or not at all: the stamp is written last.
stamp=$directory/made-for
wanted="PostgreSQL $version ${PGHERD_REGRESS_SOURCE:-}"
if [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && [ -e "$directory/sources/parallel_schedule" ]; then
    say "the suite for PostgreSQL $version is in $directory"
    exit 0
fi
rm -f "$stamp"
rm -rf "$directory/sources" "$directory/libraries" "$directory/tree" "$directory/headers"

without_apt="unpack PostgreSQL $major's sources and set PGHERD_REGRESS_SOURCE to their directory"
. "$(dirname "$0")/apt_sources.sh"

# The package versions in the lines of versions on standard input, best first: those for $version, then from the newest.
choices() {
    local lines
    lines=$(grep -E "^$major\." | sort -Vur) || return 1
    {
        grep -E "^${version//./\\.}([^0-9].*)?$" <<<"$lines" || true
        printf '%s\n' "$lines"
    } | awk '!told[$0]++'
}

choose() {
    local all
    all=$(choices) && head -n 1 <<<"$all"
}

get_sources() {
    if [ -n "${PGHERD_REGRESS_SOURCE:-}" ]; then
        tree=$PGHERD_REGRESS_SOURCE
        [ -e "$tree/src/test/regress/parallel_schedule" ] || fail "$tree is no source tree of PostgreSQL"
        cp -r "$tree" "$directory/tree"
        return
    fi
    make_apt
    command -v dpkg-source >/dev/null || fail "dpkg-source is missing" "apt-get install dpkg-dev"
    local found offered fetched=
    offered=$(apt apt-cache showsrc "postgresql-$major" 2>/dev/null | sed -n 's/^Version: //p' | choices) ||
        fail "no package source of this machine has postgresql-$major as a source package:" \
            "$(tail -n 3 "$directory/apt/update.log")" \
            "see $directory/apt/update.log; without a network, set PGHERD_REGRESS_SOURCE to an unpacked source tree"
    mkdir -p "$directory/package"
    # What lists name is not always there to be fetched.
    for found in $offered; do
        say "getting source package postgresql-$major $found"
        if (cd "$directory/package" && rm -rf ./* && apt apt-get -q source "postgresql-$major=$found") \
            >"$directory/source.log" 2>&1; then
            fetched=yes
            break
        fi
        say "it cannot be had: $(grep -m 1 '^E:' "$directory/source.log")"
    done
    [ -n "$fetched" ] || fail "apt-get source failed:" "$(tail -n 3 "$directory/source.log")"
    case $found in
    "$version"*) ;;
    *) say "the server is $version, the nearest source package $found: both sides run that one's suite" ;;
    esac
    mv "$directory/package/postgresql-$major-"*/ "$directory/tree"
    rm -rf "$directory/package"
}

# Prints the directory that has postgres.h.
find_headers() {
    local place
    for place in "$("$bin/pg_config" --includedir-server 2>/dev/null)" "/usr/include/postgresql/$major/server" \
        "$directory/headers/usr/include/postgresql/$major/server"; do
        if [ -e "$place/postgres.h" ]; then
            printf '%s\n' "$place"
            return
        fi
    done
    return 1
}

get_headers() {
    headers=$(find_headers) && return
    make_apt
    local package=postgresql-server-dev-$major found
    found=$(apt apt-cache madison "$package" 2>/dev/null | awk '{print $3}' | choose) ||
        fail "no package source of this machine has $package:" "$(tail -n 3 "$directory/apt/update.log")" \
            "see $directory/apt/update.log"
    say "getting the headers of $package $found"
    (cd "$directory" && apt apt-get -q download "$package=$found") >"$directory/headers.log" 2>&1 ||
        fail "apt-get download failed:" "$(tail -n 3 "$directory/headers.log")"
    mkdir -p "$directory/headers"
    # Unpacked and not installed: the package would bring compilers that nobody here needs.
    dpkg -x "$directory/$package"_*.deb "$directory/headers"
    rm -f "$directory/$package"_*.deb
    headers=$(find_headers) || fail "$package has no postgres.h where it is looked for"
}

build() {
    local name source
    command -v cc >/dev/null || fail "a C compiler is missing" "apt-get install gcc libc6-dev"
    mkdir -p "$directory/libraries"
    for source in src/test/regress/regress contrib/spi/refint contrib/spi/autoinc; do
        name=$(basename "$source")
        say "building $name.so"
        # -w: these are not our sources. The other directory is what the server's own headers include on Debian.
        cc -shared -fPIC -O1 -w -fwrapv -fno-strict-aliasing -I "$headers" -I "${headers%/server}/internal" \
            -I "$directory/headers/usr/include/postgresql" -I "$directory/tree/src/test/regress" \
            "$directory/tree/$source.c" -o "$directory/libraries/$name.so" || fail "$name.so cannot be built"
    done
}

get_sources
get_headers
build
ln -s tree/src/test/regress "$directory/sources"
# The servers, which run as another user when we are root, read data and load libraries.
chmod -R a+rX "$directory"
printf '%s' "$wanted" >"$stamp"
say "the suite for PostgreSQL $version is in $directory"
