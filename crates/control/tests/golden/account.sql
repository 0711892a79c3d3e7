-- metadata
SELECT pgherd.register_table(17256, 'h', 'id', NULL, true, '{1,2,1,2}');

-- worker of group 1, before rows
DO $pgherd$BEGIN IF to_regnamespace('public') IS NULL THEN EXECUTE 'CREATE SCHEMA public AUTHORIZATION pg_database_owner'; EXECUTE 'GRANT USAGE ON SCHEMA public TO PUBLIC'; END IF; END$pgherd$;
SELECT pgherd.open_placement(2);
CREATE TABLE public.account (id bigint NOT NULL, country character(2), balance numeric(12,2) DEFAULT 0, opened timestamp with time zone DEFAULT now(), twice numeric GENERATED ALWAYS AS ((balance * (2)::numeric)) STORED, CONSTRAINT account_balance_check CHECK ((balance >= (0)::numeric))) PARTITION BY HASH (id);
ALTER TABLE public.account OWNER TO postgres;
SELECT pgherd.create_shard_schemas('{102009,102011}', 'postgres');
CREATE TABLE pgherd_102009.account PARTITION OF public.account FOR VALUES WITH (MODULUS 4, REMAINDER 0) WITH (fillfactor='70');
ALTER TABLE pgherd_102009.account OWNER TO postgres;
CREATE TABLE pgherd_102011.account PARTITION OF public.account FOR VALUES WITH (MODULUS 4, REMAINDER 2) WITH (fillfactor='70');
ALTER TABLE pgherd_102011.account OWNER TO postgres;

-- worker of group 1, after rows
ALTER TABLE pgherd_102009.account ADD CONSTRAINT account_pkey PRIMARY KEY (id);
CREATE INDEX account_opened ON pgherd_102009.account USING btree (opened DESC) WHERE (balance > (0)::numeric);
ALTER TABLE pgherd_102011.account ADD CONSTRAINT account_pkey PRIMARY KEY (id);
CREATE INDEX account_opened ON pgherd_102011.account USING btree (opened DESC) WHERE (balance > (0)::numeric);
ALTER TABLE public.account ADD CONSTRAINT account_pkey PRIMARY KEY (id);
CREATE INDEX account_opened ON public.account USING btree (opened DESC) WHERE (balance > (0)::numeric);
ALTER TABLE public.account ADD CONSTRAINT account_country_fkey FOREIGN KEY (country) REFERENCES public.country(code);

-- worker without a shard
DO $pgherd$BEGIN IF to_regnamespace('public') IS NULL THEN EXECUTE 'CREATE SCHEMA public AUTHORIZATION pg_database_owner'; EXECUTE 'GRANT USAGE ON SCHEMA public TO PUBLIC'; END IF; END$pgherd$;
SELECT pgherd.open_placement(2);
CREATE TABLE public.account (id bigint NOT NULL, country character(2), balance numeric(12,2) DEFAULT 0, opened timestamp with time zone DEFAULT now(), twice numeric GENERATED ALWAYS AS ((balance * (2)::numeric)) STORED, CONSTRAINT account_balance_check CHECK ((balance >= (0)::numeric))) PARTITION BY HASH (id);
ALTER TABLE public.account OWNER TO postgres;
ALTER TABLE public.account ADD CONSTRAINT account_pkey PRIMARY KEY (id);
CREATE INDEX account_opened ON public.account USING btree (opened DESC) WHERE (balance > (0)::numeric);
ALTER TABLE public.account ADD CONSTRAINT account_country_fkey FOREIGN KEY (country) REFERENCES public.country(code);

-- coordinator
SELECT pgherd.attach_child(17256);

-- coordinator, undistribute
SELECT pgherd.detach_child(17256);
SELECT pgherd.unregister_table(17256);

-- worker of group 1, drop
DROP TABLE IF EXISTS public.account CASCADE;
DROP SCHEMA IF EXISTS pgherd_102009, pgherd_102011 CASCADE;

