#!/usr/bin/env bash
# Graphile Worker: a queue whose functions are in the database, with its program and its library.
. "$(dirname "$0")/lib.sh"
case $1 in
# Newer Node.js than there may be, as a package.
prepare) node_packages node@22.23.3 graphile-worker@0.18.0 pg@8.23.1 ;;
run)
    rm -rf "project.$DRIVERS_SIDE"
    cp -r "$DRIVERS_SOURCE/graphile_worker" "project.$DRIVERS_SIDE"
    cd "project.$DRIVERS_SIDE"
    export PATH="$DRIVERS_WORK/node_modules/.bin:$PATH" NO_COLOR=1
    # Names that it draws for itself.
    worker() {
        graphile-worker -c "postgresql:///$PGDATABASE" "$@" 2>&1 |
            sed -E "s/(worker|pool)-[0-9a-f]{10,}/\1-NAME/g; s/project\.$DRIVERS_SIDE/project/g"
    }
    with() { node suite.js "$@" 2>&1 | sed "s/project\.$DRIVERS_SIDE/project/g"; }
    # Its rows have times.
    dumped() { dump "$1" --exclude-table-data='graphile_worker.*'; }
    step "its schema" worker --schema-only
    dumped "dump of its schema"
    step "a second start" worker --schema-only
    step "the application's tables" with tables
    spread "create_reference_table('country')" "create_distributed_table('tenant', 'id')" \
        "create_distributed_table('sale', 'tenant_id')"
    step "jobs" with jobs
    step "jobs together with rows" with rows
    step "jobs that fail" with failures
    step "jobs with keys" with keys
    step "jobs by hand" with hands
    step "in named queues" with queues
    step "woken by a notification" with woken
    step "by the clock" with clock
    step "its program works off what is left" worker --once
    step "cleaned up" worker --cleanup GC_TASK_IDENTIFIERS,GC_JOB_QUEUES,DELETE_PERMAFAILED_JOBS
    step "what is left" with left
    step "its functions" with functions
    dumped "dump at the end"
    ;;
esac
