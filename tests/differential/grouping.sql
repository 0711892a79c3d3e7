--@ include: schema.sql
-- Aggregates beyond GROUP BY: grouping sets, CUBE and ROLLUP, WITHIN GROUP, ordered and filtered aggregates, aggregates that users
-- made, statistics and regression.

SELECT country, active, count(*) FROM users GROUP BY GROUPING SETS ((country), (active), ());
SELECT country, active, count(*), grouping(country), grouping(active), grouping(country, active) FROM users GROUP BY CUBE (country, active);
SELECT country, active, sum(score) FROM users GROUP BY ROLLUP (country, active);
SELECT country, count(*) FROM users GROUP BY ROLLUP (country) HAVING count(*) > 9;
SELECT country, count(*) FROM users GROUP BY ROLLUP (country) HAVING grouping(country) = 1;
SELECT user_id, status, count(*), sum(total) FROM orders GROUP BY GROUPING SETS ((user_id, status), (status), ());
SELECT user_id, status, count(*) FROM orders WHERE user_id = 14 GROUP BY CUBE (user_id, status);
SELECT user_id, count(*) FROM orders GROUP BY ROLLUP (user_id) ORDER BY user_id NULLS FIRST LIMIT 5;
--@ ordered
SELECT user_id, count(*) FROM orders GROUP BY ROLLUP (user_id) ORDER BY 2 DESC, 1 LIMIT 5;
SELECT status, extract(month FROM placed) AS m, count(*) FROM orders GROUP BY status, ROLLUP (extract(month FROM placed));
SELECT status, user_id % 3 AS g, count(*), min(total) FROM orders GROUP BY GROUPING SETS ((status, user_id % 3), (user_id % 3));
SELECT r.name, u.active, count(u.id) FROM users u RIGHT JOIN regions r ON r.code = u.country GROUP BY CUBE (r.name, u.active);
SELECT r.name, o.status, sum(o.total) FROM users u JOIN orders o ON o.user_id = u.id JOIN regions r ON r.code = u.country GROUP BY ROLLUP (r.name, o.status);
SELECT count(*), max(n) FROM (SELECT country, count(*) AS n FROM users GROUP BY CUBE (country, active)) t;
SELECT id FROM users WHERE score > (SELECT avg(s) FROM (SELECT sum(score) / 20 AS s FROM users GROUP BY ROLLUP (country)) t);
SELECT country, n FROM (SELECT country, count(*) AS n FROM users GROUP BY GROUPING SETS ((country), ())) t WHERE n > 10;
SELECT DISTINCT grouping(country), count(*) > 0 FROM users GROUP BY ROLLUP (country, active);
SELECT country, count(DISTINCT name) FROM users GROUP BY ROLLUP (country);
SELECT status, count(*) FILTER (WHERE total > 400), avg(total) FROM orders GROUP BY ROLLUP (status);
SELECT status, string_agg(id::text, ',' ORDER BY id) FROM orders WHERE user_id < 9 GROUP BY ROLLUP (status);
SELECT kind, count(*) FROM events GROUP BY GROUPING SETS ((kind), ());
SELECT count(*) IS NULL FROM users GROUP BY () HAVING false;
SELECT count(*) FROM users GROUP BY ();
SELECT count(*) FROM users WHERE false GROUP BY ();
SELECT country, count(*) FROM users WHERE false GROUP BY ROLLUP (country);
SELECT count(*) FROM users WHERE false GROUP BY GROUPING SETS ((), ());
SELECT country, active, count(*) FROM users GROUP BY country, GROUPING SETS ((active), ());
SELECT country, active, count(*) FROM users GROUP BY DISTINCT ROLLUP (country, active), ROLLUP (country);
SELECT country, rank() OVER (ORDER BY count(*) DESC, country) FROM users GROUP BY ROLLUP (country);
SELECT f.a % 4, u.active, count(*) FROM friends f JOIN users u ON u.id = f.b GROUP BY CUBE (f.a % 4, u.active);
--@ error: 42803
SELECT country, active FROM users GROUP BY ROLLUP (country);
--@ error: 42803
SELECT grouping(active) FROM users GROUP BY country;

