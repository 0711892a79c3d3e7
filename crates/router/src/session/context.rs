//! Whom a session shares lanes with: clients of one user of one database with the same settings, their lanes to each
//! server, and the texts that are known to them.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use pgherd_backend::lane::Lanes;
use pgherd_backend::{Address, Credentials, Target};
use pgherd_catalog::GroupId;

use super::{Prepared, Session};
use crate::group::GroupWriter;
use crate::settings::Settings;
use crate::shared::Thread;
use crate::transaction::LogItem;

/// Contexts that one thread keeps; beyond that statements go the long way.
const CONTEXTS_MAX: usize = 64;

/// Clients that may share lanes: the same user of the same database with the same settings.
pub struct LaneContext {
    user: String,
    database: String,
    credentials: Credentials,
    settings: Settings,
    generation: u64,
    /// What names mean to these clients.
    pub(super) names: Rc<Names>,
    lanes: RefCell<HashMap<Address, Rc<Lanes>>>,
    /// Where writes to several servers go, under one version of the catalog.
    targets: RefCell<(u64, Rc<HashMap<GroupId, Target>>)>,
    group_writer: OnceCell<Rc<GroupWriter>>,
    /// Statements that clients gave without a name: the text with the declared types, or with literals lifted.
    pub(super) texts: RefCell<Texts>,
    /// The same by node group, under one version of the catalog.
    by_group: RefCell<(u64, HashMap<GroupId, Rc<Lanes>>)>,
}

/// Settings that unqualified names depend on, beside user and database.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Names {
    user: String,
    database: String,
    settings: [Option<String>; 3],
}

impl Names {
    pub(super) fn of(user: &str, database: &str, settings: &Settings) -> Names {
        let setting = |name: &str| settings.get(name).cloned();
        Names {
            user: user.to_owned(),
            database: database.to_owned(),
            settings: [setting("search_path"), setting("role"), setting("session_authorization")],
        }
    }
}

impl LaneContext {
    /// Writes of these clients to several servers.
    pub(super) fn group_writer(&self, thread: &Rc<Thread>) -> &Rc<GroupWriter> {
        self.group_writer.get_or_init(|| GroupWriter::new(Rc::downgrade(thread), self.settings.clone()))
    }

    pub fn close(&self) {
        for lanes in self.lanes.borrow().values() {
            lanes.close();
        }
    }

    /// Closes idle lanes, and forgets contexts that are of no use any more: made before defaults changed, or without
    /// clients and lanes.
    pub fn tend(contexts: &mut Vec<Rc<LaneContext>>, generation: u64) {
        contexts.retain(|context| {
            if context.generation != generation {
                context.close();
                return false;
            }
            let mut open = 0;
            for lanes in context.lanes.borrow().values() {
                lanes.tend();
                open += lanes.count();
            }
            open > 0 || Rc::strong_count(context) > 1
        });
    }
}

/// Settings that nothing on a lane depends on: a name for humans, and those that only the router reads.
fn is_aside(name: &str) -> bool {
    name == "application_name" || name.starts_with("citus.") || name.starts_with("pgherd.")
}

/// Distinct texts that a context keeps in each of two generations.
const TEXTS_MAX: usize = 1000;
/// Bytes of them in each of the two.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Longer texts are not looked up.
pub(super) const TEXT_MAX: usize = 8 * 1024;

/// What is known of a text.
#[derive(Clone)]
pub(super) enum Text {
    /// Seen once: not worth an analysis yet.
    Once,
    /// Goes the long way, under this version of the catalog.
    Never(u64),
    /// Only these of its literals are lifted; what is known is kept under the text that has the others in it.
    Partly(Rc<Vec<bool>>),
    Known(Rc<Prepared>),
}

/// Texts by use, in two generations: when the younger is full it becomes the older, and what nobody has asked for since
/// is dropped.
#[derive(Default)]
pub(super) struct Texts {
    young: HashMap<Box<[u8]>, Text>,
    old: HashMap<Box<[u8]>, Text>,
    /// Bytes of the younger.
    bytes: usize,
}

impl Texts {
    pub(super) fn get(&mut self, key: &[u8]) -> Option<Text> {
        if let Some(found) = self.young.get(key) {
            return Some(found.clone());
        }
        let (key, found) = self.old.remove_entry(key)?;
        self.put(key, found.clone());
        Some(found)
    }

