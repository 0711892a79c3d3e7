-- Rows for the tables of CH-benCHmark: :scale 1 is 24 warehouses. They have fewer items, customers and orders each than
-- TPC-C asks for, so that there are enough warehouses to be spread. All of it is computed from keys by hashing, so that
-- every server makes the same rows. The words are our own, but for those that the queries look for.

SET search_path = ch;

CREATE FUNCTION pick(key bigint, salt int, choices int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((hashint8extended(key, salt) & 2147483647) % choices)::int;

CREATE FUNCTION word(key bigint, salt int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (ARRAY['herds', 'graze', 'quietly', 'beyond', 'old', 'fences', 'while', 'drivers', 'count', 'each',
        'bright', 'tag', 'against', 'ledgers', 'before', 'dusk'])[1 + pick(key, salt, 16)];

-- Letters and digits, by whose codes nations have their numbers.
CREATE FUNCTION letter(number int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN substr('0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz', 1 + number, 1);

CREATE FUNCTION state(key bigint, salt int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN letter(pick(key, salt, 62)) || letter(pick(key, salt + 1, 62));

CREATE FUNCTION digits(key bigint, salt int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN to_char(hashint8extended(key, salt) & 9007199254740991, 'FM0000000000000000');

INSERT INTO region
SELECT i, (ARRAY['Africa', 'America', 'Asia', 'Europe', 'Middle East'])[i], word(i, 1) || ' ' || word(i, 2)
FROM generate_series(1, 5) AS i;

INSERT INTO nation
SELECT ascii(letter(i::int - 1)), name, 1 + (i - 1) % 5, word(i, 3) || ' ' || word(i, 4)
FROM unnest(ARRAY['Algeria', 'Argentina', 'Armenia', 'Albania', 'Bahrain',
    'Angola', 'Bahamas', 'Bangladesh', 'Austria', 'Egypt',
    'Benin', 'Bolivia', 'Cambodia', 'Belgium', 'Iran',
    'Botswana', 'Brazil', 'China', 'Germany', 'Iraq',
    'Cameroon', 'Canada', 'India', 'Croatia', 'Israel',
    'Chad', 'Chile', 'Indonesia', 'Denmark', 'Jordan',
    'Congo', 'Colombia', 'Japan', 'Estonia', 'Kuwait',
    'Eritrea', 'Costa Rica', 'Laos', 'Finland', 'Lebanon',
    'Ethiopia', 'Cuba', 'Malaysia', 'France', 'Oman',
    'Gabon', 'Ecuador', 'Mongolia', 'Greece', 'Qatar',
    'Gambia', 'Guyana', 'Nepal', 'Hungary', 'Saudi Arabia',
    'Ghana', 'Mexico', 'Pakistan', 'Iceland', 'Syria',
    'Guinea', 'Panama']) WITH ORDINALITY AS named (name, i);

INSERT INTO supplier
SELECT i, 'Supplier#' || to_char(i, 'FM000000000'), word(i, 10) || ' ' || 1 + pick(i, 11, 999),
    ascii(letter(pick(i, 12, 62))), digits(i, 13), (pick(i, 14, 1100000) - 100000)::numeric / 100,
    word(i, 15) || CASE WHEN pick(i, 16, 200) = 0 THEN ' bad ' ELSE ' ' END || word(i, 17) || ' ' || word(i, 18)
FROM generate_series(0, 9999) AS i;

INSERT INTO item
SELECT i, 1 + pick(i, 20, 10000), word(i, 21) || ' ' || word(i, 22) || ' ' || 1 + pick(i, 23, 99),
    (100 + pick(i, 24, 9901))::numeric / 100,
    (ARRAY['PR', 'zz', 'co', 'fa', 'LO', 'mi', 'PA', 'su'])[1 + pick(i, 25, 8)] || word(i, 26) || ' ' || word(i, 27)
        || ' ' || word(i, 28) || (ARRAY['a', 'b', 'c', 'BB', 'd', 'x', 'y', 'Z'])[1 + pick(i, 29, 8)]
FROM generate_series(1, 5000) AS i;

INSERT INTO warehouse
SELECT w, word(w, 30), word(w, 31), word(w, 32), word(w, 33), state(w, 34), to_char(pick(w, 36, 100000), 'FM00000'),
    pick(w, 37, 2001)::numeric / 10000, 300000
FROM generate_series(1, (24 * :scale)::int) AS w;

INSERT INTO district
SELECT d, w, word(i, 40), word(i, 41), word(i, 42), word(i, 43), state(i, 44), to_char(pick(i, 46, 100000), 'FM00000'),
    pick(i, 47, 2001)::numeric / 10000, 30000, 251
FROM (SELECT w, d, w * 10 + d AS i
    FROM generate_series(1, (24 * :scale)::int) AS w, generate_series(1, 10) AS d);

INSERT INTO customer
SELECT c, d, w, word(i, 50), 'OE', upper(word(i, 51) || word(i, 52)), word(i, 53), word(i, 54), word(i, 55),
    state(i, 56), to_char(pick(i, 58, 100000), 'FM00000'), digits(i, 59),
    timestamp '2007-01-01' - pick(i, 60, 1000) * interval '1 hour',
    CASE WHEN pick(i, 61, 10) = 0 THEN 'BC' ELSE 'GC' END, 50000, pick(i, 62, 5001)::numeric / 10000,
    (pick(i, 63, 600000) - 100000)::numeric / 100, (pick(i, 64, 600000))::numeric / 100, 1 + pick(i, 65, 30), pick(i, 66, 30),
    word(i, 67) || ' ' || repeat(word(i, 68) || ' ' || word(i, 69) || ' ', 20 + pick(i, 70, 16))
FROM (SELECT w, d, c, (w * 10 + d) * 1000 + c AS i
    FROM generate_series(1, (24 * :scale)::int) AS w, generate_series(1, 10) AS d, generate_series(1, 120) AS c);

INSERT INTO history
SELECT c_id, c_d_id, c_w_id, c_d_id, c_w_id, c_since, 10 + pick(i, 80, 1000)::numeric / 100,
    word(i, 81) || ' ' || word(i, 82)
FROM (SELECT *, (c_w_id * 10 + c_d_id) * 1000 + c_id AS i FROM customer);

-- The last of each district's 250 orders are not delivered. A third of the customers never orders.
INSERT INTO orders
SELECT o, d, w, 1 + 3 * pick(i, 90, 40) + pick(i, 91, 2),
    timestamp '2007-01-01' + (o * 7 + pick(i, 92, 60)) * interval '1 day' + pick(i, 93, 86400) * interval '1 second',
    CASE WHEN o <= 220 THEN 1 + pick(i, 94, 10) END, 5 + pick(i, 95, 11), 1
FROM (SELECT w, d, o, (w * 10 + d) * 1000 + o AS i
    FROM generate_series(1, (24 * :scale)::int) AS w, generate_series(1, 10) AS d, generate_series(1, 250) AS o);

INSERT INTO neworder
SELECT o_id, o_d_id, o_w_id FROM orders WHERE o_carrier_id IS NULL;

-- One line in fifty comes from another warehouse.
INSERT INTO orderline
SELECT o_id, o_d_id, o_w_id, line, 1 + pick(i, 100, 5000),
    CASE WHEN pick(i, 101, 50) = 0 THEN 1 + pick(i, 102, (24 * :scale)::int) ELSE o_w_id END,
    CASE WHEN o_carrier_id IS NOT NULL
        THEN o_entry_d + pick(i, 103, 30) * interval '1 day' + (1 + pick(i, 104, 80000)) * interval '1 second' END,
    1 + pick(i, 105, 10), (1 + pick(i, 106, 999999))::numeric / 100,
    word(i, 107) || ' ' || word(i, 108) || ' ' || word(i, 109)
FROM (SELECT *, ((o_w_id * 10 + o_d_id) * 1000 + o_id) * 16::bigint + line AS i
    FROM orders, LATERAL generate_series(1, o_ol_cnt) AS line);

-- A few are stocked by the thousand, and a few are much ordered.
INSERT INTO stock
SELECT item, w, CASE WHEN pick(i, 110, 50) = 0 THEN 1000 + pick(i, 111, 100000) ELSE 10 + pick(i, 111, 91) END,
    word(i, 112) || ' ' || digits(i, 113), word(i, 114) || ' ' || digits(i, 115), word(i, 116) || ' ' || digits(i, 117),
    word(i, 118) || ' ' || digits(i, 119), word(i, 120) || ' ' || digits(i, 121), word(i, 122) || ' ' || digits(i, 123),
    word(i, 124) || ' ' || digits(i, 125), word(i, 126) || ' ' || digits(i, 127), word(i, 128) || ' ' || digits(i, 129),
    word(i, 130) || ' ' || digits(i, 131), pick(i, 132, 10000),
    CASE WHEN pick(i, 133, 200) = 0 THEN 1000 + pick(i, 134, 1000) ELSE pick(i, 134, 21) END, pick(i, 135, 5),
    word(i, 136) || ' ' || word(i, 137) || ' ' || word(i, 138) || ' ' || word(i, 139)
FROM (SELECT w, item, w * 10000 + item AS i
    FROM generate_series(1, (24 * :scale)::int) AS w, generate_series(1, 5000) AS item);

DROP FUNCTION digits, state, letter, word, pick;
