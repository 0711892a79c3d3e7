#!/usr/bin/env bash
# Debian's source packages, without changing anything of the system and without root: for scripts that include this.
# They set `directory`, which gets lists of its own, and `without_apt`, what a person can do where there is no apt-get;
# and have `say` and `fail`.

apt_made=
# Lists of this machine's package sources in $directory/apt, with sources of packages too.
make_apt() {
    [ -z "$apt_made" ] || return 0
    apt_made=yes
    command -v apt-get >/dev/null || fail "this machine has no apt-get to get Debian's source packages with" "$without_apt"
    local apt=$directory/apt file
    rm -rf "$apt"
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/parts"
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
        [ -e "$file" ] || continue
        sed -n -e 's/^deb[[:space:]].*/&/p' -e 's/^deb\([[:space:]].*\)/deb-src\1/p' "$file" \
            >"$apt/parts/$(basename "$file" .list).list"
    done
    for file in /etc/apt/sources.list.d/*.sources; do
        [ -e "$file" ] || continue
        sed 's/^Types:.*/Types: deb deb-src/' "$file" >"$apt/parts/$(basename "$file")"
    done
    say "reading the lists of source packages"
    # Sources that have none complain; whether ours is there is asked below.
    apt apt-get -q update >"$apt/update.log" 2>&1 || true
}

# The rest of the command with our lists; root needs no other user to write into our directory.
apt() {
    local program=$1
    shift
    "$program" -o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$directory/apt/parts" \
        -o "Dir::State::lists=$directory/apt/lists" -o "Dir::Cache=$directory/apt/cache" \
        -o "APT::Sandbox::User=$(id -un)" "$@"
}
