//! The schema `pgherd` that every node carries: what creates it, and the names in it that other crates use.
//!
//! The SQL is in `crates/control/sql`. Each text is run as one simple query (one implicit transaction) by a superuser;
//! it may be repeated at any time.

use crate::quote::quote_literal;

/// The channel that routers LISTEN to: metadata has changed.
pub const NOTIFY_CHANNEL: &str = "pgherd";
/// Raised by the guard on the empty heap of a distributed table.
pub const SQLSTATE_LOCAL_ROWS: &str = "PH001";
/// Raised by the fence: the router's snapshot is out of date; refresh and retry.
pub const SQLSTATE_PLACEMENT_CHANGED: &str = "PH002";
/// Raised by `pgherd.record_commit`: recovery has decided that the transaction is aborted.
pub const SQLSTATE_DECIDED_BY_RECOVERY: &str = "PH003";
/// How the names of our triggers on users' tables begin.
pub const GUARD_TRIGGER: &str = "pgherd_guard";
/// The foreign server whose far end is the router.
pub const ROUTER_SERVER: &str = "pgherd_router";
/// The user name that callback connections of the coordinator log in with; the token is in their application name.
pub const CALLBACK_USER: &str = "pgherd_callback";

/// Of the SQL below, as it says itself (`pgherd.schema_version`). Routers bring older schemas up to date.
pub const SCHEMA_VERSION: i32 = 33;

/// Which version a database has; none before it has our schema.
pub const FOUND_VERSION: &str = "SELECT pg_catalog.max(version) FROM pgherd.schema_version";

/// Creates or brings up to date the coordinator's schema.
pub const COORDINATOR_SCHEMA: &str = concat!(
    include_str!("../sql/common.sql"),
    include_str!("../sql/triggers.sql"),
    include_str!("../sql/describe.sql"),
    include_str!("../sql/coordinator.sql"),
    include_str!("../sql/expressions.sql"),
    include_str!("../sql/keys.sql"),
    include_str!("../sql/citus.sql"),
    include_str!("../sql/inside.sql"),
    include_str!("../sql/changes.sql")
);

/// Creates or brings up to date a worker's schema.
pub const WORKER_SCHEMA: &str = concat!(
    include_str!("../sql/common.sql"),
    include_str!("../sql/triggers.sql"),
    include_str!("../sql/describe.sql"),
    include_str!("../sql/worker.sql")
);

/// [`COORDINATOR_SCHEMA`].
pub fn coordinator_schema_sql() -> String {
    COORDINATOR_SCHEMA.to_owned()
}

/// [`WORKER_SCHEMA`].
pub fn worker_schema_sql() -> String {
    WORKER_SCHEMA.to_owned()
}

/// Run in one coordinator database, gives one text: the SQL that makes its nodes known in another database's metadata.
/// Empty where there are none.
pub const COPY_NODES_SOURCE: &str = "
SELECT coalesce(pg_catalog.string_agg(pg_catalog.format(
        'INSERT INTO pgherd.pg_dist_node (nodeid, groupid, nodename, nodeport, noderack, hasmetadata, isactive, \
noderole, nodecluster, metadatasynced, shouldhaveshards) \
VALUES (%s, %s, %L, %s, %L, %L, %L, %L, %L, %L, %L) ON CONFLICT DO NOTHING',
        nodeid, groupid, nodename, nodeport, noderack, hasmetadata, isactive, noderole, nodecluster, metadatasynced,
        shouldhaveshards), '; ' ORDER BY nodeid)
    || pg_catalog.format('; SELECT pg_catalog.setval(''pgherd.pg_dist_node_nodeid_seq'', %s), '
        'pg_catalog.setval(''pgherd.pg_dist_groupid_seq'', %s)', max(nodeid), greatest(max(groupid), 1)), '')
FROM pgherd.pg_dist_node";

/// Tells the coordinator where the router is that answers its callbacks, and for which database: it may have been
/// copied or renamed. Run by a superuser.
pub fn callback_server_sql(host: &str, port: u16) -> String {
    format!(
        "DO $pgherd$ BEGIN EXECUTE pg_catalog.format('ALTER SERVER pgherd_router OPTIONS \
         (SET host %L, SET port %L, SET dbname %L)', {}, '{port}', pg_catalog.current_database()); END $pgherd$",
        quote_literal(host)
    )
}

