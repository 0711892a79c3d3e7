//! SET, SHOW, RESET, DISCARD and ALTER SYSTEM: the coordinator checks and answers, the session remembers, the other
//! servers are told when they are next used.

use std::collections::{BTreeMap, HashSet};

use pgherd_catalog::{COORDINATOR_GROUP, GroupId};
use pgherd_sql::{DiscardKind, Name, SetInfo, SetKind, StatementKind};
use pgherd_wire::backend;

use super::{Call, Completion, keeps_snapshot};
use crate::error::{Failure, Result};
use crate::session::Session;
use crate::settings::{self, Verdict, quote_literal};
use crate::transaction::{Block, LogItem, QUOTES_NAMES, READ_ONLY};

impl Session {
    pub(super) async fn run_state(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        let puts_back = match kind {
            StatementKind::Reset { .. } | StatementKind::Discard(DiscardKind::All) => true,
            StatementKind::Set(set) => set.is_default,
            _ => false,
        };
        if !puts_back || self.startup_settings.is_empty() {
            return self.run_state_now(call, kind).await;
        }
        // Servers know the role's defaults, not what the client gave when it connected: it hears of the outcome.
        self.join(COORDINATOR_GROUP).await?;
        self.reported = Some(self.coordinator_parameters());
        let result = self.run_state_now(call, kind).await;
        let before = self.reported.take().unwrap_or_default();
        for (name, value) in self.coordinator_parameters() {
            if before.get(&name) != Some(&value) && name != "client_encoding" {
                backend::write_parameter_status(&mut self.client.out, &name, &value);
            }
        }
        result
    }

    /// What the session's connection to the coordinator has reported.
    fn coordinator_parameters(&self) -> BTreeMap<String, String> {
        let participant = self.txn.participants.get(&COORDINATOR_GROUP);
        participant.map(|participant| participant.lease.parameters.clone()).unwrap_or_default()
    }

