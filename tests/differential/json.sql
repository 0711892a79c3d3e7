--@ include: schema.sql
-- JSON and JSONB: operators, paths, construction, aggregates, indexes and updates; arrays, text search and XML beside them.

CREATE TABLE docs (id int PRIMARY KEY, j jsonb, t json, words tsvector, a int[]);
--@ cluster: SELECT create_distributed_table('docs', 'id')
INSERT INTO docs SELECT g, jsonb_build_object('n', g, 'name', 'doc ' || g, 'tags', jsonb_build_array('t' || g % 3, 't' || g % 5), 'deep', jsonb_build_object('x', g % 4, 'y', CASE WHEN g % 2 = 0 THEN NULL ELSE g END)), json_build_object('b', g, 'a', g % 2 = 0), to_tsvector('simple', 'word' || g % 4 || ' thing other' || g), ARRAY[g, g % 3, NULL] FROM generate_series(1, 30) g;
INSERT INTO docs (id, j, t) VALUES (100, 'null', 'null'), (101, '[]', '[1, 2]'), (102, '"text"', '{"a":1,"a":2}'), (103, NULL, NULL);

-- Operators.
SELECT id, j -> 'n', j ->> 'name', j #> '{deep,x}', j #>> '{deep,y}', j -> 'tags' -> 0, j -> 'tags' ->> -1 FROM docs WHERE id < 5;
SELECT id FROM docs WHERE j @> '{"deep": {"x": 1}}';
SELECT id FROM docs WHERE j -> 'tags' ? 't2';
SELECT id FROM docs WHERE j ?| ARRAY['nothing', 'n'] AND id < 4;
SELECT id FROM docs WHERE j ?& ARRAY['n', 'name'] AND id > 28;
SELECT id FROM docs WHERE (j ->> 'n')::int = 7;
SELECT id FROM docs WHERE j -> 'n' = '7';
SELECT j || '{"more": 1}' FROM docs WHERE id = 1;
SELECT j - 'tags' - 'deep' FROM docs WHERE id = 2;
SELECT j #- '{deep,x}' FROM docs WHERE id = 3;
SELECT id, t -> 'a', t ->> 'b' FROM docs WHERE id < 4;
SELECT id FROM docs WHERE j = 'null' OR j IS NULL;
SELECT count(*), count(j), count(t) FROM docs;
SELECT id FROM docs WHERE j < '{"n": 3}' AND id > 99;
SELECT id FROM docs WHERE '{"n": 3, "name": "doc 3", "tags": ["t0", "t3"], "deep": {"x": 3, "y": 3}}' @> j;
--@ params: '{"n": 4}'
--@ params: '{"n": 5}'
SELECT id FROM docs WHERE j @> $1;
--@ params: n, 6
SELECT id FROM docs WHERE j ->> $1 = $2;
--@ error: 22P02
SELECT id FROM docs WHERE j @> '{bad';

-- Functions.
SELECT id, jsonb_typeof(j), jsonb_typeof(j -> 'n'), json_typeof(t) FROM docs WHERE id IN (1, 100, 101, 102, 103);
SELECT id, k FROM docs, jsonb_object_keys(j -> 'deep') k WHERE id < 4;
SELECT id, e FROM docs, jsonb_array_elements_text(j -> 'tags') e WHERE id < 4;
SELECT e, count(*) FROM docs, jsonb_array_elements_text(j -> 'tags') e WHERE id < 31 GROUP BY e;
SELECT key, count(*) FROM docs, jsonb_each(j) WHERE id < 31 GROUP BY key;
SELECT key, value FROM docs, json_each_text(t) WHERE id = 102;
SELECT jsonb_set(j, '{deep,x}', '99'), jsonb_insert(j, '{tags,0}', '"new"') FROM docs WHERE id = 5;
SELECT jsonb_pretty(j -> 'deep'), jsonb_strip_nulls(j -> 'deep') FROM docs WHERE id = 6;
SELECT jsonb_array_length(j -> 'tags'), json_array_length(json_build_array(id, 2)) FROM docs WHERE id = 7;
SELECT jsonb_extract_path_text(j, 'deep', 'x'), json_extract_path(t, 'b') FROM docs WHERE id = 8;
SELECT to_json(a), to_jsonb(id), array_to_json(a), row_to_json(ROW(id, a)) FROM docs WHERE id = 9;
SELECT r.* FROM docs, jsonb_to_record(j) AS r (n int, name text, nothing date) WHERE id < 4;
SELECT (jsonb_populate_record(NULL::regions, '{"code": "it", "name": "Italy"}')).*, count(*) FROM docs GROUP BY 1, 2, 3;
SELECT id, j @? '$.tags[*] ? (@ == "t1")', j @@ '$.n > 10' FROM docs WHERE id < 12;
SELECT id, jsonb_path_query(j, '$.tags[*]') FROM docs WHERE id < 3;
SELECT id, jsonb_path_query_array(j, '$.deep.*'), jsonb_path_exists(j, '$.deep.y ? (@ > 5)'), jsonb_path_query_first(j, '$.n') FROM docs WHERE id < 9;
--@ params: '{"min": 25}'
SELECT id FROM docs WHERE jsonb_path_match(j, '$.n > $min', $1) AND id < 31;
SELECT json_build_object('id', id, 'users', (SELECT count(*) FROM users)) FROM docs WHERE id < 3;
SELECT jsonb_build_array(id, j ->> 'name', NULL, true) FROM docs WHERE id < 3;
SELECT json_object(ARRAY['a', id::text, 'b', 'x']) FROM docs WHERE id < 3;
--@ error: 22023
SELECT jsonb_array_length(j) FROM docs WHERE id = 1;

