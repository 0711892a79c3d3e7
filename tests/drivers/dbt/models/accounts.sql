SELECT a.tenant_id, a.id, a.mail, t.name AS tenant, c.name AS country, a.balance * (1 + coalesce(c.tax, 0)) AS taxed
FROM {{ source('shop', 'account') }} a
JOIN {{ source('shop', 'tenant') }} t ON t.id = a.tenant_id
JOIN {{ ref('country') }} c ON c.code = t.country
