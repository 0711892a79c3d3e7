//! Session settings: what a client has set, which of them are ours (`citus.*`, `pgherd.*`), and how a server connection
//! is brought up to date with them.

use std::time::Duration;

use pgherd_backend::{Connection, QueryResult};

use crate::error::{Failure, Result};

pub use pgherd_backend::Settings;

/// Settings of Citus that mean something here.
pub const KNOWN_CITUS: &[&str] = &[
    "citus.shard_count",
    "citus.shard_replication_factor",
    "citus.multi_shard_commit_protocol",
    "citus.replication_model",
    "citus.multi_shard_modify_mode",
];

/// Settings of our own; any other `pgherd.*` name is an error.
pub const KNOWN_PGHERD: &[&str] = &["pgherd.commit_wait", "pgherd.fanout", "pgherd.sequence_lease"];

/// The most values of a sequence that are drawn in advance.
const SEQUENCE_LEASE_MAX: i64 = 10_000;

/// What `SHOW` answers where nothing was set.
pub fn default_of(name: &str) -> Option<&'static str> {
    Some(match name {
        "citus.shard_count" => "32",
        "citus.shard_replication_factor" => "1",
        "citus.multi_shard_commit_protocol" => "2pc",
        "citus.replication_model" => "streaming",
        "citus.multi_shard_modify_mode" => "parallel",
        "pgherd.commit_wait" => "10s",
        "pgherd.fanout" => "any",
        "pgherd.sequence_lease" => "32",
        _ => return None,
    })
}

/// What is to be said about a SET of one of our names.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not ours: PostgreSQL decides.
    PostgreSql,
    Accepted,
    /// Accepted, and the client is told that it does nothing.
    NoEffect,
}

/// Checks a name and, where it is known, a value.
pub fn check_own(name: &str, value: Option<&str>) -> Result<Verdict> {
    let invalid = |value: &str| Failure::new("22023", format!("invalid value for parameter \"{name}\": \"{value}\""));
    if name.starts_with("pgherd.") && !KNOWN_PGHERD.contains(&name) {
        return Err(Failure::new("42704", format!("unrecognized configuration parameter \"{name}\"")));
    }
    if name.starts_with("citus.") && !KNOWN_CITUS.contains(&name) {
        return Ok(Verdict::NoEffect);
    }
    let one_of = |value: &str, allowed: &[&str]| {
        if allowed.contains(&value.to_ascii_lowercase().as_str()) {
            Ok(Verdict::Accepted)
        } else {
            Err(invalid(value).hint(format!("Available values: {}.", allowed.join(", "))))
        }
    };
    match (name, value) {
        ("citus.shard_count" | "citus.shard_replication_factor", Some(value)) => {
            let number: i64 = value.trim().parse().map_err(|_| invalid(value))?;
            let max = if name == "citus.shard_count" { 64_000 } else { 100 };
            if !(1..=max).contains(&number) {
                return Err(Failure::new(
                    "22023",
                    format!("{number} is outside the valid range for parameter \"{name}\" (1 .. {max})"),
                ));
            }
            // A shard has one placement; copies are a server's own to have.
            match name == "citus.shard_replication_factor" && number != 1 {
                true => Ok(Verdict::NoEffect),
                false => Ok(Verdict::Accepted),
            }
        }
        ("pgherd.sequence_lease", Some(value)) => {
            let number: i64 = value.trim().parse().map_err(|_| invalid(value))?;
            match (1..=SEQUENCE_LEASE_MAX).contains(&number) {
                true => Ok(Verdict::Accepted),
                false => Err(Failure::new(
                    "22023",
                    format!("{number} is outside the valid range for parameter \"{name}\" (1 .. {SEQUENCE_LEASE_MAX})"),
                )),
            }
        }
        ("citus.multi_shard_commit_protocol", Some(value)) => one_of(value, &["1pc", "2pc"]),
        ("citus.replication_model", Some(value)) => one_of(value, &["statement", "streaming"]),
        ("citus.multi_shard_modify_mode", Some(value)) => one_of(value, &["parallel", "sequential"]),
        ("pgherd.commit_wait", Some(value)) => {
            let hint = "Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".";
            time(value).map(|_| Verdict::Accepted).ok_or_else(|| invalid(value).hint(hint))
        }
        ("pgherd.fanout", Some(value)) => one_of(value, &["any", "single"]),
        _ if name.starts_with("citus.") || name.starts_with("pgherd.") => Ok(Verdict::Accepted),
        _ => Ok(Verdict::PostgreSql),
    }
}

