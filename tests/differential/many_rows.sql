-- INSERT of many rows over several shards, each statement several times: from the second time on it goes to its shards as
-- prepared statements, under a transaction that it may share with others.
CREATE TABLE colours (id int PRIMARY KEY, name text);
INSERT INTO colours VALUES (1, 'red'), (2, 'green');
--@ cluster: SELECT create_reference_table('colours')
CREATE TABLE mr (k int PRIMARY KEY, a int CHECK (a < 1000), b bigint, n numeric(6,2), t text NOT NULL DEFAULT 'none', v varchar(5),
    c char(4), d date, at timestamptz DEFAULT '2020-01-01 00:00+00', f float8, j jsonb, boo bool, colour int REFERENCES colours);
--@ cluster: SELECT create_distributed_table('mr', 'k')

INSERT INTO mr (k, a, t) VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three'), (4, 4, 'four'), (5, 5, 'five');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a, t) VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three'), (4, 4, 'four'), (5, 5, 'five');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a, t) VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three'), (4, 4, 'four'), (5, 5, 'five');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (t, k) VALUES ('x', 1), ('it''s', 2), ('', 3), ('"quoted"', 4), ('tab	here', 5), ('äöü €', 6);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (t, k) VALUES ('x', 1), ('it''s', 2), ('', 3), ('"quoted"', 4), ('tab	here', 5), ('äöü €', 6);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (t, k) VALUES ('x', 1), ('it''s', 2), ('', 3), ('"quoted"', 4), ('tab	here', 5), ('äöü €', 6);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, a, t) VALUES (-1, -5, '-'), (-2, -6, '--'), (2147483647, -7, '---'), (-2147483648, 7, '/* */');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a, t) VALUES (-1, -5, '-'), (-2, -6, '--'), (2147483647, -7, '---'), (-2147483648, 7, '/* */');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a, t) VALUES (-1, -5, '-'), (-2, -6, '--'), (2147483647, -7, '---'), (-2147483648, 7, '/* */');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, a) VALUES (1, NULL), (2, NULL), (3, NULL), (4, NULL);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, NULL), (2, NULL), (3, NULL), (4, NULL);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, NULL), (2, NULL), (3, NULL), (4, NULL);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, a) VALUES (1, NULL), (2, 2), (3, NULL), (4, 4);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, NULL), (2, 2), (3, NULL), (4, 4);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, NULL), (2, 2), (3, NULL), (4, 4);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, b) VALUES (1, 1), (2, 3000000000), (3, -3000000000), (4, 4);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, b) VALUES (1, 1), (2, 3000000000), (3, -3000000000), (4, 4);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, b) VALUES (1, 1), (2, 3000000000), (3, -3000000000), (4, 4);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, n) VALUES (1, 1.234), (2, 2.345), (3, 3.456), (4, 4.567), (5, 5.005);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, n) VALUES (1, 1.234), (2, 2.345), (3, 3.456), (4, 4.567), (5, 5.005);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, n) VALUES (1, 1.234), (2, 2.345), (3, 3.456), (4, 4.567), (5, 5.005);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, a) VALUES (1, 1.4), (2, 2.5), (3, 3.5), (4, -4.5);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, 1.4), (2, 2.5), (3, 3.5), (4, -4.5);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, 1.4), (2, 2.5), (3, 3.5), (4, -4.5);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, n) VALUES (1, 1), (2, 2.5), (3, '3.25'), (4, 4);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, n) VALUES (1, 1), (2, 2.5), (3, '3.25'), (4, 4);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, n) VALUES (1, 1), (2, 2.5), (3, '3.25'), (4, 4);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, d, f) VALUES (1, '2024-02-29', 1.5), (2, '1999-12-31', 2.5), (3, 'infinity', -0.5), (4, '-infinity', 1e10);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, d, f) VALUES (1, '2024-02-29', 1.5), (2, '1999-12-31', 2.5), (3, 'infinity', -0.5), (4, '-infinity', 1e10);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, d, f) VALUES (1, '2024-02-29', 1.5), (2, '1999-12-31', 2.5), (3, 'infinity', -0.5), (4, '-infinity', 1e10);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, d) VALUES (1, '2024-02-29'), (2, '1999-12-31'), (3, 'infinity'), (4, '-infinity');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, d) VALUES (1, '2024-02-29'), (2, '1999-12-31'), (3, 'infinity'), (4, '-infinity');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, d) VALUES (1, '2024-02-29'), (2, '1999-12-31'), (3, 'infinity'), (4, '-infinity');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, v, c) VALUES (1, 'abc', 'a'), (2, 'abcde', 'ab'), (3, 'abcde   ', 'abcd  '), (4, '', '');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, v, c) VALUES (1, 'abc', 'a'), (2, 'abcde', 'ab'), (3, 'abcde   ', 'abcd  '), (4, '', '');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, v, c) VALUES (1, 'abc', 'a'), (2, 'abcde', 'ab'), (3, 'abcde   ', 'abcd  '), (4, '', '');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, j) VALUES (1, '{"a": 1}'), (2, '[1, 2]'), (3, 'null'), (4, '"text"');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, j) VALUES (1, '{"a": 1}'), (2, '[1, 2]'), (3, 'null'), (4, '"text"');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, j) VALUES (1, '{"a": 1}'), (2, '[1, 2]'), (3, 'null'), (4, '"text"');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, boo) VALUES (1, 'yes'), (2, 'off'), (3, 't'), (4, '0');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, boo) VALUES (1, 'yes'), (2, 'off'), (3, 't'), (4, '0');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, boo) VALUES (1, 'yes'), (2, 'off'), (3, 't'), (4, '0');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, boo) VALUES (1, true), (2, false), (3, NULL), (4, true);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, boo) VALUES (1, true), (2, false), (3, NULL), (4, true);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, boo) VALUES (1, true), (2, false), (3, NULL), (4, true);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, t) VALUES (1, DEFAULT), (2, 'given'), (3, DEFAULT), (4, 'given too');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, t) VALUES (1, DEFAULT), (2, 'given'), (3, DEFAULT), (4, 'given too');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, t) VALUES (1, DEFAULT), (2, 'given'), (3, DEFAULT), (4, 'given too');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, colour) VALUES (1, 1), (2, 2), (3, 1), (4, 2), (5, NULL);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, colour) VALUES (1, 1), (2, 2), (3, 1), (4, 2), (5, NULL);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, colour) VALUES (1, 1), (2, 2), (3, 1), (4, 2), (5, NULL);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, a) VALUES (1, 1 + 1), (2, 2 * 2), (3, abs(-3)), (4, 4);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, 1 + 1), (2, 2 * 2), (3, abs(-3)), (4, 4);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, 1 + 1), (2, 2 * 2), (3, abs(-3)), (4, 4);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr AS m (k, a) VALUES ('1', '1'), ('2', '2'), (' 3 ', '3'), ('4', '4');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr AS m (k, a) VALUES ('1', '1'), ('2', '2'), (' 3 ', '3'), ('4', '4');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr AS m (k, a) VALUES ('1', '1'), ('2', '2'), (' 3 ', '3'), ('4', '4');
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr VALUES (1, 1, 1, 1, 't', 'v', 'c', '2020-01-01', '2020-01-01 00:00+00', 1, '1', 't', 1), (2, 2, 2, 2, 'u', 'v', 'c', '2020-01-01', '2020-01-01 00:00+00', 1, '1', 't', 1), (3, 2, 2, 2, 'u', 'v', 'c', '2020-01-01', '2020-01-01 00:00+00', 1, '1', 't', 1);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr VALUES (1, 1, 1, 1, 't', 'v', 'c', '2020-01-01', '2020-01-01 00:00+00', 1, '1', 't', 1), (2, 2, 2, 2, 'u', 'v', 'c', '2020-01-01', '2020-01-01 00:00+00', 1, '1', 't', 1), (3, 2, 2, 2, 'u', 'v', 'c', '2020-01-01', '2020-01-01 00:00+00', 1, '1', 't', 1);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr VALUES (1, 1, 1, 1, 't', 'v', 'c', '2020-01-01', '2020-01-01 00:00+00', 1, '1', 't', 1), (2, 2, 2, 2, 'u', 'v', 'c', '2020-01-01', '2020-01-01 00:00+00', 1, '1', 't', 1), (3, 2, 2, 2, 'u', 'v', 'c', '2020-01-01', '2020-01-01 00:00+00', 1, '1', 't', 1);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, a) VALUES (11, 1), (11 + 1, 2), (13, 3);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (11, 1), (11 + 1, 2), (13, 3);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (11, 1), (11 + 1, 2), (13, 3);
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, a) VALUES (1, 1), (2, 2), (3, 3) ON CONFLICT DO NOTHING;
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, 1), (2, 2), (3, 3) ON CONFLICT DO NOTHING;
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, 1), (2, 2), (3, 3) ON CONFLICT DO NOTHING;
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, a) VALUES (1, 1), (2, 2), (3, 3) ON CONFLICT (k) DO UPDATE SET a = excluded.a + 1;
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, 1), (2, 2), (3, 3) ON CONFLICT (k) DO UPDATE SET a = excluded.a + 1;
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, 1), (2, 2), (3, 3) ON CONFLICT (k) DO UPDATE SET a = excluded.a + 1;
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

