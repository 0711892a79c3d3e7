-- Revenue between suppliers and customers of the same Asian nation in one year.
-- ordered by columns: 2
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem, supplier, nation, region
WHERE o_custkey = c_custkey AND l_orderkey = o_orderkey AND s_suppkey = l_suppkey AND s_nationkey = c_nationkey
    AND n_nationkey = s_nationkey AND r_regionkey = n_regionkey AND r_name = 'ASIA'
    AND o_orderdate >= date '1994-01-01' AND o_orderdate < date '1994-01-01' + interval '1 year'
GROUP BY n_name
ORDER BY revenue DESC