/// A time as PostgreSQL's settings have it: a number of milliseconds, or of the unit behind it.
pub fn time(value: &str) -> Option<Duration> {
    let value = value.trim();
    let unit = value.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(value.len());
    let (number, unit) = value.split_at(unit);
    let number: f64 = number.trim().parse().ok().filter(|number| (0.0..=1e12).contains(number))?;
    let milliseconds = match unit.trim() {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    Some(Duration::from_millis((number * milliseconds).round() as u64))
}

/// A truth value as PostgreSQL's settings have it: a word, or so much of it that it can be no other.
pub fn boolean(value: &str) -> Option<bool> {
    let value = value.to_ascii_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| !value.is_empty() && word.starts_with(value.as_str()));
    match value.as_str() {
        "on" | "1" => Some(true),
        "of" | "off" | "0" => Some(false),
        _ if begins(&["true", "yes"]) => Some(true),
        _ if begins(&["false", "no"]) => Some(false),
        _ => None,
    }
}

/// Settings that the router answers for.
pub fn is_own(name: &str) -> bool {
    name.starts_with("citus.") || name.starts_with("pgherd.")
}

/// The error of a setting that there is not.
pub fn unknown(name: &str) -> Failure {
    Failure::new("42704", format!("unrecognized configuration parameter \"{name}\""))
}

