//! A statement as the session holds it: parsed once, planned once per catalog, described once by the coordinator.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use pgherd_catalog::{COORDINATOR_GROUP, FIRST_USER_OID, GroupId, Snapshot, SnapshotId};
use pgherd_planner::{Given, Now, Plan, Tier};
use pgherd_sql::{Statement, StatementKind};

use super::Session;
use super::ride::Compiled;
use super::rows::CompiledRows;
use crate::describe::Described;
use crate::error::Result;
use crate::transaction::{Block, CLOCK, LogItem};

/// Numbers for server-side statements: unique in this process, so that a name on a server connection means one text.
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A number that no statement on any server connection has yet.
pub fn next_id() -> u64 {
    NEXT_ID.fetch_add(1, Ordering::Relaxed)
}

/// A statement that the client gave a name, by Parse or by PREPARE: what `pg_prepared_statements` shows of it.
#[derive(Clone)]
pub struct Named {
    pub prepared: Rc<Prepared>,
    /// The text of the PREPARE that made it; none: Parse did.
    pub from_sql: Option<String>,
    /// The session's coordinator connection has it under the same name.
    pub there: bool,
    pub made: SystemTime,
}

impl Named {
    pub fn new(prepared: Rc<Prepared>, from_sql: Option<String>) -> Named {
        Named { prepared, from_sql, there: false, made: SystemTime::now() }
    }

    /// What the client sent to make it.
    pub fn source(&self) -> &str {
        self.from_sql.as_deref().unwrap_or_else(|| self.prepared.source())
    }
}

pub struct Prepared {
    /// None for the empty statement.
    pub statement: Option<Statement>,
    /// What the client sent, where that is more than the statement's own text.
    source: Option<String>,
    /// The client's text where a backslash in a plain literal escapes: the statement has it as `E'…'`.
    plain: Option<String>,
    /// Types that the client declared in Parse.
    pub declared: Vec<u32>,
    moves: OnceCell<bool>,
    reads_settings: OnceCell<bool>,
    /// Parameter and result types as the coordinator gives them.
    described: RefCell<Option<Told>>,
    plan: RefCell<Option<Planned>>,
    compiled: RefCell<Option<Rc<Compiled>>>,
    /// The same where the transaction's time is a value that the router gives.
    timed: RefCell<Option<Planned>>,
    compiled_timed: RefCell<Option<Rc<Compiled>>>,
    rows: RefCell<Option<Rc<CompiledRows>>>,
}

/// What clients were told of a statement, and under which catalog and search path.
#[derive(Clone)]
pub(super) struct Told {
    pub catalog: SnapshotId,
    pub path: Rc<Vec<String>>,
    pub described: Rc<Described>,
}

/// A plan, good for one catalog, search path and set of temporary names.
struct Planned {
    catalog: SnapshotId,
    search_path: Rc<Vec<String>>,
    plan: Rc<Plan>,
    id: u64,
}

impl Prepared {
    pub fn new(statement: Option<Statement>, source: &str, declared: Vec<u32>) -> Rc<Prepared> {
        let same = statement.as_ref().is_some_and(|s| s.text == source);
        let source = (!same).then(|| source.to_owned());
        Rc::new(Prepared {
            statement,
            source,
            plain: None,
            declared,
            moves: OnceCell::new(),
            reads_settings: OnceCell::new(),
            described: RefCell::new(None),
            plan: RefCell::new(None),
            compiled: RefCell::new(None),
            timed: RefCell::new(None),
            compiled_timed: RefCell::new(None),
            rows: RefCell::new(None),
        })
    }

    /// The only statement of a Query that was read with its plain literals as `E'…'`.
    fn of_plain(statement: Statement, sql: &str) -> Rc<Prepared> {
        let mut prepared = Prepared::new(Some(statement), sql, Vec::new());
        if let Some(prepared) = Rc::get_mut(&mut prepared) {
            prepared.plain = Some(sql.to_owned());
        }
        prepared
    }

