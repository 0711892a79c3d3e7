-- One nation's share of an American market, by year.
-- ordered by columns: 1
SELECT o_year, sum(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / sum(volume) AS mkt_share
FROM (
    SELECT extract(year FROM o_orderdate) AS o_year, l_extendedprice * (1 - l_discount) AS volume, n2.n_name AS nation
    FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
    WHERE l_partkey = p_partkey AND l_suppkey = s_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
        AND n1.n_nationkey = c_nationkey AND r_regionkey = n1.n_regionkey AND n2.n_nationkey = s_nationkey
        AND r_name = 'AMERICA' AND p_type = 'ECONOMY ANODIZED STEEL'
        AND o_orderdate BETWEEN date '1995-01-01' AND date '1996-12-31'
) AS all_nations
GROUP BY o_year
ORDER BY o_year
