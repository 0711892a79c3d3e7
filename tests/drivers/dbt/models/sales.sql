{{ config(
    materialized='table', unlogged=env_var('LATER', '') != '',
    post_hook="{{ spread('create_distributed_table', 'tenant_id') }}"
) }}
SELECT t.id AS tenant_id, max(c.name)::text AS country, count(p.day) AS events, sum(p.price) AS total
FROM {{ source('shop', 'tenant') }} t
JOIN {{ ref('country') }} c ON c.code = t.country
LEFT JOIN {{ ref('prices') }} p ON p.tenant_id = t.id
GROUP BY t.id
