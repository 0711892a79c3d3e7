# Included by the suites beside it. `DRIVERS_WORK` is the suite's own directory, kept between runs; what is prepared
# there has a stamp with its versions and is made anew when they change.
set -euo pipefail
cd "$DRIVERS_WORK"

say() { printf '%s\n' "$*"; }

fail() {
    printf 'error: %s\n' "$@" >&2
    exit 1
}

# What the suite needs is not to be had here, in one line: the others run without it.
not_to_be_had() {
    printf '%s\n' "$*" >&2
    exit 77
}

# Whether all of it is here already: `prepared VERSIONS || { …; finished VERSIONS; }`.
prepared() { [ "$(cat stamp 2>/dev/null)" = "$*" ]; }
finished() { printf '%s' "$*" >stamp; }

# Python packages in an environment of the suite's own.
python_with() {
    rm -rf venv
    python3 -m venv venv
    venv/bin/pip install --quiet --disable-pip-version-check "$@"
}

# The source package of a version, unpacked into `source`: python_source asyncpg 0.32.0.
python_source() {
    rm -rf source download
    venv/bin/pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
        -d download "$1==$2" || fail "no source package $1 $2"
    mkdir source
    tar xf download/*.tar.gz -C source --strip-components 1
    rm -rf download
}

# Debian's source package, unpacked into `source`, where the registry's package has no tests.
debian_source() {
    directory=$PWD
    without_apt="run without the suite: make drivers DRIVERS_ONLY=…"
    command -v dpkg-source >/dev/null || fail "dpkg-source is missing" "apt-get install dpkg-dev"
    . "$DRIVERS_SOURCE/../../scripts/apt_sources.sh"
    make_apt
    local version
    version=$(apt apt-cache showsrc "$1" 2>/dev/null | sed -n "s/^Version: //p" | grep -E "^([0-9]+:)?${2//./\\.}" |
        sort -Vu | tail -n 1) || fail "no package source of this machine has $1 $2 as a source package"
    rm -rf source download
    mkdir download
    (cd download && apt apt-get -q source "$1=$version") || fail "apt-get source $1=$version failed"
    mv download/*/ source
    rm -rf download apt
}

# pytest with a plugin that writes how each test ended; without a cache, unless `pytest_cache` is a directory for it.
run_pytest() {
    local cache=(-p no:cacheprovider)
    [ -z "${pytest_cache:-}" ] || cache=(-o "cache_dir=$pytest_cache")
    PYTHONPATH="$DRIVERS_SOURCE${PYTHONPATH:+:$PYTHONPATH}" \
        "$DRIVERS_WORK/venv/bin/python" -m pytest -p drivers_report "${cache[@]}" -q --tb=short "$@" || true
}

# Packages for Node.js, in the suite's directory.
node_packages() {
    prepared "$@" && return
    command -v npm >/dev/null || fail "npm is missing" "apt-get install npm"
    rm -rf node_modules package-lock.json
    echo '{"private": true}' >package.json
    npm install --no-audit --no-fund --no-update-notifier --save-exact "$@"
    finished "$@"
}

