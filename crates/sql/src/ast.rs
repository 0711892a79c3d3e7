//! The tree of a data statement (SELECT, VALUES, INSERT, UPDATE, DELETE, MERGE), lowered from the parser's own:
//! smaller, complete or marked [`ExprKind::Unknown`], and with the byte range of each expression in the statement's
//! text.
//!
//! It says what was written and resolves nothing: names, types and scopes are the planner's business.
//! Follows src/include/nodes/parsenodes.h and the actions of src/backend/parser/gram.y.

/// A byte range of the statement's text. Empty at 0 where no range is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    pub fn new(start: usize, end: usize) -> Self {
        Span { start, end }
    }
    pub fn is_known(self) -> bool {
        self.end > self.start
    }
    pub fn of(self, text: &str) -> &str {
        text.get(self.start..self.end).unwrap_or("")
    }
    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }
    /// The smallest range around both; an unknown range does not count.
    pub fn join(self, other: Span) -> Span {
        if !self.is_known() {
            other
        } else if !other.is_known() {
            self
        } else {
            Span { start: self.start.min(other.start), end: self.end.max(other.end) }
        }
    }
}

/// The tree of a statement that the planner may look into.
#[derive(Debug, Clone)]
pub enum Tree {
    Query(Box<Query>),
    Insert(Box<Insert>),
    Update(Box<Update>),
    Delete(Box<Delete>),
    Merge(Box<Merge>),
    /// A utility statement.
    Utility,
}

/// SELECT, VALUES or a set operation, with what surrounds it.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pub with: Option<With>,
    pub body: Body,
    pub order_by: Vec<SortBy>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
    pub with_ties: bool,
    /// FOR UPDATE and its like.
    pub row_locks: Vec<RowLock>,
    /// SELECT … INTO.
    pub into: bool,
    /// What stands between the innermost brackets around it: nothing for a statement's own query. A clause may stand
    /// outside of them (`((SELECT 1) LIMIT 1)`): [`Query::is_same_as`] tells.
    pub span: Span,
}

#[derive(Debug, Clone)]
pub struct RowLock {
    /// FOR UPDATE or FOR NO KEY UPDATE.
    pub to_change: bool,
    /// Names behind OF; none: all tables of the level.
    pub of: Vec<String>,
    /// NOWAIT or SKIP LOCKED, after a space.
    pub wait: Option<&'static str>,
}

#[derive(Debug, Clone)]
pub enum Body {
    Select(Box<Select>),
    Values(Vec<Vec<Expr>>),
    SetOp { op: SetOp, all: bool, left: Box<Query>, right: Box<Query> },
}

