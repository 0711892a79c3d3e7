//! Writes of several clients to several servers as **one distributed transaction**. A statement that writes rows of
//! many shards pays a prepare, a decision and a second commit on every server; clients that send such statements at the
//! same time share them. Each statement is a transaction of its own to its client: it hears of success once all have
//! committed, and an error rolls all back and sends the others again. Which statements may share is decided as for
//! lanes, in `session/rows.rs`.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use pgherd_backend::lane::{Again, LaneStatement, Outcome, Rider, write_execution};
use pgherd_backend::{BackendError, Claim, Lease, Target};
use pgherd_catalog::GroupId;
use pgherd_txn::{Action, Commit, Event, Gid, Outcome as Ended, Participant, Protocol};
use pgherd_wire::{backend, frontend};

use crate::client::Link;
use crate::database::Database;
use crate::finish::{self, Awaited, Part as PreparedPart, Process, Unfinished};
use crate::rights::secret_of_group;
use crate::settings::{self, Settings};
use crate::shared::{Shared, Thread};
use crate::transaction::{RECORD, new_transaction_id, record_values};

/// Statements in one transaction at most.
const MOST: usize = 64;
/// Transactions at the same time: while one waits for the disk, the next can run.
const RUNNING_MAX: usize = 2;
/// After a statement waited for a lock each goes by itself for this long.
const APART: Duration = Duration::from_secs(1);
/// Nobody waits for long behind others: lock_timeout and statement_timeout in milliseconds, where the clients' own, by
/// role or database, are not shorter. The limit of a transaction is not for several clients' statements.
const LIMITS: &str = "SELECT name, CASE WHEN setting::int BETWEEN 1 AND most THEN setting ELSE most::text END \
                      FROM pg_catalog.pg_settings JOIN (VALUES ('lock_timeout', 50), ('transaction_timeout', 0), \
                      ('statement_timeout', least(250, (SELECT nullif(setting::int, 0) \
                      FROM pg_catalog.pg_settings WHERE name = 'transaction_timeout')))) \
                      AS shared (name, most) USING (name)";
/// For a connection to a server. Who queues for longer does so by himself, where he can cancel it.
const CONNECT: Duration = Duration::from_secs(1);

/// What one server runs of a write.
pub struct Part {
    pub group: GroupId,
    pub statement: Rc<LaneStatement>,
    /// The rest of a Bind message behind the statement's name.
    pub values: Vec<u8>,
}

pub struct SharedWrite {
    pub rider: Rc<Link>,
    pub parts: Vec<Part>,
    /// Of the command's tag, before the number of rows.
    pub verb: &'static str,
    pub protocol: Protocol,
    /// Where the groups' servers are.
    pub targets: Rc<HashMap<GroupId, Target>>,
    pub database: Arc<Database>,
    /// How long its client waits for servers that are out of reach.
    pub commit_wait: Duration,
}

/// Those of clients of one user with the same settings.
pub struct GroupWriter {
    thread: Weak<Thread>,
    settings: RefCell<Settings>,
    /// The settings have the limits.
    limited: Cell<bool>,
    waiting: RefCell<VecDeque<SharedWrite>>,
    running: Cell<usize>,
    /// Statements in one transaction at most: falls with each that is rolled back, and grows again.
    most: Cell<usize>,
    apart_until: Cell<Option<Instant>>,
}

/// What became of a server's part.
enum Answer {
    /// Rows that each of the parts wrote, in order.
    Done(Vec<u64>),
    /// The part that failed, if it was one.
    Failed {
        part: Option<usize>,
        sqlstate: [u8; 5],
    },
    Lost,
}

impl GroupWriter {
    pub fn new(thread: Weak<Thread>, settings: Settings) -> Rc<GroupWriter> {
        Rc::new(GroupWriter {
            thread,
            settings: RefCell::new(settings),
            limited: Cell::new(false),
            waiting: RefCell::default(),
            running: Cell::new(0),
            most: Cell::new(MOST),
            apart_until: Cell::new(None),
        })
    }

