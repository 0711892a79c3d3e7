-- What was drawn last from a sequence, asked for by defaults, functions, views, triggers and DO blocks, whoever has drawn.

CREATE SEQUENCE asked_s;
CREATE TABLE asked_t (x int DEFAULT nextval('asked_s'), y text DEFAULT '-', z int DEFAULT -1 * currval('asked_s'),
    CONSTRAINT asked_con CHECK (x >= 2 AND y <> 'failed' AND x < 8000), CONSTRAINT asked_sum CHECK (x + z = 0));
--@ cluster: SELECT create_distributed_table('asked_t', 'x')
SELECT nextval('asked_s');
INSERT INTO asked_t (y) VALUES ('a');
INSERT INTO asked_t (y) VALUES ('b');
--@ error: 23514
INSERT INTO asked_t (y, z) VALUES ('failed', 4);
SELECT currval('asked_s'), lastval();
--@ error: 23514
INSERT INTO asked_t (x, y) VALUES (5, 'failed');
INSERT INTO asked_t (x, y) VALUES (currval('asked_s'), 'c');
INSERT INTO asked_t (y) VALUES ('d');
SELECT * FROM asked_t ORDER BY 1, 2, 3;
ALTER SEQUENCE asked_s RESTART WITH 4;
CREATE TABLE asked_from (xd int, yd text);
INSERT INTO asked_from VALUES (1, 'e'), (2, 'f'), (3, 'g');
INSERT INTO asked_t (y) SELECT yd FROM asked_from ORDER BY xd;
SELECT currval('asked_s'), lastval();
INSERT INTO asked_t (y) VALUES ('h'), ('i');
--@ error: 23514
INSERT INTO asked_t (y, z) SELECT yd, -7 FROM asked_from WHERE yd = 'e';
SELECT currval('asked_s'), lastval();
INSERT INTO asked_t (y) SELECT 'j' FROM asked_from WHERE yd = 'f';
SELECT * FROM asked_t ORDER BY 1, 2, 3;
PREPARE asked_p (text) AS INSERT INTO asked_t (y) VALUES ($1);
EXECUTE asked_p('k');
EXECUTE asked_p('l');
SELECT max(x), min(z), currval('asked_s') FROM asked_t;

-- Bodies, views, defaults and triggers.
CREATE TABLE asked_o (id serial PRIMARY KEY, v text);
CREATE TABLE asked_l (id serial PRIMARY KEY, v text);
--@ cluster: SELECT create_distributed_table('asked_o', 'id')
CREATE FUNCTION asked_f() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN currval('asked_o_id_seq'); END $$;
CREATE FUNCTION asked_h() RETURNS bigint LANGUAGE sql AS $$ SELECT currval('public.asked_o_id_seq') $$;
CREATE VIEW asked_v AS SELECT currval('asked_o_id_seq') AS c;
--@ error: 55000
SELECT asked_f();
INSERT INTO asked_o (v) VALUES ('a');
INSERT INTO asked_o (v) VALUES ('b');
SELECT asked_f(), asked_h(), c FROM asked_v;
INSERT INTO asked_o (v) VALUES ('c') RETURNING id;
SELECT asked_f(), asked_h(), currval('asked_o_id_seq'), lastval();
BEGIN;
INSERT INTO asked_o (v) VALUES ('d');
SELECT asked_f();
SAVEPOINT a;
INSERT INTO asked_o (v) VALUES ('e');
SELECT asked_h();
ROLLBACK TO a;
SELECT asked_h(), c FROM asked_v;
COMMIT;
SELECT asked_f();
BEGIN;
INSERT INTO asked_o (v) VALUES ('f');
ROLLBACK;
SELECT asked_f(), lastval();
INSERT INTO asked_o (v) SELECT 'g' FROM generate_series(1, 3);
SELECT asked_f(), lastval();
INSERT INTO asked_o (v) VALUES ('h'), ('i');
SELECT asked_f(), lastval();
INSERT INTO asked_l (v) VALUES ('x');
SELECT asked_f(), lastval(), currval('asked_l_id_seq');
CREATE TABLE asked_child (id int DEFAULT currval('asked_o_id_seq'), w int);
CREATE TABLE asked_d (id int DEFAULT currval('asked_o_id_seq'), w int);
--@ cluster: SELECT create_distributed_table('asked_d', 'w')
INSERT INTO asked_child (w) VALUES (1);
INSERT INTO asked_o (v) VALUES ('j');
INSERT INTO asked_child (w) VALUES (2);
INSERT INTO asked_o (v) VALUES ('k');
INSERT INTO asked_d (w) VALUES (1);
INSERT INTO asked_d (w) VALUES (2), (3);
INSERT INTO asked_d (w) SELECT g FROM generate_series(4, 6) g;
INSERT INTO asked_child (w) SELECT w FROM asked_d WHERE w < 3;
SELECT * FROM asked_child ORDER BY 2, 1;
SELECT * FROM asked_d ORDER BY 2;
CREATE FUNCTION asked_tr() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.w := currval('asked_o_id_seq'); RETURN NEW; END $$;
CREATE TRIGGER asked_tr BEFORE INSERT ON asked_child FOR EACH ROW EXECUTE FUNCTION asked_tr();
INSERT INTO asked_o (v) VALUES ('l');
INSERT INTO asked_child (w) VALUES (9);
SELECT * FROM asked_child ORDER BY 1, 2;
CREATE FUNCTION asked_last() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN lastval(); END $$;
INSERT INTO asked_o (v) VALUES ('m');
SELECT asked_last();
INSERT INTO asked_l (v) VALUES ('m');
SELECT asked_last(), asked_f();
DROP FUNCTION asked_f, asked_h, asked_last;
DROP TABLE asked_child, asked_d;
DROP VIEW asked_v;

