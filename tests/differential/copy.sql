--@ include: schema.sql
-- COPY to and from, all formats.

CREATE TABLE t (k int, v text, n numeric(8,2), at timestamp, ok bool, PRIMARY KEY (k));
CREATE TABLE r (id int PRIMARY KEY, name text);
CREATE TABLE auto (k int, id serial, made date DEFAULT '2020-02-02', twice int GENERATED ALWAYS AS (k * 2) STORED);
CREATE TABLE l (a int, b text);
--@ cluster: SELECT create_distributed_table('t', 'k'), create_distributed_table('auto', 'k'), create_reference_table('r')

COPY t FROM STDIN;
1	one	1.5	2020-01-01 10:00:00	t
2	two\twith\\escapes\n and more	\N	\N	f
3	\N	3	2020-01-03	\N
4		4.444	infinity	true
\.
SELECT * FROM t;
SELECT v FROM t WHERE k = 2;
COPY t (v, k) FROM STDIN;
reordered	10
ünïcode ✓	11
\x41\102	12
\.
SELECT k, v, n FROM t WHERE k >= 10;
COPY t FROM STDIN WITH (FORMAT csv);
20,"quoted, with ""quotes""",1.00,2020-05-05,true
21,,,,
22,"",2,"2020-01-01 00:00",f
23,"line
break",3,,t
\.
SELECT * FROM t WHERE k BETWEEN 20 AND 29;
COPY t FROM STDIN (FORMAT csv, HEADER, DELIMITER ';', NULL 'nil', QUOTE '$', ESCAPE '!');
k;v;n;at;ok
30;$a;b!$c$;1;nil;t
31;nil;nil;nil;nil
\.
SELECT * FROM t WHERE k BETWEEN 30 AND 39;
COPY t (k, v) FROM STDIN (FORMAT csv, FORCE_NULL (v));
40,""
41,x
\.
COPY t (k, v) FROM STDIN (FORMAT csv, FORCE_NOT_NULL (v));
42,
\.
SELECT k, v IS NULL, v FROM t WHERE k BETWEEN 40 AND 49;
COPY t (k, v) FROM STDIN (DELIMITER '|', NULL '-');
50|-
51|a	b
\.
SELECT k, v FROM t WHERE k IN (50, 51);
--@ copy hex
COPY r FROM STDIN (FORMAT binary);
5047434f50590aff0d0a00 00000000 00000000
0002 00000004 00000007 00000005 736576656e
0002 00000004 00000008 ffffffff
ffff
\.
SELECT * FROM r;
--@ copy hex
COPY t (k, v) FROM STDIN (FORMAT binary);
5047434f50590aff0d0a00 00000000 00000000
0002 00000004 0000003c 00000005 7369787479
0002 00000004 0000003d ffffffff
0002 00000004 0000003e 00000003 783632
ffff
\.
SELECT k, v FROM t WHERE k BETWEEN 60 AND 69;
COPY t (k, v) FROM STDIN WHERE k % 2 = 0;
70	even
71	odd
72	even
\.
SELECT k FROM t WHERE k BETWEEN 70 AND 79;
COPY auto (k) FROM STDIN;
1
2
3
\.
SELECT k, made, twice, id IS NOT NULL FROM auto;
SELECT count(DISTINCT id) FROM auto;
COPY r FROM STDIN CSV;
1,one
2,two
\.
SELECT count(*) FROM r;
COPY l FROM STDIN;
1	local
2	\N
\.
SELECT t.v, l.b, r.name FROM l JOIN t ON t.k = l.a JOIN r ON r.id = l.a;
COPY clicks (user_id, url) FROM STDIN;
\N	copied null key
900	copied
901	copied
\.
SELECT user_id, url FROM clicks WHERE url LIKE 'copied%';
COPY t FROM STDIN;
\.

-- In a transaction.
BEGIN;
COPY t (k, v) FROM STDIN;
80	tx
81	tx
82	tx
\.
SELECT k FROM t WHERE v = 'tx';
ROLLBACK;
SELECT k FROM t WHERE v = 'tx';
BEGIN;
INSERT INTO t (k, v) VALUES (83, 'tx2');
COPY t (k, v) FROM STDIN;
84	tx2
85	tx2
\.
UPDATE t SET v = 'tx3' WHERE v = 'tx2';
COMMIT;
SELECT k FROM t WHERE v = 'tx3';

