{{ config(materialized='ephemeral') }}
SELECT tenant_id, (at AT TIME ZONE 'UTC')::date AS day, (body ->> 'price')::numeric AS price
FROM {{ source('shop', 'event') }}
