-- Tables for tests/end_to_end.rs.

CREATE ROLE app; CREATE ROLE "Odd Role"; CREATE ROLE owner_role;

CREATE TABLE plain (k bigint, v text);

CREATE TABLE country (code char(2) PRIMARY KEY, name text UNIQUE, extra jsonb DEFAULT '{}');
ALTER TABLE country SET (fillfactor = 80);

CREATE TABLE account (
    id bigint GENERATED ALWAYS AS IDENTITY,
    region int NOT NULL DEFAULT 1,
    country char(2) CONSTRAINT account_country REFERENCES country ON UPDATE CASCADE ON DELETE SET NULL,
    balance numeric(12, 2) NOT NULL DEFAULT 0.00,
    opened timestamptz NOT NULL DEFAULT now(),
    doubled numeric GENERATED ALWAYS AS (balance * 2) STORED,
    CONSTRAINT "The Key" PRIMARY KEY (id, region) INCLUDE (balance) DEFERRABLE,
    CONSTRAINT account_id_key UNIQUE (id),
    CONSTRAINT positive CHECK (balance >= 0)
);
ALTER TABLE account ADD CONSTRAINT opened_late CHECK (opened > '2000-01-01') NOT VALID;
ALTER TABLE account ADD CONSTRAINT only_here CHECK (region < 1000) NO INHERIT;