    /// A statement that is run once, whose text is all there is to it.
    fn of_text(statement: Statement) -> Rc<Prepared> {
        Rc::new(Prepared {
            statement: Some(statement),
            source: None,
            plain: None,
            declared: Vec::new(),
            moves: OnceCell::new(),
            reads_settings: OnceCell::new(),
            described: RefCell::new(None),
            plan: RefCell::new(None),
            compiled: RefCell::new(None),
            timed: RefCell::new(None),
            compiled_timed: RefCell::new(None),
            rows: RefCell::new(None),
        })
    }

    /// Servers that keep the text would go on with the moment at which they parsed it.
    pub fn moves(&self) -> bool {
        *self.moves.get_or_init(|| self.statement.as_ref().is_some_and(pgherd_planner::has_moving_words))
    }

    /// Literals of the text may be read by DateStyle, TimeZone and their like, when a server parses it. What it kept
    /// under other settings would be another statement; a lane never has others.
    pub fn reads_settings(&self) -> bool {
        *self.reads_settings.get_or_init(|| self.statement.as_ref().is_some_and(pgherd_planner::literals_read_settings))
    }

    /// As last described; the catalog may have changed since.
    pub fn last_described(&self) -> Option<Rc<Described>> {
        self.described.borrow().as_ref().map(|told| told.described.clone())
    }

    /// Of which types its parameters are, as far as that is known.
    pub fn parameters(&self) -> Parameters {
        let is_built_in = |oid: &u32| (1..FIRST_USER_OID).contains(oid);
        let count = self.statement.as_ref().map_or(0, |statement| usize::from(statement.params));
        let told = self.last_described();
        let types = told.as_ref().map_or(&self.declared, |described| &described.param_types);
        match types.len() >= count && types.iter().all(is_built_in) {
            true => Parameters::BuiltIn,
            false => Parameters::Others,
        }
    }

    /// How many parameters a client has for it.
    pub fn parameter_count(&self) -> u16 {
        let written = self.statement.as_ref().map_or(0, |statement| statement.params);
        let told = self.last_described().map_or(0, |described| described.param_types.len());
        written.max(self.declared.len().max(told) as u16)
    }

    /// As described under this very catalog and search path.
    pub fn described_under(&self, catalog: &Arc<Snapshot>, path: &[String]) -> Option<Rc<Described>> {
        let told = self.described.borrow();
        told.as_ref().filter(|told| told.catalog.is(catalog) && *told.path == path).map(|told| told.described.clone())
    }

    pub(super) fn told(&self) -> Option<Told> {
        self.described.borrow().clone()
    }

    pub fn set_described(&self, catalog: &Arc<Snapshot>, path: Rc<Vec<String>>, described: Rc<Described>) {
        *self.described.borrow_mut() = Some(Told { catalog: SnapshotId::of(catalog), path, described });
    }

    pub(super) fn set_told(&self, catalog: SnapshotId, path: Rc<Vec<String>>, described: Rc<Described>) {
        *self.described.borrow_mut() = Some(Told { catalog, path, described });
    }

    /// How it goes to its shards, if it is an INSERT of many rows that may take the short way.
    pub(super) fn rows(&self) -> Option<Rc<CompiledRows>> {
        self.rows.borrow().clone()
    }

    pub(super) fn set_rows(&self, rows: Rc<CompiledRows>) {
        *self.rows.borrow_mut() = Some(rows);
    }

    /// Whether this is the plan under that catalog.
    pub(super) fn is_plan_of(&self, plan: &Rc<Plan>, catalog: &Arc<Snapshot>) -> bool {
        let planned = if is_timed(plan) { self.timed.borrow() } else { self.plan.borrow() };
        planned.as_ref().is_some_and(|planned| Rc::ptr_eq(&planned.plan, plan) && planned.catalog.is(catalog))
    }

    /// How it rides on a lane, if it may; whether that still holds is [`Session::try_ride`]'s to check.
    pub(super) fn compiled(&self) -> Option<Rc<Compiled>> {
        self.compiled.borrow().clone()
    }

