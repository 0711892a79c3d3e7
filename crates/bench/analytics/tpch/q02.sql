-- The cheapest European suppliers of each brass part of one size.
-- ordered by columns: 1, 3, 2, 4
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM part, partsupp, supplier, nation, region
WHERE ps_partkey = p_partkey AND s_suppkey = ps_suppkey AND n_nationkey = s_nationkey AND r_regionkey = n_regionkey
    AND p_size = 15 AND p_type LIKE '%BRASS' AND r_name = 'EUROPE'
    AND ps_supplycost = (
        SELECT min(ps_supplycost)
        FROM partsupp, supplier, nation, region
        WHERE ps_partkey = p_partkey AND s_suppkey = ps_suppkey AND n_nationkey = s_nationkey
            AND r_regionkey = n_regionkey AND r_name = 'EUROPE')
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey
LIMIT 100