CREATE TABLE entry (
    account bigint NOT NULL,
    n serial,
    amount numeric,
    PRIMARY KEY (account, n),
    CONSTRAINT entry_account FOREIGN KEY (account) REFERENCES account (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX entry_amount ON entry (amount DESC NULLS LAST) WHERE amount > 0;

CREATE TABLE tree (id int, node int, parent int, PRIMARY KEY (id, node), FOREIGN KEY (id, parent) REFERENCES tree);

CREATE SCHEMA "My Schema" AUTHORIZATION owner_role;
GRANT USAGE ON SCHEMA "My Schema" TO app;
CREATE TABLE "My Schema"."Odd ""Table" (
    "Key Col" text COLLATE "C" NOT NULL,
    "select" int DEFAULT 5,
    "Ünï" varchar(10) COLLATE "POSIX" DEFAULT E'a\\b''c',
    CONSTRAINT "Odd ""Key" PRIMARY KEY ("Key Col"),
    CONSTRAINT no_overlap EXCLUDE USING btree ("Key Col" WITH =, "select" WITH =)
);
CREATE UNIQUE INDEX "Odd Index" ON "My Schema"."Odd ""Table"
    ("Key Col" text_pattern_ops, lower("Ünï"), ("select" + 1)) INCLUDE ("select") NULLS NOT DISTINCT WITH (fillfactor = 60)
    WHERE "select" IS NOT NULL;
CREATE INDEX "Odd Hash" ON "My Schema"."Odd ""Table" USING hash ("Ünï");
CREATE INDEX "Odd Twin" ON "My Schema"."Odd ""Table" ("Key Col");
CREATE INDEX "Odd Twin 2" ON "My Schema"."Odd ""Table" ("Key Col");
ALTER INDEX "My Schema"."Odd Index" ALTER COLUMN 2 SET STATISTICS 77;
CREATE STATISTICS "My Schema"."Odd Statistics" (ndistinct, dependencies) ON "Key Col", "select" FROM "My Schema"."Odd ""Table";
ALTER TABLE "My Schema"."Odd ""Table" OWNER TO owner_role;

CREATE TABLE secured (tenant int PRIMARY KEY, who name DEFAULT current_user, secret text);
CREATE TABLE member (id int PRIMARY KEY, who name);
ALTER TABLE secured ENABLE ROW LEVEL SECURITY; ALTER TABLE secured FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON secured TO app, "Odd Role" USING (who = current_user) WITH CHECK (who = current_user AND tenant > 0);
CREATE POLICY readable ON secured AS RESTRICTIVE FOR SELECT USING (tenant < 100);
GRANT SELECT, INSERT ON secured TO app; GRANT UPDATE (secret) ON secured TO "Odd Role" WITH GRANT OPTION;
GRANT SELECT ON secured TO PUBLIC; REVOKE TRUNCATE ON secured FROM postgres;

CREATE UNLOGGED TABLE settings (k uuid, a text, b text, c int NOT NULL, CONSTRAINT settings_pkey PRIMARY KEY (k) WITH (fillfactor = 50))
    WITH (fillfactor = 70, autovacuum_enabled = off, toast.autovacuum_enabled = off);
ALTER TABLE settings ALTER a SET STORAGE EXTERNAL, ALTER b SET COMPRESSION pglz, ALTER c SET STATISTICS 500, ALTER c SET (n_distinct = -0.5);
CREATE UNIQUE INDEX settings_identity ON settings (k, c);
ALTER TABLE settings REPLICA IDENTITY USING INDEX settings_identity;
ALTER TABLE settings CLUSTER ON settings_pkey;

CREATE FUNCTION valid_code(text) RETURNS bool LANGUAGE sql IMMUTABLE RETURN length($1) < 10;
CREATE FUNCTION next_number() RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN 1; END $$;
CREATE TYPE mood AS ENUM ('ok', 'it''s', 'a\b');
CREATE DOMAIN code AS text COLLATE "C" DEFAULT 'x' CONSTRAINT short CHECK (valid_code(VALUE)) NOT NULL;
CREATE TYPE pair AS (a int, "B" mood[], c code);
CREATE TYPE moods AS RANGE (SUBTYPE = float8, SUBTYPE_DIFF = float8mi);
CREATE COLLATION case_c (PROVIDER = libc, LOCALE = 'C');
CREATE TABLE types (
    k int,
    m mood DEFAULT 'ok',
    ms mood[] DEFAULT '{ok}',
    p pair,
    ps pair[],
    d code,
    r moods,
    t text COLLATE case_c,
    n int DEFAULT next_number(),
    i interval DEFAULT '-1 mons +2 days -03:04:05',
    ts timestamptz DEFAULT '2020-02-03 04:05:06+00',
    f float8 DEFAULT 0.1::float8 + 1e-300,
    b bytea DEFAULT '\xdeadbeef',
    CONSTRAINT code_is_valid CHECK (valid_code(t))
);

CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN new; END $$;
CREATE TABLE triggered (k int PRIMARY KEY, v int);
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE OF v ON triggered FOR EACH ROW WHEN (new.v > 1) EXECUTE FUNCTION touch('x', 'it''s');
CREATE TRIGGER after_row AFTER DELETE ON triggered FOR EACH ROW EXECUTE FUNCTION touch();
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT ON triggered DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION touch();
ALTER TABLE triggered DISABLE TRIGGER before_row; ALTER TABLE triggered ENABLE ALWAYS TRIGGER after_row;
CREATE RULE quiet AS ON DELETE TO triggered WHERE old.k = 0 DO INSTEAD NOTHING;
CREATE TABLE fired (k int PRIMARY KEY, v int);
CREATE TRIGGER before_row BEFORE INSERT OR UPDATE OF v ON fired FOR EACH ROW WHEN (new.v > 1) EXECUTE FUNCTION touch('x', 'it''s');
CREATE TRIGGER on_truncate BEFORE TRUNCATE ON fired FOR EACH STATEMENT EXECUTE FUNCTION touch();
CREATE CONSTRAINT TRIGGER deferred AFTER INSERT ON fired DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION touch();

CREATE TABLE a_table_with_a_name_of_sixty_three_bytes_which_is_the_longest_it (
    k int,
    a_column_with_a_name_of_sixty_three_bytes_which_is_the_longest_ int UNIQUE,
    UNIQUE (k, a_column_with_a_name_of_sixty_three_bytes_which_is_the_longest_)
);
ALTER TABLE a_table_with_a_name_of_sixty_three_bytes_which_is_the_longest_it
    DROP CONSTRAINT a_table_with_a_name_of_sixty__a_column_with_a_name_of_sixty_key;
