-- On one plain PostgreSQL these stand in for the SQL interface of distribution, so that the guides themselves can be
-- checked there.
CREATE FUNCTION create_distributed_table(regclass, text, distribution_type text DEFAULT 'hash', colocate_with text DEFAULT 'default', shard_count int DEFAULT NULL)
  RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE FUNCTION create_reference_table(regclass) RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE FUNCTION truncate_local_data_after_distributing_table(regclass) RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE FUNCTION undistribute_table(regclass) RETURNS void LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE FUNCTION citus_total_relation_size(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT pg_total_relation_size($1)';
CREATE FUNCTION citus_relation_size(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT pg_relation_size($1)';
CREATE FUNCTION citus_table_size(regclass) RETURNS bigint LANGUAGE sql AS 'SELECT pg_table_size($1)';
