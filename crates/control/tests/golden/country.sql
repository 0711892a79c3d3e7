-- metadata
SELECT pgherd.register_table(17246, 'n', NULL, NULL, true, '{0,1,2}');

-- worker, before rows
DO $pgherd$BEGIN IF to_regnamespace('public') IS NULL THEN EXECUTE 'CREATE SCHEMA public AUTHORIZATION pg_database_owner'; EXECUTE 'GRANT USAGE ON SCHEMA public TO PUBLIC'; END IF; END$pgherd$;
SELECT pgherd.open_placement(1);
CREATE TABLE public.country (code character(2) NOT NULL, name text);
ALTER TABLE public.country OWNER TO postgres;

-- worker, after rows
ALTER TABLE public.country ADD CONSTRAINT country_pkey PRIMARY KEY (code);
ALTER TABLE public.country ADD CONSTRAINT country_name_key UNIQUE (name);

