#!/usr/bin/env bash
# asyncpg's own tests, of its source package.
. "$(dirname "$0")/lib.sh"
version=0.32.0
case $1 in
prepare)
    prepared "$version" || {
        python_with "asyncpg==$version" pytest==8.4.2 distro
        python_source asyncpg "$version"
        # The installed one, with its compiled part.
        rm -rf source/asyncpg
        finished "$version"
    }
    ;;
run)
    cd source
    # Those that start servers of their own, and its own style, are about no server of ours.
    run_pytest tests --deselect tests/test__sourcecode.py --deselect tests/test__environment.py
    ;;
esac
