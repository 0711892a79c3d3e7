"""A state more, a check that is made in two steps, and values in all rows."""


async def upgrade(db):
    for row in (await db.execute_query("SELECT tenant_id, count(*) FROM event GROUP BY 1 ORDER BY 1"))[1]:
        await db.execute_query("UPDATE tenant SET name = name || ' ' || $1::text WHERE id = $2", [str(row[1]), row[0]])
    return """
        ALTER TYPE state ADD VALUE 'lost' BEFORE 'closed';
        UPDATE account SET nick = split_part(mail, '@', 1) || id;
        ALTER TABLE account ADD CONSTRAINT account_balance CHECK (balance >= 0) NOT VALID;
        ALTER TABLE account VALIDATE CONSTRAINT account_balance;
        ALTER TABLE account ALTER nick SET DEFAULT '';
    """


async def downgrade(db):
    return """
        ALTER TABLE account ALTER nick DROP DEFAULT;
        ALTER TABLE account DROP CONSTRAINT account_balance;
    """
