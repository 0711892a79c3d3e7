//! Names of prepared transactions: everything recovery needs to know is in the name.

use std::fmt;

use pgherd_catalog::GroupId;

/// `pgherd_<decider's group>_<transaction id>_<participant's group>`; at most 200 bytes, as PostgreSQL asks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Gid {
    /// Where the commit record is, or will be, or can be kept from ever being.
    pub decider: GroupId,
    /// Unique for all time: 128 random bits in hexadecimal, or what [`of_number`] gives.
    pub transaction: String,
    pub participant: GroupId,
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pgherd_{}_{}_{}", self.decider, self.transaction, self.participant)
    }
}

impl Gid {
    /// Reads a name back; none for a prepared transaction that is not ours.
    pub fn parse(name: &str) -> Option<Gid> {
        let mut parts = name.strip_prefix("pgherd_")?.split('_');
        let decider = parts.next()?.parse().ok()?;
        let transaction = parts.next()?;
        let participant = parts.next()?.parse().ok()?;
        let is_random = transaction.len() == 32 && transaction.bytes().all(|b| b.is_ascii_hexdigit());
        if parts.next().is_some() || !is_random && number_of(transaction).is_none() {
            return None;
        }
        Some(Gid { decider, transaction: transaction.to_owned(), participant })
    }
}

/// A transaction that commits with one of the decider's own, which has this number (`xid8`): the decider keeps no
/// record of it.
pub fn of_number(number: u64) -> String {
    format!("x{number}")
}

pub fn number_of(transaction: &str) -> Option<u64> {
    let digits = transaction.strip_prefix('x')?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back_as_written() {
        let gid = Gid { decider: 0, transaction: "0123456789abcdef0123456789abcdef".into(), participant: 12 };
        assert_eq!(Gid::parse(&gid.to_string()), Some(gid));
        let gid = Gid { decider: 0, transaction: of_number(u64::MAX), participant: 1 };
        assert_eq!(Gid::parse(&gid.to_string()), Some(gid));
    }

    #[test]
    fn foreign_names_are_left_alone() {
        for name in [
            "",
            "pgherd_",
            "citus_0_1_2",
            "pgherd_0_xyz_1",
            "pgherd_0_x_1",
            "pgherd_0_x+1_1",
            "pgherd_0_0123456789abcdef0123456789abcdef_1_9",
        ] {
            assert_eq!(Gid::parse(name), None, "{name}");
        }
    }
}
