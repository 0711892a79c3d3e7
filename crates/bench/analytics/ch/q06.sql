-- Revenue of lines of any usual size.
SELECT sum(ol_amount) AS revenue
FROM orderline
WHERE ol_delivery_d >= timestamp '1999-01-01' AND ol_delivery_d < timestamp '2020-01-01'
    AND ol_quantity BETWEEN 1 AND 100000
