//! How a server converts an encoding, as SQL that asks it.

/// Leaves what the server does with every character of an encoding in a setting of the session.
pub fn learn(encoding: &str) -> String {
    include_str!("../sql/encoding.sql").replace("ENCODING", encoding)
}

/// Reads it.
pub const LEARNED: &str = "SELECT pg_catalog.current_setting('pgherd.learned')";