INSERT INTO mr (k, a) VALUES (1, 1), (2, 2), (3, 3) RETURNING k, a;
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, 1), (2, 2), (3, 3) RETURNING k, a;
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;
INSERT INTO mr (k, a) VALUES (1, 1), (2, 2), (3, 3) RETURNING k, a;
SELECT k, a, b, n, t, v, c, d, f, j, boo, colour FROM mr ORDER BY k;
DELETE FROM mr;

-- What fails leaves nothing behind.
INSERT INTO mr (k, a, t) VALUES (3, 0, 'there'), (100, 0, 'too');

--@ error: 23505
INSERT INTO mr (k, a, t) VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three'), (4, 4, 'four');
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 23505
INSERT INTO mr (k, a, t) VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three'), (4, 4, 'four');
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 23505
INSERT INTO mr (k, a, t) VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three'), (4, 4, 'four');
SELECT k, a, t FROM mr ORDER BY k;


--@ error: 23505
INSERT INTO mr (k, a) VALUES (7, 1), (8, 2), (7, 3);
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 23505
INSERT INTO mr (k, a) VALUES (7, 1), (8, 2), (7, 3);
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 23505
INSERT INTO mr (k, a) VALUES (7, 1), (8, 2), (7, 3);
SELECT k, a, t FROM mr ORDER BY k;


