{{ config(
    materialized='incremental', incremental_strategy='delete+insert', unique_key=['tenant_id', 'day'],
    indexes=[{'columns': ['tenant_id', 'day'], 'unique': true}],
    post_hook="{{ spread('create_distributed_table', 'tenant_id') }}"
) }}
SELECT tenant_id, day, count(*) AS events, sum(price) AS total
FROM {{ ref('prices') }}
{% if is_incremental() %}
WHERE day >= (SELECT max(day) FROM {{ this }})
{% endif %}
GROUP BY tenant_id, day
