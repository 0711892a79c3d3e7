#!/usr/bin/env bash
# Django's own tests of its models, queries, schema changes and migrations, with its PostgreSQL backend.
. "$(dirname "$0")/lib.sh"
version=5.2.19
# Of its tests, those that are about the database. Half of them run as Django does by default, with values written into
# simple statements, the others, mostly of queries, with values bound to statements of the extended protocol.
simple="backends constraints contenttypes_tests custom_columns custom_lookups custom_managers custom_pk datatypes dates
datetimes db_utils defer defer_regress delete_regress extra_regress field_defaults filtered_relation fixtures
fixtures_regress force_insert_update foreign_object from_db_value generic_relations generic_relations_regress
get_earliest_or_latest get_or_create indexes inspectdb introspection known_related_objects m2m_intermediary
m2m_recursive m2m_regress m2m_through m2m_through_regress many_to_many many_to_one many_to_one_null max_lengths
migrate_signals migrations model_inheritance model_inheritance_regress model_regress multiple_database null_queries
one_to_one or_lookups order_with_respect_to prefetch_related proxy_models queryset_pickle reverse_lookup schema
select_related select_related_onetoone select_related_regress serializers sessions_tests string_lookup
transaction_hooks transactions update_only_fields xor_lookups"
bound="aggregation aggregation_regress annotations basic bulk_create composite_pk db_functions delete distinct_on_fields
expressions expressions_case expressions_window lookup model_fields ordering postgres_tests queries raw_query
select_for_update timezones update"

# run_django LABEL…
run_django() {
    PYTHONPATH="$DRIVERS_SOURCE:$DRIVERS_SOURCE/django" PYTHONDONTWRITEBYTECODE=1 \
        "$DRIVERS_WORK/venv/bin/python" runtests.py --settings drivers_settings --parallel 1 --noinput "$@" || true
}

case $1 in
prepare)
    prepared "$version" || {
        python_with "django==$version" 'psycopg[binary]==3.2.13' psycopg-pool==3.3.3 asgiref==3.13.0 \
            sqlparse==0.6.1 tzdata PyYAML==6.0.4
        python_source django "$version"
        # The installed one.
        rm -rf source/django
        finished "$version"
    }
    ;;
run)
    cd source/tests
    run_django $simple
    DRIVERS_BINDING=server run_django $bound
    ;;
esac