--@ error: 23514
INSERT INTO mr (k, a) VALUES (1, 1), (2, 2000), (4, 3), (5, 4);
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 23514
INSERT INTO mr (k, a) VALUES (1, 1), (2, 2000), (4, 3), (5, 4);
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 23514
INSERT INTO mr (k, a) VALUES (1, 1), (2, 2000), (4, 3), (5, 4);
SELECT k, a, t FROM mr ORDER BY k;


--@ error: 23502
INSERT INTO mr (k, t) VALUES (1, 'a'), (2, NULL), (4, 'c'), (5, 'd');
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 23502
INSERT INTO mr (k, t) VALUES (1, 'a'), (2, NULL), (4, 'c'), (5, 'd');
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 23502
INSERT INTO mr (k, t) VALUES (1, 'a'), (2, NULL), (4, 'c'), (5, 'd');
SELECT k, a, t FROM mr ORDER BY k;


--@ error: 23502
INSERT INTO mr (k, t) VALUES (1, 'a'), (NULL, 'b'), (4, 'c'), (5, 'd');
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 23502
INSERT INTO mr (k, t) VALUES (1, 'a'), (NULL, 'b'), (4, 'c'), (5, 'd');
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 23502
INSERT INTO mr (k, t) VALUES (1, 'a'), (NULL, 'b'), (4, 'c'), (5, 'd');
SELECT k, a, t FROM mr ORDER BY k;