    /// The same with the transaction's time as a value.
    pub(super) fn compiled_timed(&self) -> Option<Rc<Compiled>> {
        self.compiled_timed.borrow().clone()
    }

    pub(super) fn set_compiled(&self, compiled: Rc<Compiled>) {
        let place = if is_timed(&compiled.plan) { &self.compiled_timed } else { &self.compiled };
        *place.borrow_mut() = Some(compiled);
    }

    /// What the coordinator is sent in place of the statement's text: it warns of such literals.
    pub fn plain(&self) -> Option<&str> {
        self.plain.as_deref()
    }

    pub fn text(&self) -> &str {
        self.statement.as_ref().map_or("", |s| s.text.as_str())
    }

    /// The text as the client sent it, with whatever stood around the statement.
    pub fn source(&self) -> &str {
        self.source.as_deref().unwrap_or_else(|| self.text())
    }
}

impl Session {
    /// Whether a backslash in a plain literal escapes.
    pub fn plain_strings_escape(&self) -> bool {
        self.in_force("standard_conforming_strings") == Some("off")
    }

    /// A statement of a simple Query. `sql` is the whole of it, which PREPARE and DECLARE keep; `plain`: its literals
    /// were read as `E'…'`.
    pub fn analyse(&mut self, statement: Statement, sql: &str, plain: bool) -> Result<Rc<Prepared>> {
        if plain {
            return Ok(Prepared::of_plain(statement, sql));
        }
        let keeps = matches!(statement.kind, StatementKind::Prepare { .. } | StatementKind::DeclareCursor { .. });
        if keeps {
            return Ok(Prepared::new(Some(statement), sql, Vec::new()));
        }
        Ok(Prepared::of_text(statement))
    }

    /// The plan under the session's catalog and search path, and the number under which servers may keep it.
    pub async fn plan(&mut self, prepared: &Prepared) -> Result<(Rc<Plan>, u64)> {
        let search_path = self.search_path().await?;
        let catalog = self.catalog();
        // A value for now() belongs to one transaction, and the number of a process to one session: such plans are made
        // afresh.
        let asks_session = prepared.statement.as_ref().is_some_and(|s| self.asks_session(s));
        let gives = self.may_give();
        if self.temp.is_empty()
            && let Some(planned) = &*prepared.plan.borrow()
            && planned.catalog.is(&catalog)
            && *planned.search_path == *search_path
            && (!planned.plan.uses_now || self.txn.now.is_none() && one_server(&planned.plan))
            && !(planned.plan.default_time && self.txn.now.is_some())
            && !self.wants_time(&planned.plan)
            && (gives || planned.plan.copy.is_none())
            && match planned.plan.given.as_slice() {
                [] => !asks_session,
                given => gives && self.can_give(given),
            }
        {
            return Ok((planned.plan.clone(), planned.id));
        }
        if self.temp.is_empty()
            && gives
            && self.txn.now.is_some()
            && let Some(planned) = &*prepared.timed.borrow()
            && planned.catalog.is(&catalog)
            && *planned.search_path == *search_path
            && self.can_give(&planned.plan.given)
        {
            return Ok((planned.plan.clone(), planned.id));
        }
        let Some(statement) = &prepared.statement else {
            return Err(crate::error::Failure::new("XX000", "an empty statement has no plan"));
        };
        if gives {
            Box::pin(self.learn_routines(statement)).await;
        }
        let given_from = gives.then(|| prepared.parameter_count());
        let own = Planning { parameters: prepared.parameters(), given_from, ..Planning::default() };
        let mut plan = self.plan_as(statement, &catalog, &search_path, own);
        let draws_here = matches!(plan.tier, Tier::Coordinator { .. }) && !plan.given.is_empty();
        if draws_here && !Box::pin(self.may_insert_all(statement)).await {
            plan = self.plan_as(statement, &catalog, &search_path, Planning { given_from: None, ..own });
        }
        if self.txn.now.is_none() && (plan.uses_now && !one_server(&plan) || self.wants_time(&plan)) {
            if self.txn.clock.is_none() && self.is_time_of_coordinator(&plan) {
                self.open_implicit_block();
                self.txn.clock = Some(COORDINATOR_GROUP);
            }
            self.fix_now().await?;
            plan = self.plan_as(statement, &catalog, &search_path, own);
            if self.txn.block == Block::None {
                self.open_implicit_block();
            }
        }
        let plan = self.plan_by_sizes(statement, &catalog, &search_path, plan, own).await;
        // With its values as parameters a plan is good for every session, without for this one as it is now.
        let is_for_all = match plan.given.is_empty() {
            true => {
                let knows_routines = gives || self.routine_called(statement).is_none();
                !asks_session && knows_routines && (gives && self.may_draw() || !plan.could_be_given)
            }
            false => true,
        };
        let reusable = self.temp.is_empty() && is_for_all && !(plan.uses_now && self.txn.now.is_some());
        let plan = Rc::new(plan);
        let id = next_id();
        if reusable {
            let place = if is_timed(&plan) { &prepared.timed } else { &prepared.plan };
            *place.borrow_mut() =
                Some(Planned { catalog: SnapshotId::of(&catalog), search_path, plan: plan.clone(), id });
        }
        Ok((plan, id))
    }

