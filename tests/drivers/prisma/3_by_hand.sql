-- Values. (A CHECK would end this engine when it reads the catalogs by this adapter.)
UPDATE account SET nick = split_part(mail, '@', 1);
ALTER TABLE account RENAME nick TO short_name;
ALTER TABLE account RENAME short_name TO nick;
INSERT INTO invoice SELECT tenant_id, 1, sum(balance) FROM account GROUP BY tenant_id;
UPDATE tenant SET name = name || (SELECT ' (' || count(*) || ')' FROM event WHERE tenant_id = tenant.id);
