-- worker of group 1
DROP INDEX IF EXISTS public.account_opened;
SELECT pgherd.drop_shard_indexes('{102009,102011}', 'account_opened');
ALTER TABLE public.account DROP CONSTRAINT IF EXISTS account_balance_check CASCADE;
ALTER TABLE public.account RENAME COLUMN opened TO since;
ALTER TABLE public.account ALTER COLUMN since TYPE timestamp without time zone;
SELECT pgherd.align_names('public.account');
ALTER TABLE public.account ADD COLUMN region integer DEFAULT 1 NOT NULL;
ALTER TABLE public.account ADD CONSTRAINT account_region_check CHECK ((region > 0)) NOT VALID;
ALTER TABLE pgherd_102009.account ADD CONSTRAINT account_id_region_key UNIQUE (id, region);
ALTER TABLE pgherd_102011.account ADD CONSTRAINT account_id_region_key UNIQUE (id, region);
ALTER TABLE public.account ADD CONSTRAINT account_id_region_key UNIQUE (id, region);
CREATE INDEX account_region_country_idx ON pgherd_102009.account USING btree (region) INCLUDE (country);
CREATE INDEX account_region_country_idx ON pgherd_102011.account USING btree (region) INCLUDE (country);
CREATE INDEX account_region_country_idx ON public.account USING btree (region) INCLUDE (country);
CREATE INDEX account_opened ON pgherd_102009.account USING btree (since DESC) WHERE (balance > (0)::numeric);
CREATE INDEX account_opened ON pgherd_102011.account USING btree (since DESC) WHERE (balance > (0)::numeric);
CREATE INDEX account_opened ON public.account USING btree (since DESC) WHERE (balance > (0)::numeric);
ALTER TABLE ONLY pgherd_102009.account SET (fillfactor='90');
ALTER TABLE ONLY pgherd_102011.account SET (fillfactor='90');
GRANT SELECT ON TABLE public.account TO app;
GRANT SELECT ON TABLE pgherd_102009.account TO app;
GRANT SELECT ON TABLE pgherd_102011.account TO app;

