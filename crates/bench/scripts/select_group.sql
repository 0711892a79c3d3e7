SELECT bid, count(*) FROM pgbench_accounts GROUP BY bid ORDER BY count(*) DESC, bid LIMIT 10;