--@ error: 22001
INSERT INTO mr (k, v) VALUES (1, 'a'), (2, 'toolong'), (4, 'c'), (5, 'd');
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 22001
INSERT INTO mr (k, v) VALUES (1, 'a'), (2, 'toolong'), (4, 'c'), (5, 'd');
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 22001
INSERT INTO mr (k, v) VALUES (1, 'a'), (2, 'toolong'), (4, 'c'), (5, 'd');
SELECT k, a, t FROM mr ORDER BY k;


--@ error: 22P02
INSERT INTO mr (k, a) VALUES (1, '1'), (2, 'two'), (4, '4'), (5, '5');
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 22P02
INSERT INTO mr (k, a) VALUES (1, '1'), (2, 'two'), (4, '4'), (5, '5');
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 22P02
INSERT INTO mr (k, a) VALUES (1, '1'), (2, 'two'), (4, '4'), (5, '5');
SELECT k, a, t FROM mr ORDER BY k;


--@ error: 22P02
INSERT INTO mr (k, a) VALUES ('1', '1'), ('two', '2'), ('4', '4'), ('5', '5');
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 22P02
INSERT INTO mr (k, a) VALUES ('1', '1'), ('two', '2'), ('4', '4'), ('5', '5');
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 22P02
INSERT INTO mr (k, a) VALUES ('1', '1'), ('two', '2'), ('4', '4'), ('5', '5');
SELECT k, a, t FROM mr ORDER BY k;


--@ error: 22003
INSERT INTO mr (k, a) VALUES (1, 1), (2, 3000000000), (4, 4), (5, 5);
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 22003
INSERT INTO mr (k, a) VALUES (1, 1), (2, 3000000000), (4, 4), (5, 5);
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 22003
INSERT INTO mr (k, a) VALUES (1, 1), (2, 3000000000), (4, 4), (5, 5);
SELECT k, a, t FROM mr ORDER BY k;


--@ error: 23503
INSERT INTO mr (k, colour) VALUES (1, 1), (2, 9), (4, 1), (5, 2);
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 23503
INSERT INTO mr (k, colour) VALUES (1, 1), (2, 9), (4, 1), (5, 2);
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 23503
INSERT INTO mr (k, colour) VALUES (1, 1), (2, 9), (4, 1), (5, 2);
SELECT k, a, t FROM mr ORDER BY k;


--@ error: 42601
INSERT INTO mr (k, a) VALUES (1, 1), (2), (4, 1), (5, 2);
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 42601
INSERT INTO mr (k, a) VALUES (1, 1), (2), (4, 1), (5, 2);
SELECT k, a, t FROM mr ORDER BY k;

--@ error: 42601
INSERT INTO mr (k, a) VALUES (1, 1), (2), (4, 1), (5, 2);
SELECT k, a, t FROM mr ORDER BY k;


DELETE FROM mr;
BEGIN;
INSERT INTO mr (k, a, t) VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three'), (4, 4, 'four'), (5, 5, 'five');
SELECT count(*), sum(a) FROM mr;
ROLLBACK;
SELECT count(*), sum(a) FROM mr;
INSERT INTO mr (k, a, t) VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three'), (4, 4, 'four'), (5, 5, 'five');
SELECT count(*), sum(a) FROM mr;
ALTER TABLE mr ADD COLUMN late int DEFAULT 7;
DELETE FROM mr;
INSERT INTO mr (k, a, t) VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three'), (4, 4, 'four'), (5, 5, 'five');
SELECT k, a, t, late FROM mr ORDER BY k;
ALTER TABLE mr ALTER COLUMN b TYPE text USING b::text;
DELETE FROM mr;
INSERT INTO mr (k, a, t) VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three'), (4, 4, 'four'), (5, 5, 'five');
SELECT k, a, t, late FROM mr ORDER BY k;

-- One time for all rows.
CREATE TABLE timed (k int PRIMARY KEY, at timestamptz DEFAULT now());
--@ cluster: SELECT create_distributed_table('timed', 'k')
INSERT INTO timed (k) VALUES (1), (2), (3), (4), (5);
INSERT INTO timed (k) VALUES (11), (12), (13), (14), (15);
INSERT INTO timed (k) VALUES (21), (22), (23), (24), (25);
SELECT k / 10, count(DISTINCT at) FROM timed GROUP BY 1 ORDER BY 1;
