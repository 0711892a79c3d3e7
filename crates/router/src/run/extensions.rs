//! Extensions that are here already. Citus's interface is ours: `CREATE EXTENSION citus` is taken as what Citus's
//! scripts begin with, and shown. postgres_fdw is on the coordinator for our own use: who makes it finds it made.

use pgherd_catalog::COORDINATOR_GROUP;
use pgherd_sql::DdlInfo;

use super::Completion;
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{quote_ident, quote_literal};

const CITUS: &str = "citus";
const FDW: &str = "postgres_fdw";

impl Session {
    /// None: an extension like any other.
    pub(super) async fn run_own_extension(&mut self, info: &DdlInfo) -> Result<Option<Completion>> {
        if info.object != "extension" || info.objects.is_empty() {
            return Ok(None);
        }
        let ours = |name: &str| matches!(name, CITUS | FDW);
        let Some(name) = info.objects.iter().map(|o| o.name.clone()).find(|name| ours(name)) else { return Ok(None) };
        if info.objects.len() > 1 {
            return Err(Failure::refused(format!("cannot drop extension {name} together with others"))
                .hint("Drop them one by one."));
        }
        self.open_implicit_block();
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        match (name.as_str(), info.tag) {
            (CITUS, "CREATE EXTENSION") => self.show_citus(info).await?,
            (CITUS, "DROP") => self.hide_citus(info).await?,
            (FDW, "DROP") => self.drop_users_servers(info).await?,
            _ => {}
        }
        let verb = info.tag.split(' ').next().unwrap_or_default();
        Ok(Some(Completion::tag(format!("{verb} EXTENSION"))))
    }

    async fn show_citus(&mut self, info: &DdlInfo) -> Result<()> {
        let made = self.call_own(COORDINATOR_GROUP, "SELECT pgherd.show_citus()").await?;
        match (made == "t" || made == "true", info.if_not_exists) {
            (true, _) => self.notice("Citus's interface is part of pgherd, and needs no extension"),
            (false, true) => self.notice("extension \"citus\" already exists, skipping"),
            (false, false) => return Err(Failure::new("42710", "extension \"citus\" already exists")),
        }
        Ok(())
    }

    async fn hide_citus(&mut self, info: &DdlInfo) -> Result<()> {
        let gone = self.call_own(COORDINATOR_GROUP, "SELECT pgherd.hide_citus()").await?;
        match (gone == "t" || gone == "true", info.if_exists) {
            (true, _) => self.notice("distributed tables stay as they are"),
            (false, true) => self.notice("extension \"citus\" does not exist, skipping"),
            (false, false) => return Err(Failure::new("42704", "extension \"citus\" does not exist")),
        }
        Ok(())
    }

    /// Of postgres_fdw, what users have made of it goes, and no more.
    async fn drop_users_servers(&mut self, info: &DdlInfo) -> Result<()> {
        let sql = format!(
            "SELECT s.srvname FROM pg_catalog.pg_foreign_server s \
             JOIN pg_catalog.pg_foreign_data_wrapper w ON w.oid = s.srvfdw \
             WHERE w.fdwname = {} AND s.srvname <> 'pgherd_router' ORDER BY s.oid",
            quote_literal(FDW)
        );
        let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        let servers: Vec<String> =
            (0..found.rows.len()).filter_map(|row| Some(found.text(row, 0)?.to_owned())).collect();
        if let Some(server) = servers.first()
            && !info.cascade
        {
            return Err(Failure::new(
                "2BP01",
                format!("cannot drop extension {FDW} because other objects depend on it"),
            )
            .detail(format!("server {server} depends on foreign-data wrapper {FDW}"))
            .hint("Use DROP ... CASCADE to drop the dependent objects too."));
        }
        for server in servers {
            let sql = format!("DROP SERVER {} CASCADE", quote_ident(&server));
            self.run_quiet(COORDINATOR_GROUP, &sql).await.map_err(super::own::without_position)?;
        }
        Ok(())
    }
}
