-- metadata
SELECT pgherd.register_table(17274, 'h', 'account', 2, false, '{1,2,1,2}');

-- worker of group 1, before rows
DO $pgherd$BEGIN IF to_regnamespace('public') IS NULL THEN EXECUTE 'CREATE SCHEMA public AUTHORIZATION pg_database_owner'; EXECUTE 'GRANT USAGE ON SCHEMA public TO PUBLIC'; END IF; END$pgherd$;
SELECT pgherd.open_placement(2);
CREATE TABLE public.entry (account bigint NOT NULL, n integer NOT NULL, note text COLLATE pg_catalog."C") PARTITION BY HASH (account);
ALTER TABLE public.entry OWNER TO postgres;
SELECT pgherd.create_shard_schemas('{102013,102015}', 'postgres');
CREATE TABLE pgherd_102013.entry PARTITION OF public.entry FOR VALUES WITH (MODULUS 4, REMAINDER 0);
ALTER TABLE pgherd_102013.entry OWNER TO postgres;
CREATE TABLE pgherd_102015.entry PARTITION OF public.entry FOR VALUES WITH (MODULUS 4, REMAINDER 2);
ALTER TABLE pgherd_102015.entry OWNER TO postgres;

-- worker of group 1, after rows
ALTER TABLE pgherd_102013.entry ADD CONSTRAINT entry_pkey PRIMARY KEY (account, n);
ALTER TABLE pgherd_102015.entry ADD CONSTRAINT entry_pkey PRIMARY KEY (account, n);
ALTER TABLE public.entry ADD CONSTRAINT entry_pkey PRIMARY KEY (account, n);
ALTER TABLE pgherd_102013.entry ADD CONSTRAINT entry_account_fkey FOREIGN KEY (account) REFERENCES pgherd_102009.account(id) ON DELETE CASCADE;
ALTER TABLE pgherd_102015.entry ADD CONSTRAINT entry_account_fkey FOREIGN KEY (account) REFERENCES pgherd_102011.account(id) ON DELETE CASCADE;

-- worker without a shard
DO $pgherd$BEGIN IF to_regnamespace('public') IS NULL THEN EXECUTE 'CREATE SCHEMA public AUTHORIZATION pg_database_owner'; EXECUTE 'GRANT USAGE ON SCHEMA public TO PUBLIC'; END IF; END$pgherd$;
SELECT pgherd.open_placement(2);
CREATE TABLE public.entry (account bigint NOT NULL, n integer NOT NULL, note text COLLATE pg_catalog."C") PARTITION BY HASH (account);
ALTER TABLE public.entry OWNER TO postgres;
ALTER TABLE public.entry ADD CONSTRAINT entry_pkey PRIMARY KEY (account, n);

-- coordinator
SELECT pgherd.attach_child(17274);

-- coordinator, undistribute
SELECT pgherd.detach_child(17274);
SELECT pgherd.unregister_table(17274);

-- worker of group 1, drop
DROP TABLE IF EXISTS public.entry CASCADE;
DROP SCHEMA IF EXISTS pgherd_102013, pgherd_102015 CASCADE;

