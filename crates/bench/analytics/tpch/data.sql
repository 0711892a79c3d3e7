-- Rows for the tables of TPC-H, in its proportions: :scale 1 is a tenth of what TPC calls scale factor 1. All of it is
-- computed from keys by hashing, so that every server makes the same rows. The words are our own, but for those that
-- the queries look for; those are as frequent as the queries expect, and often enough that each query finds rows.

SET search_path = tpch;

CREATE FUNCTION pick(key bigint, salt int, choices int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ((hashint8extended(key, salt) & 2147483647) % choices)::int;

CREATE FUNCTION word(key bigint, salt int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (ARRAY['herds', 'graze', 'quietly', 'beyond', 'old', 'fences', 'while', 'drivers', 'count', 'each',
        'bright', 'tag', 'against', 'ledgers', 'before', 'dusk'])[1 + pick(key, salt, 16)];

CREATE FUNCTION colour(key bigint, salt int) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (ARRAY['green', 'forest', 'amber', 'ash', 'bone', 'brick', 'bronze', 'cherry', 'clay', 'cobalt', 'coral',
        'cream', 'dawn', 'denim', 'dove', 'ebony', 'fern', 'flint', 'frost', 'garnet', 'ginger', 'hazel', 'heather',
        'ink', 'iris', 'jade', 'lilac', 'loam', 'mauve', 'moss', 'ochre', 'onyx', 'pearl', 'pine', 'quartz', 'rust',
        'sage', 'slate', 'teal', 'umber'])[1 + pick(key, salt, 40)];

CREATE FUNCTION price(part int) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN (90000 + part % 20000 + part / 7 % 1000)::numeric / 100;

-- Four suppliers of each part, of which each line takes one.
CREATE FUNCTION supplier_of(part int, choice int, suppliers int) RETURNS int LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN 1 + (part + part / suppliers + choice * (suppliers / 4 + 1)) % suppliers;

INSERT INTO region
SELECT i - 1, (ARRAY['AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'])[i], word(i, 1) || ' ' || word(i, 2)
FROM generate_series(1, 5) AS i;

INSERT INTO nation
SELECT i - 1,
    (ARRAY['KENYA', 'BRAZIL', 'INDIA', 'FRANCE', 'SAUDI ARABIA',
        'GHANA', 'CANADA', 'JAPAN', 'GERMANY', 'JORDAN',
        'TUNISIA', 'MEXICO', 'NEPAL', 'NORWAY', 'OMAN',
        'SENEGAL', 'CHILE', 'THAILAND', 'PORTUGAL', 'YEMEN',
        'NAMIBIA', 'CUBA', 'MONGOLIA', 'POLAND', 'LEBANON'])[i],
    (i - 1) % 5, word(i, 3) || ' ' || word(i, 4)
FROM generate_series(1, 25) AS i;

INSERT INTO supplier
SELECT i, 'Supplier#' || to_char(i, 'FM000000000'), word(i, 10) || ' ' || 1 + pick(i, 11, 999), nation,
    nation + 10 || '-' || 100 + pick(i, 12, 900) || '-' || 1000 + pick(i, 13, 9000),
    (pick(i, 14, 1100000) - 100000)::numeric / 100,
    word(i, 15) || ' ' || word(i, 16)
        || CASE WHEN pick(i, 17, 200) = 0 THEN ' Customer ' || word(i, 18) || ' Complaints ' ELSE ' ' END
        || word(i, 19) || ' ' || word(i, 20)
FROM (SELECT i, pick(i, 9, 25) AS nation FROM generate_series(1, (1000 * :scale)::int) AS i);

INSERT INTO customer
SELECT i, 'Customer#' || to_char(i, 'FM000000000'), word(i, 30) || ' ' || 1 + pick(i, 31, 999), nation,
    nation + 10 || '-' || 100 + pick(i, 32, 900) || '-' || 1000 + pick(i, 33, 9000),
    (pick(i, 34, 1100000) - 100000)::numeric / 100,
    (ARRAY['BUILDING', 'FARMING', 'SHIPPING', 'RETAIL', 'TEXTILES'])[1 + pick(i, 35, 5)],
    word(i, 36) || ' ' || word(i, 37) || ' ' || word(i, 38) || ' ' || word(i, 39) || ' ' || word(i, 40) || ' '
        || word(i, 41) || ' ' || word(i, 42) || ' ' || word(i, 43) || ' ' || word(i, 44) || ' ' || word(i, 45)
FROM (SELECT i, pick(i, 29, 25) AS nation FROM generate_series(1, (15000 * :scale)::int) AS i);

INSERT INTO part
SELECT i,
    colour(i, 50) || ' ' || colour(i, 51) || ' ' || colour(i, 52) || ' ' || colour(i, 53) || ' ' || colour(i, 54),
    'Maker#' || maker, 'Brand#' || maker || 1 + pick(i, 56, 5),
    (ARRAY['PROMO', 'ECONOMY', 'MEDIUM', 'SMALL', 'LARGE', 'COMMON'])[1 + pick(i, 57, 6)] || ' '
        || (ARRAY['ANODIZED', 'POLISHED', 'BRUSHED', 'PAINTED', 'RAW'])[1 + pick(i, 58, 5)] || ' '
        || (ARRAY['BRASS', 'STEEL', 'ZINC', 'IRON', 'COPPER'])[1 + pick(i, 59, 5)],
    1 + pick(i, 60, 50),
    (ARRAY['SM', 'MED', 'LG', 'TINY'])[1 + pick(i, 61, 4)] || ' '
        || (ARRAY['CASE', 'BOX', 'BAG', 'PACK', 'PKG', 'TUB', 'CRATE'])[1 + pick(i, 62, 7)],
    price(i), word(i, 63) || ' ' || word(i, 64)
FROM (SELECT i, 1 + pick(i, 55, 5) AS maker FROM generate_series(1, (20000 * :scale)::int) AS i);

INSERT INTO partsupp
SELECT part, supplier_of(part, choice, (1000 * :scale)::int), 1 + pick(i, 70, 9999),
    (100 + pick(i, 71, 99901))::numeric / 100,
    word(i, 72) || ' ' || word(i, 73) || ' ' || word(i, 74) || ' ' || word(i, 75) || ' ' || word(i, 76) || ' '
        || word(i, 77) || ' ' || word(i, 78) || ' ' || word(i, 79) || ' ' || word(i, 80) || ' ' || word(i, 81) || ' '
        || word(i, 82) || ' ' || word(i, 83) || ' ' || word(i, 84) || ' ' || word(i, 85) || ' ' || word(i, 86)
FROM (SELECT part, choice, part * 4::bigint + choice AS i
    FROM generate_series(1, (20000 * :scale)::int) AS part, generate_series(0, 3) AS choice);

-- A third of the customers never orders.
INSERT INTO orders
SELECT i, 1 + 3 * pick(i, 100, (5000 * :scale)::int) + pick(i, 101, 2),
    CASE WHEN day + 121 <= '1995-06-17' THEN 'F' WHEN day >= '1995-06-17' THEN 'O' ELSE 'P' END,
    (100000 + pick(i, 102, 40000000))::numeric / 100, day,
    (ARRAY['1-URGENT', '2-HIGH', '3-NORMAL', '4-LOW', '5-IDLE'])[1 + pick(i, 103, 5)],
    'Clerk#' || to_char(1 + pick(i, 104, (100 * :scale)::int), 'FM000000000'), 0,
    word(i, 105) || ' ' || word(i, 106)
        || CASE WHEN pick(i, 107, 80) = 0 THEN ' special ' || word(i, 108) || ' requests ' ELSE ' ' END
        || word(i, 109) || ' ' || word(i, 110) || ' ' || word(i, 111) || ' ' || word(i, 112)
FROM (SELECT i, date '1992-01-01' + pick(i, 99, 2406) AS day
    FROM generate_series(1, (150000 * :scale)::int) AS i);

-- One order in two thousand is large.
INSERT INTO lineitem
SELECT o_orderkey, part, supplier_of(part, pick(i, 122, 4), (1000 * :scale)::int), line, quantity,
    quantity * price(part), pick(i, 123, 11)::numeric / 100, pick(i, 124, 9)::numeric / 100,
    CASE WHEN ship + transit > '1995-06-17' THEN 'N' WHEN pick(i, 125, 2) = 0 THEN 'R' ELSE 'A' END,
    CASE WHEN ship > '1995-06-17' THEN 'O' ELSE 'F' END, ship, o_orderdate + 30 + pick(i, 126, 61), ship + transit,
    (ARRAY['DELIVER IN PERSON', 'CALL AHEAD', 'LEAVE AT DOOR', 'HOLD AT DEPOT'])[1 + pick(i, 127, 4)],
    (ARRAY['AIR', 'AIR REG', 'MAIL', 'SHIP', 'TRUCK', 'BARGE', 'COURIER'])[1 + pick(i, 128, 7)],
    word(i, 129) || ' ' || word(i, 130) || ' ' || word(i, 131) || ' ' || word(i, 132)
FROM (SELECT o_orderkey, o_orderdate, line, i, 1 + pick(i, 133, (20000 * :scale)::int) AS part,
        CASE WHEN is_large THEN 44 + pick(i, 134, 7) ELSE 1 + pick(i, 134, 50) END AS quantity,
        o_orderdate + 1 + pick(i, 135, 121) AS ship, 1 + pick(i, 136, 30) AS transit
    FROM (SELECT *, pick(o_orderkey, 120, 2000) = 0 AS is_large FROM orders),
        LATERAL generate_series(1, CASE WHEN is_large THEN 7 ELSE 1 + pick(o_orderkey, 121, 7) END) AS line,
        LATERAL (SELECT o_orderkey * 8 + line AS i));

DROP FUNCTION supplier_of, price, colour, word, pick;