/// For a move, or a node that joins or leaves, on every worker of the group; with [`placement_epoch_sql`] on the
/// coordinator. Waits for the scatters in flight. Run by a superuser.
pub fn change_placement_sql(colocation: i32, epoch: i64) -> String {
    format!("SELECT pgherd.change_placement({colocation}, {epoch})")
}

/// The epoch that routers will fence with from now on.
pub fn placement_epoch_sql(colocation: i32, epoch: i64) -> String {
    format!("UPDATE pgherd.pg_dist_colocation SET placementepoch = {epoch} WHERE colocationid = {colocation}")
}

/// Sent in front of a scatter, in its transaction.
pub fn fence_sql(colocation: i32, epoch: i64) -> String {
    format!("SELECT pgherd.fence({colocation}, {epoch})")
}

/// Catalog relations that clients must see without our objects: (schema, name, the view to read in its place).
pub const CATALOG_VIEWS: &[(&str, &str, &str)] = &[
    ("pg_catalog", "pg_namespace", "pgherd.pg_namespace"),
    ("pg_catalog", "pg_class", "pgherd.pg_class"),
    ("pg_catalog", "pg_type", "pgherd.pg_type"),
    ("pg_catalog", "pg_proc", "pgherd.pg_proc"),
    ("pg_catalog", "pg_inherits", "pgherd.pg_inherits"),
    ("pg_catalog", "pg_partitioned_table", "pgherd.pg_partitioned_table"),
    ("pg_catalog", "pg_trigger", "pgherd.pg_trigger"),
    ("pg_catalog", "pg_constraint", "pgherd.pg_constraint"),
    ("pg_catalog", "pg_statistic_ext", "pgherd.pg_statistic_ext"),
    ("pg_catalog", "pg_operator", "pgherd.pg_operator"),
    ("pg_catalog", "pg_enum", "pgherd.pg_enum"),
    ("pg_catalog", "pg_event_trigger", "pgherd.pg_event_trigger"),
    ("pg_catalog", "pg_foreign_server", "pgherd.pg_foreign_server"),
    ("pg_catalog", "pg_user_mapping", "pgherd.pg_user_mapping"),
    ("pg_catalog", "pg_foreign_table", "pgherd.pg_foreign_table"),
    ("pg_catalog", "pg_extension", "pgherd.pg_extension"),
    ("pg_catalog", "pg_foreign_data_wrapper", "pgherd.pg_foreign_data_wrapper"),
    ("pg_catalog", "pg_tables", "pgherd.pg_tables"),
    ("pg_catalog", "pg_views", "pgherd.pg_views"),
    ("pg_catalog", "pg_locks", "pgherd.pg_locks"),
    ("pg_catalog", "pg_stat_activity", "pgherd.pg_stat_activity"),
    ("pg_catalog", "pg_indexes", "pgherd.pg_indexes"),
    ("pg_catalog", "pg_sequences", "pgherd.pg_sequences"),
    ("pg_catalog", "pg_stats_ext", "pgherd.pg_stats_ext"),
    ("pg_catalog", "pg_stats_ext_exprs", "pgherd.pg_stats_ext_exprs"),
    ("pg_catalog", "pg_publication_tables", "pgherd.pg_publication_tables"),
    ("pg_catalog", "pg_user_mappings", "pgherd.pg_user_mappings"),
    ("pg_catalog", "pg_stat_all_tables", "pgherd.pg_stat_all_tables"),
    ("pg_catalog", "pg_stat_user_tables", "pgherd.pg_stat_user_tables"),
    ("pg_catalog", "pg_stat_xact_all_tables", "pgherd.pg_stat_xact_all_tables"),
    ("pg_catalog", "pg_stat_xact_user_tables", "pgherd.pg_stat_xact_user_tables"),
    ("pg_catalog", "pg_statio_all_tables", "pgherd.pg_statio_all_tables"),
    ("pg_catalog", "pg_statio_user_tables", "pgherd.pg_statio_user_tables"),
    ("pg_catalog", "pg_stat_all_indexes", "pgherd.pg_stat_all_indexes"),
    ("pg_catalog", "pg_stat_user_indexes", "pgherd.pg_stat_user_indexes"),
    ("pg_catalog", "pg_statio_all_indexes", "pgherd.pg_statio_all_indexes"),
    ("pg_catalog", "pg_statio_user_indexes", "pgherd.pg_statio_user_indexes"),
    ("pg_catalog", "pg_statio_all_sequences", "pgherd.pg_statio_all_sequences"),
    ("pg_catalog", "pg_statio_user_sequences", "pgherd.pg_statio_user_sequences"),
    ("pg_catalog", "pg_stat_user_functions", "pgherd.pg_stat_user_functions"),
    ("pg_catalog", "pg_stat_xact_user_functions", "pgherd.pg_stat_xact_user_functions"),
    ("information_schema", "schemata", "pgherd.information_schema_schemata"),
    ("information_schema", "column_domain_usage", "pgherd.information_schema_column_domain_usage"),
    ("information_schema", "column_udt_usage", "pgherd.information_schema_column_udt_usage"),
    ("information_schema", "constraint_table_usage", "pgherd.information_schema_constraint_table_usage"),
    ("information_schema", "data_type_privileges", "pgherd.information_schema_data_type_privileges"),
    ("information_schema", "element_types", "pgherd.information_schema_element_types"),
    ("information_schema", "udt_privileges", "pgherd.information_schema_udt_privileges"),
    ("information_schema", "role_udt_grants", "pgherd.information_schema_role_udt_grants"),
    ("information_schema", "usage_privileges", "pgherd.information_schema_usage_privileges"),
    ("information_schema", "role_usage_grants", "pgherd.information_schema_role_usage_grants"),
    ("information_schema", "view_column_usage", "pgherd.information_schema_view_column_usage"),
    ("information_schema", "view_table_usage", "pgherd.information_schema_view_table_usage"),
    ("information_schema", "view_routine_usage", "pgherd.information_schema_view_routine_usage"),
    ("information_schema", "triggered_update_columns", "pgherd.information_schema_triggered_update_columns"),
    ("information_schema", "attributes", "pgherd.information_schema_attributes"),
    ("information_schema", "routine_table_usage", "pgherd.information_schema_routine_table_usage"),
    ("information_schema", "routine_column_usage", "pgherd.information_schema_routine_column_usage"),
    ("information_schema", "routine_sequence_usage", "pgherd.information_schema_routine_sequence_usage"),
    ("information_schema", "routine_routine_usage", "pgherd.information_schema_routine_routine_usage"),
    ("information_schema", "tables", "pgherd.information_schema_tables"),
    ("information_schema", "columns", "pgherd.information_schema_columns"),
    ("information_schema", "views", "pgherd.information_schema_views"),
    ("information_schema", "sequences", "pgherd.information_schema_sequences"),
    ("information_schema", "routines", "pgherd.information_schema_routines"),
    ("information_schema", "triggers", "pgherd.information_schema_triggers"),
    ("information_schema", "table_constraints", "pgherd.information_schema_table_constraints"),
    ("information_schema", "foreign_tables", "pgherd.information_schema_foreign_tables"),
    ("information_schema", "table_privileges", "pgherd.information_schema_table_privileges"),
    ("information_schema", "column_privileges", "pgherd.information_schema_column_privileges"),
    ("information_schema", "column_column_usage", "pgherd.information_schema_column_column_usage"),
    ("information_schema", "role_table_grants", "pgherd.information_schema_role_table_grants"),
    ("information_schema", "role_column_grants", "pgherd.information_schema_role_column_grants"),
    ("information_schema", "routine_privileges", "pgherd.information_schema_routine_privileges"),
    ("information_schema", "role_routine_grants", "pgherd.information_schema_role_routine_grants"),
    ("information_schema", "parameters", "pgherd.information_schema_parameters"),
    ("information_schema", "key_column_usage", "pgherd.information_schema_key_column_usage"),
    ("information_schema", "constraint_column_usage", "pgherd.information_schema_constraint_column_usage"),
    ("information_schema", "referential_constraints", "pgherd.information_schema_referential_constraints"),
    ("information_schema", "check_constraints", "pgherd.information_schema_check_constraints"),
    ("information_schema", "foreign_data_wrappers", "pgherd.information_schema_foreign_data_wrappers"),
    ("information_schema", "foreign_data_wrapper_options", "pgherd.information_schema_foreign_data_wrapper_options"),
    ("information_schema", "foreign_server_options", "pgherd.information_schema_foreign_server_options"),
    ("information_schema", "foreign_table_options", "pgherd.information_schema_foreign_table_options"),
    ("information_schema", "user_mappings", "pgherd.information_schema_user_mappings"),
    ("information_schema", "user_mapping_options", "pgherd.information_schema_user_mapping_options"),
    ("information_schema", "foreign_servers", "pgherd.information_schema_foreign_servers"),
];