-- DO blocks ask for what was drawn before there was anybody to ask.
CREATE TABLE asked_got (what text, v bigint);
INSERT INTO asked_o (v) VALUES ('n');
DO $$ BEGIN INSERT INTO asked_got VALUES ('currval', currval('asked_o_id_seq')), ('lastval', pg_catalog.lastval()); END $$;
DO 'BEGIN INSERT INTO asked_got VALUES (''quoted'', currval(''asked_o_id_seq'')); END';
DO $$
DECLARE got bigint := currval('asked_o_id_seq');
BEGIN
    INSERT INTO asked_o (v) VALUES ('o');
    INSERT INTO asked_got VALUES ('before', got), ('after', currval('asked_o_id_seq'));
    PERFORM nextval('asked_l_id_seq');
    INSERT INTO asked_got VALUES ('last', lastval()), ('still', currval('asked_o_id_seq'));
END $$;
SELECT currval('asked_o_id_seq'), lastval();
SELECT * FROM asked_got ORDER BY 1;
SELECT * FROM asked_o ORDER BY 1;

-- Sequences that go down, and back.
CREATE SEQUENCE asked_down INCREMENT -1;
CREATE TABLE asked_n (id bigint DEFAULT nextval('asked_down'), v text);
CREATE TABLE asked_m (id bigint DEFAULT nextval('asked_down'), v text);
--@ cluster: SELECT create_distributed_table('asked_n', 'id')
CREATE FUNCTION asked_draws() RETURNS void LANGUAGE plpgsql AS $$ BEGIN INSERT INTO asked_n (v) VALUES ('f'); END $$;
INSERT INTO asked_n(v) VALUES ('a');
INSERT INTO asked_n(v) VALUES ('b');
SELECT currval('asked_down'), lastval();
INSERT INTO asked_n(v) SELECT 'c' FROM generate_series(1,3);
SELECT currval('asked_down'), lastval();
INSERT INTO asked_n(v) VALUES ('b'), ('c');
SELECT currval('asked_down'), lastval();
INSERT INTO asked_n(v) VALUES ('b');
SELECT currval('asked_down'), lastval();
DO $$ BEGIN INSERT INTO asked_n(v) VALUES ('x'); END $$;
SELECT currval('asked_down'), lastval();
INSERT INTO asked_n(v) VALUES ('b');
SELECT currval('asked_down'), lastval();
SELECT asked_draws();
SELECT currval('asked_down'), lastval();
INSERT INTO asked_m(v) VALUES ('b');
SELECT currval('asked_down'), lastval();
SELECT nextval('asked_down');
SELECT currval('asked_down'), lastval();
INSERT INTO asked_n(v) VALUES ('b');
ALTER SEQUENCE asked_down RESTART WITH -100;
SELECT currval('asked_down'), lastval();
SELECT nextval('asked_down');
SELECT currval('asked_down'), lastval();
ALTER SEQUENCE asked_down RESTART WITH -50;
SELECT asked_draws();
SELECT currval('asked_down'), lastval();
INSERT INTO asked_n(v) VALUES ('b');
SELECT currval('asked_down'), lastval();
SELECT setval('asked_down', -10);
SELECT currval('asked_down'), lastval();
INSERT INTO asked_n(v) SELECT 'x' FROM generate_series(1,2);
SELECT currval('asked_down'), lastval();
INSERT INTO asked_n(v) SELECT 'x' FROM generate_series(1,2);
SELECT currval('asked_down'), lastval();
INSERT INTO asked_m(v) SELECT 'x' FROM generate_series(1,2);
SELECT currval('asked_down'), lastval();
SELECT * FROM asked_n ORDER BY 1;

-- What is called draws from another one.
CREATE SEQUENCE asked_other;
CREATE FUNCTION asked_next() RETURNS bigint LANGUAGE sql AS $$ SELECT nextval('asked_other') $$;
CREATE FUNCTION asked_none() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CREATE TABLE asked_p (k int, id bigserial, v bigint);
--@ cluster: SELECT create_distributed_table('asked_p', 'k')
INSERT INTO asked_p (k, v) SELECT g, g FROM generate_series(1, 3) g;
INSERT INTO asked_p (k, v) VALUES (4, 4);
INSERT INTO asked_p (k, v) VALUES (5, asked_none()), (6, asked_none());
SELECT currval('asked_p_id_seq'), lastval();
INSERT INTO asked_p (k, v) VALUES (7, 7);
INSERT INTO asked_p (k, id, v) VALUES (8, -1, asked_none());
SELECT currval('asked_p_id_seq'), lastval();
INSERT INTO asked_p (k, v) VALUES (9, 7);
INSERT INTO asked_p (k, id, v) VALUES (10, -2, asked_next());
SELECT currval('asked_p_id_seq'), lastval() = currval('asked_other');
INSERT INTO asked_p (k, v) VALUES (11, 7);
SELECT setval('asked_other', 50), nextval('asked_other');
SELECT currval('asked_p_id_seq'), lastval() = currval('asked_other');
INSERT INTO asked_p (k, v) VALUES (12, 7);
SELECT asked_next(), asked_none();
SELECT currval('asked_p_id_seq'), lastval() = currval('asked_other');
SELECT k, id, v FROM asked_p ORDER BY k, id;
