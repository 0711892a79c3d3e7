-- Statements end where functions end, whatever stands in them.
CREATE FUNCTION worth(total amount, tags text[]) RETURNS numeric LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    -- ${note} is put in by Flyway; a semicolon; and more
    RETURN round(total * CASE WHEN 'gift' = ANY (tags) THEN 0.5 ELSE 1 END, 2);
END;
$$;

CREATE FUNCTION tidy() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    NEW.mail := lower(trim(NEW.mail));
    RETURN NEW;
END;
$body$;
CREATE TRIGGER account_tidy BEFORE INSERT OR UPDATE OF mail ON account FOR EACH ROW EXECUTE FUNCTION tidy();