    /// The rider hears how it ended.
    pub fn push(self: &Rc<Self>, write: SharedWrite) {
        self.waiting.borrow_mut().push_back(write);
        if self.running.get() < RUNNING_MAX {
            self.running.set(self.running.get() + 1);
            let writer = self.clone();
            tokio::task::spawn_local(async move {
                while let Some(batch) = writer.next_batch() {
                    writer.run(batch).await;
                }
                writer.running.set(writer.running.get() - 1);
            });
        }
    }

    /// What waits, as far as it may be one transaction.
    fn next_batch(&self) -> Option<Vec<SharedWrite>> {
        let limit = match self.apart_until.get() {
            Some(until) if Instant::now() < until => 1,
            _ => self.most.get(),
        };
        let mut waiting = self.waiting.borrow_mut();
        let mut batch = vec![waiting.pop_front()?];
        while batch.len() < limit
            && waiting
                .front()
                .is_some_and(|next| next.protocol == batch[0].protocol && Rc::ptr_eq(&next.targets, &batch[0].targets))
            && let Some(next) = waiting.pop_front()
        {
            batch.push(next);
        }
        Some(batch)
    }

    async fn run(&self, batch: Vec<SharedWrite>) {
        let Some(thread) = self.thread.upgrade() else { return give_back(batch, Again::NotSent) };
        // Held until the end: a transaction that has locks never waits for a connection.
        let Some(_place) = thread.pool().try_block_place() else { return give_back(batch, Again::NotSent) };
        let mut leases = match tokio::time::timeout(CONNECT, self.lease(&thread, &batch)).await {
            Ok(Ok(leases)) => leases,
            // A session of its own will meet the same, and say so.
            _ => return give_back(batch, Again::NotSent),
        };
        let Ok(transaction) = new_transaction_id() else { return give_back(batch, Again::NotSent) };
        let decider = leases.keys().next().copied().unwrap_or_default();
        let Ok(secret) = self.secret(&thread, &batch, decider, leases.len()).await else {
            return give_back(batch, Again::NotSent);
        };
        let mut run = Run { shared: thread.shared.clone(), batch, transaction, decider, secret };
        let ended = run.transact(&mut leases).await;
        for lease in leases.values_mut() {
            if !lease.is_broken() && lease.status != b'I' && lease.query("ROLLBACK").await.is_err() {
                lease.poison();
            }
        }
        drop(leases);
        self.deliver(run.batch, ended);
    }

    /// With which the decider believes the commit record, where there is one.
    async fn secret(
        &self,
        thread: &Rc<Thread>,
        batch: &[SharedWrite],
        decider: GroupId,
        servers: usize,
    ) -> crate::error::Result<Option<Arc<str>>> {
        if servers < 2 || batch[0].protocol == Protocol::OnePhase {
            return Ok(None);
        }
        let database = &batch[0].database;
        secret_of_group(&thread.shared, database, &database.snapshot(), decider).await.map(Some)
    }

    /// A connection with the clients' settings to each server.
    async fn lease(
        &self,
        thread: &Rc<Thread>,
        batch: &[SharedWrite],
    ) -> Result<BTreeMap<GroupId, Lease>, BackendError> {
        let groups: BTreeSet<GroupId> = batch.iter().flat_map(|w| w.parts.iter().map(|part| part.group)).collect();
        let mut leases = BTreeMap::new();
        for group in groups {
            let Some(target) = batch[0].targets.get(&group) else { continue };
            let wanted = self.settings.borrow().clone();
            let mut lease = thread.pool().lease(target, Claim::Placed, |name| wanted.contains_key(name)).await?;
            settings::note_made(&mut lease, wanted.keys().map(String::as_str));
            self.apply(&mut lease).await?;
            if !self.limited.get() {
                let limits = lease.query(LIMITS).await?;
                for row in 0..limits.rows.len() {
                    if let (Some(name), Some(value)) = (limits.text(row, 0), limits.text(row, 1)) {
                        self.settings.borrow_mut().insert(name.to_owned(), value.to_owned());
                    }
                }
                self.limited.set(true);
                self.apply(&mut lease).await?;
            }
            leases.insert(group, lease);
        }
        Ok(leases)
    }

