-- metadata
SELECT pgherd.register_table(17295, 'h', 'Key', NULL, true, '{1,2,1,2}');

-- worker of group 1, before rows
DO $pgherd$BEGIN IF to_regnamespace('public') IS NULL THEN EXECUTE 'CREATE SCHEMA public AUTHORIZATION pg_database_owner'; EXECUTE 'GRANT USAGE ON SCHEMA public TO PUBLIC'; END IF; END$pgherd$;
DO $pgherd$BEGIN IF to_regtype('public.mood') IS NULL THEN EXECUTE 'CREATE TYPE public.mood AS ENUM (''ok'', ''it''''s'')'; EXECUTE 'ALTER TYPE public.mood OWNER TO postgres'; END IF; END$pgherd$;
DO $pgherd$DECLARE checked text := pg_catalog.current_setting('check_function_bodies'); BEGIN IF to_regprocedure('public.touch()') IS NULL THEN PERFORM pg_catalog.set_config('check_function_bodies', 'off', true); EXECUTE 'CREATE OR REPLACE FUNCTION public.touch()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ begin return new; end $function$
'; EXECUTE 'ALTER ROUTINE public.touch() OWNER TO postgres'; PERFORM pg_catalog.set_config('check_function_bodies', checked, true); END IF; END$pgherd$;
SELECT pgherd.open_placement(2);
CREATE TABLE public."Odd Table" ("Key" text NOT NULL, mood public.mood DEFAULT 'ok'::public.mood) PARTITION BY HASH ("Key");
ALTER TABLE public."Odd Table" OWNER TO postgres;
SELECT pgherd.create_shard_schemas('{102017,102019}', 'postgres');
CREATE TABLE pgherd_102017."Odd Table" PARTITION OF public."Odd Table" FOR VALUES WITH (MODULUS 4, REMAINDER 0);
ALTER TABLE pgherd_102017."Odd Table" OWNER TO postgres;
CREATE TABLE pgherd_102019."Odd Table" PARTITION OF public."Odd Table" FOR VALUES WITH (MODULUS 4, REMAINDER 2);
ALTER TABLE pgherd_102019."Odd Table" OWNER TO postgres;

-- worker of group 1, after rows
ALTER TABLE pgherd_102017."Odd Table" ADD CONSTRAINT "Odd Table_pkey" PRIMARY KEY ("Key");
ALTER TABLE pgherd_102019."Odd Table" ADD CONSTRAINT "Odd Table_pkey" PRIMARY KEY ("Key");
ALTER TABLE public."Odd Table" ADD CONSTRAINT "Odd Table_pkey" PRIMARY KEY ("Key");
GRANT SELECT ON TABLE public."Odd Table" TO app;
GRANT UPDATE (mood) ON TABLE public."Odd Table" TO app;
CREATE POLICY own ON public."Odd Table" AS PERMISSIVE FOR ALL TO app USING (("Key" = CURRENT_USER));
ALTER TABLE public."Odd Table" ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON TABLE pgherd_102017."Odd Table" TO app;
GRANT UPDATE (mood) ON TABLE pgherd_102017."Odd Table" TO app;
CREATE POLICY own ON pgherd_102017."Odd Table" AS PERMISSIVE FOR ALL TO app USING (("Key" = CURRENT_USER));
ALTER TABLE pgherd_102017."Odd Table" ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON TABLE pgherd_102019."Odd Table" TO app;
GRANT UPDATE (mood) ON TABLE pgherd_102019."Odd Table" TO app;
CREATE POLICY own ON pgherd_102019."Odd Table" AS PERMISSIVE FOR ALL TO app USING (("Key" = CURRENT_USER));
ALTER TABLE pgherd_102019."Odd Table" ENABLE ROW LEVEL SECURITY;
CREATE TRIGGER touch BEFORE UPDATE ON public."Odd Table" FOR EACH ROW EXECUTE FUNCTION public.touch();

-- worker without a shard
DO $pgherd$BEGIN IF to_regnamespace('public') IS NULL THEN EXECUTE 'CREATE SCHEMA public AUTHORIZATION pg_database_owner'; EXECUTE 'GRANT USAGE ON SCHEMA public TO PUBLIC'; END IF; END$pgherd$;
DO $pgherd$BEGIN IF to_regtype('public.mood') IS NULL THEN EXECUTE 'CREATE TYPE public.mood AS ENUM (''ok'', ''it''''s'')'; EXECUTE 'ALTER TYPE public.mood OWNER TO postgres'; END IF; END$pgherd$;
DO $pgherd$DECLARE checked text := pg_catalog.current_setting('check_function_bodies'); BEGIN IF to_regprocedure('public.touch()') IS NULL THEN PERFORM pg_catalog.set_config('check_function_bodies', 'off', true); EXECUTE 'CREATE OR REPLACE FUNCTION public.touch()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ begin return new; end $function$
'; EXECUTE 'ALTER ROUTINE public.touch() OWNER TO postgres'; PERFORM pg_catalog.set_config('check_function_bodies', checked, true); END IF; END$pgherd$;
SELECT pgherd.open_placement(2);
CREATE TABLE public."Odd Table" ("Key" text NOT NULL, mood public.mood DEFAULT 'ok'::public.mood) PARTITION BY HASH ("Key");
ALTER TABLE public."Odd Table" OWNER TO postgres;
ALTER TABLE public."Odd Table" ADD CONSTRAINT "Odd Table_pkey" PRIMARY KEY ("Key");
GRANT SELECT ON TABLE public."Odd Table" TO app;
GRANT UPDATE (mood) ON TABLE public."Odd Table" TO app;
CREATE POLICY own ON public."Odd Table" AS PERMISSIVE FOR ALL TO app USING (("Key" = CURRENT_USER));
ALTER TABLE public."Odd Table" ENABLE ROW LEVEL SECURITY;
CREATE TRIGGER touch BEFORE UPDATE ON public."Odd Table" FOR EACH ROW EXECUTE FUNCTION public.touch();

-- coordinator
SELECT pgherd.attach_child(17295);

-- coordinator, undistribute
SELECT pgherd.detach_child(17295);
SELECT pgherd.unregister_table(17295);

-- worker of group 1, drop
DROP TABLE IF EXISTS public."Odd Table" CASCADE;
DROP SCHEMA IF EXISTS pgherd_102017, pgherd_102019 CASCADE;

