{{ config(
    materialized='incremental', incremental_strategy='microbatch', unique_key=['tenant_id', 'id'],
    event_time='at', batch_size='day', begin='2025-03-04', concurrent_batches=false,
    post_hook="{{ spread('create_distributed_table', 'tenant_id') }}"
) }}
SELECT tenant_id, id, at, extract(hour FROM at AT TIME ZONE 'UTC')::int AS hour
FROM {{ source('shop', 'event') }}