    async fn run_state_now(&mut self, call: &Call<'_>, kind: &StatementKind) -> Result<Completion> {
        let text = call.prepared.text();
        match kind {
            StatementKind::Set(set) => self.run_set(call, set).await,
            StatementKind::Show { name } => self.run_show(call, name).await,
            StatementKind::Reset { name: Some(name) } => {
                settings::check_own(name, None)?;
                if name == "client_encoding" {
                    let completion = self.run_on_coordinator(call, text, false).await?;
                    self.reset_client_encoding();
                    return Ok(completion);
                }
                if let Some(value) = self.startup_settings.get(name).cloned() {
                    self.set_again(name, &value).await?;
                    return Ok(Completion::tag("RESET"));
                }
                let completion = self.run_on_coordinator(call, text, false).await?;
                self.follow_reset(name).await?;
                Ok(completion)
            }
            StatementKind::Reset { name: None } => {
                let completion = self.run_on_coordinator(call, text, false).await?;
                let made = self.users_settings();
                self.settings.retain(settings::outlives_reset_all);
                self.log(LogItem::Raw("RESET ALL".into()));
                self.told(COORDINATOR_GROUP);
                if self.txn.block == Block::None
                    && let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP)
                {
                    participant.lease.applied.retain(settings::outlives_reset_all);
                }
                self.keep_made(&made).await?;
                self.set_startup_again().await?;
                self.reset_client_encoding();
                self.forget_search_path();
                Ok(completion)
            }
            StatementKind::Discard(what) => self.run_discard(call, *what).await,
            StatementKind::SetConstraints { names, deferred } => {
                let completion = self.run_on_coordinator(call, text, false).await?;
                if self.txn.block != Block::None {
                    self.log(LogItem::Raw(constraints_on_worker(text, names, *deferred)));
                    self.told(COORDINATOR_GROUP);
                    if !deferred {
                        self.check_constraints_on_workers().await?;
                    }
                }
                Ok(completion)
            }
            StatementKind::AlterSystem(set) => self.run_alter_system(call, set).await,
            _ => Err(Failure::new("XX000", "not a setting statement")),
        }
    }

    /// SET CONSTRAINTS … IMMEDIATE checks what was deferred until now.
    async fn check_constraints_on_workers(&mut self) -> Result<()> {
        self.run_on_asked_workers("SELECT").await.map(drop)
    }

    /// On the workers that take part by now; which they are.
    async fn run_on_asked_workers(&mut self, sql: &str) -> Result<Vec<GroupId>> {
        let groups: Vec<_> = self.txn.participants.keys().copied().filter(|g| *g != COORDINATOR_GROUP).collect();
        for group in &groups {
            self.join(*group).await?;
            if let Err(failure) = self.run_quiet(*group, sql).await {
                return Err(super::own::without_position(self.localise(failure)));
            }
        }
        Ok(groups)
    }

    async fn run_set(&mut self, call: &Call<'_>, set: &SetInfo) -> Result<Completion> {
        let text = call.prepared.text();
        match set.kind {
            SetKind::Transaction | SetKind::TransactionSnapshot => {
                if set.kind == SetKind::Transaction {
                    return self.set_modes(call, text, set.modes.isolation.as_deref()).await;
                }
                self.tell_read_aside().await?;
                let completion = self.run_on_coordinator(call, text, false).await?;
                if self.txn.block != Block::None {
                    let exported = set.values.first().and_then(|id| self.thread.shared.exported(id));
                    self.log(match exported {
                        Some(ids) => LogItem::Snapshots(ids),
                        None => LogItem::Raw(text.to_owned()),
                    });
                    self.told(COORDINATOR_GROUP);
                    // One that is given belongs to one server: the others are not asked.
                    self.txn.keeps_snapshot = Some(false);
                }
                return Ok(completion);
            }
            SetKind::SessionCharacteristics => {
                let completion = self.run_on_coordinator(call, text, false).await?;
                for name in
                    ["default_transaction_isolation", "default_transaction_read_only", "default_transaction_deferrable"]
                {
                    self.follow(name, false).await?;
                }
                return Ok(completion);
            }
            _ => {}
        }
        let value = set.values.join(", ");
        let verdict = settings::check_own(&set.name, (!set.is_default).then_some(value.as_str()))?;
        if verdict == Verdict::NoEffect {
            self.notice(&format!("{} has no effect in pgherd", set.name));
        }
        if set.name == "client_encoding" {
            let value = (!set.is_default).then_some(value.as_str());
            let charset = self.charset_of(value).await?;
            let word = if set.local { "LOCAL" } else { "SESSION" };
            // The coordinator says what it says of any SET.
            let same = format!("SET {word} client_encoding = 'UTF8'");
            let completion = self.run_on_coordinator(call, &same, false).await?;
            self.set_client_encoding(charset, set.local);
            return Ok(completion);
        }
        if matches!(set.name.as_str(), "transaction_isolation" | "transaction_read_only" | "transaction_deferrable") {
            let level = (set.name == "transaction_isolation").then_some(value.as_str());
            return self.set_modes(call, text, level).await;
        }
        let local = set.local && self.txn.block != Block::None;
        if local
            && set.is_default
            && let Some(value) = self.startup_settings.get(&set.name).cloned()
        {
            self.join(COORDINATOR_GROUP).await?;
            self.collect_on(COORDINATOR_GROUP, &settings::assignment(&set.name, &value, true)).await?;
            self.follow(&set.name, true).await?;
            return Ok(Completion::tag("SET"));
        }
        let is_plain = !set.is_default && !set.values.is_empty();
        let is_quiet = local && is_plain && settings::is_quiet(&set.name);
        if is_quiet && self.set_as_before(&set.name, &value) {
            return Ok(Completion::tag("SET"));
        }
        self.making = vec![set.name.clone()];
        let joined = self.join_making().await;
        joined?;
        let completion = self.run_on_coordinator(call, text, false).await?;
        let before = self.txn.settings_before.as_ref().unwrap_or(&self.settings);
        if self.txn.block != Block::None && settings::is_users(&set.name) && !before.contains_key(&set.name) {
            // It stays, empty, when the block is over.
            self.txn.body_settings.insert(set.name.clone());
        }
        if set.local && !local {
            // PostgreSQL has warned; nothing stays.
            if settings::is_users(&set.name) && !self.settings.contains_key(&set.name) {
                self.keep_made(std::slice::from_ref(&set.name)).await?;
            }
            return Ok(completion);
        }
        if set.is_default
            && !local
            && let Some(value) = self.startup_settings.get(&set.name).cloned()
        {
            self.set_again(&set.name, &value).await?;
            return Ok(completion);
        }
        if set.is_default && !local {
            self.follow_reset(&set.name).await?;
            return Ok(completion);
        }
        self.follow(&set.name, local).await?;
        if is_quiet {
            self.note_set(&set.name, &value);
        }
        Ok(completion)
    }

    /// SET LOCAL of a value that the coordinator has taken before, where it has nothing to do with the block yet: it is
    /// told with what comes next, as all others are.
    fn set_as_before(&mut self, name: &str, value: &str) -> bool {
        if self.txn.block != Block::Explicit || self.txn.participants.contains_key(&COORDINATOR_GROUP) {
            return false;
        }
        let key = (self.role_in_force(), name.to_owned(), value.to_owned());
        let Some(shown) = self.thread.values_set.borrow().get(&key).cloned() else { return false };
        self.log(LogItem::Set { name: name.to_owned(), value: shown, local: true });
        true
    }

    fn note_set(&mut self, name: &str, value: &str) {
        const VALUES_MAX: usize = 10_000;
        let Some(LogItem::Set { name: set, value: shown, .. }) = self.txn.log.last() else { return };
        if set == name {
            let mut known = self.thread.values_set.borrow_mut();
            if known.len() >= VALUES_MAX {
                known.clear();
            }
            known.insert((self.role_in_force(), name.to_owned(), value.to_owned()), shown.clone());
        }
    }

    /// It may be too late to set what a transaction begins with: a server that has run a query knows.
    async fn tell_read_aside(&mut self) -> Result<()> {
        if self.txn.read_aside && self.txn.block == Block::Explicit {
            self.join(COORDINATOR_GROUP).await?;
            self.collect_on(COORDINATOR_GROUP, "SELECT").await?;
        }
        Ok(())
    }

    /// What `sql` sets is the transaction's. The other servers are not to be asked for it by a query, after which it
    /// could not be set.
    pub(super) async fn set_modes(&mut self, call: &Call<'_>, sql: &str, level: Option<&str>) -> Result<Completion> {
        self.save_before_read_only(sql);
        self.tell_read_aside().await?;
        let completion = self.run_on_coordinator(call, sql, false).await?;
        if self.txn.block != Block::None {
            // A worker that has run something knows when it is too late for that.
            let asked = self.run_on_asked_workers(sql).await?;
            self.log(LogItem::Modes(sql.to_owned()));
            self.told(COORDINATOR_GROUP);
            asked.into_iter().for_each(|group| self.told(group));
            if let Some(level) = level {
                self.txn.keeps_snapshot = keeps_snapshot(level);
            }
        }
        Ok(completion)
    }

    /// Before a statement that may turn a transaction that has written into one that only reads.
    pub(super) fn save_before_read_only(&mut self, sql: &str) {
        let lower = sql.to_ascii_lowercase();
        let turns = lower.contains("transaction_read_only") || lower.contains("read") && lower.contains("only");
        let has_written = self.txn.participants.values().any(|p| p.wrote);
        if turns && has_written && self.txn.block != Block::None && !self.has_savepoint(READ_ONLY) {
            self.savepoint(READ_ONLY);
        }
    }

    /// Puts a setting back to what the client gave when it connected; it hears of it as of any SET.
    async fn set_again(&mut self, name: &str, value: &str) -> Result<()> {
        self.join(COORDINATOR_GROUP).await?;
        self.collect_on(COORDINATOR_GROUP, &settings::assignment(name, value, false)).await?;
        self.follow(name, false).await
    }

    async fn set_startup_again(&mut self) -> Result<()> {
        for (name, value) in &self.startup_settings.clone() {
            self.set_again(name, value).await?;
        }
        Ok(())
    }

    /// Takes over a setting's value from the coordinator connection where it was just set.
    async fn follow(&mut self, name: &str, local: bool) -> Result<()> {
        if name == "seed" {
            // Nobody can read it. The numbers that follow are those of the session's own connection.
            self.pin = true;
            return Ok(());
        }
        // SHOW takes no snapshot.
        let sql = format!("SHOW {}", settings::quote_setting(name));
        let result = self.collect_on(COORDINATOR_GROUP, &sql).await?;
        if let Some(value) = result.text(0, 0).map(str::to_owned) {
            self.set_followed(name, value, local);
        }
        if name == "session_authorization" && !local {
            self.forget_role();
        }
        if name == QUOTES_NAMES
            && let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP)
        {
            participant.lease.alone = true;
        }
        if matches!(name, "search_path" | "role" | "session_authorization") {
            self.forget_search_path();
        }
        Ok(())
    }

    /// Another session user has no role set.
    fn forget_role(&mut self) {
        self.settings.remove("role");
        if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
            participant.lease.applied.remove("role");
        }
    }

    /// After RESET of a setting.
    async fn follow_reset(&mut self, name: &str) -> Result<()> {
        self.settings.remove(name);
        self.forget_after_reset(name);
        if settings::is_users(name) {
            self.keep_made(&[name.to_owned()]).await?;
        }
        Ok(())
    }

    fn users_settings(&self) -> Vec<String> {
        self.settings.keys().filter(|name| settings::is_users(name)).cloned().collect()
    }

    /// Those that are empty now, and not gone, on the coordinator's connection are so in this session from now on.
    async fn keep_made(&mut self, names: &[String]) -> Result<()> {
        for name in names {
            let sql = format!("SHOW {}", settings::quote_setting(name));
            if self.collect_on(COORDINATOR_GROUP, &sql).await?.text(0, 0) == Some("") {
                self.set_followed(name, String::new(), false);
            }
        }
        Ok(())
    }

    fn forget_after_reset(&mut self, name: &str) {
        if name == "session_authorization" {
            self.forget_role();
        }
        if self.txn.block == Block::None {
            if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
                participant.lease.applied.remove(name);
            }
        } else {
            self.log(LogItem::Raw(format!("RESET {}", settings::quote_setting(name))));
            self.told(COORDINATOR_GROUP);
        }
        self.forget_search_path();
    }

    async fn run_show(&mut self, call: &Call<'_>, name: &str) -> Result<Completion> {
        let encoding = Some(self.encoding.name()).filter(|_| name == "client_encoding");
        if !settings::is_own(name) && encoding.is_none() {
            return self.run_on_coordinator(call, call.prepared.text(), false).await;
        }
        let value = match encoding {
            Some(encoding) => Some(encoding.to_owned()),
            None => self.own_setting(name).await?,
        };
        let Some(value) = value else {
            return Err(settings::unknown(name));
        };
        if call.describes() {
            let mut field = backend::FieldDescription::text(name);
            field.type_oid = 25;
            backend::write_row_description(&mut self.client.out, &[field]);
        }
        backend::write_data_row(&mut self.client.out, &[Some(value.as_bytes())]);
        Ok(Completion::tag("SHOW"))
    }

    /// A setting of ours: the session's, the role's or database's, the system's, or the default.
    pub async fn own_setting(&mut self, name: &str) -> Result<Option<String>> {
        if let Some(value) = self.settings.get(name) {
            return Ok(Some(value.clone()));
        }
        let literal = quote_literal(name);
        let result = self
            .ask_coordinator(&format!(
                "SELECT coalesce(nullif(pg_catalog.current_setting({literal}, true), ''), \
                 (SELECT value FROM pgherd.setting WHERE name = {literal}))"
            ))
            .await?;
        Ok(result.text(0, 0).map(str::to_owned).or_else(|| settings::default_of(name).map(str::to_owned)))
    }

    /// PostgreSQL before 16 refuses ALTER SYSTEM for names with a dot: ours are kept in a table of our own.
    async fn run_alter_system(&mut self, call: &Call<'_>, set: &SetInfo) -> Result<Completion> {
        if !(set.name.starts_with("citus.") || set.name.starts_with("pgherd.")) {
            return self.run_on_coordinator(call, call.prepared.text(), true).await;
        }
        let value = set.values.join(", ");
        let verdict = settings::check_own(&set.name, (!set.is_default).then_some(value.as_str()))?;
        if verdict == Verdict::NoEffect {
            self.notice(&format!("{} has no effect in pgherd", set.name));
        }
        let name = quote_literal(&set.name);
        let sql = if set.is_default {
            format!("DELETE FROM pgherd.setting WHERE name = {name}")
        } else {
            format!(
                "INSERT INTO pgherd.setting VALUES ({name}, {}) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                quote_literal(&value)
            )
        };
        self.join(COORDINATOR_GROUP).await?;
        self.mark_writer(COORDINATOR_GROUP);
        self.run_quiet(COORDINATOR_GROUP, &sql).await?;
        Ok(Completion::tag("ALTER SYSTEM"))
    }

    async fn run_discard(&mut self, call: &Call<'_>, what: DiscardKind) -> Result<Completion> {
        let completion = self.run_on_coordinator(call, call.prepared.text(), false).await?;
        match what {
            DiscardKind::All => {
                let made = self.users_settings();
                self.settings.clear();
                self.forget_named();
                self.there.clear();
                self.portals.clear();
                self.temp.clear();
                self.pin = false;
                self.drawn.clear();
                self.last_drawn = None;
                if let Some(participant) = self.txn.participants.get_mut(&COORDINATOR_GROUP) {
                    participant.lease.applied.clear();
                    participant.lease.prepared.clear();
                    participant.lease.tainted = false;
                }
                self.keep_made(&made).await?;
                self.set_startup_again().await?;
                self.reset_client_encoding();
                self.forget_search_path();
            }
            DiscardKind::Temp => self.keep_temporary(HashSet::new()),
            DiscardKind::Sequences => {
                self.drawn.clear();
                self.last_drawn = None;
            }
            DiscardKind::Plans => {}
        }
        Ok(completion)
    }
}

