//! Where a client connects, and the two sides of a comparison.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::client::Client;
use crate::{Error, Result};

/// An address with the user and database to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Option<String>,
    pub database: String,
}

impl Target {
    /// Reads `postgres://user[:password]@host:port/database[?…]` as `pgherd up` prints it. Percent signs in the parts
    /// are not decoded.
    pub fn from_url(url: &str) -> Result<Target> {
        let bad = || Error::from(format!("not a postgres:// URL: {url}"));
        let rest = url.strip_prefix("postgres://").or_else(|| url.strip_prefix("postgresql://")).ok_or_else(bad)?;
        let rest = rest.split('?').next().unwrap_or(rest);
        let (login, rest) = rest.rsplit_once('@').unwrap_or(("postgres", rest));
        let (address, database) = rest.split_once('/').unwrap_or((rest, "postgres"));
        let (host, port) = address.rsplit_once(':').unwrap_or((address, "5432"));
        let (user, password) = match login.split_once(':') {
            Some((user, password)) => (user, Some(password.to_owned())),
            None => (login, None),
        };
        Ok(Target {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: port.parse().map_err(|_| bad())?,
            user: user.to_owned(),
            password,
            database: if database.is_empty() { user.to_owned() } else { database.to_owned() },
        })
    }

    pub fn url(&self) -> String {
        let password = self.password.as_ref().map(|p| format!(":{p}")).unwrap_or_default();
        format!("postgres://{}{password}@{}:{}/{}", self.user, self.host, self.port, self.database)
    }

    pub fn with_database(&self, database: &str) -> Target {
        Target { database: database.to_owned(), ..self.clone() }
    }

    /// What libpq's programs read: `psql` and `pgbench` then need no options to connect here.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("PGHOST", self.host.clone()),
            ("PGPORT", self.port.to_string()),
            ("PGUSER", self.user.clone()),
            ("PGDATABASE", self.database.clone()),
            ("PGCONNECT_TIMEOUT", "20".to_owned()),
        ];
        if let Some(password) = &self.password {
            variables.push(("PGPASSWORD", password.clone()));
        }
        variables
    }
}

/// One of the two servers that a comparison runs on.
pub struct Side {
    /// A word for reports.
    pub name: String,
    pub target: Target,
    /// Understands the SQL interface of distribution. False: statements meant for the cluster alone are left out.
    pub is_cluster: bool,
    /// CREATE DATABASE cannot run while another one copies the same template.
    creating: Mutex<()>,
}

impl Side {
    pub fn new(name: &str, target: Target, is_cluster: bool) -> Side {
        Side { name: name.to_owned(), target, is_cluster, creating: Mutex::new(()) }
    }

    pub fn connect(&self, database: &str) -> Result<Client> {
        Client::connect(&self.target.with_database(database))
    }

    /// As the server says it, such as `15.20 (Debian 15.20-0+deb12u1)`.
    pub fn version(&self) -> Result<String> {
        self.connect(&self.target.database)?.value("SHOW server_version")
    }

    /// Makes a database that nothing else uses, replacing one of that name. `options` follow its name in the SQL.
    pub fn create_database(&self, name: &str, options: &str) -> Result<Target> {
        let _one_at_a_time = self.creating.lock();
        let mut client = self.connect(&self.target.database)?;
        client.run(&format!("DROP DATABASE IF EXISTS \"{name}\""))?;
        client.run(&format!("CREATE DATABASE \"{name}\" {options}"))?;
        Ok(self.target.with_database(name))
    }

    /// Such a database with these tables, which are `distributed` where this is a cluster.
    pub fn create_tables<S: AsRef<str>>(&self, name: &str, tables: &str, distributed: &[S]) -> Result<Client> {
        let mut client = Client::connect(&self.create_database(name, "")?)?;
        client.run(tables)?;
        for sql in distributed.iter().filter(|_| self.is_cluster) {
            client.run(sql.as_ref())?;
        }
        Ok(client)
    }
}

/// The root of the workspace, found from where this crate was compiled.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// A file of the workspace, by its path from the root.
pub fn workspace_file(path: &str) -> PathBuf {
    workspace_root().join(path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_back_as_it_was_written() {
        for url in ["postgres://me@127.0.0.1:5433/mine", "postgres://me:secret@localhost:6432/postgres"] {
            assert_eq!(Target::from_url(url).unwrap().url(), url);
        }
        assert_eq!(Target::from_url("postgresql://u@h/d?sslmode=disable").unwrap().url(), "postgres://u@h:5432/d");
        assert!(Target::from_url("http://h").is_err());
    }
}
