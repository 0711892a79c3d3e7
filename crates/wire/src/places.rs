//! Where PostgreSQL raises the errors that we raise in its place: fields F, L and R. Drivers tell some errors by the
//! routine (pgjdbc, asyncpg: `RevalidateCachedQuery`, `FetchPreparedStatement`), people search for the file.
//!
//! Lines are those of PostgreSQL 15.18; they move with every release, and nobody can rely on them.

use crate::backend::{ErrorFields, field};

/// A file of PostgreSQL's sources, a line and a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub file: &'static str,
    pub line: u32,
    pub routine: &'static str,
}

/// SQLSTATE, message with `%` for what varies, file, line and routine. The first that fits counts.
type Row = (&'static str, &'static str, &'static str, u32, &'static str);

const PLACES: &[Row] = &[
    ("00000", "there is no transaction in progress", "xact.c", 3910, "EndTransactionBlock"),
    ("01000", "there is no transaction in progress", "xact.c", 3910, "EndTransactionBlock"),
    ("08P01", "bind message has % parameter formats but % parameters", "postgres.c", 1670, "exec_bind_message"),
    ("08P01", "bind message supplies % parameters, %", "postgres.c", 1676, "exec_bind_message"),
    ("08P01", "bind message has % result formats but %", "pquery.c", 641, "PortalSetResultFormat"),
    ("08P01", "invalid frontend message type %", "postgres.c", 448, "SocketBackend"),
    ("08P01", "insufficient data left in message", "pqformat.c", 535, "pq_copymsgbytes"),
    ("08P01", "invalid string in message", "pqformat.c", 597, "pq_getmsgstring"),
    ("08P01", "no data left in message", "pqformat.c", 406, "pq_getmsgbyte"),
    ("08P01", "invalid message format", "pqformat.c", 642, "pq_getmsgend"),
    ("08P01", "invalid message length", "pqcomm.c", 1255, "pq_getmessage"),
    ("08P01", "invalid CLOSE message subtype %", "postgres.c", 4788, "PostgresMain"),
    ("08P01", "invalid DESCRIBE message subtype %", "postgres.c", 4823, "PostgresMain"),
    ("08P01", "unexpected message type % during COPY from stdin", "copyfromparse.c", 294, "CopyGetData"),
    ("08P01", "expected SASL response, got message type %", "auth-sasl.c", 97, "CheckSASLAuth"),
    ("08P01", "client selected an invalid SASL authentication mechanism", "auth-scram.c", 258, "scram_init"),
    (
        "08P01",
        "invalid startup packet layout: expected terminator as last byte",
        "postmaster.c",
        2336,
        "ProcessStartupPacket",
    ),
    ("0A000", "cached plan must not change result type", "plancache.c", 724, "RevalidateCachedQuery"),
    ("0A000", "unsupported frontend protocol %", "postmaster.c", 2224, "ProcessStartupPacket"),
    ("21000", "% command cannot affect row a second time", "nodeModifyTable.c", 2603, "ExecOnConflictUpdate"),
    ("22021", "invalid byte sequence for encoding %", "mbutils.c", 1800, "report_invalid_encoding"),
    ("22023", "unsupported format code: %", "postgres.c", 1902, "exec_bind_message"),
    ("22023", "invalid value for parameter %", "guc.c", 7530, "parse_and_validate_value"),
    ("22P02", "invalid input syntax for type integer: %", "numutils.c", 234, "pg_strtoint32"),
    ("22P03", "incorrect binary data format in bind parameter %", "postgres.c", 1895, "exec_bind_message"),
    ("22P04", "missing data for column %", "copyfromparse.c", 904, "NextCopyFrom"),
    ("22P04", "extra data after last expected column", "copyfromparse.c", 890, "NextCopyFrom"),
    ("22P04", "unterminated CSV quoted field", "copyfromparse.c", 1809, "CopyReadAttributesCSV"),
    ("22P04", "column name mismatch in header line field %", "copyfromparse.c", 808, "NextCopyFromRawFields"),
    ("22P04", "wrong number of fields in header line: %", "copyfromparse.c", 785, "NextCopyFromRawFields"),
    ("22P04", "literal % found in data", "copyfromparse.c", 1277, "CopyReadLineText"),
    ("22P04", "unquoted % found in data", "copyfromparse.c", 1277, "CopyReadLineText"),
    ("22P04", "end-of-copy marker %", "copyfromparse.c", 1360, "CopyReadLineText"),
    ("22P04", "COPY file signature not recognized", "copyfromparse.c", 200, "ReceiveCopyBinaryHeader"),
    ("22P04", "invalid COPY file header %", "copyfromparse.c", 205, "ReceiveCopyBinaryHeader"),
    ("22P04", "unrecognized critical flags in COPY file header", "copyfromparse.c", 214, "ReceiveCopyBinaryHeader"),
    ("22P04", "row field count is %", "copyfromparse.c", 989, "NextCopyFrom"),
    ("22P04", "received copy data after EOF marker", "copyfromparse.c", 982, "NextCopyFrom"),
    ("22P04", "unexpected EOF in COPY data", "copyfromparse.c", 1904, "CopyReadBinaryAttribute"),
    ("22P04", "invalid field size", "copyfromparse.c", 1894, "CopyReadBinaryAttribute"),
    ("22P05", "character with byte sequence %", "mbutils.c", 1845, "report_untranslatable_char"),
    ("24000", "cursor % is not positioned on a row", "execCurrent.c", 182, "execCurrentOf"),
    ("25001", "% cannot run inside a transaction block", "xact.c", 3489, "PreventInTransactionBlock"),
    ("25001", "% cannot be executed %", "xact.c", 3509, "PreventInTransactionBlock"),
    ("25001", "there is already a transaction in progress", "xact.c", 3791, "BeginTransactionBlock"),
    (
        "25001",
        "SET TRANSACTION ISOLATION LEVEL must be called before any query",
        "variable.c",
        534,
        "check_XactIsoLevel",
    ),
    ("25P01", "there is no transaction in progress", "xact.c", 3910, "EndTransactionBlock"),
    ("25P01", "COMMIT AND CHAIN can only be used in transaction blocks", "xact.c", 3905, "EndTransactionBlock"),
    ("25P01", "ROLLBACK AND CHAIN can only be used in transaction blocks", "xact.c", 4107, "UserAbortTransactionBlock"),
    ("25P01", "% can only be used in transaction blocks", "xact.c", 3590, "CheckTransactionBlock"),
    ("25P02", "current transaction is aborted, %", "postgres.c", 1083, "exec_simple_query"),
    ("25P03", "terminating connection due to idle-in-transaction timeout", "postgres.c", 3365, "ProcessInterrupts"),
    ("26000", "unnamed prepared statement does not exist", "postgres.c", 1618, "exec_bind_message"),
    ("26000", "prepared statement % does not exist", "prepare.c", 453, "FetchPreparedStatement"),
    ("28000", "role % is not permitted to log in", "miscinit.c", 823, "InitializeSessionUserId"),
    ("28000", "role % does not exist", "miscinit.c", 770, "InitializeSessionUserId"),
    ("28000", "no PostgreSQL user name specified in startup packet", "postmaster.c", 2353, "ProcessStartupPacket"),
    ("28P01", "password authentication failed for user %", "auth.c", 336, "auth_failed"),
    ("34000", "portal % does not exist", "postgres.c", 2073, "exec_execute_message"),
    ("34000", "cursor % does not exist", "portalcmds.c", 189, "PerformPortalFetch"),
    ("3B001", "savepoint % does not exist", "xact.c", 4430, "RollbackToSavepoint"),
    ("40001", "could not serialize access due to concurrent update", "nodeModifyTable.c", 2401, "ExecUpdate"),
    ("40P01", "deadlock detected", "deadlock.c", 1149, "DeadLockReport"),
    ("42501", "permission denied for table %", "aclchk.c", 3505, "aclcheck_error"),
    ("42601", "cannot insert multiple commands into a prepared statement", "postgres.c", 1421, "exec_parse_message"),
    ("42601", "wrong number of parameters for prepared statement %", "prepare.c", 295, "EvaluateParams"),
    ("42601", "invalid command-line argument for server process: %", "postgres.c", 4003, "process_postgres_switches"),
    ("42601", "-c % requires a value", "postgres.c", 3969, "process_postgres_switches"),
    ("42601", "INSERT has more expressions than target columns", "analyze.c", 1019, "transformInsertRow"),
    ("42601", "syntax error%", "scan.l", 1183, "scanner_yyerror"),
    ("42701", "column % specified more than once", "copy.c", 829, "CopyGetAttnums"),
    ("42703", "column % of relation % does not exist", "copy.c", 817, "CopyGetAttnums"),
    ("42703", "column % does not exist", "parse_relation.c", 3668, "errorMissingColumn"),
    ("42704", "unrecognized configuration parameter %", "guc.c", 5736, "find_option"),
    ("42704", "extension % does not exist", "extension.c", 197, "get_extension_oid"),
    ("42710", "extension % already exists", "extension.c", 1971, "CreateExtension"),
    ("42809", "prepared statement is not a SELECT", "prepare.c", 235, "ExecuteQuery"),
    ("42P01", "relation % does not exist", "parse_relation.c", 1394, "parserOpenTable"),
    ("42P02", "there is no parameter $%", "parse_expr.c", 840, "transformParamRef"),
    ("42P03", "cursor % already exists", "portalmem.c", 188, "CreatePortal"),
    ("42P05", "prepared statement % already exists", "prepare.c", 414, "StorePreparedStatement"),
    ("42P10", "column % is a generated column", "copy.c", 805, "CopyGetAttnums"),
    ("53300", "sorry, too many clients already", "proc.c", 359, "InitProcess"),
    ("53300", "too many connections for role %", "miscinit.c", 844, "InitializeSessionUserId"),
    ("53300", "too many connections for database %", "postinit.c", 386, "CheckMyDatabase"),
    ("55000", "cursor can only scan forward", "pquery.c", 942, "PortalRunSelect"),
    ("55000", "portal % cannot be run", "portalmem.c", 402, "MarkPortalActive"),
    ("55006", "database % is being accessed by other users", "dbcommands.c", 1640, "dropdb"),
    ("57014", "COPY from stdin failed: %", "copyfromparse.c", 317, "CopyGetData"),
    ("57014", "canceling statement due to statement timeout", "postgres.c", 3321, "ProcessInterrupts"),
    ("57014", "canceling statement due to user request", "postgres.c", 3351, "ProcessInterrupts"),
    ("57P01", "terminating connection due to administrator command", "postgres.c", 3213, "ProcessInterrupts"),
    ("57P05", "terminating connection due to idle-session timeout", "postgres.c", 3376, "ProcessInterrupts"),
];

