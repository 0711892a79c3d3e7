UPDATE "account" SET "nick" = split_part("mail", '@', 1);
--> statement-breakpoint
ALTER TABLE "account" ALTER COLUMN "nick" SET DEFAULT '';
--> statement-breakpoint
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT tenant_id, count(*) AS events FROM event GROUP BY tenant_id ORDER BY tenant_id LOOP
        UPDATE tenant SET name = name || ' (' || one.events || ')' WHERE id = one.tenant_id;
    END LOOP;
END $$;
--> statement-breakpoint
ALTER TABLE "account" ALTER COLUMN "nick" DROP DEFAULT;