    async fn apply(&self, lease: &mut Lease) -> Result<(), BackendError> {
        let difference = settings::difference(&lease.applied, &self.settings.borrow(), true);
        if !difference.is_empty() {
            lease.query(&difference).await?;
            lease.applied = self.settings.borrow().clone();
        }
        Ok(())
    }

    fn deliver(&self, batch: Vec<SharedWrite>, ended: Verdict) {
        let size = batch.len();
        match ended {
            Verdict::Committed(rows) => {
                if size >= self.most.get() {
                    self.most.set((size * 2).min(MOST));
                }
                let mut reply = BytesMut::new();
                for (write, rows) in batch.into_iter().zip(rows) {
                    reply.clear();
                    backend::write_command_complete(&mut reply, &format!("{} {rows}", write.verb));
                    backend::write_ready_for_query(&mut reply, b'I');
                    write.rider.arrive(Outcome::Complete(&reply));
                }
            }
            Verdict::Unknown => batch.into_iter().for_each(|write| write.rider.arrive(Outcome::Lost)),
            Verdict::RolledBack { guilty, sqlstate } => {
                if size > 1 {
                    self.most.set((size / 2).max(1));
                    if matches!(&sqlstate, b"57014" | b"55P03" | b"40P01") {
                        self.apart_until.set(Some(Instant::now() + APART));
                    }
                }
                let guilty = guilty.or((size == 1).then_some(0));
                let mut waiting = self.waiting.borrow_mut();
                let mut failed = None;
                for (index, write) in batch.into_iter().enumerate().rev() {
                    if Some(index) == guilty {
                        failed = Some(write);
                    } else {
                        waiting.push_front(write);
                    }
                }
                drop(waiting);
                if let Some(write) = failed {
                    write.rider.arrive(Outcome::Again(Again::Error(sqlstate)));
                }
            }
            Verdict::NotSent => give_back(batch, Again::NotSent),
        }
    }
}

fn give_back(batch: Vec<SharedWrite>, again: Again) {
    batch.into_iter().for_each(|write| write.rider.arrive(Outcome::Again(again)));
}

/// What follows the statements.
enum Last {
    Nothing,
    /// The commit record.
    Record,
    Text(String),
}

/// How the transaction ended.
enum Verdict {
    /// With the rows that each write wrote.
    Committed(Vec<u64>),
    /// Nothing of it has happened, because of this one, if it was one.
    RolledBack { guilty: Option<usize>, sqlstate: [u8; 5] },
    /// A server was lost before anything was decided.
    NotSent,
    /// Nobody knows.
    Unknown,
}

/// One transaction under way.
struct Run {
    shared: Arc<Shared>,
    batch: Vec<SharedWrite>,
    transaction: String,
    decider: GroupId,
    secret: Option<Arc<str>>,
}

impl Run {
    fn protocol(&self) -> Protocol {
        self.batch[0].protocol
    }

    fn gid(&self, group: GroupId) -> Gid {
        Gid { decider: self.decider, transaction: self.transaction.clone(), participant: group }
    }

    /// The end of the transaction, on a connection.
    fn awaited(&self, group: GroupId, lease: &Lease) -> Awaited {
        Awaited {
            shared: self.shared.clone(),
            database: self.batch[0].database.clone(),
            group,
            process: Process::of(lease),
            at_most: self.batch[0].commit_wait,
        }
    }

    /// What of the batch a server runs: the write's place in the batch and its part.
    fn parts(&self, group: GroupId) -> impl Iterator<Item = (usize, &Part)> {
        let parts = self.batch.iter().enumerate();
        parts.flat_map(move |(index, w)| w.parts.iter().filter(move |p| p.group == group).map(move |p| (index, p)))
    }

