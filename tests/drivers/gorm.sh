#!/usr/bin/env bash
# GORM with pgx: tables made from its models and compared with them, associations, upserts.
. "$(dirname "$0")/lib.sh"
version=1.31.2
driver=1.6.3
case $1 in
prepare)
    go_program gorm "gorm.io/gorm@v$version" "gorm.io/driver/postgres@v$driver" github.com/lib/pq@v1.10.9
    ;;
run)
    gorm() { bin/gorm "$@" 2>&1; }
    step "an empty database" gorm migrate
    dump "dump of what was made"
    step "nothing to do" gorm migrate
    step "use of local tables" gorm use
    spread "create_reference_table('plans')" "create_reference_table('labels')" \
        "create_distributed_table('tenants', 'id')" "create_distributed_table('accounts', 'tenant_id')"
    spread "create_distributed_table('orders', 'tenant_id')" "create_distributed_table('lines', 'tenant_id')" \
        "create_distributed_table('order_labels', 'tenant_id')"
    step "use of spread tables" gorm use
    step "a second start" gorm migrate
    step "what it sees" gorm inspect
    step "migrated on" gorm newer
    step "nothing to do after that" gorm newer
    step "what it sees after that" gorm inspect
    step "use after that" gorm use
    step "by its migrator" gorm alter
    step "use at the end" gorm use
    dump "dump at the end"
    step "all gone" gorm drop
    dump "dump of what is left"
    ;;
esac