-- Out.
COPY t TO STDOUT;
COPY t (v, k) TO STDOUT;
COPY t TO STDOUT (FORMAT csv);
--@ ordered
COPY (SELECT k, v, n FROM t ORDER BY k) TO STDOUT (FORMAT csv, HEADER);
--@ ordered
COPY (SELECT k, v, at FROM t ORDER BY k DESC LIMIT 7) TO STDOUT (FORMAT csv, FORCE_QUOTE *, NULL 'nil', DELIMITER ';');
--@ ordered
COPY (SELECT country, count(*), sum(score) FROM users GROUP BY country ORDER BY country NULLS FIRST) TO STDOUT;
--@ ordered
COPY (SELECT k, v FROM t WHERE k = 2) TO STDOUT (DELIMITER '|', NULL '');
--@ ordered
COPY (SELECT k, v, n, ok FROM t ORDER BY k) TO STDOUT (FORMAT binary);
COPY (SELECT u.id, o.id FROM users u JOIN orders o ON o.user_id = u.id WHERE u.id < 15) TO STDOUT;
COPY (SELECT 1, 'two', NULL) TO STDOUT;
COPY (VALUES (1, 'a'), (2, 'b')) TO STDOUT CSV;
COPY (UPDATE t SET n = 99 WHERE k IN (1, 2, 3) RETURNING k, n) TO STDOUT;
COPY (DELETE FROM t WHERE k = 85 RETURNING *) TO STDOUT;
COPY r TO STDOUT;
COPY l TO STDOUT;
COPY clicks (user_id) TO STDOUT (NULL 'none');
COPY (SELECT * FROM t WHERE false) TO STDOUT;
COPY (SELECT * FROM t WHERE false) TO STDOUT (FORMAT csv, HEADER);
COPY users (id, tags, meta, born, created) TO STDOUT;
SET datestyle = 'German';
--@ ordered
COPY (SELECT born FROM users ORDER BY id LIMIT 3) TO STDOUT;
RESET datestyle;

-- Mistakes change nothing.
--@ error: 23505
COPY t (k, v) FROM STDIN;
300	ok
301	ok
1	dup
302	ok
\.
--@ error: 22P02
COPY t (k, v) FROM STDIN;
300	ok
x	bad key
\.
--@ error: 22P02
COPY t (k, n) FROM STDIN;
300	1
301	bad number
\.
--@ error: 22P04
COPY t (k, v) FROM STDIN;
300	ok
301
\.
--@ error: 22P04
COPY t (k, v) FROM STDIN;
300	ok	extra
\.
--@ error: 23502
COPY t (k, v) FROM STDIN;
300	ok
\N	null in the primary key
\.
--@ error: 22P04
COPY t (k, v) FROM STDIN (FORMAT csv);
300,"never ends
\.
--@ error: 42703
COPY t (k, nope) FROM STDIN;
1	2
\.
--@ error: 42P01
COPY nowhere FROM STDIN;
1
\.
--@ error: 42701
COPY t (k, k) FROM STDIN;
1	1
\.
--@ error: 42601
COPY t FROM STDIN (FORMAT csv, FORMAT text);
1
\.
--@ error: 22023
COPY t FROM STDIN (FORMAT nope);
1
\.
--@ error: 22012
COPY (SELECT 1 / (k - 3) FROM t ORDER BY k) TO STDOUT;
--@ error: 42P01
COPY nowhere TO STDOUT;
SELECT count(*) FROM t WHERE k >= 300;
-- No data: the client cancels the COPY.
SELECT count(*), sum(k) FROM t;