    async fn transact(&mut self, leases: &mut BTreeMap<GroupId, Lease>) -> Verdict {
        let participants: Vec<Participant> =
            leases.keys().map(|group| Participant { group: *group, wrote: true, can_prepare: true }).collect();
        let Ok((mut machine, first)) = Commit::start(&participants, self.protocol()) else { return Verdict::NotSent };
        let several = leases.len() > 1;
        // The statements, and with them whatever the commit begins with.
        for (group, lease) in leases.iter_mut() {
            let last = match (several, self.protocol()) {
                (false, _) => Last::Text("COMMIT".to_owned()),
                (true, Protocol::OnePhase) => Last::Nothing,
                (true, Protocol::TwoPhase) if *group == self.decider => Last::Record,
                (true, Protocol::TwoPhase) => Last::Text(format!(
                    "PREPARE TRANSACTION {}",
                    settings::quote_literal(&self.gid(*group).to_string())
                )),
            };
            self.write(*group, lease, last);
            // An error shows again when the reply is read.
            let _ = lease.flush().await;
        }
        let mut answers = BTreeMap::new();
        let mut lost = BTreeMap::new();
        for (group, lease) in leases.iter_mut() {
            let records = several && *group == self.decider && self.protocol() == Protocol::TwoPhase;
            let awaited = self.awaited(*group, lease);
            let answer = awaited.answer(self.read(*group, lease, records)).await.unwrap_or_else(|| {
                lease.poison();
                Answer::Lost
            });
            if matches!(answer, Answer::Lost) {
                lost.extend(Process::of(lease).map(|process| (*group, process)));
            }
            answers.insert(*group, answer);
        }
        let failure = self.failure(&answers);
        if !several {
            return match (failure, answers.values().next()) {
                // The COMMIT was among what was sent.
                (_, Some(Answer::Lost)) => Verdict::Unknown,
                (Some(failure), _) => failure,
                (None, _) => Verdict::Committed(self.rows(&answers)),
            };
        }
        if self.protocol() == Protocol::OnePhase {
            // What is open after an error is rolled back by the caller.
            return match failure {
                Some(failure) => failure,
                None => self.commit_all(leases, &answers).await,
            };
        }
        let mut action = first;
        loop {
            let mut events = Vec::new();
            match &action {
                Action::Prepare(groups) => {
                    // Sent already. The decider comes first: without it nothing can be decided.
                    for group in std::iter::once(self.decider).chain(groups.iter().copied()) {
                        match answers.get(&group) {
                            Some(Answer::Done(_)) if group == self.decider => {}
                            Some(Answer::Done(_)) => events.push(Event::Succeeded(group)),
                            Some(Answer::Failed { .. }) => events.push(Event::Failed(group)),
                            _ => events.push(Event::Lost(group)),
                        }
                    }
                }
                Action::Decide(group) | Action::Commit(group) => {
                    let Some(lease) = leases.get_mut(group) else { return Verdict::Unknown };
                    lease.send_query("COMMIT");
                    let awaited = self.awaited(*group, lease);
                    let event = awaited.answer(committed(*group, lease)).await.unwrap_or(Event::Lost(*group));
                    events.push(match event {
                        Event::Lost(_) if matches!(action, Action::Decide(_)) => {
                            lease.poison();
                            lost.extend(Process::of(lease).map(|process| (*group, process)));
                            let others = leases.keys().filter(|other| *other != group);
                            let parts = others.map(|group| PreparedPart { group: *group, lost: None }).collect();
                            match self.finish(None, &lost, parts).await {
                                Some(true) => Event::Succeeded(*group),
                                Some(false) => Event::Failed(*group),
                                None => event,
                            }
                        }
                        event => event,
                    });
                }
                Action::CommitPrepared(groups) | Action::RollbackPrepared(groups) => {
                    let commits = matches!(action, Action::CommitPrepared(_));
                    self.end_prepared(commits, groups, &lost, leases).await;
                    events.push(Event::Finished);
                }
                // By the caller.
                Action::Rollback(_) | Action::EndReaders(_) => events.push(Event::Finished),
                Action::Done(outcome) => {
                    return match (outcome, failure) {
                        (Ended::Committed, _) => Verdict::Committed(self.rows(&answers)),
                        (Ended::RolledBack, Some(failure)) => failure,
                        (Ended::RolledBack, None) => Verdict::RolledBack { guilty: None, sqlstate: *b"40000" },
                        (Ended::Unknown | Ended::Partial, _) => Verdict::Unknown,
                    };
                }
            }
            let mut next = None;
            for event in events {
                next = machine.on(event).or(next);
            }
            match next {
                Some(next) => action = next,
                None => return Verdict::Unknown,
            }
        }
    }