/// `options` of the startup packet: `-c name=value`, `-cname=value`, `--name=value`, backslash escapes a space.
pub fn parse_options(options: &str, settings: &mut Settings) -> Result<()> {
    let mut words = Vec::new();
    // A word that is begun may be empty: a backslash at the end makes one.
    let mut word: Option<String> = None;
    let mut characters = options.chars();
    while let Some(c) = characters.next() {
        match c {
            '\\' => word.get_or_insert_default().extend(characters.next()),
            c if c.is_ascii_whitespace() => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    let mut words = words.into_iter();
    let fatal = |message| Err(Failure::fatal("42601", message));
    while let Some(word) = words.next() {
        let invalid = || format!("invalid command-line argument for server process: {word}");
        if word == "--" {
            // No more of them.
            let Some(word) = words.next() else { break };
            return fatal(format!("invalid command-line argument for server process: {word}"));
        }
        let (switch, assignment) = if word == "-c" {
            let Some(assignment) = words.next() else { return fatal(invalid()) };
            ("-c ", assignment)
        } else if let Some(rest) = word.strip_prefix("--") {
            ("--", rest.to_owned())
        } else if let Some(rest) = word.strip_prefix("-c") {
            ("-c ", rest.to_owned())
        } else {
            return fatal(invalid());
        };
        let Some((name, value)) = assignment.split_once('=') else {
            return fatal(format!("{switch}{assignment} requires a value"));
        };
        settings.insert(name.replace('-', "_").to_lowercase(), value.to_owned());
    }
    Ok(())
}

/// Takes the client's encoding out: servers do not hear of it. Its name as PostgreSQL has it; none where it asks for
/// none.
pub fn take_encoding(settings: &mut Settings) -> Result<Option<&'static str>> {
    let Some(value) = settings.remove("client_encoding") else { return Ok(None) };
    if value.eq_ignore_ascii_case("auto") {
        return Ok(Some(crate::encoding::UTF8));
    }
    let fatal = |failure| match failure {
        Failure::Statement(mut fields) => {
            fields.set(b'S', "FATAL");
            fields.set(b'V', "FATAL");
            Failure::Fatal(fields)
        }
        other => other,
    };
    crate::encoding::supported(&value).map(Some).map_err(fatal)
}

/// Spellings of UTF8, and SQL_ASCII whose bytes are taken for UTF-8.
pub fn is_utf8(value: &str) -> bool {
    let plain: String = value.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    matches!(plain.as_str(), "utf8" | "unicode" | "sqlascii" | "auto")
}

/// Settings that name what only the coordinator has, and that say how it makes tables. Workers follow its descriptions.
/// And those of idle sessions: a worker's part of a session is idle while the session is busy elsewhere.
const COORDINATORS: &[&str] = &[
    "default_table_access_method",
    "default_tablespace",
    "idle_in_transaction_session_timeout",
    "idle_session_timeout",
    "temp_tablespaces",
];

/// What a worker is told of them when a connection is opened, whatever its own defaults are.
pub const NEVER_IDLE: &str = "-c idle_in_transaction_session_timeout=0 -c idle_session_timeout=0";

/// Workers are told of a setting.
pub fn is_for_workers(name: &str) -> bool {
    !COORDINATORS.contains(&name)
}

/// What servers are to have in place of a value that the coordinator cannot work with; none: the value. The rows of
/// distributed tables are behind foreign tables there, which pg_dump has it keep from.
pub fn eased(name: &str, value: &str) -> Option<String> {
    if name != "restrict_nonsystem_relation_kind" {
        return None;
    }
    let kinds = value.split(',').map(str::trim);
    let left: Vec<&str> = kinds.clone().filter(|kind| !kind.eq_ignore_ascii_case("foreign-table")).collect();
    (left.len() < kinds.count()).then(|| left.join(", "))
}

/// A statement that sets a setting in a block. SET takes no snapshot; but it takes a list of names for one name.
pub fn assignment(name: &str, value: &str, local: bool) -> String {
    let of_names = matches!(name, "search_path" | "temp_tablespaces") || name.ends_with("_preload_libraries");
    if of_names {
        return format!("SELECT pg_catalog.set_config({}, {}, {local})", quote_literal(name), quote_literal(value));
    }
    let scope = if local { "LOCAL" } else { "SESSION" };
    format!("SET {scope} {} = {}", quote_setting(name), quote_literal(value))
}

/// Literals are read by these: bodies that a connection has planned go on with what they meant then.
pub fn is_style(name: &str) -> bool {
    const STYLES: [&str; 8] = [
        "datestyle",
        "intervalstyle",
        "timezone",
        "timezone_abbreviations",
        "lc_monetary",
        "default_text_search_config",
        "xmloption",
        "array_nulls",
    ];
    STYLES.iter().any(|style| name.eq_ignore_ascii_case(style))
}

/// Statements that bring a connection with `applied` up to `wanted`; empty where it is. What is set, the role that has
/// logged in sets: others may not be allowed to. Another session user has no role set.
pub fn difference(applied: &Settings, wanted: &Settings, on_worker: bool) -> String {
    use std::fmt::Write;
    const USER: &str = "session_authorization";
    const ROLE: &str = "role";
    let mut sql = String::new();
    if applied.is_same(wanted) {
        return sql;
    }
    let is_set = |name: &str| name != USER && name != ROLE;
    let left: Vec<&String> = applied.keys().filter(|name| is_set(name) && !wanted.contains_key(*name)).collect();
    let differs = |name: &str, value: &String| applied.get(name) != Some(value) && (!on_worker || is_for_workers(name));
    let mut set: Vec<(&str, &String)> = wanted.iter().map(|(name, value)| (name.as_str(), value)).collect();
    set.retain(|(name, value)| is_set(name) && differs(name, value));
    let as_login = !left.is_empty() || !set.is_empty();
    let another_user = applied.get(USER) != wanted.get(USER) || as_login;
    let another_role = applied.get(ROLE) != wanted.get(ROLE) || another_user;
    if another_user && applied.contains_key(USER) {
        let _ = write!(sql, "RESET {};", quote_setting(USER));
    } else if another_role && applied.contains_key(ROLE) && (as_login || !wanted.contains_key(ROLE)) {
        let _ = write!(sql, "RESET {};", quote_setting(ROLE));
    }
    if left.iter().any(|name| is_style(name)) || set.iter().any(|(name, _)| is_style(name)) {
        sql.push_str("DISCARD PLANS;");
    }
    for name in left {
        let _ = write!(sql, "RESET {};", quote_setting(name));
    }
    for (name, again) in [(USER, another_user), (ROLE, another_role)] {
        set.extend(wanted.get(name).filter(|_| again).map(|value| (name, value)));
    }
    let mut separator = "SELECT ";
    for (name, value) in set {
        let _ =
            write!(sql, "{separator}pg_catalog.set_config({}, {}, false)", quote_literal(name), quote_literal(value));
        separator = ", ";
    }
    sql
}

/// A limit or a cost: it says how statements are run, not what they mean, and nobody is told of it.
pub fn is_quiet(name: &str) -> bool {
    const LIMITS: [&str; 5] =
        ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "work_mem", "synchronous_commit"];
    const COSTS: [&str; 4] = ["random_page_cost", "seq_page_cost", "jit", "max_parallel_workers_per_gather"];
    LIMITS.contains(&name) || COSTS.contains(&name) || name.starts_with("enable_")
}

/// A setting that is there once a session has set it, and then for as long as its connection.
pub fn is_users(name: &str) -> bool {
    let prefix = name.split_once('.').map(|(prefix, _)| prefix);
    prefix.is_some_and(|prefix| !LIBRARIES.contains(&prefix)) && !is_own(name)
}