-- WITHIN GROUP.
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY score) FROM users;
SELECT percentile_disc(0.25) WITHIN GROUP (ORDER BY score), percentile_disc(0.75) WITHIN GROUP (ORDER BY score DESC) FROM users;
SELECT percentile_cont(ARRAY[0.1, 0.5, 0.9]) WITHIN GROUP (ORDER BY total) FROM orders;
SELECT status, percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM orders GROUP BY status;
SELECT user_id, percentile_disc(0.5) WITHIN GROUP (ORDER BY total) FROM orders GROUP BY user_id;
SELECT mode() WITHIN GROUP (ORDER BY url) FROM clicks;
SELECT user_id % 5, mode() WITHIN GROUP (ORDER BY url) FROM clicks WHERE user_id IS NOT NULL GROUP BY 1;
SELECT rank(50) WITHIN GROUP (ORDER BY score), dense_rank(50) WITHIN GROUP (ORDER BY score), percent_rank(50) WITHIN GROUP (ORDER BY score), cume_dist(50) WITHIN GROUP (ORDER BY score) FROM users;
SELECT country, rank(10, 'user 3') WITHIN GROUP (ORDER BY score, name) FROM users GROUP BY country;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY took) FROM events;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY score) FILTER (WHERE active) FROM users;
SELECT id FROM users WHERE score > (SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY score) FROM users);
SELECT mode() WITHIN GROUP (ORDER BY status), user_id FROM orders WHERE user_id = 14 GROUP BY user_id;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY score) FROM users WHERE false;
--@ error: 22003
SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY score) FROM users;