-- Aggregates.
SELECT jsonb_agg(id ORDER BY id), json_agg(j -> 'n' ORDER BY id) FROM docs WHERE id < 6;
SELECT jsonb_object_agg(id, j -> 'deep') FROM docs WHERE id < 6;
SELECT (j -> 'deep' ->> 'x')::int AS x, jsonb_agg(j ->> 'name' ORDER BY id) FROM docs WHERE id < 20 GROUP BY 1;
SELECT j -> 'deep' -> 'x', count(*), sum((j ->> 'n')::int) FROM docs GROUP BY 1;
--@ ordered
SELECT j -> 'deep' -> 'x' AS x, count(*) FROM docs GROUP BY 1 ORDER BY 1 NULLS FIRST;
SELECT max((j ->> 'n')::int), min(j ->> 'name') FROM docs WHERE id < 31;
SELECT count(DISTINCT j -> 'deep'), count(DISTINCT j) FROM docs;
SELECT jsonb_agg(x) FROM (SELECT u.id, count(o.id) AS n FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE u.id < 5 GROUP BY u.id ORDER BY u.id) x;
SELECT json_agg(row_to_json(x)) FROM (SELECT id, j ->> 'name' AS name FROM docs WHERE id < 4 ORDER BY id) x;
SELECT u.id, (SELECT jsonb_agg(o.id ORDER BY o.id) FROM orders o WHERE o.user_id = u.id) FROM users u WHERE u.id < 8;
SELECT jsonb_object_agg(status, n ORDER BY status) FROM (SELECT status, count(*) AS n FROM orders GROUP BY status) s;
SELECT meta ->> 'level' AS l, jsonb_agg(DISTINCT meta -> 'lang' ORDER BY meta -> 'lang') FROM users GROUP BY 1;

-- Updates and indexes.
UPDATE docs SET j = jsonb_set(j, '{n}', to_jsonb((j ->> 'n')::int + 1000)) WHERE id < 11 AND j ? 'n';
SELECT sum((j ->> 'n')::int) FROM docs WHERE j ? 'n';
UPDATE docs SET j = j || jsonb_build_object('extra', id) WHERE id = 12 RETURNING j -> 'extra';
UPDATE docs SET j['deep']['x'] = '77', j['list'][1] = '"b"' WHERE id = 13 RETURNING j;
SELECT j['deep']['x'], j['name'] FROM docs WHERE id IN (13, 14);
UPDATE docs SET j = j - 'tags' WHERE id < 50;
SELECT count(*) FROM docs WHERE j ? 'tags';
CREATE INDEX docs_gin ON docs USING gin (j jsonb_path_ops);
CREATE INDEX docs_name ON docs ((j ->> 'name'));
SELECT id FROM docs WHERE j @> '{"deep": {"x": 2}}' AND id < 31;
SELECT id FROM docs WHERE j ->> 'name' = 'doc 9';
DELETE FROM docs WHERE j @> '{"deep": {"x": 77}}' RETURNING id;
INSERT INTO docs (id, j) SELECT id + 200, j FROM docs WHERE id < 4 RETURNING id, j ->> 'name';
INSERT INTO docs (id, j) VALUES (1, '{"new": true}') ON CONFLICT (id) DO UPDATE SET j = docs.j || excluded.j RETURNING j -> 'new';
SELECT d.id, u.name FROM docs d JOIN users u ON u.id = (d.j ->> 'n')::int WHERE d.id < 31;
SELECT d.id, f.id FROM docs d JOIN friends f ON to_jsonb(f.a) = d.j -> 'n' WHERE d.id < 31;

-- Arrays.
SELECT id, a[1], a[2:3], cardinality(a), array_length(a, 1) FROM docs WHERE id < 4;
SELECT id FROM docs WHERE 7 = ANY (a);
SELECT id FROM docs WHERE a @> ARRAY[2, 5];
SELECT id FROM docs WHERE a && ARRAY[29, 30];
SELECT id FROM docs WHERE 30 <> ALL (a[1:2]) AND id > 28;
SELECT array_agg(a ORDER BY id) FROM docs WHERE id < 4;
SELECT array_position(a, 1), array_remove(a, NULL), array_append(a, 9), a || 5 FROM docs WHERE id = 4;
UPDATE docs SET a[2] = 55, a[5] = 1 WHERE id = 5 RETURNING a;
SELECT unnest(a) AS x, count(*) FROM docs GROUP BY x HAVING count(*) > 1;
SELECT id FROM docs WHERE a = '{6,0,NULL}';
--@ params: '{7,8}'
SELECT id FROM docs WHERE id = ANY ($1::int[]);
SELECT array_to_string(tags, '+', '?'), string_to_array(name, ' ') FROM users WHERE id < 5;
SELECT tags, count(*) FROM users GROUP BY tags HAVING tags IS NOT NULL;

-- Text search, XML.
SELECT id FROM docs WHERE words @@ to_tsquery('simple', 'word1 & thing');
SELECT id, ts_rank(words, 'word2') > 0 FROM docs WHERE words @@ 'word2'::tsquery AND id < 12;
CREATE INDEX docs_words ON docs USING gin (words);
SELECT count(*) FROM docs WHERE words @@ plainto_tsquery('simple', 'thing');
SELECT ts_headline('english', 'the user ' || name, to_tsquery('user')) FROM users WHERE id < 3;
SELECT to_tsvector('english', string_agg(name, ' ' ORDER BY id)) FROM users WHERE id < 4;
SELECT xmlelement(name doc, xmlattributes(id AS i), j ->> 'name')::text FROM docs WHERE id < 3;
SELECT xmlforest(id, name)::text FROM users WHERE id < 3;
SELECT (xpath('/a/b/text()', '<a><b>1</b></a>'))[1]::text, count(*) FROM users;