impl Default for Body {
    fn default() -> Self {
        Body::Values(Vec::new())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOp {
    Union,
    Intersect,
    Except,
}

#[derive(Debug, Clone, Default)]
pub struct With {
    pub recursive: bool,
    pub ctes: Vec<Cte>,
}

#[derive(Debug, Clone)]
pub struct Cte {
    pub name: String,
    pub columns: Vec<String>,
    pub tree: Tree,
    /// SEARCH or CYCLE clause.
    pub search_or_cycle: bool,
    pub materialized: Option<bool>,
}

#[derive(Debug, Clone, Default)]
pub struct Select {
    /// The word SELECT, where a WITH clause of its own may stand or end; not known where it was not found.
    pub word: Span,
    pub distinct: Distinct,
    pub items: Vec<SelectItem>,
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    /// The word WHERE.
    pub filter_word: Span,
    pub group_by: Vec<Expr>,
    pub group_distinct: bool,
    /// ROLLUP, CUBE or GROUPING SETS.
    pub grouping_sets: bool,
    pub having: Option<Expr>,
    pub windows: Vec<Window>,
}

#[derive(Debug, Clone, Default)]
pub enum Distinct {
    #[default]
    No,
    All,
    On(Vec<Expr>),
}

#[derive(Debug, Clone)]
pub struct SelectItem {
    pub expr: Expr,
    pub alias: Option<String>,
}

#[derive(Debug, Clone)]
pub struct SortBy {
    pub expr: Expr,
    pub descending: bool,
    /// `Some(true)`: NULLS FIRST.
    pub nulls_first: Option<bool>,
    /// ORDER BY … USING operator.
    pub using: bool,
}

#[derive(Debug, Clone, Default)]
pub struct Window {
    pub name: Option<String>,
    /// `OVER (other …)` or `OVER other`.
    pub reference: Option<String>,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<SortBy>,
    pub frame: Vec<Expr>,
}

#[derive(Debug, Clone)]
pub enum FromItem {
    Relation(Relation),
    Join(Box<Join>),
    Subquery {
        query: Box<Query>,
        lateral: bool,
        alias: Option<Alias>,
    },
    Function {
        calls: Vec<Expr>,
        lateral: bool,
        alias: Option<Alias>,
        column_definitions: bool,
        ordinality: bool,
    },
    /// TABLESAMPLE.
    Sample {
        relation: Box<FromItem>,
        args: Vec<Expr>,
        /// From the word to the end; unknown where it was not found.
        clause: Span,
    },
    /// XMLTABLE, JSON_TABLE, …
    Other(&'static str),
}

#[derive(Debug, Clone)]
pub struct Join {
    pub kind: JoinKind,
    pub natural: bool,
    pub left: FromItem,
    pub right: FromItem,
    pub using: Vec<String>,
    pub on: Option<Expr>,
    pub alias: Option<Alias>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    Left,
    Right,
    Full,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Alias {
    pub name: String,
    pub columns: Vec<String>,
}

/// A relation's name in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    pub catalog: Option<String>,
    pub schema: Option<String>,
    pub name: String,
    pub alias: Option<Alias>,
    /// The name as it was written, qualifier included.
    pub span: Span,
    /// The name with `ONLY` before it or `*` after it.
    pub full_span: Span,
    pub only: bool,
}

impl Relation {
    /// The name by which columns are qualified.
    pub fn reference_name(&self) -> &str {
        self.alias.as_ref().map_or(&self.name, |a| &a.name)
    }
}

#[derive(Debug, Clone)]
pub struct Insert {
    pub with: Option<With>,
    pub target: Relation,
    /// Names as written; the flag tells of a subscript or field (`a[1]`, `a.b`).
    pub columns: Vec<(String, bool)>,
    /// The column list with its parentheses.
    pub columns_span: Option<Span>,
    pub overriding: Overriding,
    pub source: InsertSource,
    pub on_conflict: Option<OnConflict>,
    pub returning: Vec<SelectItem>,
    /// Where the source begins: `VALUES`, `SELECT`, `WITH`, `(` or `DEFAULT`, after any OVERRIDING clause.
    pub source_span: Span,
    /// ON CONFLICT … RETURNING … up to the end of the statement.
    pub tail_span: Option<Span>,
}

#[derive(Debug, Clone)]
pub enum InsertSource {
    DefaultValues,
    /// Each field's text is its expression's `span`.
    Values(Vec<Vec<Expr>>),
    Query(Box<Query>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overriding {
    No,
    System,
    User,
}

impl Overriding {
    /// The clause behind a list of columns.
    pub fn clause(self) -> &'static str {
        match self {
            Overriding::No => "",
            Overriding::System => " OVERRIDING SYSTEM VALUE",
            Overriding::User => " OVERRIDING USER VALUE",
        }
    }
}

#[derive(Debug, Clone)]
pub struct OnConflict {
    /// DO UPDATE; otherwise DO NOTHING.
    pub update: bool,
    pub constraint: Option<String>,
    /// Plain column names of the inference clause; none where it has expressions.
    pub columns: Option<Vec<String>>,
    pub has_inference: bool,
    pub infer_filter: Option<Expr>,
    /// From ON to the word DO, which it leaves out.
    pub arbiter_span: Span,
    /// From ON to its end.
    pub span: Span,
    pub set: Vec<Assignment>,
    pub filter: Option<Expr>,
}

#[derive(Debug, Clone)]
pub struct Assignment {
    pub column: String,
    /// Assigns an element or field of the column only.
    pub indirection: bool,
    /// A multi-column assignment, `(a, b) = (SELECT …)`, has the whole source here for each column.
    pub value: Expr,
    pub multi: bool,
}

#[derive(Debug, Clone)]
pub struct Update {
    pub with: Option<With>,
    pub target: Relation,
    pub set: Vec<Assignment>,
    pub from: Vec<FromItem>,
    pub filter: Option<Expr>,
    pub returning: Vec<SelectItem>,
    /// None where they were not found.
    pub clauses: Option<UpdateClauses>,
}

/// Where the parts of an UPDATE stand.
#[derive(Debug, Clone, Copy)]
pub struct UpdateClauses {
    /// The word UPDATE.
    pub word: Span,
    /// SET and its assignments.
    pub set: Span,
    /// The word FROM.
    pub from: Option<Span>,
    /// RETURNING up to the end.
    pub returning: Option<Span>,
}

#[derive(Debug, Clone)]
pub struct Delete {
    pub with: Option<With>,
    pub target: Relation,
    pub using: Vec<FromItem>,
    pub filter: Option<Expr>,
    pub returning: Vec<SelectItem>,
}

#[derive(Debug, Clone)]
pub struct Merge {
    pub with: Option<With>,
    pub target: Relation,
    pub source: FromItem,
    pub on: Expr,
    pub clauses: Vec<MergeClause>,
    pub returning: Vec<SelectItem>,
    /// The WITH clause up to the word MERGE; not known where there is none.
    pub with_span: Span,
    /// What stands between USING and ON; not known where it was not found.
    pub source_span: Span,
}

#[derive(Debug, Clone)]
pub struct MergeClause {
    pub condition: Option<Expr>,
    pub action: MergeAction,
    pub matched: MergeMatch,
    /// From WHEN to its end; not known where it was not found.
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeMatch {
    Matched,
    NotMatchedBySource,
    NotMatchedByTarget,
}

#[derive(Debug, Clone)]
pub enum MergeAction {
    Nothing,
    Delete,
    Update(Vec<Assignment>),
    Insert { columns: Vec<String>, overriding: Overriding, values: Vec<Expr> },
}

#[derive(Debug, Clone, Default)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Debug, Clone)]
pub enum ExprKind {
    /// `a`, `t.a`, `s.t.a`; a trailing `*` is [`ExprKind::Star`].
    Column(Vec<String>),
    /// `*`, `t.*`, `s.t.*`.
    Star(Vec<String>),
    Const(Const),
    /// `$n`.
    Param(u16),
    Cast {
        expr: Box<Expr>,
        to: TypeName,
    },
    /// Infix, prefix or postfix operator, and IN, BETWEEN, LIKE, IS DISTINCT FROM, NULLIF.
    Op(Box<Op>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Not(Box<Expr>),
    Call(Box<Call>),
    /// CURRENT_TIMESTAMP and its like, lower case; the flag tells of a precision.
    ValueFunction(&'static str),
    NullTest {
        expr: Box<Expr>,
        negated: bool,
    },
    BooleanTest(Box<Expr>),
    Case {
        operand: Option<Box<Expr>>,
        whens: Vec<(Expr, Expr)>,
        default: Option<Box<Expr>>,
    },
    Coalesce(Vec<Expr>),
    Greatest(Vec<Expr>),
    Least(Vec<Expr>),
    Array(Vec<Expr>),
    Row(Vec<Expr>),
    Sublink(Box<Sublink>),
    Collate {
        expr: Box<Expr>,
        collation: Vec<String>,
    },
    /// Subscripts and fields; the names and subscript expressions that follow.
    Indirection {
        expr: Box<Expr>,
        subscripts: Vec<Expr>,
        last_field: Option<String>,
    },
    /// `name => value`.
    NamedArg {
        name: String,
        expr: Box<Expr>,
    },
    /// A bare list: the right side of IN.
    List(Vec<Expr>),
    Default,
    Grouping(Vec<Expr>),
    /// WHERE CURRENT OF cursor.
    CurrentOf(String),
    /// Something this crate does not look into.
    Unknown(&'static str),
}

impl Default for ExprKind {
    fn default() -> Self {
        ExprKind::Unknown("nothing")
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Const {
    Null,
    Bool(bool),
    Integer(i32),
    /// Any other number, as written: PostgreSQL reads it as int8 where it fits and has no point or exponent, else
    /// numeric.
    Number(String),
    String(String),
    BitString(String),
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TypeName {
    pub schema: Option<String>,
    /// As PostgreSQL names it: `int4` for `integer` (then `schema` is `pg_catalog`).
    pub name: String,
    pub modifiers: Vec<String>,
    pub is_array: bool,
    pub is_setof: bool,
    pub percent_type: bool,
    pub span: Span,
}

impl TypeName {
    /// True for a name that means a built-in type, unless a type of the user's has the same name.
    pub fn may_be_built_in(&self) -> bool {
        self.schema.as_deref().is_none_or(|s| s == "pg_catalog") && !self.percent_type
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpKind {
    Plain,
    Any,
    All,
    Distinct,
    NotDistinct,
    NullIf,
    /// `op` is `=`; for NOT IN it is `<>`.
    In,
    Like,
    Ilike,
    Similar,
    Between,
    NotBetween,
}

#[derive(Debug, Clone)]
pub struct Op {
    pub kind: OpKind,
    pub schema: Option<String>,
    pub name: String,
    pub left: Option<Expr>,
    pub right: Option<Expr>,
}

#[derive(Debug, Clone, Default)]
pub struct Call {
    pub schema: Option<String>,
    pub name: String,
    pub args: Vec<Expr>,
    pub star: bool,
    pub distinct: bool,
    pub variadic: bool,
    pub order_by: Vec<SortBy>,
    pub filter: Option<Expr>,
    pub within_group: bool,
    pub over: Option<Window>,
    /// Written in a syntax of its own (EXTRACT(…), AT TIME ZONE).
    pub sql_syntax: bool,
    /// The call from its name up to the closing parenthesis of the arguments (without FILTER and OVER).
    pub call_span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SublinkKind {
    Exists,
    All,
    Any,
    Scalar,
    Array,
    /// `(a, b) = (SELECT …)` in SET.
    Multi,
}

#[derive(Debug, Clone)]
pub struct Sublink {
    pub kind: SublinkKind,
    pub test: Option<Expr>,
    /// The operator of ANY and ALL; none for `IN`, which is `=`.
    pub op: Option<String>,
    pub query: Query,
}

impl Expr {
    /// Calls `f` for each direct child expression; sublinks' queries are not entered (their test expression is).
    pub fn for_each_child<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        fn sorts<'a>(list: &'a [SortBy], f: &mut dyn FnMut(&'a Expr)) {
            list.iter().for_each(|s| f(&s.expr));
        }
        match &self.kind {
            ExprKind::Column(_)
            | ExprKind::Star(_)
            | ExprKind::Const(_)
            | ExprKind::Param(_)
            | ExprKind::ValueFunction(_)
            | ExprKind::Default
            | ExprKind::CurrentOf(_)
            | ExprKind::Unknown(_) => {}
            ExprKind::Cast { expr, .. }
            | ExprKind::Not(expr)
            | ExprKind::NullTest { expr, .. }
            | ExprKind::BooleanTest(expr)
            | ExprKind::Collate { expr, .. }
            | ExprKind::NamedArg { expr, .. } => f(expr),
            ExprKind::Op(op) => {
                op.left.iter().for_each(&mut *f);
                op.right.iter().for_each(&mut *f);
            }
            ExprKind::And(list)
            | ExprKind::Or(list)
            | ExprKind::Coalesce(list)
            | ExprKind::Greatest(list)
            | ExprKind::Least(list)
            | ExprKind::Array(list)
            | ExprKind::Row(list)
            | ExprKind::List(list)
            | ExprKind::Grouping(list) => list.iter().for_each(f),
            ExprKind::Call(call) => {
                call.args.iter().for_each(&mut *f);
                sorts(&call.order_by, f);
                call.filter.iter().for_each(&mut *f);
                if let Some(over) = &call.over {
                    over.for_each_expr(f);
                }
            }
            ExprKind::Case { operand, whens, default } => {
                operand.iter().for_each(|e| f(e));
                for (when, then) in whens {
                    f(when);
                    f(then);
                }
                default.iter().for_each(|e| f(e));
            }
            ExprKind::Sublink(link) => link.test.iter().for_each(f),
            ExprKind::Indirection { expr, subscripts, .. } => {
                f(expr);
                subscripts.iter().for_each(f);
            }
        }
    }

    /// Calls `f` for this expression and everything below it, sublinks' queries excepted.
    pub fn walk<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        f(self);
        self.for_each_child(&mut |child| child.walk(f));
    }

    /// The same, sublinks' queries included.
    pub fn walk_deep<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        deep(Place::Other, self, &mut |_, e| f(e));
    }

    /// The conjuncts of a condition.
    pub fn conjuncts(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::And(list) => list.iter().flat_map(Expr::conjuncts).collect(),
            _ => vec![self],
        }
    }
}

impl Window {
    pub fn for_each_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        self.partition_by.iter().for_each(&mut *f);
        self.order_by.iter().for_each(|s| f(&s.expr));
        self.frame.iter().for_each(f);
    }
}

/// Where an expression stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is a whole item of a SELECT or RETURNING list, without an alias.
    Target,
    /// The same, with an alias.
    NamedTarget,
    /// It is a function in FROM.
    From,
    Other,
}

impl Tree {
    /// Calls `f` for every expression at every level, sublinks and CTEs included, outer ones first.
    pub fn walk_all<'a>(&'a self, f: &mut dyn FnMut(Place, &'a Expr)) {
        match self {
            Tree::Query(q) => q.walk_all(f),
            Tree::Insert(i) => {
                walk_with(&i.with, f);
                match &i.source {
                    InsertSource::DefaultValues => {}
                    InsertSource::Values(rows) => rows.iter().flatten().for_each(|e| deep(Place::Other, e, f)),
                    InsertSource::Query(q) => q.walk_all(f),
                }
                if let Some(c) = &i.on_conflict {
                    c.infer_filter.iter().for_each(|e| deep(Place::Other, e, f));
                    c.set.iter().for_each(|a| deep(Place::Other, &a.value, f));
                    c.filter.iter().for_each(|e| deep(Place::Other, e, f));
                }
                walk_items(&i.returning, f);
            }
            Tree::Update(u) => {
                walk_with(&u.with, f);
                u.set.iter().for_each(|a| deep(Place::Other, &a.value, f));
                u.from.iter().for_each(|i| i.walk_all(f));
                u.filter.iter().for_each(|e| deep(Place::Other, e, f));
                walk_items(&u.returning, f);
            }
            Tree::Delete(d) => {
                walk_with(&d.with, f);
                d.using.iter().for_each(|i| i.walk_all(f));
                d.filter.iter().for_each(|e| deep(Place::Other, e, f));
                walk_items(&d.returning, f);
            }
            Tree::Merge(m) => {
                walk_with(&m.with, f);
                m.source.walk_all(f);
                deep(Place::Other, &m.on, f);
                for c in &m.clauses {
                    c.condition.iter().for_each(|e| deep(Place::Other, e, f));
                    match &c.action {
                        MergeAction::Update(set) => set.iter().for_each(|a| deep(Place::Other, &a.value, f)),
                        MergeAction::Insert { values, .. } => values.iter().for_each(|e| deep(Place::Other, e, f)),
                        MergeAction::Nothing | MergeAction::Delete => {}
                    }
                }
                walk_items(&m.returning, f);
            }
            Tree::Utility => {}
        }
    }
}

fn deep<'a>(place: Place, expr: &'a Expr, f: &mut dyn FnMut(Place, &'a Expr)) {
    f(place, expr);
    if let ExprKind::Sublink(link) = &expr.kind {
        link.query.walk_all(f);
    }
    expr.for_each_child(&mut |child| deep(Place::Other, child, f));
}

/// A tree as `Debug` prints it, the numbers of its ranges left out. Text of the user's that looks like a range is left
/// out with them, on both sides alike.
fn without_spans(printed: &str) -> String {
    const OPEN: &str = "Span { start: ";
    let mut out = String::with_capacity(printed.len());
    let mut rest = printed;
    while let Some(at) = rest.find(OPEN) {
        out.push_str(&rest[..at]);
        rest = rest[at..].find('}').map_or("", |end| &rest[at + end + 1..]);
    }
    out.push_str(rest);
    out
}

fn walk_items<'a>(items: &'a [SelectItem], f: &mut dyn FnMut(Place, &'a Expr)) {
    let place = |i: &SelectItem| if i.alias.is_some() { Place::NamedTarget } else { Place::Target };
    items.iter().for_each(|i| deep(place(i), &i.expr, f));
}

fn walk_with<'a>(with: &'a Option<With>, f: &mut dyn FnMut(Place, &'a Expr)) {
    with.iter().flat_map(|w| &w.ctes).for_each(|c| c.tree.walk_all(f));
}

impl Query {
    pub fn locks_rows(&self) -> bool {
        !self.row_locks.is_empty()
    }

    /// The same query, wherever it stands in its text.
    pub fn is_same_as(&self, other: &Query) -> bool {
        let (mut a, mut b) = (self.clone(), other.clone());
        (a.span, b.span) = (Span::default(), Span::default());
        without_spans(&format!("{a:?}")) == without_spans(&format!("{b:?}"))
    }

    /// The expressions of its own clauses; none of a subquery in FROM or of an arm.
    pub fn for_each_own_expr<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        if let Body::Select(select) = &self.body {
            select.items.iter().for_each(|item| f(&item.expr));
            if let Distinct::On(list) = &select.distinct {
                list.iter().for_each(&mut *f);
            }
            select.from.iter().for_each(|item| item.for_each_condition(f));
            select.filter.iter().chain(&select.group_by).chain(&select.having).for_each(&mut *f);
            select.windows.iter().for_each(|window| window.for_each_expr(f));
        }
        self.order_by.iter().for_each(|sort| f(&sort.expr));
    }

    /// As [`Tree::walk_all`].
    pub fn walk_all<'a>(&'a self, f: &mut dyn FnMut(Place, &'a Expr)) {
        walk_with(&self.with, f);
        match &self.body {
            Body::Select(s) => {
                walk_items(&s.items, f);
                if let Distinct::On(list) = &s.distinct {
                    list.iter().for_each(|e| deep(Place::Other, e, f));
                }
                s.from.iter().for_each(|i| i.walk_all(f));
                s.filter.iter().for_each(|e| deep(Place::Other, e, f));
                s.group_by.iter().for_each(|e| deep(Place::Other, e, f));
                s.having.iter().for_each(|e| deep(Place::Other, e, f));
                for w in &s.windows {
                    w.for_each_expr(&mut |e| deep(Place::Other, e, f));
                }
            }
            Body::Values(rows) => rows.iter().flatten().for_each(|e| deep(Place::Other, e, f)),
            Body::SetOp { left, right, .. } => {
                left.walk_all(f);
                right.walk_all(f);
            }
        }
        self.order_by.iter().for_each(|s| deep(Place::Other, &s.expr, f));
        self.limit.iter().for_each(|e| deep(Place::Other, e, f));
        self.offset.iter().for_each(|e| deep(Place::Other, e, f));
    }
}

impl FromItem {
    /// The conditions of joins.
    pub fn for_each_condition<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        if let FromItem::Join(join) = self {
            join.left.for_each_condition(f);
            join.right.for_each_condition(f);
            join.on.iter().for_each(f);
        }
    }

    /// As [`Tree::walk_all`].
    pub fn walk_all<'a>(&'a self, f: &mut dyn FnMut(Place, &'a Expr)) {
        match self {
            FromItem::Relation(_) | FromItem::Other(_) => {}
            FromItem::Join(j) => {
                j.left.walk_all(f);
                j.right.walk_all(f);
                j.on.iter().for_each(|e| deep(Place::Other, e, f));
            }
            FromItem::Subquery { query, .. } => query.walk_all(f),
            FromItem::Function { calls, .. } => calls.iter().for_each(|e| deep(Place::From, e, f)),
            FromItem::Sample { relation, args, .. } => {
                relation.walk_all(f);
                args.iter().for_each(|e| deep(Place::Other, e, f));
            }
        }
    }
}