/// Whether a server takes the name for a setting of the user's, or of a library that it has not loaded: identifiers,
/// with dots between them.
pub fn may_be_users(name: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let goes_on = |c: char| begins(c) || c.is_ascii_digit() || c == '$';
    name.contains('.') && name.split('.').all(|part| part.starts_with(begins) && part.chars().all(goes_on))
}

/// Libraries whose settings have values of their own, which a server shows once it has loaded them.
const LIBRARIES: [&str; 22] = [
    "auth_delay",
    "auto_explain",
    "basic_archive",
    "cron",
    "hnsw",
    "isn",
    "ivfflat",
    "pg_hint_plan",
    "pg_prewarm",
    "pg_stat_statements",
    "pg_trgm",
    "pgaudit",
    "plperl",
    "plpgsql",
    "plpython3",
    "pltcl",
    "pltclu",
    "postgis",
    "postgres_fdw",
    "sepgsql",
    "timescaledb",
    "unaccent",
];

/// A connection had settings of these names, or is about to have them.
pub fn note_made<'a>(connection: &mut Connection, names: impl Iterator<Item = &'a str>) {
    for name in names.filter(|name| is_users(name)) {
        if !connection.made.contains(name) {
            connection.made.insert(name.to_owned());
        }
    }
}

/// What a connection of a role to a database has before anybody sets anything: its defaults, and what the client gave
/// when it connected.
#[derive(Debug, Clone, Default)]
pub struct Initial(Vec<(String, String)>);

impl Initial {
    /// Asks for those by which the router and the servers read texts and values, and for ours: rows of name and value.
    pub const SQL: &str = "SELECT name, pg_catalog.current_setting(name) FROM pg_catalog.unnest(ARRAY['datestyle', \
         'intervalstyle', 'extra_float_digits', 'array_nulls', 'standard_conforming_strings', 'timezone', \
         'search_path', 'default_transaction_isolation', 'client_min_messages', 'idle_session_timeout', \
         'idle_in_transaction_session_timeout', 'statement_timeout']) n(name) \
         UNION ALL SELECT name, pg_catalog.current_setting(name, true) FROM pg_catalog.unnest(ARRAY[\
         'citus.multi_shard_commit_protocol', 'pgherd.commit_wait', 'pgherd.fanout', 'pgherd.sequence_lease']) n(name) \
         WHERE pg_catalog.current_setting(name, true) <> ''";