-- Files and programs of the server.
CREATE TABLE filed (k int, v text, n int DEFAULT 7, id serial, made int GENERATED ALWAYS AS (k * 2) STORED);
--@ cluster: SELECT create_distributed_table('filed', 'k')
COPY filed (k, v) FROM PROGRAM 'seq 1 40 | sed "s/$/ row/"' (DELIMITER ' ');
SELECT * FROM filed ORDER BY id;
COPY filed (k) FROM PROGRAM 'echo head; seq 41 50' WITH CSV HEADER;
COPY filed (v, k) FROM PROGRAM 'printf "a,51\n\\\\N,52\n,53\n"' (FORMAT csv, NULL '\N') WHERE k > 51;
SELECT k, v, n, made FROM filed WHERE k > 40;
COPY filed (k, v, n, id) FROM '/dev/null';
COPY filed TO '/dev/null';
COPY filed (v, k) TO '/dev/null' (FORMAT csv, HEADER, FORCE_QUOTE (v));
COPY filed TO PROGRAM 'cat > /dev/null' (FORMAT binary);
COPY (SELECT k, count(*) FROM filed GROUP BY k) TO '/dev/null';
BEGIN;
DELETE FROM filed WHERE k % 2 = 0;
COPY filed TO PROGRAM 'cat > /dev/null';
COPY filed (k) FROM PROGRAM 'seq 61 65';
SELECT count(*), sum(n), sum(made) FROM filed;
ROLLBACK;
SELECT count(*) FROM filed;
--@ error: 58P01
COPY filed FROM '/nowhere/at/all';
--@ error: 42602
COPY filed TO 'relative';
--@ error: 38000
COPY filed (k) FROM PROGRAM 'exit 3';
--@ error: 22P02
COPY filed (k) FROM PROGRAM 'echo 1; echo two';
--@ error: 42703
COPY filed (nope) FROM '/dev/null';
--@ error: 42703
COPY filed (nope) TO '/dev/null';
SELECT count(*) FROM filed;
CREATE TABLE filed_code (id int PRIMARY KEY, label text);
--@ cluster: SELECT create_reference_table('filed_code')
COPY filed_code FROM PROGRAM 'printf "1 one\n2 two\n"' (DELIMITER ' ');
--@ error: 23505
COPY filed_code FROM PROGRAM 'printf "3 three\n2 two\n"' (DELIMITER ' ');
COPY filed_code TO '/dev/null';
SELECT f.k, c.label FROM filed f JOIN filed_code c ON c.id = f.k;
CREATE ROLE copy_filer;
GRANT ALL ON filed TO copy_filer;
SET ROLE copy_filer;
--@ error: 42501
COPY filed FROM '/dev/null';
--@ error: 42501
COPY filed TO PROGRAM 'cat';
RESET ROLE;
DROP OWNED BY copy_filer;
DROP ROLE copy_filer;