-- Aggregates with order, DISTINCT and FILTER.
SELECT string_agg(name, ',' ORDER BY name, id) FROM users;
SELECT array_agg(id ORDER BY score DESC NULLS LAST, id) FROM users WHERE active;
SELECT country, array_agg(DISTINCT name ORDER BY name) FROM users GROUP BY country;
SELECT string_agg(DISTINCT status, '/' ORDER BY status) FROM orders;
SELECT string_agg(DISTINCT status, '/' ORDER BY status DESC) FILTER (WHERE total > 100) FROM orders;
SELECT count(DISTINCT country), count(DISTINCT (country, active)), sum(DISTINCT total) FROM users JOIN orders ON orders.user_id = users.id;
SELECT count(DISTINCT user_id), count(DISTINCT url), count(DISTINCT ms) FROM clicks;
SELECT user_id, count(DISTINCT url) FROM clicks GROUP BY user_id;
SELECT url, count(DISTINCT user_id), count(*) FROM clicks GROUP BY url;
SELECT avg(DISTINCT ms), max(DISTINCT ms) FROM clicks;
SELECT json_agg(id ORDER BY id) FROM users WHERE id < 9;
SELECT jsonb_object_agg(id, name ORDER BY id) FROM users WHERE id < 9 AND name IS NOT NULL;
SELECT jsonb_agg(jsonb_build_object('id', id, 'n', name) ORDER BY id) FROM users WHERE id BETWEEN 5 AND 12;
SELECT country, json_object_agg(id, score ORDER BY id) FROM users GROUP BY country;
SELECT xmlagg(xmlelement(name u, id) ORDER BY id)::text FROM users WHERE id < 5;
SELECT array_agg(tags ORDER BY id) FROM users WHERE cardinality(tags) = 2 AND id < 20;
SELECT bool_and(active), bool_or(active), every(id > 0) FROM users;
SELECT bit_and(id), bit_or(id), bit_xor(id) FROM users;
SELECT max(tags), min(tags) FROM users;
SELECT max(ip), min(ip), max(took), sum(took), avg(took) FROM events;
SELECT min(born), max(born), min(created), max(created), max(name), min(country) FROM users;
SELECT range_agg(daterange(born, born + 100) ORDER BY born) FROM users WHERE id < 6;
SELECT range_intersect_agg(int4range(id::int, 100)) FROM users;
--@ float: 1e-9
SELECT stddev(score), variance(score), stddev_pop(score), var_pop(score), stddev_samp(score), var_samp(score) FROM users;
--@ float: 1e-9
SELECT stddev(value), variance(value), stddev_pop(value), var_pop(value), sum(value), avg(value) FROM events;
--@ float: 1e-9
SELECT corr(value, id), covar_pop(value, id), covar_samp(value, id), regr_avgx(value, id), regr_avgy(value, id), regr_count(value, id), regr_intercept(value, id) + 1, regr_r2(value, id), regr_slope(value, id), regr_sxx(value, id), regr_sxy(value, id), regr_syy(value, id) FROM events;
--@ float: 1e-9
SELECT kind, stddev(value), corr(value, id) FROM events GROUP BY kind;
--@ float: 1e-9
SELECT id % 3, regr_slope(value, id), count(*) FROM events GROUP BY 1;
SELECT avg(score) FILTER (WHERE active), sum(score) FILTER (WHERE NOT active), count(*) FILTER (WHERE false), max(id) FILTER (WHERE country = 'de') FROM users;
SELECT country, sum(score) FILTER (WHERE active) / nullif(count(*), 0) FROM users GROUP BY country;
SELECT sum(a.n), avg(a.n) FROM (SELECT DISTINCT ON (country) country, id AS n FROM users ORDER BY country, id) a;
SELECT any_ids FROM (SELECT array_agg(id ORDER BY id) AS any_ids FROM users GROUP BY active) t;
SELECT count(*) FROM (SELECT 1 FROM users GROUP BY country HAVING sum(score) > 300) t;
SELECT max(n) FROM (SELECT count(*) AS n FROM clicks GROUP BY user_id) t;
SELECT sum(n) FROM (SELECT count(DISTINCT url) AS n FROM clicks GROUP BY ms) t;
SELECT country, sum(score) * 100 / sum(sum(score)) OVER () FROM users GROUP BY country;
SELECT upper(country), count(*) FROM users GROUP BY upper(country) ORDER BY upper(country) NULLS FIRST;
SELECT date_trunc('year', born::timestamp), count(*) FROM users GROUP BY 1 ORDER BY 1;
SELECT count(*), CASE WHEN score > 50 THEN 'high' WHEN score IS NULL THEN 'none' ELSE 'low' END AS band FROM users GROUP BY band;
SELECT (meta ->> 'level')::int, count(*) FROM users GROUP BY 1;
SELECT meta, count(*) FROM users GROUP BY meta;
SELECT tags, count(*) FROM users GROUP BY tags;
SELECT count(*), count(*) + 1, -count(*), count(*) * 2.5, round(avg(score), 3), coalesce(max(name), '?'), (sum(score) > 10)::text FROM users;
SELECT sum(id) / count(id), sum(score) - min(score), max(id) || '!' FROM users;
SELECT count(score), count(*) - count(score) FROM users;
--@ error: 42803
SELECT id, count(*) FROM users;
--@ error: 42803
SELECT sum(count(*)) FROM users;
--@ error: 42803
SELECT count(*) FROM users WHERE count(*) > 1;

