"""One statement by itself, as it has to be."""

RUN_IN_TRANSACTION = False


async def upgrade(db):
    return "CREATE INDEX CONCURRENTLY account_state ON account (state, balance DESC) INCLUDE (mail)"


async def downgrade(db):
    return "DROP INDEX account_state"