/// SET CONSTRAINTS as a worker runs it. Foreign keys between colocated tables are there constraints of partitions, in
/// the schemas of shards; and a worker may have none of that name.
fn constraints_on_worker(text: &str, names: &[Name], deferred: bool) -> String {
    if names.is_empty() {
        return text.to_owned();
    }
    let conditions: Vec<String> = names
        .iter()
        .map(|name| {
            let place = match &name.schema {
                Some(schema) => {
                    let schema = quote_literal(schema);
                    format!(
                        "(n.nspname = {schema} OR EXISTS (SELECT FROM pg_catalog.pg_inherits i \
                             JOIN pg_catalog.pg_class p ON p.oid = i.inhparent \
                             JOIN pg_catalog.pg_namespace s ON s.oid = p.relnamespace \
                             WHERE i.inhrelid = c.conrelid AND s.nspname = {schema}))"
                    )
                }
                None => {
                    "(n.nspname ~ '^pgherd_[0-9]+$' OR n.nspname = ANY (pg_catalog.current_schemas(true)))".to_owned()
                }
            };
            format!("c.conname = {} AND {place}", quote_literal(&name.name))
        })
        .collect();
    let body = format!(
        "DECLARE list text; BEGIN \
             SELECT pg_catalog.string_agg(pg_catalog.format('%I.%I', n.nspname, c.conname), ', ') INTO list \
                 FROM pg_catalog.pg_constraint c JOIN pg_catalog.pg_namespace n ON n.oid = c.connamespace \
                 WHERE c.condeferrable AND ({}); \
             IF list IS NOT NULL THEN EXECUTE 'SET CONSTRAINTS ' || list || ' {}'; END IF; \
         END",
        conditions.join(" OR "),
        if deferred { "DEFERRED" } else { "IMMEDIATE" }
    );
    format!("DO {}", quote_literal(&body))
}