    /// A default on one of several servers gives its own time, where it is to be the transaction's. Of one server's
    /// [`Session::agree_on_time`] is asked.
    fn wants_time(&self, plan: &Plan) -> bool {
        self.txn.block != Block::None && plan.default_time && !one_server(plan)
    }

    /// The plan again, where what workers say of sizes may change it.
    pub async fn plan_by_sizes(
        &mut self,
        statement: &Statement,
        catalog: &Snapshot,
        search_path: &[String],
        mut plan: Plan,
        own: Planning,
    ) -> Plan {
        if plan.wants_sizes {
            self.measure(&plan.tables).await;
            plan = self.plan_as(statement, catalog, search_path, own);
        }
        // What seems good now may rest on a guess that an answer replaces: asked twice at the most.
        for _ in 0..2 {
            if !plan.questions.is_empty() && self.txn.participants.is_empty() {
                self.estimate(&std::mem::take(&mut plan.questions)).await;
                plan = self.plan_as(statement, catalog, search_path, own);
            }
        }
        plan
    }

    /// From here on the transaction's time is a value that every server is given.
    pub(super) async fn fix_now(&mut self) -> Result<()> {
        let takes_part = self.coordinator_takes_part().then_some(COORDINATOR_GROUP);
        let now = match self.txn.clock.or(takes_part) {
            Some(COORDINATOR_GROUP) if takes_part.is_none() => self.ask_clock().await?.text(0, 0).map(str::to_owned),
            Some(group) => {
                self.join(group).await?;
                let result = self.collect_on(group, CLOCK).await?;
                result.text(0, 0).map(str::to_owned)
            }
            None => None,
        };
        self.txn.now = Some(now.unwrap_or_else(|| time_text(SystemTime::now())));
        Ok(())
    }

    /// The transaction's time, as text that timestamptz reads.
    pub async fn transaction_time(&mut self) -> Result<String> {
        if self.txn.now.is_none() {
            self.fix_now().await?;
        }
        Ok(self.txn.now.clone().unwrap_or_default())
    }

    /// Before a statement that reads the transaction's time runs on this server alone. False: another server's time is
    /// the transaction's; the statement is to be planned again, with a value in its text.
    pub async fn agree_on_time(&mut self, plan: &Plan, group: GroupId) -> Result<bool> {
        if !plan.reads_time() || self.txn.now.is_some() || self.txn.block == Block::None {
            return Ok(true);
        }
        if self.clock_of(group) == group {
            return Ok(true);
        }
        self.fix_now().await?;
        Ok(false)
    }

    /// The server whose time is the transaction's, where nobody knows it yet and this one is about to tell. What the
    /// coordinator runs without the router's seeing its text (bodies, views, defaults) knows its own time only.
    pub fn clock_of(&mut self, group: GroupId) -> GroupId {
        let first = match self.coordinator_takes_part() || self.catalog().time_is_read_inside {
            true => COORDINATOR_GROUP,
            false => group,
        };
        *self.txn.clock.get_or_insert(first)
    }

