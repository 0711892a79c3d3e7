//! What the router remembers of those who log in, so that a connection costs no round trip to the coordinator: the
//! role's verifier and rights ([`Login`]), and what a session with given settings is told when it begins ([`Greeting`]).
//!
//! Both are forgotten when this router changes a role or a default (the generation). PostgreSQL tells nobody of changes
//! that are made elsewhere, so neither is believed for longer than [`LIFE`]. What is not plainly allowed goes to the
//! coordinator, which refuses it in its own words.

use std::rc::Rc;
use std::time::{Duration, Instant};

use pgherd_backend::{Claim, Credentials, QueryResult, connect};

use crate::error::{Failure, Result};
use crate::listen::AuthMode;
use crate::settings::{Initial, Settings, quote_literal};
use crate::shared::Thread;

/// How long a change that was made elsewhere may go unnoticed by new connections.
const LIFE: Duration = Duration::from_secs(1);
/// Logins and greetings that one thread remembers.
const LOGINS_MAX: usize = 1000;
const GREETINGS_MAX: usize = 1000;

/// A role that wants to use a database.
pub struct Login {
    user: String,
    database: String,
    generation: u64,
    read: Instant,
    /// The SCRAM verifier; none without a password, or with one that is no longer valid.
    verifier: Option<String>,
    /// The verifier is good until then.
    valid_until: Option<Instant>,
    /// It may log in and connect.
    allowed: bool,
    /// A superuser has no limits.
    is_superuser: bool,
    role_limit: Option<usize>,
    database_limit: Option<usize>,
    /// The encoding of its clients that ask for none.
    encoding: Option<String>,
    /// Defaults and memberships: what connections made before they changed are no longer good for.
    defaults: String,
}

/// What a session is told that begins with these settings.
pub struct Greeting {
    user: String,
    database: String,
    /// What a client has given, and what that means.
    given: Settings,
    pub settings: Settings,
    generation: u64,
    read: Instant,
    pub server_version: Rc<str>,
    pub initial: Rc<Initial>,
    /// ParameterStatus messages.
    pub parameters: Vec<u8>,
}

impl Login {
    /// The verifier, if the password is valid now.
    pub fn verifier(&self) -> Option<&str> {
        match self.valid_until {
            Some(end) if Instant::now() >= end => None,
            _ => self.verifier.as_deref(),
        }
    }

    /// The encoding that ALTER ROLE or ALTER DATABASE has set.
    pub fn encoding(&self) -> Option<&'static str> {
        self.encoding.as_deref().and_then(|name| crate::encoding::supported(name).ok())
    }

    fn is_fresh(&self, generation: u64) -> bool {
        self.generation == generation && self.read.elapsed() < LIFE
    }

    /// Fails where one client more is too many. The client is counted already.
    pub fn check_limits(&self, of_role: usize, in_database: usize) -> Result<()> {
        if self.is_superuser {
            return Ok(());
        }
        if self.role_limit.is_some_and(|limit| of_role > limit) {
            return Err(Failure::fatal("53300", format!("too many connections for role \"{}\"", self.user)));
        }
        if self.database_limit.is_some_and(|limit| in_database > limit) {
            return Err(Failure::fatal("53300", format!("too many connections for database \"{}\"", self.database)));
        }
        Ok(())
    }
}