-- Aggregates that users made: with and without a combine function, with a final function, ordered, variadic, moving.
CREATE FUNCTION joined(text, text) RETURNS text IMMUTABLE LANGUAGE sql AS $$ SELECT CASE WHEN $1 = '' THEN coalesce($2, '-') ELSE $1 || '+' || coalesce($2, '-') END $$;
CREATE AGGREGATE join_all (text) (SFUNC = joined, STYPE = text, INITCOND = '');
CREATE AGGREGATE total_of (numeric) (SFUNC = numeric_add, STYPE = numeric, INITCOND = '0', COMBINEFUNC = numeric_add, PARALLEL = SAFE);
CREATE FUNCTION halved(numeric) RETURNS numeric IMMUTABLE LANGUAGE sql AS 'SELECT $1 / 2';
CREATE AGGREGATE half_of (numeric) (SFUNC = numeric_add, STYPE = numeric, INITCOND = '0', FINALFUNC = halved);
CREATE FUNCTION weigh(numeric[], numeric, numeric) RETURNS numeric[] IMMUTABLE LANGUAGE sql AS 'SELECT CASE WHEN $2 IS NULL OR $3 IS NULL THEN $1 ELSE ARRAY[$1[1] + $2 * $3, $1[2] + $3] END';
CREATE FUNCTION weighed(numeric[]) RETURNS numeric IMMUTABLE LANGUAGE sql AS 'SELECT round($1[1] / nullif($1[2], 0), 4)';
CREATE AGGREGATE weighted_avg (numeric, numeric) (SFUNC = weigh, STYPE = numeric[], INITCOND = '{0,0}', FINALFUNC = weighed);
CREATE AGGREGATE product_of (numeric) (SFUNC = numeric_mul, STYPE = numeric, INITCOND = '1');
CREATE FUNCTION first_of(anyelement, anyelement) RETURNS anyelement IMMUTABLE STRICT LANGUAGE sql AS 'SELECT $1';
CREATE AGGREGATE first_value_of (anyelement) (SFUNC = first_of, STYPE = anyelement);
SELECT join_all(name ORDER BY id) FROM users;
SELECT country, join_all(name ORDER BY id) FROM users GROUP BY country;
SELECT user_id, join_all(status ORDER BY id) FROM orders GROUP BY user_id;
SELECT join_all(DISTINCT status) IS NOT NULL, length(join_all(status)) FROM orders;
SELECT total_of(total), half_of(total), weighted_avg(total, id) FROM orders;
SELECT status, total_of(total), half_of(total), weighted_avg(total, id) FROM orders GROUP BY status;
SELECT user_id, weighted_avg(total, id) FROM orders WHERE user_id < 20 GROUP BY user_id;
SELECT total_of(score) FILTER (WHERE active), total_of(DISTINCT score) FROM users;
SELECT total_of(total), user_id FROM orders WHERE user_id = 14 GROUP BY user_id;
SELECT product_of(1 + tax / 100) FROM regions;
SELECT first_value_of(name ORDER BY id DESC) FROM users;
SELECT country, first_value_of(id ORDER BY score DESC NULLS LAST, id) FROM users GROUP BY country;
SELECT id, total_of(total) OVER (PARTITION BY user_id ORDER BY id) FROM orders WHERE user_id < 15;
SELECT id, half_of(total) OVER (ORDER BY id ROWS 2 PRECEDING) FROM orders WHERE user_id < 15;
SELECT country, total_of(score) FROM users GROUP BY ROLLUP (country);
SELECT total_of(score) FROM users WHERE false;
SELECT id FROM users WHERE score * 40 > (SELECT total_of(score) FROM users);
SELECT count(*) FROM (SELECT weighted_avg(total, id) AS w FROM orders GROUP BY status HAVING half_of(total) > 10) t;
CREATE AGGREGATE nth_total (ORDER BY numeric) (SFUNC = numeric_add, STYPE = numeric, INITCOND = '0');
SELECT nth_total() WITHIN GROUP (ORDER BY total) FROM orders;
ALTER AGGREGATE total_of (numeric) RENAME TO sum_of;
SELECT sum_of(score) FROM users;
COMMENT ON AGGREGATE sum_of (numeric) IS 'a sum';
SELECT obj_description('sum_of(numeric)'::regprocedure, 'pg_proc');
DROP AGGREGATE sum_of (numeric);
--@ error: 42883
SELECT sum_of(score) FROM users;