/// What the views of catalogs leave out, as conditions on the catalogs (coordinator.sql has the same ones): pg_dump
/// allows itself no views. It also reads rules, and does not expect one of a view that it has not seen.
pub const NOT_OURS: &[(&str, &str)] = &[
    ("pg_namespace", "oid <> 'pgherd'::pg_catalog.regnamespace"),
    ("pg_class", "relnamespace <> 'pgherd'::pg_catalog.regnamespace AND NOT (relnamespace = 11 AND oid >= 16384)"),
    ("pg_type", "typnamespace <> 'pgherd'::pg_catalog.regnamespace AND NOT (typnamespace = 11 AND oid >= 16384)"),
    ("pg_proc", "pronamespace <> 'pgherd'::pg_catalog.regnamespace"),
    (
        "pg_inherits",
        "inhrelid NOT IN (SELECT oid FROM pg_catalog.pg_class WHERE relnamespace = 'pgherd'::pg_catalog.regnamespace)",
    ),
    ("pg_partitioned_table", "partrelid NOT IN (SELECT relation FROM pgherd.leaf)"),
    (
        "pg_trigger",
        "tgname !~* '^[!~]?pgherd_guard' AND tgrelid NOT IN \
         (SELECT oid FROM pg_catalog.pg_class WHERE relnamespace = 'pgherd'::pg_catalog.regnamespace)",
    ),
    ("pg_constraint", "connamespace <> 'pgherd'::pg_catalog.regnamespace"),
    ("pg_statistic_ext", "stxnamespace <> 'pgherd'::pg_catalog.regnamespace"),
    ("pg_operator", "oprnamespace <> 'pgherd'::pg_catalog.regnamespace"),
    (
        "pg_enum",
        "enumtypid NOT IN (SELECT oid FROM pg_catalog.pg_type WHERE typnamespace = 'pgherd'::pg_catalog.regnamespace)",
    ),
    (
        "pg_event_trigger",
        "evtname !~ '^pgherd_(changes|changes_drops|definitions|drops|samples|start_[12]|follow_[12])$'",
    ),
    (
        "pg_extension",
        "extnamespace <> 'pgherd'::pg_catalog.regnamespace OR EXISTS (SELECT FROM pg_catalog.pg_foreign_server s \
         JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw WHERE w.fdwname = extname \
         AND s.srvname <> 'pgherd_router')",
    ),
    (
        "pg_foreign_data_wrapper",
        "fdwhandler NOT IN (SELECT oid FROM pg_catalog.pg_proc WHERE pronamespace = \
         'pgherd'::pg_catalog.regnamespace) OR EXISTS (SELECT FROM pg_catalog.pg_foreign_server s \
         WHERE s.srvfdw = pg_foreign_data_wrapper.oid AND s.srvname <> 'pgherd_router')",
    ),
    ("pg_foreign_server", "srvname <> 'pgherd_router'"),
    ("pg_user_mapping", "umserver <> (SELECT oid FROM pg_catalog.pg_foreign_server WHERE srvname = 'pgherd_router')"),
    ("pg_foreign_table", "ftserver <> (SELECT oid FROM pg_catalog.pg_foreign_server WHERE srvname = 'pgherd_router')"),
    // What belongs to the extension that is not seen.
    (
        "pg_depend",
        "NOT (refclassid = 'pg_catalog.pg_extension'::pg_catalog.regclass AND refobjid IN (SELECT oid FROM \
         pg_catalog.pg_extension WHERE extnamespace = 'pgherd'::pg_catalog.regnamespace AND NOT EXISTS (SELECT FROM \
         pg_catalog.pg_foreign_server s JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw \
         WHERE w.fdwname = extname AND s.srvname <> 'pgherd_router')))",
    ),
    (
        "pg_rewrite",
        "ev_class NOT IN (SELECT oid FROM pg_catalog.pg_class WHERE relnamespace = 'pgherd'::pg_catalog.regnamespace \
         OR relnamespace = 11 AND oid >= 16384)",
    ),
    (
        "pg_policy",
        "polrelid NOT IN (SELECT oid FROM pg_catalog.pg_class WHERE relnamespace = 'pgherd'::pg_catalog.regnamespace)",
    ),
];

