#!/usr/bin/env bash
# node-postgres (pg) with its pool, cursors, streams and COPY: a program of our own, since its packages hold no tests.
. "$(dirname "$0")/lib.sh"
packages="pg@8.23.1 pg-pool@3.14.0 pg-cursor@2.22.1 pg-query-stream@4.17.0 pg-copy-streams@7.0.0"
case $1 in
prepare) node_packages $packages ;;
run) run_node node_postgres/suite.js ;;
esac