/// One row, or none for a role that there is not.
fn question(source: &str, user: &str, database: &str) -> String {
    let (user, database) = (quote_literal(user), quote_literal(database));
    format!(
        "SELECT CASE WHEN r.rolvaliduntil IS NULL OR r.rolvaliduntil > pg_catalog.now() THEN r.rolpassword END, \
           CASE WHEN pg_catalog.isfinite(r.rolvaliduntil) AND r.rolvaliduntil > pg_catalog.now() \
             THEN extract(epoch FROM r.rolvaliduntil - pg_catalog.now()) END, \
           r.rolcanlogin AND d.datallowconn AND pg_catalog.has_database_privilege(r.oid, d.oid, 'CONNECT'), \
           r.rolsuper, r.rolconnlimit, d.datconnlimit, \
           pg_catalog.concat_ws(' ', r.oid, d.oid, r.rolsuper, \
             (SELECT pg_catalog.string_agg(s.setdatabase || ' ' || s.setrole || ' ' || s.setconfig::pg_catalog.text, ' ' \
                ORDER BY s.setdatabase, s.setrole) \
              FROM pg_catalog.pg_db_role_setting s WHERE s.setrole IN (0, r.oid) AND s.setdatabase IN (0, d.oid)), \
             (SELECT pg_catalog.string_agg(m.roleid::pg_catalog.text, ' ' ORDER BY m.roleid) \
              FROM pg_catalog.pg_auth_members m WHERE m.member = r.oid)), \
           (SELECT pg_catalog.split_part(c, '=', 2) \
            FROM pg_catalog.pg_db_role_setting s CROSS JOIN pg_catalog.unnest(s.setconfig) c \
            WHERE s.setrole IN (0, r.oid) AND s.setdatabase IN (0, d.oid) \
              AND pg_catalog.starts_with(c, 'client_encoding=') \
            ORDER BY s.setrole OPERATOR(pg_catalog.=) 0, s.setdatabase OPERATOR(pg_catalog.=) 0 LIMIT 1) \
         FROM {source} r LEFT JOIN pg_catalog.pg_database d ON d.datname = {database} WHERE r.rolname = {user}"
    )
}

fn read(result: &QueryResult, user: &str, database: &str, generation: u64, read: Instant) -> Login {
    let truth = |column| result.text(0, column) == Some("t");
    // No limit is -1; a database that does not accept connections for good has -2, and is not allowed.
    let limit = |column| result.text(0, column).and_then(|n| n.parse::<usize>().ok());
    let rest = result.text(0, 1).and_then(|seconds| seconds.parse::<f64>().ok());
    Login {
        user: user.to_owned(),
        database: database.to_owned(),
        generation,
        read,
        verifier: result.text(0, 0).filter(|v| v.starts_with("SCRAM-SHA-256$")).map(str::to_owned),
        // Later than the login itself is believed makes no difference.
        valid_until: rest.map(|seconds| read + Duration::from_secs_f64(seconds.clamp(0.0, 60.0))),
        allowed: truth(2),
        is_superuser: truth(3),
        role_limit: limit(4),
        database_limit: limit(5),
        encoding: result.text(0, 7).map(str::to_owned),
        defaults: result.text(0, 6).unwrap_or_default().to_owned(),
    }
}

impl Thread {
    /// What there is to know of a role that wants to use a database.
    pub async fn login(&self, user: &str, database: &str) -> Result<Rc<Login>> {
        if let Some(login) = self.known_login(user, database)
            && login.is_fresh(self.shared.generation())
        {
            return Ok(login);
        }
        // Passwords are for superusers to read; without them everyone may ask.
        let source = match self.shared.config.auth {
            AuthMode::Trust => "pg_catalog.pg_roles",
            AuthMode::ScramSha256 => "pg_catalog.pg_authid",
        };
        let target = self.shared.own_target(&self.shared.config.coordinator.dbname);
        let mut lease = self.pool().lease(&target, Claim::Aside, |_| true).await?;
        // Somebody else may have asked the same while we waited for our turn.
        let generation = self.shared.generation();
        let known = self.known_login(user, database);
        if let Some(login) = &known
            && login.is_fresh(generation)
        {
            return Ok(login.clone());
        }
        let asked = Instant::now();
        let result = lease.query(&question(source, user, database)).await?;
        drop(lease);
        let login = Rc::new(read(&result, user, database, generation, asked));
        if known.is_some_and(|known| known.defaults != login.defaults) {
            self.shared.forget_connections();
        }
        let mut logins = self.logins.borrow_mut();
        logins.retain(|l| l.user != user || l.database != database);
        // Names that nobody has are not worth remembering.
        if !result.rows.is_empty() {
            if logins.len() >= LOGINS_MAX {
                // Who is forgotten cannot be seen to change.
                logins.clear();
                self.pool().forget_all();
            }
            logins.push(login.clone());
        }
        Ok(login)
    }

