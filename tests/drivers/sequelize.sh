#!/usr/bin/env bash
# Sequelize (ORM for Node.js) with migrations by Umzug: a program of our own, since its package holds no tests.
. "$(dirname "$0")/lib.sh"
packages="sequelize@6.37.8 pg@8.23.1 pg-hstore@2.3.4 cls-hooked@4.2.2 umzug@3.8.3"
case $1 in
prepare) node_packages $packages ;;
run) run_node sequelize/suite.js ;;
esac
