//! What kind of statement a text is, and for utility statements what the router must know of it.
//! Follows src/include/nodes/parsenodes.h and the command tags of src/backend/tcop/utility.c.

use pg_query::NodeEnum;
use pg_query::protobuf::{self as pb, Node, Token};

use crate::ast::Span;
use crate::lower::{Lower, string, strings};
use crate::tokens::Tokens;
use crate::walk::RawRelation;

/// A name with an optional schema.
#[derive(Debug, Clone, PartialEq, Eq, Default, Hash)]
pub struct Name {
    pub schema: Option<String>,
    pub name: String,
}

/// A function's name and the types of its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// As `regprocedure` reads it, all quoted.
    pub text: String,
    /// The type of each argument, of an array its elements', and whether it is an array.
    pub types: Vec<(Name, bool)>,
}

/// Which rows FETCH and MOVE want.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// So many from here; none of them: the one at which the cursor stands.
    Forward(i64),
    /// Back, or at a row of a number.
    Other,
}

#[derive(Debug, Clone)]
pub enum StatementKind {
    /// SELECT, VALUES, TABLE, set operations; `Statement::tree` has it. Also with data-modifying CTEs.
    Select,
    SelectInto,
    Insert,
    Update,
    Delete,
    Merge,
    Copy(Box<CopyInfo>),
    Explain {
        options: Vec<(String, Option<String>)>,
        inner: Span,
    },
    Begin(TransactionModes),
    Commit {
        chain: bool,
    },
    Rollback {
        chain: bool,
    },
    Savepoint(String),
    Release(String),
    RollbackTo(String),
    PrepareTransaction(String),
    CommitPrepared(String),
    RollbackPrepared(String),
    Set(SetInfo),
    /// `all` for SHOW ALL, `timezone` for SHOW TIME ZONE, …
    Show {
        name: String,
    },
    /// None: RESET ALL.
    Reset {
        name: Option<String>,
    },
    Discard(DiscardKind),
    Prepare {
        name: String,
        types: Vec<String>,
        statement: Span,
    },
    Execute {
        name: String,
        args: Vec<Span>,
    },
    /// None: DEALLOCATE ALL.
    Deallocate {
        name: Option<String>,
    },
    DeclareCursor {
        name: String,
        hold: bool,
        binary: bool,
        scroll: Option<bool>,
        query: Span,
    },
    Fetch {
        name: String,
        is_move: bool,
        step: Step,
    },
    /// None: CLOSE ALL.
    CloseCursor {
        name: Option<String>,
    },
    Listen(String),
    /// None: UNLISTEN *.
    Unlisten(Option<String>),
    Notify {
        channel: String,
        payload: Option<String>,
    },
    Lock {
        relations: Vec<Name>,
    },
    Truncate {
        relations: Vec<Name>,
        /// Those of them that are named with ONLY.
        only: Vec<Name>,
        restart_identity: bool,
        cascade: bool,
    },
    /// VACUUM or ANALYZE.
    Vacuum {
        is_vacuum: bool,
        relations: Vec<Name>,
        /// Each as it is written: with its columns.
        targets: Vec<Span>,
        options: Vec<(String, Option<String>)>,
    },
    Call,
    Do {
        body: String,
        language: Option<String>,
    },
    CreateTable(CreateTable),
    CreateTableAs(CreateTableAs),
    Ddl(DdlInfo),
    CreateDatabase {
        name: String,
        /// None: `template1`.
        template: Option<String>,
        has_owner: bool,
    },
    DropDatabase {
        name: String,
        if_exists: bool,
    },
    /// ALTER DATABASE …, also … SET.
    AlterDatabase {
        name: String,
        set: Option<SetInfo>,
        /// SET TABLESPACE.
        is_moved: bool,
    },
    /// ALTER ROLE … SET, none: every role.
    AlterRoleSet {
        role: Option<String>,
        database: Option<String>,
        set: Option<SetInfo>,
    },
    Checkpoint,
    Cluster,
    Reindex {
        relation: Option<Name>,
        /// `index`, `table`, `schema`, `system` or `database`.
        object: &'static str,
        concurrently: bool,
    },
    RefreshMatView {
        relation: Name,
        concurrently: bool,
    },
    AlterSystem(SetInfo),
    /// SET CONSTRAINTS; without names, ALL.
    SetConstraints {
        names: Vec<Name>,
        deferred: bool,
    },
    /// The statement's own word, such as `LOAD`.
    Other(&'static str),
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransactionModes {
    /// `serializable`, `repeatable read`, …
    pub isolation: Option<String>,
    pub read_only: Option<bool>,
    pub deferrable: Option<bool>,
    /// The modes as written, for sending them on: empty or `ISOLATION LEVEL … READ ONLY …`.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetInfo {
    /// In lower case. `timezone`, `role`, `session_authorization`, `search_path` … for the special forms.
    pub name: String,
    pub local: bool,
    /// The value's text as written after TO or `=`, where it was written so.
    pub value_sql: Option<String>,
    /// The values: constants and words as strings. Empty where `is_default`.
    pub values: Vec<String>,
    /// TO DEFAULT, or RESET in ALTER … RESET.
    pub is_default: bool,
    pub kind: SetKind,
    /// For SET TRANSACTION and SESSION CHARACTERISTICS.
    pub modes: TransactionModes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetKind {
    Variable,
    /// SET TRANSACTION ISOLATION LEVEL …
    Transaction,
    TransactionSnapshot,
    /// SET SESSION CHARACTERISTICS AS TRANSACTION …
    SessionCharacteristics,
    /// RESET ALL within ALTER ROLE/DATABASE/SYSTEM.
    ResetAll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiscardKind {
    All,
    Plans,
    Sequences,
    Temp,
}

#[derive(Debug, Clone)]
pub struct CopyInfo {
    /// None for `COPY (query) TO`.
    pub relation: Option<Name>,
    /// Where the relation's name is, to put another in its place.
    pub relation_span: Span,
    /// Without the brackets.
    pub query: Option<Span>,
    pub columns: Vec<String>,
    pub from: bool,
    pub target: CopyTarget,
    pub options: CopyOptions,
    /// COPY FROM … WHERE: the condition.
    pub filter: Option<Span>,
    /// Everything from WITH or the first option up to WHERE or the end, as written.
    pub options_span: Option<Span>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyTarget {
    /// STDIN or STDOUT.
    Client,
    File(String),
    Program(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyFormat {
    #[default]
    Text,
    Csv,
    Binary,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyOptions {
    pub format: CopyFormat,
    pub delimiter: Option<String>,
    pub null: Option<String>,
    pub default: Option<String>,
    pub quote: Option<String>,
    pub escape: Option<String>,
    /// `true`, `false` or `match`.
    pub header: Option<String>,
    pub freeze: bool,
    pub encoding: Option<String>,
    /// None: not given; empty: `*`.
    pub force_quote: Option<Vec<String>>,
    pub force_not_null: Option<Vec<String>>,
    pub force_null: Option<Vec<String>>,
    /// Any other option: `on_error`, `reject_limit`, `log_verbosity`, …
    pub others: Vec<(String, Option<String>)>,
    /// All of them as a list, where some stand in the places that they had before there were lists.
    pub old: Option<String>,
}

impl CopyOptions {
    fn as_list(&self) -> String {
        let literal = |text: &str| format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"));
        let mut list = vec![format!(
            "FORMAT {}",
            match self.format {
                CopyFormat::Text => "text",
                CopyFormat::Csv => "csv",
                CopyFormat::Binary => "binary",
            }
        )];
        let texts = [
            ("DELIMITER", &self.delimiter),
            ("NULL", &self.null),
            ("DEFAULT", &self.default),
            ("QUOTE", &self.quote),
            ("ESCAPE", &self.escape),
            ("ENCODING", &self.encoding),
        ];
        list.extend(texts.into_iter().filter_map(|(name, value)| Some(format!("{name} {}", literal(value.as_ref()?)))));
        list.extend(self.header.iter().map(|header| format!("HEADER {header}")));
        list.extend(self.freeze.then(|| "FREEZE".to_owned()));
        let columns = [
            ("FORCE_QUOTE", &self.force_quote),
            ("FORCE_NOT_NULL", &self.force_not_null),
            ("FORCE_NULL", &self.force_null),
        ];
        for (name, columns) in columns {
            let Some(columns) = columns else { continue };
            let quoted: Vec<String> = columns.iter().map(|c| quoted(c)).collect();
            list.push(match quoted.is_empty() {
                true => format!("{name} *"),
                false => format!("{name} ({})", quoted.join(", ")),
            });
        }
        format!("({})", list.join(", "))
    }
}

#[derive(Debug, Clone)]
pub struct CreateTable {
    pub name: Name,
    pub temp: bool,
    pub unlogged: bool,
    pub if_not_exists: bool,
    /// INHERITS or PARTITION OF.
    pub parents: Vec<Name>,
    pub partition_of: bool,
    /// PARTITION BY.
    pub partitioned: bool,
    /// Tables named in foreign keys.
    pub references: Vec<Name>,
    pub is_foreign: bool,
}

#[derive(Debug, Clone)]
pub struct CreateTableAs {
    pub name: Name,
    pub temp: bool,
    pub if_not_exists: bool,
    pub materialized_view: bool,
    pub with_data: bool,
    /// EXECUTE in place of a query.
    pub is_execute: bool,
    /// The query's text; unknown for SELECT INTO.
    pub query: Span,
}

/// Any other definition statement.
#[derive(Debug, Clone, Default)]
pub struct DdlInfo {
    /// As in the command tag: `CREATE INDEX`.
    pub tag: &'static str,
    /// What is created, altered or dropped, lower case: `table`, `index`, `schema`, `role`, `function`, …
    pub object: &'static str,
    /// Relations the statement names (in a foreign key, as a rule's or trigger's table, …).
    pub relations: Vec<Name>,
    /// Names of the objects that DROP, COMMENT, RENAME … speak of.
    pub objects: Vec<Name>,
    /// Of `objects` that are functions. None: no arguments are written, or not as types.
    pub signatures: Vec<Option<Signature>>,
    /// GRANT … ON ALL TABLES IN SCHEMA: `objects` are schemas.
    pub all_in_schema: bool,
    pub concurrently: bool,
    pub if_exists: bool,
    pub if_not_exists: bool,
    /// CREATE OR REPLACE FUNCTION.
    pub replaces: bool,
    pub cascade: bool,
    pub temp: bool,
    /// ALTER TABLE's subcommands, `add_column`, `set_statistics`, … (PostgreSQL's AlterTableType); ALTER DOMAIN's that
    /// add.
    pub subcommands: Vec<String>,
    /// A role gets a password, which each server would encrypt with a salt of its own.
    pub gives_password: bool,
    /// RENAME TO, or the schema of SET SCHEMA.
    pub new_name: Option<String>,
    /// What is renamed when it is a part: `column`, `constraint`, …, with its old name.
    pub renamed_part: Option<(&'static str, String)>,
}

pub(crate) struct Kinds<'a> {
    pub text: &'a str,
    pub tokens: &'a Tokens,
    pub base: usize,
    pub relations: &'a [RawRelation],
}

fn step_of(fetch: &pb::FetchStmt) -> Step {
    use pb::FetchDirection as D;
    match fetch.direction() {
        D::FetchForward if fetch.how_many >= 0 => Step::Forward(fetch.how_many),
        D::FetchBackward if fetch.how_many <= 0 => Step::Forward(fetch.how_many.saturating_neg()),
        _ => Step::Other,
    }
}

fn opt(text: &str) -> Option<String> {
    if text.is_empty() { None } else { Some(text.to_owned()) }
}

fn gives_password(options: &[Node]) -> bool {
    options.iter().any(|option| matches!(&option.node, Some(NodeEnum::DefElem(d)) if d.defname == "password"))
}

/// The password that an ALTER ROLE gives, as it is written there, and the role's name. None: the current one.
pub fn role_password(text: &str) -> Option<(Option<String>, String)> {
    let parsed = pg_query::parse(text, 0).ok()?;
    let statement = parsed.protobuf.stmts.into_iter().next()?.stmt?.node?;
    let NodeEnum::AlterRoleStmt(alter) = statement else { return None };
    let password = alter.options.iter().find_map(|option| match &option.node {
        Some(NodeEnum::DefElem(d)) if d.defname == "password" => match &d.arg.as_ref()?.node {
            Some(NodeEnum::String(password)) => Some(password.sval.clone()),
            _ => None,
        },
        _ => None,
    })?;
    let name = alter.role.map(|role| role.rolename).filter(|name| !name.is_empty());
    Some((name, password))
}

pub(crate) fn name_of(r: &pb::RangeVar) -> Name {
    Name { schema: opt(&r.schemaname), name: r.relname.clone() }
}

fn name_of_list(list: &[Node]) -> Name {
    let mut parts = strings(list);
    let name = parts.pop().unwrap_or_default();
    Name { schema: parts.pop(), name }
}

fn relation_names(list: &[Node]) -> Vec<Name> {
    list.iter()
        .filter_map(|n| match &n.node {
            Some(NodeEnum::RangeVar(r)) => Some(name_of(r)),
            _ => None,
        })
        .collect()
}

/// The value of an option or setting as PostgreSQL's `defGetString` gives it.
fn value_text(node: &Node) -> Option<String> {
    match node.node.as_ref()? {
        NodeEnum::String(s) => Some(s.sval.clone()),
        NodeEnum::Integer(i) => Some(i.ival.to_string()),
        NodeEnum::Float(f) => Some(f.fval.clone()),
        NodeEnum::Boolean(b) => Some(b.boolval.to_string()),
        NodeEnum::AStar(_) => Some("*".to_owned()),
        NodeEnum::AConst(c) => {
            use pb::a_const::Val;
            match c.val.as_ref()? {
                Val::Ival(i) => Some(i.ival.to_string()),
                Val::Fval(f) => Some(f.fval.clone()),
                Val::Boolval(b) => Some(b.boolval.to_string()),
                Val::Sval(s) => Some(s.sval.clone()),
                Val::Bsval(s) => Some(s.bsval.clone()),
            }
        }
        NodeEnum::TypeName(t) => strings(&t.names).pop(),
        NodeEnum::TypeCast(c) => c.arg.as_deref().and_then(value_text),
        NodeEnum::List(l) => Some(l.items.iter().filter_map(value_text).collect::<Vec<_>>().join(", ")),
        _ => None,
    }
}

fn options_of(list: &[Node]) -> Vec<(String, Option<String>)> {
    list.iter()
        .filter_map(|n| match &n.node {
            Some(NodeEnum::DefElem(d)) => Some((d.defname.to_ascii_lowercase(), d.arg.as_deref().and_then(value_text))),
            _ => None,
        })
        .collect()
}

fn is_true(value: &Option<String>) -> bool {
    match value.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("true" | "on" | "1" | "t" | "yes" | "y") => true,
        Some(_) => false,
    }
}

impl Kinds<'_> {
    fn rest(&self, from: usize) -> Span {
        self.tokens.span(from, self.tokens.list.len())
    }

    /// Index of the first token of a kind outside brackets, from `at` on.
    fn find(&self, at: usize, kind: Token) -> Option<usize> {
        let mut i = at;
        while i < self.tokens.list.len() {
            if self.tokens.kind(i) == kind && !self.tokens.is_label(i) {
                return Some(i);
            }
            i = self.tokens.next_flat(i);
        }
        None
    }

    /// What VACUUM and ANALYZE are about.
    fn maintained(&self) -> Vec<Span> {
        let t = self.tokens;
        let mut at = if t.kind(1) == Token::Ascii40 { t.mate(1) + 1 } else { 1 };
        while matches!(t.kind(at), Token::Full | Token::Freeze | Token::Verbose | Token::Analyze | Token::Analyse) {
            at += 1;
        }
        let mut targets = Vec::new();
        while at < t.list.len() {
            let end = self.find(at, Token::Ascii44).unwrap_or(t.list.len());
            targets.push(t.span(at, end));
            at = end + 1;
        }
        targets
    }

    pub fn kind(&self, node: &NodeEnum) -> StatementKind {
        use StatementKind as K;
        let t = self.tokens;
        match node {
            NodeEnum::SelectStmt(s) if s.into_clause.is_some() => K::SelectInto,
            NodeEnum::SelectStmt(s) => {
                // SELECT INTO below a set operation sits on its leftmost arm.
                let mut arm = s.larg.as_ref();
                while let Some(left) = arm {
                    if left.into_clause.is_some() {
                        return K::SelectInto;
                    }
                    arm = left.larg.as_ref();
                }
                K::Select
            }
            NodeEnum::InsertStmt(_) => K::Insert,
            NodeEnum::UpdateStmt(_) => K::Update,
            NodeEnum::DeleteStmt(_) => K::Delete,
            NodeEnum::MergeStmt(_) => K::Merge,
            NodeEnum::CopyStmt(c) => K::Copy(Box::new(self.copy(c))),
            NodeEnum::ExplainStmt(e) => {
                let mut i = 1;
                if !e.options.is_empty() && t.kind(1) == Token::Ascii40 {
                    i = t.mate(1) + 1;
                } else {
                    while matches!(t.kind(i), Token::Analyze | Token::Analyse | Token::Verbose) {
                        i += 1;
                    }
                }
                K::Explain { options: options_of(&e.options), inner: self.rest(i) }
            }
            NodeEnum::TransactionStmt(s) => self.transaction(s),
            NodeEnum::VariableSetStmt(s) => match pb::VariableSetKind::try_from(s.kind) {
                Ok(pb::VariableSetKind::VarReset) => K::Reset { name: Some(s.name.to_ascii_lowercase()) },
                Ok(pb::VariableSetKind::VarResetAll) => K::Reset { name: None },
                _ => K::Set(self.set(s, 0)),
            },
            NodeEnum::VariableShowStmt(s) => K::Show { name: s.name.to_ascii_lowercase() },
            NodeEnum::DiscardStmt(d) => K::Discard(match pb::DiscardMode::try_from(d.target) {
                Ok(pb::DiscardMode::DiscardPlans) => DiscardKind::Plans,
                Ok(pb::DiscardMode::DiscardSequences) => DiscardKind::Sequences,
                Ok(pb::DiscardMode::DiscardTemp) => DiscardKind::Temp,
                _ => DiscardKind::All,
            }),
            NodeEnum::PrepareStmt(p) => {
                let mut lower = Lower::new(self.text, t, self.base);
                let types = p
                    .argtypes
                    .iter()
                    .filter_map(|n| match &n.node {
                        Some(NodeEnum::TypeName(x)) => Some(lower.type_name(x).span.of(self.text).to_owned()),
                        _ => None,
                    })
                    .collect();
                let body = self.find(2, Token::As).map_or(Span::default(), |i| self.rest(i + 1));
                K::Prepare { name: p.name.clone(), types, statement: body }
            }
            NodeEnum::ExecuteStmt(e) => {
                let args = match self.find(1, Token::Ascii40) {
                    Some(open) if !e.params.is_empty() => {
                        t.split_commas(open + 1, t.mate(open)).into_iter().map(|(from, to)| t.span(from, to)).collect()
                    }
                    _ => Vec::new(),
                };
                K::Execute { name: e.name.clone(), args }
            }
            NodeEnum::DeallocateStmt(d) => K::Deallocate { name: opt(&d.name).filter(|_| !d.isall) },
            NodeEnum::DeclareCursorStmt(d) => K::DeclareCursor {
                name: d.portalname.clone(),
                hold: d.options & 0x20 != 0,
                binary: d.options & 0x01 != 0,
                scroll: match d.options & 0x06 {
                    0x02 => Some(true),
                    0x04 => Some(false),
                    _ => None,
                },
                query: self.find(1, Token::For).map_or(Span::default(), |i| self.rest(i + 1)),
            },
            NodeEnum::FetchStmt(f) => K::Fetch { name: f.portalname.clone(), is_move: f.ismove, step: step_of(f) },
            NodeEnum::ClosePortalStmt(c) => K::CloseCursor { name: opt(&c.portalname) },
            NodeEnum::ListenStmt(l) => K::Listen(l.conditionname.clone()),
            NodeEnum::UnlistenStmt(u) => K::Unlisten(opt(&u.conditionname)),
            NodeEnum::NotifyStmt(n) => K::Notify {
                channel: n.conditionname.clone(),
                payload: if n.payload.is_empty() { None } else { Some(n.payload.clone()) },
            },
            NodeEnum::LockStmt(l) => K::Lock { relations: relation_names(&l.relations) },
            NodeEnum::TruncateStmt(s) => K::Truncate {
                relations: relation_names(&s.relations),
                only: (s.relations.iter())
                    .filter_map(|n| match &n.node {
                        Some(NodeEnum::RangeVar(r)) if !r.inh => Some(name_of(r)),
                        _ => None,
                    })
                    .collect(),
                restart_identity: s.restart_seqs,
                cascade: s.behavior == pb::DropBehavior::DropCascade as i32,
            },
            NodeEnum::VacuumStmt(v) => K::Vacuum {
                is_vacuum: v.is_vacuumcmd,
                relations: v
                    .rels
                    .iter()
                    .filter_map(|n| match &n.node {
                        Some(NodeEnum::VacuumRelation(r)) => r.relation.as_ref().map(name_of),
                        _ => None,
                    })
                    .collect(),
                targets: self.maintained(),
                options: options_of(&v.options),
            },
            NodeEnum::CallStmt(_) => K::Call,
            NodeEnum::DoStmt(d) => {
                let options = options_of(&d.args);
                let get = |name: &str| options.iter().find(|(n, _)| n == name).and_then(|(_, v)| v.clone());
                K::Do { body: get("as").unwrap_or_default(), language: get("language") }
            }
            NodeEnum::CreateStmt(c) => K::CreateTable(self.create_table(c, false)),
            NodeEnum::CreateForeignTableStmt(c) => match &c.base_stmt {
                Some(base) => K::CreateTable(self.create_table(base, true)),
                None => K::Other("CREATE FOREIGN TABLE"),
            },
            NodeEnum::CreateTableAsStmt(c) => {
                let into = c.into.as_ref();
                let rel = into.and_then(|i| i.rel.as_ref());
                let mut query = Span::default();
                if let Some(as_at) = self.find(1, Token::As) {
                    let mut end = t.list.len();
                    if t.kind(end.saturating_sub(1)) == Token::DataP {
                        let no = t.kind(end.saturating_sub(2)) == Token::No;
                        let with = end.saturating_sub(if no { 3 } else { 2 });
                        if matches!(t.kind(with), Token::With | Token::WithLa) {
                            end = with;
                        }
                    }
                    query = t.span(as_at + 1, end);
                }
                K::CreateTableAs(CreateTableAs {
                    name: rel.map(name_of).unwrap_or_default(),
                    temp: rel.is_some_and(|r| r.relpersistence == "t"),
                    if_not_exists: c.if_not_exists,
                    materialized_view: c.objtype == pb::ObjectType::ObjectMatview as i32,
                    with_data: !into.is_some_and(|i| i.skip_data),
                    is_execute: matches!(
                        c.query.as_ref().and_then(|n| n.node.as_ref()),
                        Some(NodeEnum::ExecuteStmt(_))
                    ),
                    query,
                })
            }
            NodeEnum::CreatedbStmt(c) => {
                let option = |name: &str| {
                    c.options.iter().find_map(|o| match o.node.as_ref() {
                        Some(NodeEnum::DefElem(d)) if d.defname == name => d.arg.as_ref(),
                        _ => None,
                    })
                };
                let template = option("template").and_then(|arg| match arg.node.as_ref() {
                    Some(NodeEnum::String(s)) => Some(s.sval.clone()),
                    _ => None,
                });
                K::CreateDatabase { name: c.dbname.clone(), template, has_owner: option("owner").is_some() }
            }
            NodeEnum::DropdbStmt(d) => K::DropDatabase { name: d.dbname.clone(), if_exists: d.missing_ok },
            NodeEnum::AlterDatabaseStmt(a) => {
                let mut options = a.options.iter().filter_map(|o| o.node.as_ref());
                let is_moved = options.any(|o| matches!(o, NodeEnum::DefElem(d) if d.defname == "tablespace"));
                K::AlterDatabase { name: a.dbname.clone(), set: None, is_moved }
            }
            NodeEnum::AlterDatabaseRefreshCollStmt(a) => {
                K::AlterDatabase { name: a.dbname.clone(), set: None, is_moved: false }
            }
            NodeEnum::AlterDatabaseSetStmt(a) => {
                let set = a.setstmt.as_ref().map(|s| self.set(s, 2));
                K::AlterDatabase { name: a.dbname.clone(), set, is_moved: false }
            }
            NodeEnum::AlterRoleSetStmt(a) => K::AlterRoleSet {
                role: a.role.as_ref().and_then(|r| opt(&r.rolename)),
                database: opt(&a.database),
                set: a.setstmt.as_ref().map(|s| self.set(s, 2)),
            },
            NodeEnum::CheckPointStmt(_) => K::Checkpoint,
            NodeEnum::ClusterStmt(_) => K::Cluster,
            NodeEnum::ReindexStmt(r) => K::Reindex {
                relation: r.relation.as_ref().map(name_of),
                object: match pb::ReindexObjectType::try_from(r.kind) {
                    Ok(pb::ReindexObjectType::ReindexObjectIndex) => "index",
                    Ok(pb::ReindexObjectType::ReindexObjectTable) => "table",
                    Ok(pb::ReindexObjectType::ReindexObjectSchema) => "schema",
                    Ok(pb::ReindexObjectType::ReindexObjectSystem) => "system",
                    _ => "database",
                },
                concurrently: options_of(&r.params).iter().any(|(n, v)| n == "concurrently" && is_true(v)),
            },
            NodeEnum::RefreshMatViewStmt(r) => K::RefreshMatView {
                relation: r.relation.as_ref().map(name_of).unwrap_or_default(),
                concurrently: r.concurrent,
            },
            NodeEnum::AlterSystemStmt(a) => match &a.setstmt {
                Some(s) => K::AlterSystem(self.set(s, 2)),
                None => K::Other("ALTER SYSTEM"),
            },
            NodeEnum::ConstraintsSetStmt(s) => {
                let name = |n: &pb::Node| match &n.node {
                    Some(NodeEnum::RangeVar(r)) => Some(Name { schema: opt(&r.schemaname), name: r.relname.clone() }),
                    _ => None,
                };
                K::SetConstraints { names: s.constraints.iter().filter_map(name).collect(), deferred: s.deferred }
            }
            NodeEnum::LoadStmt(_) => K::Other("LOAD"),
            _ => match self.ddl(node) {
                Some(info) => K::Ddl(info),
                None => K::Other("unknown"),
            },
        }
    }

    fn modes(&self, options: &[Node], from: usize) -> TransactionModes {
        let mut modes = TransactionModes::default();
        for (name, value) in options_of(options) {
            match name.as_str() {
                "transaction_isolation" => modes.isolation = value,
                "transaction_read_only" => modes.read_only = Some(value.as_deref() != Some("0")),
                "transaction_deferrable" => modes.deferrable = Some(value.as_deref() != Some("0")),
                _ => {}
            }
        }
        if !options.is_empty() {
            modes.text = self.rest(from).of(self.text).to_owned();
        }
        modes
    }

    fn transaction(&self, s: &pb::TransactionStmt) -> StatementKind {
        use StatementKind as K;
        use pb::TransactionStmtKind as T;
        match T::try_from(s.kind) {
            Ok(T::TransStmtBegin | T::TransStmtStart) => {
                let from = if matches!(self.tokens.kind(1), Token::Transaction | Token::Work) { 2 } else { 1 };
                K::Begin(self.modes(&s.options, from))
            }
            Ok(T::TransStmtCommit) => K::Commit { chain: s.chain },
            Ok(T::TransStmtRollback) => K::Rollback { chain: s.chain },
            Ok(T::TransStmtSavepoint) => K::Savepoint(s.savepoint_name.clone()),
            Ok(T::TransStmtRelease) => K::Release(s.savepoint_name.clone()),
            Ok(T::TransStmtRollbackTo) => K::RollbackTo(s.savepoint_name.clone()),
            Ok(T::TransStmtPrepare) => K::PrepareTransaction(s.gid.clone()),
            Ok(T::TransStmtCommitPrepared) => K::CommitPrepared(s.gid.clone()),
            Ok(T::TransStmtRollbackPrepared) => K::RollbackPrepared(s.gid.clone()),
            _ => K::Other("TRANSACTION"),
        }
    }

    /// `from`: index of a token before SET.
    fn set(&self, s: &pb::VariableSetStmt, from: usize) -> SetInfo {
        use pb::VariableSetKind as V;
        let t = self.tokens;
        let set_at = self.find(from, Token::Set).unwrap_or(from);
        let kind = V::try_from(s.kind);
        let mut info = SetInfo {
            name: s.name.to_ascii_lowercase(),
            local: s.is_local,
            value_sql: None,
            values: s.args.iter().filter_map(value_text).collect(),
            is_default: matches!(kind, Ok(V::VarSetDefault | V::VarReset | V::VarResetAll)),
            kind: SetKind::Variable,
            modes: TransactionModes::default(),
        };
        match kind {
            Ok(V::VarSetMulti) => {
                info.values.clear();
                info.kind = match s.name.as_str() {
                    "TRANSACTION" => SetKind::Transaction,
                    "TRANSACTION SNAPSHOT" => SetKind::TransactionSnapshot,
                    _ => SetKind::SessionCharacteristics,
                };
                match info.kind {
                    SetKind::TransactionSnapshot => info.values = s.args.iter().filter_map(value_text).collect(),
                    _ => {
                        let at = self.find(set_at, Token::Transaction).map_or(t.list.len(), |i| i + 1);
                        info.modes = self.modes(&s.args, at);
                    }
                }
            }
            Ok(V::VarResetAll) => info.kind = SetKind::ResetAll,
            Ok(V::VarSetValue) => {
                let mut i = set_at + 1;
                while i < t.list.len() && !matches!(t.kind(i), Token::To | Token::Ascii61) {
                    i += 1;
                }
                if i < t.list.len() && t.kind(set_at + 1) != Token::Time {
                    info.value_sql = Some(self.rest(i + 1).of(self.text).to_owned());
                }
            }
            _ => {}
        }
        info
    }

    fn copy(&self, c: &pb::CopyStmt) -> CopyInfo {
        let t = self.tokens;
        let lower = Lower::new(self.text, t, self.base);
        let relation_span = c.relation.as_ref().map_or(Span::default(), |r| lower.relation(r).span);
        let mut query = None;
        if c.query.is_some() {
            query = self.find(1, Token::Ascii40).map(|open| t.span(open + 1, t.mate(open)));
        }
        let mut options = CopyOptions::default();
        for node in &c.options {
            let Some(NodeEnum::DefElem(d)) = &node.node else { continue };
            let value = d.arg.as_deref().and_then(value_text);
            let names = || match d.arg.as_deref().and_then(|n| n.node.as_ref()) {
                Some(NodeEnum::List(l)) => strings(&l.items),
                _ => Vec::new(),
            };
            match d.defname.to_ascii_lowercase().as_str() {
                "format" => {
                    options.format = match value.as_deref().map(str::to_ascii_lowercase).as_deref() {
                        Some("csv") => CopyFormat::Csv,
                        Some("binary") => CopyFormat::Binary,
                        _ => CopyFormat::Text,
                    }
                }
                "delimiter" => options.delimiter = value,
                "null" => options.null = value,
                "default" => options.default = value,
                "quote" => options.quote = value,
                "escape" => options.escape = value,
                "header" => {
                    options.header = Some(match value.as_deref().map(str::to_ascii_lowercase).as_deref() {
                        Some("match") => "match".to_owned(),
                        _ => is_true(&value).to_string(),
                    })
                }
                "freeze" => options.freeze = is_true(&value),
                "encoding" => options.encoding = value,
                "force_quote" => options.force_quote = Some(names()),
                "force_not_null" => options.force_not_null = Some(names()),
                "force_null" => options.force_null = Some(names()),
                other => options.others.push((other.to_owned(), value)),
            }
        }
        let direction = self.find(1, if c.is_from { Token::From } else { Token::To });
        let (mut filter, mut options_span) = (None, None);
        if let Some(direction) = direction {
            // FROM [PROGRAM] 'file' | STDIN, then options, then WHERE.
            let after = direction + if t.kind(direction + 1) == Token::Program { 3 } else { 2 };
            let filter_at = self.find(after, Token::Where);
            filter = filter_at.map(|i| self.rest(i + 1));
            options_span = Some(t.span(after, filter_at.unwrap_or(t.list.len()))).filter(|s| s.is_known());
            let is_old = t.kind(1) == Token::Binary || matches!(t.kind(after), Token::Using | Token::Delimiters);
            options.old = is_old.then(|| options.as_list());
        }
        CopyInfo {
            relation: c.relation.as_ref().map(name_of),
            relation_span,
            query,
            columns: strings(&c.attlist),
            from: c.is_from,
            target: match (c.filename.as_str(), c.is_program) {
                ("", _) => CopyTarget::Client,
                (name, false) => CopyTarget::File(name.to_owned()),
                (name, true) => CopyTarget::Program(name.to_owned()),
            },
            options,
            filter,
            options_span,
        }
    }

    fn create_table(&self, c: &pb::CreateStmt, is_foreign: bool) -> CreateTable {
        let own = c.relation.as_ref().map(name_of).unwrap_or_default();
        let parents = relation_names(&c.inh_relations);
        let elements = c.table_elts.iter().chain(&c.constraints);
        let constraints = elements.flat_map(|n| match &n.node {
            Some(NodeEnum::ColumnDef(column)) => column.constraints.as_slice(),
            _ => std::slice::from_ref(n),
        });
        let referenced = constraints.filter_map(|n| match &n.node {
            Some(NodeEnum::Constraint(key)) => key.pktable.as_ref().map(name_of),
            _ => None,
        });
        let references = referenced.filter(|n| *n != own && !parents.contains(n)).collect();
        CreateTable {
            temp: c.relation.as_ref().is_some_and(|r| r.relpersistence == "t"),
            unlogged: c.relation.as_ref().is_some_and(|r| r.relpersistence == "u"),
            name: own,
            if_not_exists: c.if_not_exists,
            parents,
            partition_of: c.partbound.is_some(),
            partitioned: c.partspec.is_some(),
            references,
            is_foreign,
        }
    }

    fn ddl(&self, node: &NodeEnum) -> Option<DdlInfo> {
        let mut info = DdlInfo {
            relations: self.relations.iter().map(|r| Name { schema: opt(&r.schema), name: r.name.clone() }).collect(),
            temp: self.relations.iter().any(|r| r.persistence == "t"),
            ..DdlInfo::default()
        };
        let cascade = pb::DropBehavior::DropCascade as i32;
        let (tag, object) = match node {
            NodeEnum::IndexStmt(i) => {
                info.concurrently = i.concurrent;
                info.if_not_exists = i.if_not_exists;
                info.objects = vec![Name { schema: None, name: i.idxname.clone() }];
                ("CREATE INDEX", "index")
            }
            NodeEnum::AlterTableStmt(a) => {
                info.if_exists = a.missing_ok;
                for n in &a.cmds {
                    if let Some(NodeEnum::AlterTableCmd(cmd)) = &n.node {
                        if let Ok(kind) = pb::AlterTableType::try_from(cmd.subtype) {
                            let name = kind.as_str_name().trim_start_matches("AT_");
                            info.subcommands.push(snake(name));
                        }
                        info.cascade |= cmd.behavior == cascade;
                        // DETACH PARTITION … CONCURRENTLY
                        if let Some(NodeEnum::PartitionCmd(part)) = cmd.def.as_ref().and_then(|d| d.node.as_ref()) {
                            info.concurrently |= part.concurrent;
                        }
                    }
                }
                ("ALTER TABLE", object_word(a.objtype))
            }
            NodeEnum::RenameStmt(r) => {
                info.if_exists = r.missing_ok;
                info.new_name = opt(&r.newname);
                if let Some(list) = r.object.as_deref() {
                    info.objects = object_names(list);
                    info.signatures = vec![signature_of(list)];
                }
                if !r.subname.is_empty() {
                    info.renamed_part = Some((object_word(r.rename_type), r.subname.clone()));
                }
                let word = object_word(r.rename_type);
                ("RENAME", if word == "column" || word == "constraint" { object_word(r.relation_type) } else { word })
            }
            NodeEnum::AlterObjectSchemaStmt(a) => {
                info.new_name = opt(&a.newschema);
                info.if_exists = a.missing_ok;
                if let Some(list) = a.object.as_deref() {
                    info.objects = object_names(list);
                    info.signatures = vec![signature_of(list)];
                }
                ("SET SCHEMA", object_word(a.object_type))
            }
            NodeEnum::AlterOwnerStmt(a) => {
                if let Some(list) = a.object.as_deref() {
                    info.objects = object_names(list);
                    info.signatures = vec![signature_of(list)];
                }
                ("ALTER OWNER", object_word(a.object_type))
            }
            NodeEnum::DropStmt(d) => {
                info.concurrently = d.concurrent;
                info.if_exists = d.missing_ok;
                info.cascade = d.behavior == cascade;
                info.objects = d.objects.iter().flat_map(object_names).collect();
                info.signatures = d.objects.iter().map(signature_of).collect();
                let word = object_word(d.remove_type);
                if matches!(word, "table" | "view" | "materialized view" | "foreign table" | "sequence") {
                    info.relations = info.objects.clone();
                } else if matches!(word, "trigger" | "rule" | "policy") {
                    // [schema.]table.object
                    info.relations = d
                        .objects
                        .iter()
                        .filter_map(|n| match &n.node {
                            Some(NodeEnum::List(l)) => l.items.split_last().map(|(_, table)| name_of_list(table)),
                            _ => None,
                        })
                        .collect();
                }
                ("DROP", word)
            }
            NodeEnum::CommentStmt(c) => {
                let word = object_word(c.objtype);
                if let Some(object) = c.object.as_deref() {
                    self.relation_of_object(word, object, &mut info);
                }
                ("COMMENT", word)
            }
            NodeEnum::SecLabelStmt(s) => {
                let word = object_word(s.objtype);
                if let Some(object) = s.object.as_deref() {
                    self.relation_of_object(word, object, &mut info);
                }
                ("SECURITY LABEL", word)
            }
            NodeEnum::GrantStmt(g) => {
                info.cascade = g.behavior == cascade;
                info.all_in_schema = g.targtype == pb::GrantTargetType::AclTargetAllInSchema as i32;
                info.objects = g.objects.iter().flat_map(object_names).collect();
                info.signatures = g.objects.iter().map(signature_of).collect();
                (if g.is_grant { "GRANT" } else { "REVOKE" }, object_word(g.objtype))
            }
            NodeEnum::GrantRoleStmt(g) => (if g.is_grant { "GRANT ROLE" } else { "REVOKE ROLE" }, "role"),
            NodeEnum::AlterDefaultPrivilegesStmt(_) => ("ALTER DEFAULT PRIVILEGES", "default privileges"),
            NodeEnum::CreateSchemaStmt(s) => {
                info.if_not_exists = s.if_not_exists;
                // Without a name it has its owner's; CURRENT_USER and its like are empty.
                let owner = || s.authrole.as_ref().map(|role| role.rolename.clone()).unwrap_or_default();
                let name = if s.schemaname.is_empty() { owner() } else { s.schemaname.clone() };
                info.objects = vec![Name { schema: None, name }];
                ("CREATE SCHEMA", "schema")
            }
            NodeEnum::CreateRoleStmt(r) => {
                info.objects = vec![Name { schema: None, name: r.role.clone() }];
                info.gives_password = gives_password(&r.options);
                ("CREATE ROLE", "role")
            }
            NodeEnum::AlterRoleStmt(r) => {
                info.gives_password = gives_password(&r.options);
                ("ALTER ROLE", "role")
            }
            NodeEnum::DropRoleStmt(d) => {
                info.if_exists = d.missing_ok;
                ("DROP ROLE", "role")
            }
            NodeEnum::DropOwnedStmt(_) => ("DROP OWNED", "role"),
            NodeEnum::ReassignOwnedStmt(_) => ("REASSIGN OWNED", "role"),
            NodeEnum::CreateSeqStmt(s) => {
                info.if_not_exists = s.if_not_exists;
                ("CREATE SEQUENCE", "sequence")
            }
            NodeEnum::AlterSeqStmt(s) => {
                info.if_exists = s.missing_ok;
                ("ALTER SEQUENCE", "sequence")
            }
            NodeEnum::ViewStmt(_) => ("CREATE VIEW", "view"),
            NodeEnum::CreateTrigStmt(c) => {
                info.objects = vec![Name { schema: None, name: c.trigname.clone() }];
                ("CREATE TRIGGER", "trigger")
            }
            NodeEnum::CreatePolicyStmt(_) => ("CREATE POLICY", "policy"),
            NodeEnum::AlterPolicyStmt(_) => ("ALTER POLICY", "policy"),
            NodeEnum::RuleStmt(_) => ("CREATE RULE", "rule"),
            NodeEnum::CreateStatsStmt(s) => {
                info.if_not_exists = s.if_not_exists;
                ("CREATE STATISTICS", "statistics")
            }
            NodeEnum::AlterStatsStmt(s) => {
                info.if_exists = s.missing_ok;
                info.objects = vec![name_of_list(&s.defnames)];
                ("ALTER STATISTICS", "statistics")
            }
            NodeEnum::CreateFunctionStmt(f) => {
                info.replaces = f.replace;
                info.objects = vec![name_of_list(&f.funcname)];
                if f.is_procedure { ("CREATE PROCEDURE", "procedure") } else { ("CREATE FUNCTION", "function") }
            }
            NodeEnum::AlterFunctionStmt(f) => {
                info.objects = f.func.iter().map(|o| name_of_list(&o.objname)).collect();
                info.signatures = f.func.iter().map(signature).collect();
                ("ALTER FUNCTION", object_word(f.objtype))
            }
            NodeEnum::DefineStmt(d) => {
                info.if_not_exists = d.if_not_exists;
                info.objects = vec![name_of_list(&d.defnames)];
                match object_word(d.kind) {
                    "aggregate" => ("CREATE AGGREGATE", "aggregate"),
                    "operator" => ("CREATE OPERATOR", "operator"),
                    "type" => ("CREATE TYPE", "type"),
                    "collation" => ("CREATE COLLATION", "collation"),
                    word => ("CREATE TEXT SEARCH", word),
                }
            }
            NodeEnum::CompositeTypeStmt(c) => {
                info.objects = c.typevar.iter().map(name_of).collect();
                info.relations.clear();
                ("CREATE TYPE", "type")
            }
            NodeEnum::CreateEnumStmt(c) => {
                info.objects = vec![name_of_list(&c.type_name)];
                ("CREATE TYPE", "type")
            }
            NodeEnum::CreateRangeStmt(c) => {
                info.objects = vec![name_of_list(&c.type_name)];
                ("CREATE TYPE", "type")
            }
            NodeEnum::AlterEnumStmt(c) => {
                info.objects = vec![name_of_list(&c.type_name)];
                ("ALTER TYPE", "type")
            }
            NodeEnum::AlterTypeStmt(c) => {
                info.objects = vec![name_of_list(&c.type_name)];
                ("ALTER TYPE", "type")
            }
            NodeEnum::CreateDomainStmt(c) => {
                info.objects = vec![name_of_list(&c.domainname)];
                ("CREATE DOMAIN", "domain")
            }
            NodeEnum::AlterDomainStmt(c) => {
                info.objects = vec![name_of_list(&c.type_name)];
                let adds = match c.subtype.as_str() {
                    "C" => Some("add_constraint"),
                    "T" if c.def.is_some() => Some("column_default"),
                    _ => None,
                };
                info.subcommands.extend(adds.map(str::to_owned));
                ("ALTER DOMAIN", "domain")
            }
            NodeEnum::CreateExtensionStmt(c) => {
                info.if_not_exists = c.if_not_exists;
                info.objects = vec![Name { schema: None, name: c.extname.clone() }];
                ("CREATE EXTENSION", "extension")
            }
            NodeEnum::AlterExtensionStmt(a) => {
                info.objects = vec![Name { schema: None, name: a.extname.clone() }];
                ("ALTER EXTENSION", "extension")
            }
            NodeEnum::AlterExtensionContentsStmt(_) => ("ALTER EXTENSION", "extension"),
            NodeEnum::CreateCastStmt(_) => ("CREATE CAST", "cast"),
            NodeEnum::CreateConversionStmt(_) => ("CREATE CONVERSION", "conversion"),
            NodeEnum::CreateTransformStmt(_) => ("CREATE TRANSFORM", "transform"),
            NodeEnum::CreatePlangStmt(_) => ("CREATE LANGUAGE", "language"),
            NodeEnum::CreateOpClassStmt(_) => ("CREATE OPERATOR CLASS", "operator class"),
            NodeEnum::CreateOpFamilyStmt(_) => ("CREATE OPERATOR FAMILY", "operator family"),
            NodeEnum::AlterOpFamilyStmt(_) => ("ALTER OPERATOR FAMILY", "operator family"),
            NodeEnum::AlterOperatorStmt(_) => ("ALTER OPERATOR", "operator"),
            NodeEnum::AlterCollationStmt(_) => ("ALTER COLLATION", "collation"),
            NodeEnum::AlterTsdictionaryStmt(_) => ("ALTER TEXT SEARCH DICTIONARY", "text search dictionary"),
            NodeEnum::AlterTsconfigurationStmt(_) => ("ALTER TEXT SEARCH CONFIGURATION", "text search configuration"),
            NodeEnum::CreateFdwStmt(_) => ("CREATE FOREIGN DATA WRAPPER", "foreign data wrapper"),
            NodeEnum::AlterFdwStmt(_) => ("ALTER FOREIGN DATA WRAPPER", "foreign data wrapper"),
            NodeEnum::CreateForeignServerStmt(_) => ("CREATE SERVER", "server"),
            NodeEnum::AlterForeignServerStmt(_) => ("ALTER SERVER", "server"),
            NodeEnum::CreateUserMappingStmt(_) => ("CREATE USER MAPPING", "user mapping"),
            NodeEnum::AlterUserMappingStmt(_) => ("ALTER USER MAPPING", "user mapping"),
            NodeEnum::DropUserMappingStmt(_) => ("DROP USER MAPPING", "user mapping"),
            NodeEnum::ImportForeignSchemaStmt(_) => {
                info.relations.clear();
                ("IMPORT FOREIGN SCHEMA", "foreign schema")
            }
            NodeEnum::CreateEventTrigStmt(_) => ("CREATE EVENT TRIGGER", "event trigger"),
            NodeEnum::AlterEventTrigStmt(_) => ("ALTER EVENT TRIGGER", "event trigger"),
            NodeEnum::CreatePublicationStmt(_) => ("CREATE PUBLICATION", "publication"),
            NodeEnum::AlterPublicationStmt(_) => ("ALTER PUBLICATION", "publication"),
            NodeEnum::CreateSubscriptionStmt(_) => ("CREATE SUBSCRIPTION", "subscription"),
            NodeEnum::AlterSubscriptionStmt(_) => ("ALTER SUBSCRIPTION", "subscription"),
            NodeEnum::DropSubscriptionStmt(_) => ("DROP SUBSCRIPTION", "subscription"),
            NodeEnum::CreateTableSpaceStmt(_) => ("CREATE TABLESPACE", "tablespace"),
            NodeEnum::DropTableSpaceStmt(_) => ("DROP TABLESPACE", "tablespace"),
            NodeEnum::AlterTableSpaceOptionsStmt(_) => ("ALTER TABLESPACE", "tablespace"),
            NodeEnum::AlterTableMoveAllStmt(_) => ("ALTER TABLE ALL", "tablespace"),
            NodeEnum::CreateAmStmt(_) => ("CREATE ACCESS METHOD", "access method"),
            NodeEnum::AlterObjectDependsStmt(_) => ("ALTER DEPENDS", "extension"),
            _ => return None,
        };
        info.tag = tag;
        info.object = object;
        Some(info)
    }

    /// COMMENT ON COLUMN t.c, ON CONSTRAINT c ON t, ON TABLE t: the relation.
    fn relation_of_object(&self, word: &str, object: &Node, info: &mut DdlInfo) {
        info.objects = object_names(object);
        let Some(NodeEnum::List(list)) = &object.node else { return };
        match word {
            "table" | "view" | "materialized view" | "foreign table" | "sequence" | "index" => {
                info.relations = info.objects.clone();
            }
            "column" | "constraint" | "trigger" | "rule" | "policy" => {
                if let Some((_, table)) = list.items.split_last() {
                    info.relations = vec![name_of_list(table)];
                }
            }
            _ => {}
        }
    }
}

/// `AddColumn` → `add_column`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    for (at, c) in name.chars().enumerate() {
        if c.is_ascii_uppercase() && at > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn object_names(n: &Node) -> Vec<Name> {
    match &n.node {
        Some(NodeEnum::List(l)) => vec![name_of_list(&l.items)],
        Some(NodeEnum::RangeVar(r)) => vec![name_of(r)],
        Some(NodeEnum::String(_)) => string(n).map(|s| Name { schema: None, name: s.to_owned() }).into_iter().collect(),
        Some(NodeEnum::TypeName(t)) => vec![name_of_list(&t.names)],
        Some(NodeEnum::ObjectWithArgs(o)) => vec![name_of_list(&o.objname)],
        _ => Vec::new(),
    }
}

fn signature_of(n: &Node) -> Option<Signature> {
    match &n.node {
        Some(NodeEnum::ObjectWithArgs(o)) => signature(o),
        _ => None,
    }
}

pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn signature(o: &pb::ObjectWithArgs) -> Option<Signature> {
    let path = |list: &[Node]| strings(list).iter().map(|part| quoted(part)).collect::<Vec<_>>().join(".");
    let argument = |n: &Node| match &n.node {
        Some(NodeEnum::TypeName(t)) if !t.pct_type => {
            let is_array = !t.array_bounds.is_empty();
            let text = format!("{}{}", path(&t.names), if is_array { "[]" } else { "" });
            Some((text, (name_of_list(&t.names), is_array)))
        }
        _ => None,
    };
    let arguments = o.objargs.iter().map(argument).collect::<Option<Vec<_>>>()?;
    let (texts, types): (Vec<_>, Vec<_>) = arguments.into_iter().unzip();
    (!o.args_unspecified).then(|| Signature { text: format!("{}({})", path(&o.objname), texts.join(", ")), types })
}

fn object_word(kind: i32) -> &'static str {
    use pb::ObjectType as O;
    match O::try_from(kind) {
        Ok(O::ObjectTable) => "table",
        Ok(O::ObjectIndex) => "index",
        Ok(O::ObjectView) => "view",
        Ok(O::ObjectMatview) => "materialized view",
        Ok(O::ObjectForeignTable) => "foreign table",
        Ok(O::ObjectSequence) => "sequence",
        Ok(O::ObjectColumn) => "column",
        Ok(O::ObjectTabconstraint) => "constraint",
        Ok(O::ObjectDomconstraint) => "domain constraint",
        Ok(O::ObjectTrigger) => "trigger",
        Ok(O::ObjectRule) => "rule",
        Ok(O::ObjectPolicy) => "policy",
        Ok(O::ObjectSchema) => "schema",
        Ok(O::ObjectRole) => "role",
        Ok(O::ObjectDatabase) => "database",
        Ok(O::ObjectFunction) => "function",
        Ok(O::ObjectProcedure) => "procedure",
        Ok(O::ObjectRoutine) => "routine",
        Ok(O::ObjectAggregate) => "aggregate",
        Ok(O::ObjectType) => "type",
        Ok(O::ObjectDomain) => "domain",
        Ok(O::ObjectOperator) => "operator",
        Ok(O::ObjectOpclass) => "operator class",
        Ok(O::ObjectOpfamily) => "operator family",
        Ok(O::ObjectExtension) => "extension",
        Ok(O::ObjectCast) => "cast",
        Ok(O::ObjectCollation) => "collation",
        Ok(O::ObjectConversion) => "conversion",
        Ok(O::ObjectLanguage) => "language",
        Ok(O::ObjectTransform) => "transform",
        Ok(O::ObjectFdw) => "foreign data wrapper",
        Ok(O::ObjectForeignServer) => "server",
        Ok(O::ObjectUserMapping) => "user mapping",
        Ok(O::ObjectEventTrigger) => "event trigger",
        Ok(O::ObjectPublication) => "publication",
        Ok(O::ObjectSubscription) => "subscription",
        Ok(O::ObjectStatisticExt) => "statistics",
        Ok(O::ObjectTablespace) => "tablespace",
        Ok(O::ObjectTsconfiguration) => "text search configuration",
        Ok(O::ObjectTsdictionary) => "text search dictionary",
        Ok(O::ObjectTsparser) => "text search parser",
        Ok(O::ObjectTstemplate) => "text search template",
        Ok(O::ObjectLargeobject) => "large object",
        Ok(O::ObjectParameterAcl) => "parameter",
        Ok(O::ObjectAccessMethod) => "access method",
        Ok(O::ObjectAttribute) => "attribute",
        Ok(O::ObjectDefault) => "default",
        _ => "object",
    }
}
