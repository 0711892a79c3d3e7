-- One row with a primary key; two clients hardly ever draw the same.
\set id random(1, 4000000000000000000)
\set c1 random(1, 100)
INSERT INTO insert_row (id, c1, info, crt_time)
    VALUES (:id, :c1, 'a text as long as an md5 is, or so', CURRENT_TIMESTAMP);
