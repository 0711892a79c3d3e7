{{ config(
    materialized='materialized_view', on_configuration_change='apply',
    indexes=[{'columns': ['tenant_id'], 'unique': true}]
        + ([{'columns': ['place', 'total']}] if env_var('LATER', '') != '' else [])
) }}
SELECT tenant_id, events, total, rank() OVER (ORDER BY total DESC, tenant_id) AS place
FROM (SELECT tenant_id, sum(events) AS events, sum(total) AS total FROM {{ ref('daily') }} GROUP BY tenant_id) d