/// Where PostgreSQL raises this error, if we know it.
pub fn find(sqlstate: &str, message: &str) -> Option<Place> {
    PLACES
        .iter()
        .find(|(state, pattern, ..)| *state == sqlstate && fits(pattern, message))
        .map(|&(_, _, file, line, routine)| Place { file, line, routine })
}

/// `%` stands for any text.
fn fits(pattern: &str, message: &str) -> bool {
    let mut parts = pattern.split('%');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = message.strip_prefix(first) else { return false };
    if !pattern.contains('%') {
        return rest.is_empty();
    }
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

impl ErrorFields {
    /// With the place of PostgreSQL's own error where it is one, else with `file` and `line` of ours. What a server has
    /// sent, or the caller has said, stays.
    pub fn at(mut self, file: &str, line: u32) -> Self {
        let place = find(self.sqlstate(), self.message());
        let (found_file, found_line, routine) = match place {
            Some(place) => (place.file, place.line, place.routine),
            None => (file.rsplit(['/', '\\']).next().unwrap_or(file), line, "pgherd"),
        };
        for (code, text) in
            [(field::FILE, found_file), (field::LINE, &found_line.to_string()), (field::ROUTINE, routine)]
        {
            if self.get(code).is_none() {
                self.set(code, text);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_postgresql_have_its_place() {
        let routine = |state, message| find(state, message).map(|place| place.routine);
        assert_eq!(routine("26000", "prepared statement \"a\" does not exist"), Some("FetchPreparedStatement"));
        assert_eq!(routine("26000", "prepared statement \"a\" does not exist any more"), None);
        assert_eq!(routine("42601", "syntax error at or near \"x\""), Some("scanner_yyerror"));
        assert_eq!(
            routine("25P01", "LOCK TABLE can only be used in transaction blocks"),
            Some("CheckTransactionBlock")
        );
        assert_eq!(
            routine("25P01", "COMMIT AND CHAIN can only be used in transaction blocks"),
            Some("EndTransactionBlock")
        );
        assert_eq!(routine("42703", "column \"b\" of relation \"t\" does not exist"), Some("CopyGetAttnums"));
        assert_eq!(routine("42703", "column \"b\" does not exist"), Some("errorMissingColumn"));
        assert_eq!(routine("0A000", "an error of our own"), None);
    }

    #[test]
    fn errors_of_our_own_have_ours_and_nothing_that_is_there_is_replaced() {
        let fields = ErrorFields::new("ERROR", "0A000", "ours").at("crates/x/src/y.rs", 7);
        let places = [field::FILE, field::LINE, field::ROUTINE].map(|code| fields.get(code).unwrap().to_owned());
        assert_eq!(places, ["y.rs", "7", "pgherd"]);
        let fields = ErrorFields::new("ERROR", "25P02", "current transaction is aborted, commands ignored")
            .with(field::ROUTINE, "exec_bind_message")
            .at("x.rs", 1);
        assert_eq!(fields.get(field::ROUTINE), Some("exec_bind_message"));
        assert_eq!(fields.get(field::FILE), Some("postgres.c"));
    }
}
