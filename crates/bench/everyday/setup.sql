-- The tables of a small application. Distributed: tenant by id, orders and items by tenant; country is a reference
-- table; audit, job and setting stay local.
CREATE TABLE tenant (id int PRIMARY KEY, name text, plan text DEFAULT 'free');
CREATE TABLE country (code int PRIMARY KEY, name text);
CREATE TABLE orders (tenant int NOT NULL, id bigserial, customer int, status text DEFAULT 'new', total numeric DEFAULT 0,
    data jsonb DEFAULT '{}', created timestamptz DEFAULT now(), PRIMARY KEY (tenant, id));
CREATE TABLE items (tenant int, order_id bigint, n int, sku text, price numeric, PRIMARY KEY (tenant, order_id, n));
CREATE TABLE audit (id bigserial PRIMARY KEY, what text, at timestamptz DEFAULT now());
CREATE TABLE job (id int PRIMARY KEY, state text DEFAULT 'new', tries int DEFAULT 0, at timestamptz DEFAULT now());
CREATE TABLE setting (name text PRIMARY KEY, value text);
-- A login, and the log of it.
CREATE TABLE userinfo (userid int PRIMARY KEY, name text, email text, logins int DEFAULT 0);
CREATE TABLE session (userid int PRIMARY KEY, login_at timestamptz, logout_at timestamptz, online bool DEFAULT false);
CREATE TABLE login_log (userid int, at timestamptz, ip inet, event text);
CREATE FUNCTION f_user_login(i_userid int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM userinfo WHERE userid = i_userid;
    INSERT INTO login_log (userid, at, ip, event) VALUES (i_userid, now(), inet_client_addr(), 'login');
    UPDATE session SET login_at = now(), online = true WHERE userid = i_userid;
END $$;
