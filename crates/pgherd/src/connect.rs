//! Plain connections to the router and to servers, for the few statements that commands run themselves.

use crate::failure::Failure;
use pgherd_router::CoordinatorUrl;
use std::time::Duration;
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls, SimpleQueryMessage};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// One connection, with its own small runtime; statements run one after another.
pub struct Session {
    runtime: tokio::runtime::Runtime,
    client: Client,
}

impl Session {
    /// Connects; `who` says to whom in error messages, such as `the router`.
    pub fn connect(url: &str, who: &str) -> Result<Session, Failure> {
        let mut config: Config =
            url.parse().map_err(|error| Failure::new(format!("not a connection URL: {}", with_cause(&error))))?;
        config.connect_timeout(CONNECT_TIMEOUT).application_name("pgherd");
        let runtime = runtime()?;
        let client = runtime
            .block_on(async {
                let (client, connection) = tokio::time::timeout(CONNECT_TIMEOUT, config.connect(NoTls))
                    .await
                    .map_err(|_| format!("no answer within {} seconds", CONNECT_TIMEOUT.as_secs()))?
                    .map_err(|error| with_cause(&error))?;
                tokio::spawn(connection);
                Ok(client)
            })
            .map_err(|reason: String| Failure::new(format!("could not connect to {who}: {reason}")))?;
        Ok(Session { runtime, client })
    }

    /// Runs one statement; the rows with their values as text, NULL as an empty one.
    pub fn rows(&self, sql: &str) -> Result<Vec<Vec<String>>, Failure> {
        let messages = self
            .runtime
            .block_on(self.client.simple_query(sql))
            .map_err(|error| Failure::new(format!("could not run \"{sql}\": {}", with_cause(&error))))?;
        Ok(messages
            .into_iter()
            .filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => {
                    Some((0..row.len()).map(|index| row.get(index).unwrap_or_default().to_owned()).collect())
                }
                _ => None,
            })
            .collect())
    }
}

pub fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("could not start: {error}")))
}

/// Reads `postgres://user:password@host:port/database`, libpq's form of a URL (PostgreSQL documentation, 34.1.1.2).
pub fn parse_coordinator(url: &str) -> Result<CoordinatorUrl, Failure> {
    let wrong = |reason: String| {
        Failure::new(format!("--coordinator is not a URL of a PostgreSQL server: {reason}"))
            .hint("it looks like postgres://user@host:5432/database")
    };
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(wrong("it does not start with postgres://".to_owned()));
    }
    let config: Config = url.parse().map_err(|error: tokio_postgres::Error| wrong(with_cause(&error)))?;
    let host = match config.get_hosts() {
        [Host::Tcp(host)] => host.clone(),
        [] => return Err(wrong("it names no host".to_owned())),
        [_] => return Err(wrong("a socket's directory cannot be the host".to_owned())),
        _ => return Err(wrong("it names several hosts".to_owned())),
    };
    let user = config.get_user().ok_or_else(|| wrong("it names no user".to_owned()))?.to_owned();
    let password = match config.get_password() {
        Some(password) => {
            Some(String::from_utf8(password.to_vec()).map_err(|_| wrong("its password is not UTF-8".to_owned()))?)
        }
        // Where other users of the machine cannot read it, as they can a command line.
        None => std::env::var("PGPASSWORD").ok(),
    };
    Ok(CoordinatorUrl {
        host,
        port: config.get_ports().first().copied().unwrap_or(5432),
        dbname: config.get_dbname().unwrap_or(&user).to_owned(),
        user,
        password,
    })
}

/// An error of the driver with what the server or the system said.
fn with_cause(error: &tokio_postgres::Error) -> String {
    use std::error::Error;
    if let Some(database) = error.as_db_error() {
        let mut text = format!("{} ({})", database.message(), database.code().code());
        if let Some(detail) = database.detail() {
            text.push_str(&format!("; {detail}"));
        }
        return text;
    }
    match error.source() {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn check(url: &str, expected: &str) {
        let said = match parse_coordinator(url) {
            Ok(url) => format!("{} {} {} {:?} {}", url.host, url.port, url.user, url.password, url.dbname),
            Err(failure) => failure.text().lines().next().unwrap_or_default().to_owned(),
        };
        assert_eq!(said, expected, "{url}");
    }

    #[test]
    fn coordinators_are_named_by_urls() {
        check("postgres://ann:s%40cret@db1:5433/app", "db1 5433 ann Some(\"s@cret\") app");
        check("postgresql://ann:x@db1/app", "db1 5432 ann Some(\"x\") app");
        check("postgres://ann:x@db1", "db1 5432 ann Some(\"x\") ann");
        let wrong = "pgherd: error: --coordinator is not a URL of a PostgreSQL server: ";
        check("db1:5432", &format!("{wrong}it does not start with postgres://"));
        check("postgres://db1/app", &format!("{wrong}it names no user"));
        check("postgres://ann:x@db1,db2/app", &format!("{wrong}it names several hosts"));
        check(
            "postgres://ann:x@db1:port/app",
            &format!("{wrong}invalid connection string: invalid value for option `port`"),
        );
    }
}
