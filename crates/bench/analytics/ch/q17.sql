-- What would be lost a year without the small lines of some items.
SELECT sum(ol_amount) / 2.0 AS avg_yearly
FROM orderline, (
    SELECT i_id, avg(ol_quantity) AS a
    FROM item, orderline
    WHERE i_data LIKE '%b' AND ol_i_id = i_id
    GROUP BY i_id
) AS usual
WHERE ol_i_id = usual.i_id AND ol_quantity < usual.a