-- A time that is left out is one for all rows, and the transaction's.
CREATE TABLE timed (k int PRIMARY KEY, v text, at timestamptz DEFAULT now(), day date DEFAULT CURRENT_DATE, said text DEFAULT 'since, "' || (date_part('year', now()) > 2000) || E'"\t\\', void int DEFAULT NULLIF(extract(year FROM now())::int, extract(year FROM now())::int), r float8 DEFAULT random());
--@ cluster: SELECT create_distributed_table('timed', 'k')
COPY timed (k, v) FROM STDIN;
1	one
2	\N
3	two\twords
4	\\
5	
\.
COPY timed (v, k) FROM STDIN (FORMAT csv, HEADER match);
v,k
six,6
"two
lines",7
,8
"",9
\.
COPY timed (v, k) FROM STDIN (FORMAT csv, HEADER, DELIMITER ':', QUOTE '''', ESCAPE '\', NULL 'nil', FORCE_NOT_NULL (v));
x:y
'a:\'b':11
nil:12
c:13
\.
COPY timed (k, v) FROM STDIN (DELIMITER '-', NULL '');
21-a
22-
23-b
\.
COPY timed (k) FROM STDIN;
31
32
33
\.
COPY timed (k, at, v) FROM STDIN;
41	2020-01-01 00:00:00+00	a
42	\N	b
\.
SELECT k, v, day = CURRENT_DATE, said, void, count(*) OVER (PARTITION BY at), at <= now() FROM timed;
SELECT count(DISTINCT at), count(DISTINCT r) FROM timed;
--@ error: 22P04
COPY timed (k, v) FROM STDIN;
51	a	b
\.
--@ error: 22P04
COPY timed (k, v) FROM STDIN;
51	a
52
\.
--@ error: 22P04
COPY timed (k, v) FROM STDIN (FORMAT csv);
51,a
52,a,b
\.
--@ error: 22P04
COPY timed (k, v) FROM STDIN (FORMAT csv, HEADER match);
k,w
52,a
\.
--@ error: 22P02
COPY timed (k, v) FROM STDIN;
51	a
x	b
\.
--@ error: 23505
COPY timed (k, v) FROM STDIN;
51	a
1	b
\.
SELECT count(*) FROM timed;
TRUNCATE timed;
BEGIN;
INSERT INTO timed (k) VALUES (1);
COPY timed (k, v) FROM STDIN;
2	a
3	b
4	c
\.
COPY timed (k, v) FROM STDIN (FORMAT csv);
5,a
6,b
\.
INSERT INTO timed (k) SELECT k + 10 FROM timed;
SELECT count(*), count(DISTINCT at), bool_and(at = now()), min(void) FROM timed;
COMMIT;
BEGIN;
COPY timed (k, v) FROM STDIN;
21	a
22	b
23	c
\.
INSERT INTO timed (k, at) VALUES (24, DEFAULT);
INSERT INTO timed (k, at) VALUES (25, now());
SELECT count(*), count(DISTINCT at), bool_and(at = now()) FROM timed WHERE k > 20;
ROLLBACK;
--@ copy hex
COPY timed (k, v) FROM STDIN (FORMAT binary);
5047434f50590aff0d0a000000000000000000
0002 00000004 0000003d 00000001 61
0002 00000004 0000003e ffffffff
0002 00000004 0000003f 00000000
ffff
\.
SELECT k, v, day = CURRENT_DATE, said, void, count(*) OVER (PARTITION BY at), at < now() FROM timed WHERE k > 60;
-- What each row gets of its own, and a distribution column that is left out.
CREATE TABLE coded (k uuid DEFAULT gen_random_uuid() PRIMARY KEY, v int, code text DEFAULT to_char(now(), 'YYYY') || gen_random_uuid(), hour timestamptz DEFAULT date_trunc('hour', now()), since float8 DEFAULT date_part('epoch', now()));
CREATE TABLE constant (k int DEFAULT 7, v int);
--@ cluster: SELECT create_distributed_table('coded', 'k'), create_distributed_table('constant', 'k')
COPY coded (k, v) FROM STDIN;
00000000-0000-4000-8000-000000000001	1
00000000-0000-4000-8000-000000000002	2
00000000-0000-4000-8000-000000000003	3
\.
COPY coded (v) FROM STDIN;
4
5
6
7
\.
COPY coded (v, code) FROM STDIN (FORMAT csv);
8,a
9,b
\.
COPY constant (v) FROM STDIN;
1
2
\.
SELECT count(*), count(DISTINCT k), count(DISTINCT code), bool_and(hour = date_trunc('hour', at)) FROM coded, (SELECT now() AS at) s;
SELECT * FROM constant;
SELECT count(*) FROM constant WHERE k = 7;
SET datestyle = 'SQL, DMY';
SET timezone = 'Asia/Kolkata';
SET extra_float_digits = 0;
COPY coded (k, v, code) FROM STDIN;
00000000-0000-4000-8000-000000000011	11	x
00000000-0000-4000-8000-000000000012	12	y
\.
SELECT bool_and(hour = date_trunc('hour', now())), bool_and(since > 1000000000 AND since <= date_part('epoch', clock_timestamp())), count(DISTINCT since) FROM coded WHERE v IN (11, 12);
RESET datestyle;
RESET timezone;
RESET extra_float_digits;
--@ error: 42P10
COPY coded (k, v) FROM STDIN (FORMAT csv, FORCE_NULL (hour));
\.
TRUNCATE timed;
COPY timed (v, k) FROM STDIN (FORMAT csv, FORCE_NULL (v), NULL 'n');
"n",1
"",2
\.
SELECT k, v, void, said, day = CURRENT_DATE FROM timed;

-- Options where they were before there were lists of them.
TRUNCATE t, r;
INSERT INTO t VALUES (1, 'one');
COPY BINARY t (k, v) TO STDOUT;
DELETE FROM t;
INSERT INTO t SELECT i, 'row ' || i, i / 4.0, NULL, i % 2 = 0 FROM generate_series(1, 20) i;
COPY t TO STDOUT USING DELIMITERS '|';
COPY t (k, v) TO STDOUT DELIMITERS ';' WITH NULL AS 'none' CSV HEADER;
COPY BINARY r TO STDOUT;
COPY t (k, v) FROM STDIN USING DELIMITERS '|';
30|thirty
31|thirty-one
\.
COPY r FROM STDIN DELIMITERS ',' NULL 'x';
1,x
2,two
\.
--@ copy hex
COPY BINARY t (k, v) FROM STDIN;
5047434f50590aff0d0a00000000000000000000020000000400000028000000026f6b0002000000040000002900000003796573ffff
\.
SELECT k, v FROM t WHERE k >= 30 ORDER BY k;
SELECT * FROM r ORDER BY id;

-- Binary values of the users' own types.
CREATE TYPE cmood AS ENUM ('low', 'high');
CREATE TYPE cpair AS (a int, b cmood);
CREATE TABLE felt (k int PRIMARY KEY, one cmood, many cmood[], pair cpair);
--@ cluster: SELECT create_distributed_table('felt', 'k')
INSERT INTO felt VALUES (1, 'low', '{low,high}', '(1,low)'), (2, 'high', NULL, NULL), (3, NULL, '{}', '(,high)');
COPY felt (k, one) TO STDOUT (FORMAT binary);
COPY felt TO STDOUT;
SELECT * FROM felt ORDER BY k;