    pub(crate) fn coordinator_takes_part(&self) -> bool {
        self.txn.participants.get(&COORDINATOR_GROUP).is_some_and(|coordinator| coordinator.in_block)
    }

    /// The coordinator's time is the transaction's where it runs the statement, or may run another with something in it
    /// that reads the time.
    fn is_time_of_coordinator(&self, plan: &Plan) -> bool {
        let may_run = self.txn.block != Block::None || !matches!(plan.tier, Tier::Scatter(_));
        self.coordinator_takes_part()
            || matches!(plan.tier, Tier::Federate { .. })
            || may_run && self.catalog().time_is_read_inside
    }

    /// Before a text is run on the coordinator that is not planned: a time that a worker has told is a value now.
    pub async fn agree_with_coordinator(&mut self, statement: &Statement) -> Result<()> {
        let told = self.txn.clock.is_some_and(|group| group != COORDINATOR_GROUP);
        let reads = || pgherd_planner::uses_now(statement) || pgherd_planner::has_moving_words(statement);
        if told && self.txn.now.is_none() && reads() {
            self.fix_now().await?;
        }
        Ok(())
    }

    pub fn plan_statement(
        &self,
        statement: &Statement,
        catalog: &Snapshot,
        search_path: &[String],
        callback: bool,
    ) -> Plan {
        self.plan_as(statement, catalog, search_path, Planning { callback, ..Planning::default() })
    }

    /// For a text with so many parameters, which may be given values of the router.
    pub(super) fn plan_to_ride(&self, statement: &Statement, search_path: &[String], parameters: usize) -> Plan {
        let given_from = self.may_give().then(|| statement.params.max(parameters as u16));
        self.plan_as(statement, &self.catalog(), search_path, Planning { given_from, ..Planning::default() })
    }

    fn plan_as(&self, statement: &Statement, catalog: &Snapshot, search_path: &[String], own: Planning) -> Plan {
        self.with_view(search_path, own.callback, |view| {
            let built_in_parameters = own.parameters == Parameters::BuiltIn;
            let settings = self.settings_given();
            let gives = own.given_from.map(|parameters| pgherd_planner::Gives {
                parameters,
                settings: &settings,
                draws: self.may_draw(),
                time: self.txn.now.is_some(),
            });
            let routines = gives.map_or_else(Vec::new, |_| self.routines_known(statement));
            let styles = if routines.is_empty() { String::new() } else { self.styles() };
            let (routines, styles) = (routines.as_slice(), styles.as_str());
            let view = pgherd_planner::SessionView { built_in_parameters, gives, routines, styles, ..*view };
            pgherd_planner::plan(statement, catalog, &view)
        })
    }

    /// A statement that postgres_fdw sends.
    pub fn plan_callback(&self, statement: &Statement, catalog: &Snapshot) -> Plan {
        self.with_view(&["pg_catalog".to_owned()], true, |view| {
            let view = pgherd_planner::SessionView { built_in_names: true, ..*view };
            pgherd_planner::plan(statement, catalog, &view)
        })
    }

    /// The statement asks for what is this session's alone, and what a server says of it may be wrong.
    fn asks_session(&self, statement: &Statement) -> bool {
        pgherd_planner::asks_session(statement)
            || (!self.drawn.is_empty() || self.last_drawn.is_some()) && pgherd_planner::asks_drawn(statement)
    }

    /// Values of the router may come with statements as parameters.
    fn may_give(&self) -> bool {
        !self.gives_nothing && !self.definitions.is_asked() && !self.txn.log.iter().any(LogItem::changes_meaning)
    }

    /// A sequence is in this transaction what it is elsewhere, and may go on.
    pub(super) fn may_draw(&self) -> bool {
        self.txn.catalog.is_none() && !self.txn.changed_catalog
    }

