-- What was delivered, by number of the line in its order.
-- ordered by columns: 1
SELECT ol_number, sum(ol_quantity) AS sum_qty, sum(ol_amount) AS sum_amount, avg(ol_quantity) AS avg_qty,
    avg(ol_amount) AS avg_amount, count(*) AS count_order
FROM orderline
WHERE ol_delivery_d > timestamp '2007-01-02'
GROUP BY ol_number
ORDER BY ol_number
