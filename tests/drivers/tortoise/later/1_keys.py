"""The tenant is part of each key, as it has to be where tables are distributed by it."""


async def upgrade(db):
    return """
        ALTER TABLE event DROP CONSTRAINT event_pkey, ADD PRIMARY KEY (tenant_id, id);
        ALTER TABLE account DROP CONSTRAINT account_pkey, ADD PRIMARY KEY (tenant_id, id);
        ALTER TABLE event ADD CONSTRAINT event_account FOREIGN KEY (tenant_id, account_id)
            REFERENCES account (tenant_id, id) ON DELETE CASCADE;
        INSERT INTO country VALUES ('de', 'Germany'), ('pe', 'Perú'), ('tv', 'Tuvalu');
        INSERT INTO feature VALUES ('blue'), ('red');
    """


async def downgrade(db):
    return """
        ALTER TABLE event DROP CONSTRAINT event_account;
        ALTER TABLE event ADD CONSTRAINT event_paid CHECK (id > 0);
    """
