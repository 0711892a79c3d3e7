-- Orders with a line that was delivered later than ordered, by size.
-- ordered by columns: 1
SELECT o_ol_cnt, count(*) AS order_count
FROM orders
WHERE o_entry_d >= timestamp '2007-01-02' AND o_entry_d < timestamp '2012-01-02'
    AND EXISTS (
        SELECT * FROM orderline
        WHERE o_id = ol_o_id AND o_w_id = ol_w_id AND o_d_id = ol_d_id AND ol_delivery_d >= o_entry_d)
GROUP BY o_ol_cnt
ORDER BY o_ol_cnt
