{{ config(materialized='incremental', incremental_strategy='append') }}
SELECT tenant_id, count(*) AS events, array_agg(DISTINCT tag ORDER BY tag) AS tags
FROM {{ source('shop', 'event') }}, unnest(tags) AS tag
GROUP BY tenant_id