    /// One-phase: COMMIT everywhere at the same time.
    async fn commit_all(&self, leases: &mut BTreeMap<GroupId, Lease>, answers: &BTreeMap<GroupId, Answer>) -> Verdict {
        for lease in leases.values_mut() {
            lease.send_query("COMMIT");
            let _ = lease.flush().await;
        }
        let mut failed = 0;
        for (group, lease) in leases.iter_mut() {
            match committed(*group, lease).await {
                Event::Succeeded(_) => {}
                Event::Failed(_) => failed += 1,
                _ => return Verdict::Unknown,
            }
        }
        match failed {
            0 => Verdict::Committed(self.rows(answers)),
            n if n == leases.len() => Verdict::RolledBack { guilty: None, sqlstate: *b"40000" },
            _ => Verdict::Unknown,
        }
    }

    /// Block, statements and `last` in one packet.
    fn write(&self, group: GroupId, lease: &mut Lease, last: Last) {
        lease.add_step("BEGIN");
        // A statement is parsed once, also if it is not known yet whether that went well.
        let mut parsed = BTreeSet::new();
        for (_, Part { statement, values, .. }) in self.parts(group) {
            if parsed.insert(statement.id) {
                lease.send_kept(statement, values);
            } else {
                write_execution(lease.buffer(), &statement.name, values);
            }
        }
        match last {
            Last::Nothing => {}
            Last::Record => {
                let secret = self.secret.as_deref().unwrap_or_default();
                let values = record_values(lease, secret, &self.transaction);
                lease.send_kept(&RECORD.with(Rc::clone), &values);
            }
            Last::Text(sql) => {
                let out = lease.buffer();
                frontend::write_parse(out, "", &sql, &[]);
                frontend::write_bind::<&[u8]>(out, "", "", &[], &[], &[]);
                frontend::write_execute(out, "", 0);
            }
        }
        lease.send_sync();
    }

    /// `records`: the commit record follows the statements.
    async fn read(&self, group: GroupId, lease: &mut Lease, records: bool) -> Answer {
        let statements: Vec<Rc<LaneStatement>> = self.parts(group).map(|(_, part)| part.statement.clone()).collect();
        let (mut rows, mut error) = (Vec::with_capacity(statements.len()), None);
        loop {
            let Ok(frame) = lease.frame().await else { return Answer::Lost };
            match frame.tag() {
                b'1' => match statements.get(rows.len()) {
                    Some(statement) => lease.prepared.insert(statement.id, statement.sql.len()),
                    None if records => RECORD.with(|record| lease.prepared.insert(record.id, record.sql.len())),
                    None => {}
                },
                b'C' if rows.len() < statements.len() => {
                    let tag = backend::parse_command_complete(&frame).unwrap_or_default();
                    rows.push(backend::command_tag_rows(tag).unwrap_or(0));
                }
                b'E' => {
                    let fields = backend::parse_error(&frame);
                    let sqlstate = fields.ok().and_then(|f| f.sqlstate().as_bytes().try_into().ok());
                    error.get_or_insert(sqlstate.unwrap_or(*b"XX000"));
                }
                b'Z' => break,
                _ => {}
            }
        }
        match error {
            Some(sqlstate) => {
                let part = Some(rows.len()).filter(|part| *part < statements.len());
                if &sqlstate == b"26000" {
                    lease
                        .prepared
                        .remove(part.map_or_else(|| RECORD.with(|record| record.id), |part| statements[part].id));
                }
                Answer::Failed { part, sqlstate }
            }
            None => Answer::Done(rows),
        }
    }

