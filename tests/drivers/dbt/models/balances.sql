{{ config(
    materialized='incremental', incremental_strategy='merge', unique_key=['tenant_id', 'id'],
    merge_exclude_columns=['mail'], on_schema_change='append_new_columns',
    post_hook="{{ spread('create_distributed_table', 'tenant_id') }}"
) }}
SELECT tenant_id, id, mail, balance{% if is_incremental() %}, state::text AS state{% endif %}
FROM {{ source('shop', 'account') }}
{% if is_incremental() %}
WHERE (tenant_id, id) NOT IN (SELECT o.tenant_id, o.id FROM {{ this }} o WHERE o.balance > 5)
{% endif %}
