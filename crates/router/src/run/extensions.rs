//! Extensions that are here already. Citus's interface is ours: `CREATE EXTENSION citus` is taken as what Citus's
//! scripts begin with, and shown. postgres_fdw is on the coordinator for our own use, in our schema: who makes it gets
//! it in theirs.

use pgherd_catalog::COORDINATOR_GROUP;
use pgherd_sql::DdlInfo;

use super::Completion;
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{quote_ident, quote_literal};
use crate::transaction::Reach;

const CITUS: &str = "citus";
const FDW: &str = "postgres_fdw";

impl Session {
    /// None: an extension like any other.
    pub(super) async fn run_own_extension(&mut self, info: &DdlInfo, text: &str) -> Result<Option<Completion>> {
        if info.object != "extension" || info.objects.is_empty() {
            return Ok(None);
        }
        let ours = |name: &str| matches!(name, CITUS | FDW);
        let Some(name) = info.objects.iter().map(|o| o.name.clone()).find(|name| ours(name)) else { return Ok(None) };
        let is_moved = info.tag.starts_with("SET");
        if name == FDW && !is_moved && !matches!(info.tag, "CREATE EXTENSION" | "DROP") {
            return Ok(None);
        }
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
            (FDW, "CREATE EXTENSION") => self.show_fdw(info, text).await?,
            (FDW, "DROP") => self.hide_fdw(info).await?,
            (FDW, _) => self.take_fdw(text).await?,
            _ => {}
        }
        if is_moved {
            return Ok(Some(Completion::tag("ALTER EXTENSION")));
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

    /// Where it is: in our schema nobody has made it yet.
    async fn home_of_fdw(&mut self) -> Result<(bool, bool)> {
        let sql = format!(
            "SELECT e.extnamespace <> 'pgherd'::pg_catalog.regnamespace, \
             (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = current_user) \
             FROM pg_catalog.pg_extension e WHERE e.extname = {}",
            quote_literal(FDW)
        );
        let found = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        Ok((found.text(0, 0) == Some("t"), found.text(0, 1) == Some("t")))
    }

    async fn move_fdw(&mut self, schema: &str) -> Result<()> {
        let call = format!("SELECT pgherd.move_fdw({})", quote_literal(schema));
        self.call_own(COORDINATOR_GROUP, &call).await?;
        self.after_ddl(Reach::Local).await
    }

    /// It goes to the schema where the user wants it, and is shown from then on.
    async fn show_fdw(&mut self, info: &DdlInfo, text: &str) -> Result<()> {
        let (is_made, is_superuser) = self.home_of_fdw().await?;
        match (is_made, info.if_not_exists) {
            (true, true) => {
                self.notice(&format!("extension \"{FDW}\" already exists, skipping"));
                return Ok(());
            }
            (true, false) => return Err(Failure::new("42710", format!("extension \"{FDW}\" already exists"))),
            (false, _) => {}
        }
        if !is_superuser {
            return Err(Failure::new("42501", format!("permission denied to create extension \"{FDW}\""))
                .hint("Must be superuser to create this extension."));
        }
        let schema = match pgherd_sql::schema_of_extension(text) {
            Some(schema) => schema,
            None => {
                let found = self.collect_on(COORDINATOR_GROUP, "SELECT current_schema()").await?;
                let none = || Failure::new("3F000", "no schema has been selected to create in");
                found.text(0, 0).ok_or_else(none)?.to_owned()
            }
        };
        self.move_fdw(&schema).await
    }

    /// ALTER EXTENSION … SET SCHEMA.
    async fn take_fdw(&mut self, text: &str) -> Result<()> {
        let (is_made, is_superuser) = self.home_of_fdw().await?;
        if !is_made {
            return Err(Failure::new("42704", format!("extension \"{FDW}\" does not exist")));
        }
        if !is_superuser {
            return Err(Failure::new("42501", format!("must be owner of extension {FDW}")));
        }
        let Some(schema) = pgherd_sql::schema_of_extension(text) else { return Ok(()) };
        self.move_fdw(&schema).await
    }

    /// Before DROP SCHEMA … CASCADE of the one where users have made it: with it would go what leads to the router.
    pub(super) async fn leave_schema(&mut self, info: &DdlInfo) -> Result<()> {
        if info.tag != "DROP" || info.object != "schema" || !info.cascade {
            return Ok(());
        }
        let names: Vec<String> = info.objects.iter().map(|name| quote_literal(&name.name)).collect();
        let sql = format!(
            "SELECT FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace \
             WHERE e.extname = {} AND n.nspname IN ({}) AND pg_catalog.pg_has_role(n.nspowner, 'USAGE')",
            quote_literal(FDW),
            names.join(", ")
        );
        if !self.ask_coordinator(&sql).await?.rows.is_empty() {
            self.open_implicit_block();
            self.join(COORDINATOR_GROUP).await?;
            self.mark_writer(COORDINATOR_GROUP);
            self.drop_users_servers(info).await?;
            self.move_fdw("pgherd").await?;
        }
        Ok(())
    }

    async fn hide_fdw(&mut self, info: &DdlInfo) -> Result<()> {
        let (is_made, is_superuser) = self.home_of_fdw().await?;
        match (is_made, info.if_exists) {
            // Whoever has made servers of it before this version.
            (false, true) => self.notice(&format!("extension \"{FDW}\" does not exist, skipping")),
            (false, false) => return Err(Failure::new("42704", format!("extension \"{FDW}\" does not exist"))),
            (true, _) if !is_superuser => {
                return Err(Failure::new("42501", format!("must be owner of extension {FDW}")));
            }
            (true, _) => {
                self.drop_users_servers(info).await?;
                self.move_fdw("pgherd").await?;
            }
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