    /// The settings by which servers read literals, where the session has some of its own.
    fn styles(&self) -> String {
        let own = self.settings.iter().filter(|(name, _)| crate::settings::is_style(name));
        own.map(|(name, value)| format!("{name}={value};")).collect()
    }

    /// The values of a plan that another session may have made.
    fn can_give(&self, given: &[Given]) -> bool {
        given.iter().all(|what| match what {
            Given::Setting(name) => self.settings_given().contains(&name.as_str()),
            Given::Drawn(_) => self.may_draw(),
            Given::Time => self.txn.now.is_some(),
            _ => true,
        })
    }

    /// Settings whose texts the router knows as servers would give them, and which lanes may not have.
    fn settings_given(&self) -> Vec<&str> {
        let is_text = |value: &str| value.len() < 64 && value.bytes().all(|b| (b' '..=b'~').contains(&b));
        let is_known = |name: &str, value: &str| match name {
            "application_name" => is_text(value),
            _ => name.contains('.') && !crate::settings::is_own(name),
        };
        self.settings.iter().filter(|(name, value)| is_known(name, value)).map(|(name, _)| name.as_str()).collect()
    }

    /// A value of the session as text; none: NULL.
    pub(crate) fn value_given(&self, what: &Given) -> Option<String> {
        match what {
            Given::ClientAddress => self.client_end.0.as_ref().map(pgherd_planner::address_text),
            Given::ClientPort => self.client_end.0.map(|end| end.port().to_string()),
            Given::ProcessId => Some(self.pid().to_string()),
            Given::Setting(name) if !self.settings_given().contains(&name.as_str()) => None,
            Given::Setting(name) => self.settings.get(name.as_str()).cloned(),
            Given::Drawn(_) => None,
            Given::Time => self.txn.now.clone(),
        }
    }

    /// What the planner is told of the session.
    pub fn with_view<R>(
        &self,
        search_path: &[String],
        callback: bool,
        f: impl FnOnce(&pgherd_planner::SessionView<'_>) -> R,
    ) -> R {
        let sizes = self.thread.sizes.borrow().of(&self.db.name);
        let view = pgherd_planner::SessionView {
            search_path,
            temp_relations: &self.temp,
            sizes: &sizes.tables,
            estimates: &sizes.statements,
            callback,
            built_in_names: false,
            may_stage: self.parts_within < PARTS_WITHIN_MAX,
            multi_statement_txn_now: self.txn.now.as_deref().map(Now::Text),
            pid: Some(self.pid()),
            client: Some(self.client_end),
            gives: None,
            drawn: &self.drawn,
            last_drawn: self.last_drawn.as_ref(),
            routines: &[],
            styles: "",
            built_in_parameters: false,
        };
        f(&view)
    }
}

/// What a statement is planned for.
#[derive(Debug, Clone, Copy, Default)]
pub struct Planning {
    callback: bool,
    parameters: Parameters,
    /// Values of the router may follow so many parameters.
    given_from: Option<u16>,
}

impl Planning {
    /// For a text whose parameters may be of any types.
    pub fn of(parameters: Parameters) -> Planning {
        Planning { parameters, ..Planning::default() }
    }
}

/// Of which types the parameters of a statement are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parameters {
    /// PostgreSQL's own, all of them.
    BuiltIn,
    /// Of users' and extensions', or nobody has told.
    #[default]
    Others,
}

/// How deep parts of statements may be made of parts.
const PARTS_WITHIN_MAX: usize = 3;

/// The transaction's time comes with it.
fn is_timed(plan: &Plan) -> bool {
    plan.given.contains(&Given::Time)
}

/// One server runs it, with its own time.
fn one_server(plan: &Plan) -> bool {
    matches!(plan.tier, Tier::Route(_) | Tier::Coordinator { .. })
}

/// A moment as timestamptz reads it, in microseconds as PostgreSQL's clock has them.
pub fn time_text(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days as i64);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:06}+00",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_micros()
    )
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Years begin in March, so that a leap day is a year's last; 400 years have 146097 days.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_are_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_777), (2026, 11, 20));
    }
}