    pub fn read(shown: &QueryResult) -> Initial {
        let value = |row, column| shown.text(row, column).unwrap_or_default().to_owned();
        Initial((0..shown.rows.len()).map(|row| (value(row, 0), value(row, 1))).collect())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Settings that say how values are written as text.
pub const STYLES: [&str; 4] = ["datestyle", "intervalstyle", "extra_float_digits", "array_nulls"];

/// Whether a style is one that every server reads.
pub fn is_plain_style(name: &str, value: &str) -> bool {
    match name {
        "datestyle" => value.to_ascii_lowercase().starts_with("iso"),
        "intervalstyle" => value.eq_ignore_ascii_case("postgres"),
        "extra_float_digits" => value.parse::<i32>().is_ok_and(|digits| digits > 0),
        _ => value.eq_ignore_ascii_case("on"),
    }
}

/// RESET ALL leaves it as it is.
pub fn outlives_reset_all(name: &str) -> bool {
    matches!(name, "role" | "session_authorization")
}

/// A setting's name as SQL: each part of a dotted name quoted.
pub fn quote_setting(name: &str) -> String {
    name.split('.').map(quote_ident).collect::<Vec<_>>().join(".")
}

/// A name as SQL has it, with its schema where it has one.
pub fn quote_name(schema: Option<&str>, name: &str) -> String {
    match schema {
        Some(schema) => format!("{}.{}", quote_ident(schema), quote_ident(name)),
        None => quote_ident(name),
    }
}

pub fn quote_ident(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// As an element of an array's text.
pub fn quote_element(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

pub fn quote_literal(value: &str) -> String {
    let doubled = value.replace('\'', "''");
    if doubled.contains('\\') { format!("E'{}'", doubled.replace('\\', "\\\\")) } else { format!("'{doubled}'") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn truth_values_may_be_cut() {
        assert_eq!(["t", "Tru", "yes", "y", "on", "1"].map(boolean), [Some(true); 6]);
        assert_eq!(["f", "FALSE", "n", "no", "of", "off", "0"].map(boolean), [Some(false); 7]);
        assert_eq!(["", "o", "trues", "2", "database"].map(boolean), [None; 5]);
    }

    #[test]
    fn times_have_units_of_postgresql() {
        let milliseconds = |text| time(text).map(|t| t.as_millis());
        assert_eq!(
            ["250", "2s", " 1.5 min ", "1d", "1600us", "0"].map(milliseconds),
            [250, 2000, 90_000, 86_400_000, 2, 0].map(Some)
        );
        assert_eq!(["", "s", "1 S", "1 week", "-1", "x1"].map(milliseconds), [None; 6]);
    }

    #[test]
    fn whoever_has_logged_in_sets_what_another_may_not() {
        let settings = |list: &[(&str, &str)]| {
            let mut settings = Settings::new();
            for (name, value) in list {
                settings.insert((*name).to_owned(), (*value).to_owned());
            }
            settings
        };
        let all = settings(&[("role", "r"), ("session_authorization", "u"), ("work_mem", "4MB")]);
        let sql = difference(&Settings::new(), &all, true);
        let at = |sql: &str, word: &str| sql.find(word).unwrap();
        assert!(at(&sql, "work_mem") < at(&sql, "'session_author") && at(&sql, "'session_author") < at(&sql, "'role'"));
        // The same role is set again for another user.
        let other = settings(&[("role", "r"), ("session_authorization", "v"), ("work_mem", "4MB")]);
        let sql = difference(&all, &other, true);
        assert!(sql.starts_with("RESET \"session_authorization\";SELECT"), "{sql}");
        assert!(sql.contains("'v'") && sql.contains("'role'") && !sql.contains("work_mem"), "{sql}");
        // And for another setting.
        let more = settings(&[("role", "r"), ("session_authorization", "u"), ("work_mem", "8MB")]);
        let sql = difference(&all, &more, true);
        assert!(sql.starts_with("RESET \"session_authorization\";SELECT"), "{sql}");
        assert!(at(&sql, "8MB") < at(&sql, "'u'") && at(&sql, "'u'") < at(&sql, "'r'"), "{sql}");
        let role = settings(&[("role", "r")]);
        let sql = difference(&all, &role, true);
        assert!(
            sql.starts_with("RESET \"session_authorization\";RESET \"work_mem\";") && sql.contains("'role'"),
            "{sql}"
        );
        let one = settings(&[("role", "r"), ("work_mem", "4MB")]);
        let sql = difference(&one, &settings(&[("work_mem", "4MB")]), true);
        assert_eq!(sql, "RESET \"role\";");
        let sql = difference(&one, &settings(&[("role", "s"), ("work_mem", "4MB")]), true);
        assert_eq!(sql, "SELECT pg_catalog.set_config('role', 's', false)");
        let sql = difference(&one, &role, true);
        assert_eq!(sql, "RESET \"role\";RESET \"work_mem\";SELECT pg_catalog.set_config('role', 'r', false)");
    }

    #[test]
    fn options_are_read_as_the_server_reads_them() {
        let mut settings = Settings::new();
        parse_options("-c search_path=a\\ b --work-mem=4MB -cgeqo=off", &mut settings).unwrap();
        let read: Vec<(&str, &str)> = settings.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(read, [("geqo", "off"), ("search_path", "a b"), ("work_mem", "4MB")]);
        assert!(parse_options("-x", &mut settings).is_err());
    }

    #[test]
    fn only_differences_are_sent() {
        let applied = Settings::from([("a".into(), "1".into()), ("b.c".into(), "2".into())]);
        let wanted = Settings::from([("a".into(), "1".into()), ("d".into(), "x'y\\".into())]);
        assert_eq!(
            difference(&applied, &wanted, true),
            "RESET \"b\".\"c\";SELECT pg_catalog.set_config('d', E'x''y\\\\', false)"
        );
        assert_eq!(difference(&wanted, &wanted, true), "");
        let made = Settings::from([("default_tablespace".into(), "x".into())]);
        assert_eq!(difference(&Settings::new(), &made, true), "");
        assert_ne!(difference(&Settings::new(), &made, false), "");
    }

    #[test]
    fn our_names_are_checked_and_others_left_to_postgresql() {
        assert_eq!(check_own("work_mem", Some("1")).unwrap(), Verdict::PostgreSql);
        assert_eq!(check_own("citus.shard_count", Some("8")).unwrap(), Verdict::Accepted);
        assert_eq!(check_own("citus.enable_fast_path_router_planner", Some("on")).unwrap(), Verdict::NoEffect);
        assert_eq!(check_own("citus.shard_count", Some("0")).unwrap_err().sqlstate(), "22023");
        assert_eq!(check_own("pgherd.misspelt", Some("0")).unwrap_err().sqlstate(), "42704");
        assert_eq!(check_own("citus.multi_shard_commit_protocol", Some("3pc")).unwrap_err().sqlstate(), "22023");
    }
}