    fn known_login(&self, user: &str, database: &str) -> Option<Rc<Login>> {
        self.logins.borrow().iter().find(|l| l.user == user && l.database == database).cloned()
    }

    /// After a wrong password: it may have been changed elsewhere.
    pub fn forget_login(&self, user: &str) {
        self.logins.borrow_mut().retain(|login| login.user != user);
    }

    /// Fails, in the coordinator's words, where the role may not use the database.
    pub async fn check_allowed(&self, login: &Login, credentials: &Credentials) -> Result<()> {
        if login.allowed {
            return Ok(());
        }
        let mut target = self.shared.own_target(&login.database);
        target.user = login.user.clone();
        target.credentials = credentials.clone();
        connect(&target).await?.close().await;
        Ok(())
    }

    /// What a session with these settings is told, if another one was told it just now.
    pub fn greeting(&self, user: &str, database: &str, settings: &Settings) -> Option<Rc<Greeting>> {
        let generation = self.shared.generation();
        let greetings = self.greetings.borrow();
        let found = greetings.iter().find(|g| g.user == user && g.database == database && g.given == *settings)?;
        (found.generation == generation && found.read.elapsed() < LIFE).then(|| found.clone())
    }

    /// Remembers what the coordinator says to `settings`; asked at `read`, under `generation`.
    pub fn remember_greeting(
        &self,
        (user, database): (&str, &str),
        (given, settings): (&Settings, &Settings),
        (generation, read): (u64, Instant),
        (server_version, initial): (&Rc<str>, &Rc<Initial>),
        parameters: &[u8],
    ) {
        let mut greetings = self.greetings.borrow_mut();
        greetings.retain(|g| g.user != user || g.database != database || g.given != *given);
        if greetings.len() >= GREETINGS_MAX {
            greetings.retain(|g| g.generation == generation && g.read.elapsed() < LIFE);
            if greetings.len() >= GREETINGS_MAX {
                greetings.clear();
            }
        }
        greetings.push(Rc::new(Greeting {
            user: user.to_owned(),
            database: database.to_owned(),
            given: given.clone(),
            settings: settings.clone(),
            generation,
            read,
            server_version: server_version.clone(),
            initial: initial.clone(),
            parameters: parameters.to_vec(),
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn login(row: [Option<&str>; 7]) -> Login {
        let row = row.iter().map(|v| v.map(|v| Bytes::copy_from_slice(v.as_bytes()))).collect();
        let result = QueryResult { rows: vec![row], ..QueryResult::default() };
        read(&result, "u", "d", 0, Instant::now())
    }

    #[test]
    fn a_password_that_runs_out_is_not_good_for_the_rest_of_a_life() {
        let verifier = Some("SCRAM-SHA-256$x");
        assert!(login([verifier, None, Some("t"), Some("f"), Some("-1"), Some("-1"), None]).verifier().is_some());
        assert!(login([verifier, Some("30"), Some("t"), Some("f"), None, None, None]).verifier().is_some());
        assert!(login([verifier, Some("0"), Some("t"), Some("f"), None, None, None]).verifier().is_none());
        assert!(login([Some("md5x"), None, Some("t"), Some("f"), None, None, None]).verifier().is_none());
    }

    #[test]
    fn limits_count_the_client_itself_and_spare_superusers() {
        let limited = login([None, None, Some("t"), Some("f"), Some("2"), Some("3"), None]);
        assert!(limited.check_limits(2, 3).is_ok());
        let refused = limited.check_limits(3, 3).err().map(|f| f.sqlstate().to_owned());
        assert_eq!(refused.as_deref(), Some("53300"));
        assert!(limited.check_limits(2, 4).is_err());
        assert!(login([None, None, Some("t"), Some("t"), Some("0"), Some("0"), None]).check_limits(9, 9).is_ok());
        assert!(login([None, None, Some("t"), Some("f"), Some("-1"), Some("-1"), None]).check_limits(9, 9).is_ok());
    }
}
