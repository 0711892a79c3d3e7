-- What models cannot say, and values.
ALTER TABLE account ADD CONSTRAINT debts CHECK (balance > -10);
UPDATE account SET nick = split_part(mail, '@', 1);
ALTER TABLE account RENAME nick TO short_name;
ALTER TABLE account RENAME short_name TO nick;
INSERT INTO invoice SELECT tenant_id, 1, sum(balance) FROM account GROUP BY tenant_id;
DO $$
DECLARE
    one record;
BEGIN
    FOR one IN SELECT tenant_id, count(*) AS events FROM event GROUP BY tenant_id ORDER BY tenant_id LOOP
        UPDATE tenant SET name = name || ' (' || one.events || ')' WHERE id = one.tenant_id;
    END LOOP;
END $$;
