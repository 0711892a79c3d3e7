--liquibase formatted sql

--changeset pgherd:types
CREATE TYPE order_state AS ENUM ('new', 'paid', 'sent');
--rollback DROP TYPE order_state;

--changeset pgherd:plan
CREATE TABLE plan (
    name text PRIMARY KEY,
    price ${money} NOT NULL DEFAULT 0
);
INSERT INTO plan (name, price) VALUES ('free', 0), ('größer', 49.5);
--rollback DROP TABLE plan;

--changeset pgherd:worth splitStatements:false runOnChange:true
CREATE OR REPLACE FUNCTION worth(total numeric, tags text[]) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    -- A gift is half its price; and nothing else is.
    RETURN round(total * CASE WHEN 'gift' = ANY (tags) THEN 0.5 ELSE 1 END, 2);
END;
$$;
--rollback DROP FUNCTION worth(numeric, text[]);
