{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key=['tenant_id', 'id'],
    on_schema_change='sync_all_columns', grants={'select': ['pg_monitor']},
    post_hook="{{ spread('create_distributed_table', 'tenant_id') }}"
) }}
SELECT tenant_id, id,
    {% if env_var('LATER', '') != '' %}array_to_string(tags, ',') AS names{% else %}tags, at{% endif %}
FROM {{ source('shop', 'event') }}
