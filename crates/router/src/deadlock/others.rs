//! Sessions of other routers. A router that sees one of its own wait, and be waited for, among processes that it does
//! not know, says on the coordinator which processes that session uses, and reads what others have said. With one
//! router nothing is written.

use std::collections::BTreeMap;

use pgherd_backend::{Address, BackendError, Connection};

use crate::settings::quote_literal;

/// In place of a host.
const COORDINATOR: &str = "-";

/// The processes of a session; none of its servers' addresses is the coordinator's, which each may call something else.
pub type Processes = Vec<(Option<Address>, i32)>;

#[derive(Debug, Default)]
pub struct Others {
    /// Something of ours is written.
    has_said: bool,
}

/// A session as its router tells of it.
pub struct Told {
    pub router: u64,
    pub pid: i32,
    pub repeats: bool,
    pub processes: Processes,
}

impl Others {
    /// Nothing is to be said, or taken back.
    pub fn is_silent(&self, ours: &BTreeMap<i32, (bool, Processes)>) -> bool {
        ours.is_empty() && !self.has_said
    }

    /// Says what is to be said of ours, and hears of others'.
    pub async fn exchange(
        &mut self,
        connection: &mut Connection,
        router: u64,
        ours: &BTreeMap<i32, (bool, Processes)>,
    ) -> Result<Vec<Told>, BackendError> {
        let rows: Vec<String> = ours
            .iter()
            .map(|(pid, (repeats, processes))| format!("({pid}, {repeats}, {})", quote_literal(&written(processes))))
            .collect();
        let insert = match rows.is_empty() {
            true => String::new(),
            false => format!(
                "INSERT INTO pgherd.waiting_session (router, session, repeats, processes) \
                 SELECT '{router:016x}', v.* FROM (VALUES {}) v;",
                rows.join(", ")
            ),
        };
        // A router that has gone has nothing to say.
        let sql = format!(
            "BEGIN; DELETE FROM pgherd.waiting_session WHERE router = '{router:016x}' \
             OR seen < pg_catalog.clock_timestamp() - interval '1 minute'; {insert} COMMIT; \
             SELECT router, session, repeats, processes FROM pgherd.waiting_session \
             WHERE router <> '{router:016x}' AND seen > pg_catalog.clock_timestamp() - interval '5 seconds'"
        );
        self.has_said = true;
        let found = connection.query(&sql).await?;
        self.has_said = !ours.is_empty();
        let told = (0..found.rows.len()).filter_map(|row| {
            let text = |column| found.text(row, column);
            Some(Told {
                router: u64::from_str_radix(text(0)?, 16).ok()?,
                pid: text(1)?.parse().ok()?,
                repeats: text(2)? == "t",
                processes: read(text(3)?),
            })
        });
        Ok(told.collect())
    }
}

/// `host port pid` of each, in a line.
fn written(processes: &Processes) -> String {
    let one = |(address, pid): &(Option<Address>, i32)| match address {
        Some(address) => format!("{} {} {pid}", address.host, address.port),
        None => format!("{COORDINATOR} 0 {pid}"),
    };
    processes.iter().map(one).collect::<Vec<_>>().join("\n")
}

fn read(text: &str) -> Processes {
    let one = |line: &str| {
        let mut words = line.rsplitn(3, ' ');
        let (pid, port, host) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?);
        Some(((host != COORDINATOR).then(|| Address { host: host.to_owned(), port }), pid))
    };
    text.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let processes = vec![(None, 5), (Some(Address { host: "/tmp/x y".to_owned(), port: 5433 }), 77)];
        assert_eq!(read(&written(&processes)), processes);
        assert!(read("").is_empty());
    }
}
