SELECT a.* FROM {{ ref('accounts') }} a
JOIN {{ source('shop', 'account') }} s USING (tenant_id, id)
WHERE taxed < balance