/// Functions that the router carries out itself where it sees them; elsewhere the coordinator's stub refuses.
pub const ROUTER_FUNCTIONS: &[&str] = &[
    "create_distributed_table",
    "create_distributed_table_concurrently",
    "create_reference_table",
    "undistribute_table",
    "alter_distributed_table",
    "truncate_local_data_after_distributing_table",
    "citus_add_node",
    "master_add_node",
    "citus_remove_node",
    "master_remove_node",
    "citus_set_coordinator_host",
    "citus_activate_node",
    "citus_disable_node",
    "citus_set_node_property",
];

/// Functions of Citus's interface that are ordinary functions in schema `pgherd` on the coordinator.
pub const COORDINATOR_FUNCTIONS: &[&str] = &[
    "run_command_on_workers",
    "citus_relation_size",
    "citus_table_size",
    "citus_total_relation_size",
    "citus_get_active_worker_nodes",
    "master_get_active_worker_nodes",
    "get_shard_id_for_distribution_column",
    "citus_version",
];

/// Relations of Citus's interface that are in schema `pgherd` on the coordinator.
pub const COORDINATOR_RELATIONS: &[&str] = &[
    "pg_dist_node",
    "pg_dist_partition",
    "pg_dist_shard",
    "pg_dist_placement",
    "pg_dist_colocation",
    "citus_tables",
    "citus_shards",
    "citus_nodes",
    "pgherd_distribution",
    "pgherd_operations",
    "pgherd_operation_steps",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the texts of version [`SCHEMA_VERSION`].
    const FINGERPRINT: u64 = 8_011_000_506_082_260_371;

    #[test]
    fn views_and_conditions_leave_out_the_same() {
        let bare = |text: &str| text.replace(['\'', ' ', '\n'], "");
        let views = bare(include_str!("../sql/coordinator.sql"));
        for (name, condition) in NOT_OURS {
            let is_view = CATALOG_VIEWS.iter().any(|(_, view, _)| view == name);
            let known = views.contains(&format!("({name},{})", bare(condition)));
            assert!(known == is_view, "{name}: {condition}");
        }
        let missing = CATALOG_VIEWS.iter().take_while(|(_, name, _)| *name != "pg_tables");
        for (_, name, _) in missing {
            assert!(NOT_OURS.iter().any(|(known, _)| known == name), "{name}");
        }
    }

    /// A backslash in a plain literal is not the same to everybody: `standard_conforming_strings`.
    #[test]
    fn literals_with_backslashes_are_escape_strings() {
        for text in [COORDINATOR_SCHEMA, WORKER_SCHEMA] {
            let mut rest = text;
            while let Some(at) = rest.find(['\'', '-']) {
                let before = &rest[..at];
                if let Some(comment) = rest[at..].strip_prefix("--") {
                    rest = comment.split_once('\n').map_or("", |(_, next)| next);
                    continue;
                }
                let is_escape = before.ends_with(['E', 'e']);
                let inside = &rest[at + 1..];
                if rest[at..].starts_with('-') {
                    rest = inside;
                    continue;
                }
                let mut escaped = false;
                let end = inside.find(|c| {
                    let ends = c == '\'' && !escaped;
                    escaped = is_escape && c == '\\' && !escaped;
                    ends
                });
                let (literal, next) = inside.split_at(end.unwrap_or(inside.len()));
                assert!(is_escape || !literal.contains('\\'), "{literal}");
                // Of two quotes, which stand for one, the second begins what is of the same kind.
                rest = match next.strip_prefix("''") {
                    Some(more) if is_escape => more.find('\'').map_or("", |end| &more[end + 1..]),
                    _ => next.get(1..).unwrap_or(""),
                };
            }
        }
    }

    #[test]
    fn a_changed_schema_has_a_new_version() {
        let texts = [COORDINATOR_SCHEMA, WORKER_SCHEMA];
        let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let found = texts.iter().flat_map(|text| text.bytes()).fold(0xcbf2_9ce4_8422_2325, fnv);
        assert!(
            found == FINGERPRINT,
            "the SQL of schema pgherd has changed: raise SCHEMA_VERSION (here, and in common.sql, coordinator.sql and \
             worker.sql) if it was ever released as it is, and set FINGERPRINT to {found}"
        );
        for text in texts {
            assert!(text.contains(&format!("schema_version (version) VALUES ({SCHEMA_VERSION})")));
            assert!(text.contains(&format!("IF found > {SCHEMA_VERSION} THEN")));
        }
    }
}