    /// What went wrong first.
    fn failure(&self, answers: &BTreeMap<GroupId, Answer>) -> Option<Verdict> {
        if answers.values().any(|answer| matches!(answer, Answer::Lost)) {
            return Some(Verdict::NotSent);
        }
        answers.iter().find_map(|(group, answer)| match answer {
            Answer::Failed { part, sqlstate } => {
                let guilty = part.and_then(|part| self.parts(*group).nth(part)).map(|(index, _)| index);
                Some(Verdict::RolledBack { guilty, sqlstate: *sqlstate })
            }
            _ => None,
        })
    }

    /// The rows of each write, over all servers.
    fn rows(&self, answers: &BTreeMap<GroupId, Answer>) -> Vec<u64> {
        let mut totals = vec![0; self.batch.len()];
        for (group, answer) in answers {
            let Answer::Done(rows) = answer else { continue };
            for ((index, _), rows) in self.parts(*group).zip(rows) {
                totals[index] += rows;
            }
        }
        totals
    }

    /// On its own connection, or on another where that has gone, again and again.
    async fn end_prepared(
        &self,
        committed: bool,
        groups: &[GroupId],
        lost: &BTreeMap<GroupId, Process>,
        leases: &mut BTreeMap<GroupId, Lease>,
    ) {
        for group in groups {
            if let Some(lease) = leases.get_mut(group).filter(|lease| !lease.is_broken()) {
                lease.send_query(&finish::sql_of(&self.gid(*group), committed));
                let _ = lease.flush().await;
            }
        }
        let mut parts = Vec::new();
        for group in groups {
            let ended = match leases.get_mut(group).filter(|lease| !lease.is_broken()) {
                Some(lease) => {
                    let awaited = self.awaited(*group, lease);
                    let answer = awaited.answer(lease.collect()).await;
                    if answer.is_none() {
                        lease.poison();
                    }
                    answer
                }
                None => None,
            };
            match ended {
                Some(Ok(_)) => {}
                Some(Err(BackendError::Server(fields))) if fields.sqlstate() == "42704" => {}
                _ => parts.push(PreparedPart { group: *group, lost: lost.get(group).cloned() }),
            }
        }
        if !parts.is_empty() {
            self.finish(Some(committed), lost, parts).await;
        }
    }

    /// What is not done yet goes on without us. Whether the transaction was committed, as far as that is known.
    async fn finish(
        &self,
        committed: Option<bool>,
        lost: &BTreeMap<GroupId, Process>,
        parts: Vec<PreparedPart>,
    ) -> Option<bool> {
        let unfinished = Unfinished {
            database: self.batch[0].database.clone(),
            transaction: self.transaction.clone(),
            decider: self.decider,
            committed,
            deciding: lost.get(&self.decider).cloned(),
            parts,
        };
        unfinished.finish(&self.shared, self.batch[0].commit_wait).await.committed
    }
}

/// The answer to a COMMIT that was sent. That of an aborted transaction has the tag ROLLBACK: the server's own word is
/// what counts.
async fn committed(group: GroupId, lease: &mut Lease) -> Event {
    match lease.collect().await {
        Ok(result) if result.tag == "COMMIT" => Event::Succeeded(group),
        Ok(_) => Event::Failed(group),
        Err(_) if lease.is_broken() => Event::Lost(group),
        Err(_) => Event::Failed(group),
    }
}