# A program of ours in Go, `bin/NAME`, with these modules: go_program river github.com/riverqueue/river@v0.51.2. Everything
# of Go's is kept in the suite's own directory, and goes when the program is there.
go_program() {
    local name=$1 project=$DRIVERS_SOURCE/$1 versions
    shift
    versions="$* $(cat "$project"/*.go | sha256sum)"
    prepared "$versions" && return
    needs_go
    chmod -R u+w go 2>/dev/null || true
    rm -rf go program
    mkdir go program
    cp "$project"/*.go program
    (cd program && go mod init suite && go get "$@" && go build -o "../bin/$name" .)
    chmod -R u+w go
    rm -rf go
    finished "$versions"
}

needs_go() {
    command -v go >/dev/null || fail "go is missing" "apt-get install golang-go (1.25 or newer)"
    export GOPATH=$DRIVERS_WORK/go GOMODCACHE=$DRIVERS_WORK/go/mod GOCACHE=$DRIVERS_WORK/go/cache GOFLAGS=-mod=mod
}

# What a project's pom.xml names, in `libraries`; without Maven's own parts (some 40 MB), which nothing needs any more.
java_libraries() {
    local project=$DRIVERS_SOURCE/$1 versions
    versions=$(sha256sum <"$project/pom.xml")
    prepared "$versions" && return
    command -v mvn >/dev/null || fail "mvn is missing" "apt-get install maven"
    rm -rf libraries
    mvn -q -B -f "$project/pom.xml" -Dmaven.repo.local="$DRIVERS_WORK/repository" \
        dependency:copy-dependencies -DoutputDirectory="$DRIVERS_WORK/libraries"
    rm -rf repository
    finished "$versions"
}

# The programs of a project, with its libraries, in `classes`.
java_program() {
    java_libraries "$1"
    command -v javac >/dev/null || fail "javac is missing" "apt-get install openjdk-17-jdk-headless"
    rm -rf classes
    javac -nowarn -proc:none -encoding UTF-8 -d classes -cp 'libraries/*' "$DRIVERS_SOURCE/$1"/src/*.java
}

# A program of ours with these packages, which writes its results itself.
run_node() { NODE_PATH="$DRIVERS_WORK/node_modules:$DRIVERS_SOURCE" node "$DRIVERS_SOURCE/$1"; }

# Tools that are programs: what they say and what they leave behind is to be the same on both sides. Its digest is part
# of the test's name; the texts stay in `told.plain` and `told.cluster`, for diff.
told() {
    local name=$1 text digest
    text=$(cat)
    mkdir -p "$DRIVERS_WORK/told.$DRIVERS_SIDE"
    printf '%s\n' "$text" >"$DRIVERS_WORK/told.$DRIVERS_SIDE/${name//[^A-Za-z0-9_.-]/_}"
    digest=$(printf '%s' "$text" | sha256sum | cut -c1-12)
    printf 'PASSED %s says %s\n' "$name" "$digest" >>"$DRIVERS_RESULTS"
}

# What no two runs have in common: colours, times, durations, the server's port and database.
without_chance() {
    sed -E -e 's/\x1b\[[0-9;?]*[A-Za-z]//g' -e "s/\b$PGPORT\b/PORT/g" -e 's/\r//g' \
        -e 's/[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]+)?)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?/TIME/g' \
        -e 's/\b[0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?/TIME/g' \
        -e 's/\b[0-9]+([.,][0-9]+)? ?(ms|s|sec|secs|seconds?|milliseconds?)\b/DURATION/g'
}

# step NAME COMMAND…: the command succeeds, and says the same on both sides.
step() {
    local name=$1 outcome=PASSED
    shift
    echo "--- $name"
    "$@" >"said.$DRIVERS_SIDE" 2>&1 </dev/null || outcome=FAILED
    cat "said.$DRIVERS_SIDE"
    printf '%s %s\n' "$outcome" "$name" >>"$DRIVERS_RESULTS"
    without_chance <"said.$DRIVERS_SIDE" | told "$name"
}

# Spreads tables where there is such a thing: spread "create_distributed_table('t', 'k')" "create_reference_table('r')".
spread() {
    local call
    if [ "$(psql -XAtc "SELECT to_regproc('create_distributed_table') IS NOT NULL")" = t ]; then
        for call in "$@"; do
            PGOPTIONS="-c client_min_messages=warning" psql -XAtq -v ON_ERROR_STOP=1 -c "SELECT $call" ||
                say "FAILED: $call"
        done
    fi 2>&1 | told "spread $(cut -c1-150 <<<"$*")"
}

# The schema and the rows of the database, as pg_dump writes them: dump NAME [OPTION…]. Rows are in one order, and what some
# versions of the server keep of columns is left out.
dump() {
    local name=$1
    shift
    { pg_dump --no-owner --schema-only "$@" && pg_dump --data-only --inserts "$@" | sort; } 2>&1 |
        grep -vE -e '^(--|SET |SELECT pg_catalog\.set_config|\\(un)?restrict )' -e ' SET \(pg_attver=' | told "$name"
}
