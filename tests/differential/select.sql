--@ include: schema.sql
--@ read only
-- Filters, target lists and keys of all spellings.

SELECT * FROM users WHERE id = 7;
SELECT id, name FROM users WHERE id = 7 AND active;
SELECT * FROM users;
SELECT id, upper(name), score * 2 AS double, born + 1 AS next_day FROM users WHERE score > 50;
SELECT count(*) FROM users;
SELECT name FROM users WHERE id = 999999;
SELECT * FROM orders WHERE user_id = 14 AND id = 141;
SELECT id FROM users WHERE id IN (1, 2, 3, 50, 51, 999);
SELECT id FROM users WHERE id IN (5);
SELECT id FROM users WHERE id IN (5, NULL);
SELECT id FROM users WHERE id NOT IN (5, 6, 7) AND id < 12;
SELECT id FROM users WHERE id NOT IN (5, NULL);
SELECT id FROM users WHERE id = 3 OR id = 4;
SELECT id FROM users WHERE id = 3 OR score < 5;
SELECT id FROM users WHERE (id = 3 AND active) OR (id = 9 AND NOT active);
SELECT id FROM users WHERE id = ANY (ARRAY[1, 10, 20, 20]);
SELECT id FROM users WHERE id = ANY ('{1,10,30}');
SELECT id FROM users WHERE id = ANY ('{}');
SELECT id FROM users WHERE id = ANY (ARRAY[4, NULL]);
SELECT id FROM users WHERE id <> ALL (ARRAY[1, 2, 3]) AND id < 7;
SELECT id FROM users WHERE id = SOME (ARRAY[1, 2]);
SELECT id FROM users WHERE id BETWEEN 10 AND 15;
SELECT id FROM users WHERE id > 55;
SELECT id FROM users WHERE id >= 10 AND id <= 10;
SELECT id FROM users WHERE id <> 5 AND id < 8;
SELECT id FROM users WHERE 7 = id;
SELECT id FROM users WHERE NOT id <> 7;
SELECT id FROM users WHERE id + 0 = 7;
SELECT id FROM users WHERE -id = -7;
SELECT id FROM users WHERE id = 3 + 4;
SELECT id FROM users WHERE id = '7';
SELECT id FROM users WHERE id = ' 42 ';
SELECT id FROM users WHERE id = 7::smallint;
SELECT id FROM users WHERE id = 7::numeric;
SELECT id FROM users WHERE id = 7.0;
SELECT id FROM users WHERE id = 7.5;
SELECT id FROM users WHERE id = 7.0::float8;
SELECT id FROM users WHERE id::int = 7;
SELECT id FROM users WHERE id::text = '7';
SELECT id FROM users WHERE id = 99999999999999999;
SELECT id FROM users WHERE id = 99999999999999999999999;
SELECT id FROM users WHERE id = -7;
SELECT id FROM users WHERE id = NULL;
SELECT id FROM users WHERE id IS NULL;
SELECT id FROM users WHERE id IS NOT NULL AND id < 4;
SELECT id FROM users WHERE id IS NOT DISTINCT FROM 4;
SELECT user_id, url, ms FROM clicks WHERE user_id IS NULL;
SELECT user_id, url, ms FROM clicks WHERE user_id IS NOT DISTINCT FROM NULL AND ms > 100;
SELECT count(*) FROM clicks WHERE user_id IS DISTINCT FROM 8;
SELECT id FROM users WHERE id = 1 AND id = 2;
SELECT id FROM users WHERE id = 1 AND false;
SELECT id FROM users WHERE id = 1 AND NULL;
SELECT id FROM users WHERE id = 1 AND id = 1;
SELECT id FROM users WHERE id = 1 AND id IN (1, 2);
SELECT id FROM users WHERE id IN (1, 2, 3) AND id IN (3, 4);
SELECT id FROM users WHERE (id, name) = (7, 'user 7');
SELECT id FROM users WHERE (id, name) IN ((7, 'user 7'), (8, 'nobody'), (9, 'user 9'));
SELECT id FROM users WHERE row(id, active) < row(3, false);
SELECT user_id, id FROM orders WHERE (user_id, id) IN (VALUES (14, 141), (19, 191), (19, 500));
SELECT id, CASE WHEN id = 5 THEN 'five' WHEN id < 5 THEN 'less' ELSE 'more' END FROM users WHERE id < 8;
SELECT id, id = 5 AS five FROM users WHERE id < 8;
SELECT name, country FROM users WHERE country = 'de' AND name LIKE 'user 1%';
SELECT name FROM users WHERE name ~ '^user [12]$' OR name IS NULL;
SELECT id, tags[1], array_length(tags, 1), 't1' = ANY (tags) FROM users WHERE id < 9;
SELECT id, meta->>'lang', (meta->'level')::int + 1 FROM users WHERE meta @> '{"level": 2}';
SELECT kind, id, value FROM events WHERE kind = 'kind-3' AND value > 10;
SELECT kind, id FROM events WHERE kind = 'kind-3'::varchar;
SELECT id FROM events WHERE kind IS NULL;
SELECT id FROM events WHERE kind IN ('kind-1', 'kind-12', 'none', NULL);
SELECT id FROM events WHERE kind = 'kind-3 ';
SELECT id FROM events WHERE kind LIKE 'kind-1%' AND id < 40;
SELECT id FROM events WHERE ip << '10.0.2.0/24' AND id < 60;
SELECT id, took FROM events WHERE took > interval '1 day' AND id < 30;
SELECT * FROM products WHERE id = 3;
SELECT id, price FROM products WHERE price > 50;
SELECT name FROM regions WHERE code = 'de';
SELECT * FROM local_notes WHERE user_id > 40;
SELECT u.* FROM users u WHERE u.id = 12;
SELECT users.id, u2.id FROM users, users u2 WHERE users.id = 5 AND u2.id = 6;
SELECT (u).name, (u).id FROM users u WHERE u.id = 12;
SELECT public.users.name FROM public.users WHERE public.users.id = 3;
SELECT ONLY_ME.id FROM users AS only_me (id, n) WHERE only_me.n = 'user 3';
SELECT id FROM ONLY users WHERE id = 3;
TABLE regions;
SELECT 1;
SELECT;
SELECT FROM users WHERE id < 4;
SELECT 'lit' AS a, 2 AS a, NULL AS "Mixed Case" FROM users WHERE id = 1;
SELECT version() = version(), current_database(), current_user = session_user;
SELECT now() = transaction_timestamp(), now() - now(), current_date - current_date FROM users WHERE id < 3;
SELECT count(*) FROM users WHERE created < now();
SELECT count(DISTINCT now()) FROM users;
SELECT count(*) FROM (SELECT random() AS r FROM users) t WHERE r >= 0 AND r < 1;
SELECT generate_series(1, 3), id FROM users WHERE id < 3;
SELECT id, unnest(tags) FROM users WHERE id IN (1, 2, 3);
SELECT * FROM generate_series(1, 5) g WHERE g = 3;
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) v (n, t);
SELECT coalesce(name, 'none'), nullif(country, 'de'), greatest(score, 10), least(id, 5) FROM users WHERE id < 13;
SELECT to_char(created AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'), extract(year FROM born), date_trunc('month', placed)
  FROM users JOIN orders ON users.id = orders.user_id WHERE users.id = 14;

-- Parameters.
--@ params: 7
--@ params: ' 42 '
--@ params: 99999
--@ params: NULL
SELECT id, name FROM users WHERE id = $1;
--@ types: 23
--@ params: 7
--@ params: NULL
SELECT id, name FROM users WHERE id = $1;
--@ types: 20
--@ params: 14
SELECT user_id, id, total FROM orders WHERE user_id = $1 AND total IS NOT NULL;
--@ types: 1700
--@ mode: extended prepared
--@ params: 7.0
--@ params: 7.5
SELECT id FROM users WHERE id = $1;
--@ types: 25
--@ mode: extended prepared
--@ error: 42883
--@ params: 7
SELECT id FROM users WHERE id = $1;
--@ error: 22P02
--@ params: 'seven'
SELECT id FROM users WHERE id = $1;
--@ params: '{1,2,30}'
--@ params: '{}'
--@ params: NULL
SELECT id FROM users WHERE id = ANY ($1);
--@ params: 3, 40
--@ params: 40, 40
SELECT id FROM users WHERE id IN ($1, $2);
--@ params: 10, 14
SELECT id FROM users WHERE id BETWEEN $1 AND $2;
--@ params: 7, 'user 7'
--@ params: 8, 'user 7'
SELECT id FROM users WHERE id = $1 AND name = $2;
--@ params: 7
SELECT $1::text, id FROM users WHERE id = $1::int;
--@ params: 5, 2
SELECT id FROM users WHERE id = $1::int + $2::int;
--@ params: 'kind-5'
--@ params: 'KIND-5'
--@ params: ''
--@ params: NULL
SELECT id FROM events WHERE kind = $1;
--@ params: 'kind-5', 20
SELECT count(*), sum(value) FROM events WHERE kind = $1 AND id > $2;
--@ params: 20.5
SELECT count(*) FROM users WHERE score > $1;