    pub(super) fn put(&mut self, key: Box<[u8]>, text: Text) {
        if self.young.len() >= TEXTS_MAX || self.bytes >= TEXT_BYTES_MAX {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += key.len();
        self.young.insert(key, text);
    }
}

impl Session {
    /// Finds out whom this session shares lanes with, unless it is known. False: with nobody.
    pub(super) fn has_context(&mut self) -> bool {
        let generation = self.thread.shared.generation();
        let shared = self.shared_settings().clone();
        if let Some((settings, context)) = &self.context
            && settings.is_same(&shared)
            && context.generation == generation
        {
            return true;
        }
        let context = self.find_context(generation, &shared);
        let found = context.is_some();
        self.context = context.map(|context| (shared, context));
        found
    }

    /// The session's settings as lanes need to have them.
    fn shared_settings(&self) -> &Settings {
        let log = &self.txn.log;
        let only_limits = || log.iter().all(|item| !item.is_setting() || item.is_long_limit());
        match &self.txn.settings_before {
            Some(before) if log.iter().any(LogItem::is_long_limit) && only_limits() => before,
            _ => &self.settings,
        }
    }

    fn find_context(&self, generation: u64, shared: &Settings) -> Option<Rc<LaneContext>> {
        // Literals are lifted as the setting's default has them.
        if self.plain_strings_escape() {
            return None;
        }
        let wanted: Settings =
            shared.iter().filter(|(name, _)| !is_aside(name)).map(|(n, v)| (n.clone(), v.clone())).collect();
        let mut contexts = self.thread.contexts.borrow_mut();
        if contexts.len() >= CONTEXTS_MAX || contexts.iter().any(|c| c.generation != generation) {
            LaneContext::tend(&mut contexts, generation);
        }
        if contexts.len() >= CONTEXTS_MAX
            && let Some(unused) = contexts.iter().position(|c| Rc::strong_count(c) == 1)
        {
            contexts.remove(unused).close();
        }
        let found = contexts.iter().find(|c| {
            c.user == self.user
                && c.database == self.db.name
                && c.credentials == self.credentials
                && c.settings == wanted
        });
        match found {
            Some(context) => Some(context.clone()),
            None if contexts.len() >= CONTEXTS_MAX => None,
            None => {
                let context = Rc::new(LaneContext {
                    names: Rc::new(Names::of(&self.user, &self.db.name, &wanted)),
                    user: self.user.clone(),
                    database: self.db.name.clone(),
                    credentials: self.credentials.clone(),
                    settings: wanted,
                    generation,
                    lanes: RefCell::default(),
                    targets: RefCell::default(),
                    group_writer: OnceCell::new(),
                    texts: RefCell::default(),
                    by_group: RefCell::default(),
                });
                contexts.push(context.clone());
                Some(context)
            }
        }
    }

    /// Where these groups are.
    pub(super) fn targets_of(
        &self,
        context: &LaneContext,
        version: u64,
        groups: impl Iterator<Item = GroupId>,
    ) -> Option<Rc<HashMap<GroupId, Target>>> {
        let mut targets = context.targets.borrow_mut();
        if targets.0 != version {
            *targets = (version, Rc::default());
        }
        for group in groups {
            if !targets.1.contains_key(&group) {
                let target = self.target(group).ok()?;
                // Those who hold the old map go on with it.
                Rc::make_mut(&mut targets.1).insert(group, target);
            }
        }
        Some(targets.1.clone())
    }

    /// The lanes to a group's server.
    pub(super) fn lanes_of(&self, group: GroupId, version: u64) -> Option<Rc<Lanes>> {
        let (_, context) = self.context.as_ref()?;
        let mut by_group = context.by_group.borrow_mut();
        if by_group.0 != version {
            *by_group = (version, HashMap::new());
        }
        if let Some(lanes) = by_group.1.get(&group) {
            return Some(lanes.clone());
        }
        let mut target = self.target(group).ok()?;
        target.parameters.push(("application_name".to_owned(), "pgherd lane".to_owned()));
        // It is idle as the router's, whatever a session's limit is.
        if let Some((_, options)) = target.parameters.iter_mut().find(|(name, _)| name == "options")
            && !options.contains(crate::settings::NEVER_IDLE)
        {
            *options = format!("{options} {}", crate::settings::NEVER_IDLE);
        }
        let mut all = context.lanes.borrow_mut();
        let lanes = all.entry(target.address.clone()).or_insert_with(|| {
            let budget = self.thread.shared.budget.server(&target.address);
            Lanes::new(target, crate::settings::difference(&Settings::new(), &context.settings, true), budget)
        });
        by_group.1.insert(group, lanes.clone());
        Some(lanes.clone())
    }
}

pub(super) fn bytes_of(key: String) -> Box<[u8]> {
    key.into_bytes().into_boxed_slice()
}
