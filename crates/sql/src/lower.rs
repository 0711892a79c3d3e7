//! The parser's tree → [`crate::ast`]. What is not understood becomes [`ExprKind::Unknown`] and sets `unknown`, so that
//! nobody mistakes it for something harmless. Byte ranges are found with the tokens.

use pg_query::NodeEnum;
use pg_query::protobuf::{self as pb, Node, Token};

use crate::ast::*;
use crate::tokens::Tokens;

pub(crate) struct Lower<'a> {
    pub text: &'a str,
    pub tokens: &'a Tokens,
    /// Where `text` begins in the text that was parsed: the tree's locations count from there.
    pub base: usize,
    /// Something was not understood.
    pub unknown: bool,
    /// What RETURNING WITH (OLD AS …, NEW AS …) calls these.
    pub renamed: Vec<(String, &'static str)>,
}

fn overriding_of(kind: i32) -> Overriding {
    match pb::OverridingKind::try_from(kind) {
        Ok(pb::OverridingKind::OverridingSystemValue) => Overriding::System,
        Ok(pb::OverridingKind::OverridingUserValue) => Overriding::User,
        _ => Overriding::No,
    }
}

fn some(text: &str) -> Option<String> {
    if text.is_empty() { None } else { Some(text.to_owned()) }
}

pub(crate) fn string(node: &Node) -> Option<&str> {
    match node.node.as_ref()? {
        NodeEnum::String(s) => Some(&s.sval),
        _ => None,
    }
}

pub(crate) fn strings(nodes: &[Node]) -> Vec<String> {
    nodes.iter().filter_map(string).map(str::to_owned).collect()
}

fn alias(alias: &Option<pb::Alias>) -> Option<Alias> {
    alias.as_ref().map(|a| Alias { name: a.aliasname.clone(), columns: strings(&a.colnames) })
}

impl<'a> Lower<'a> {
    pub fn new(text: &'a str, tokens: &'a Tokens, base: usize) -> Lower<'a> {
        Lower { text, tokens, base, unknown: false, renamed: Vec::new() }
    }

    /// A location of the tree as a position in `text`.
    pub fn position(&self, location: i32) -> Option<usize> {
        usize::try_from(location).ok()?.checked_sub(self.base)
    }

    /// Index of the token at a location.
    fn token(&self, location: i32) -> Option<usize> {
        self.tokens.at(self.position(location)?)
    }

    pub fn statement(&mut self, node: &NodeEnum) -> Tree {
        match node {
            NodeEnum::SelectStmt(s) => Tree::Query(Box::new(self.query(s))),
            NodeEnum::InsertStmt(s) => self.insert(s).map_or(Tree::Utility, |i| Tree::Insert(Box::new(i))),
            NodeEnum::UpdateStmt(s) => self.update(s).map_or(Tree::Utility, |i| Tree::Update(Box::new(i))),
            NodeEnum::DeleteStmt(s) => self.delete(s).map_or(Tree::Utility, |i| Tree::Delete(Box::new(i))),
            NodeEnum::MergeStmt(s) => self.merge(s).map_or(Tree::Utility, |i| Tree::Merge(Box::new(i))),
            _ => Tree::Utility,
        }
    }

    fn query_of(&mut self, node: &Option<Box<Node>>) -> Query {
        match node.as_ref().and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::SelectStmt(s)) => self.query(s),
            _ => {
                self.unknown = true;
                Query::default()
            }
        }
    }

    fn query(&mut self, s: &pb::SelectStmt) -> Query {
        let with = self.with(&s.with_clause);
        let body = if s.op == pb::SetOperation::SetopNone as i32 {
            if s.values_lists.is_empty() {
                let mut select = self.select(s);
                // A WITH clause may stand outside of brackets that are around the rest.
                if let Some(with) = &s.with_clause {
                    let around = |at: Option<usize>| at.and_then(|at| self.tokens.around(at));
                    if around(self.token(with.location)) != around(self.tokens.at(select.word.start)) {
                        select.word = Span::default();
                    }
                }
                Body::Select(Box::new(select))
            } else {
                Body::Values(s.values_lists.iter().map(|row| self.list_of(row)).collect())
            }
        } else {
            let op = match pb::SetOperation::try_from(s.op) {
                Ok(pb::SetOperation::SetopUnion) => SetOp::Union,
                Ok(pb::SetOperation::SetopIntersect) => SetOp::Intersect,
                _ => SetOp::Except,
            };
            let left = s.larg.as_ref().map(|q| self.query(q)).unwrap_or_default();
            let right = s.rarg.as_ref().map(|q| self.query(q)).unwrap_or_default();
            Body::SetOp { op, all: s.all, left: Box::new(left), right: Box::new(right) }
        };
        let span = self.between_brackets(s, &body).unwrap_or_default();
        Query {
            with,
            body,
            order_by: self.sorts(&s.sort_clause),
            limit: s.limit_count.as_ref().map(|n| self.expr(n)),
            offset: s.limit_offset.as_ref().map(|n| self.expr(n)),
            with_ties: s.limit_option == pb::LimitOption::WithTies as i32,
            row_locks: s.locking_clause.iter().filter_map(row_lock).collect(),
            into: s.into_clause.is_some(),
            span,
        }
    }

    /// What stands between the innermost brackets around all of a query.
    fn between_brackets(&self, s: &pb::SelectStmt, body: &Body) -> Option<Span> {
        let tokens = self.tokens;
        let (open, close) = match body {
            // Each arm may have brackets of its own.
            Body::SetOp { left, right, .. } => {
                if !left.span.is_known() || !right.span.is_known() {
                    return None;
                }
                let mut around = tokens.around(tokens.at(left.span.start)?)?;
                while !tokens.span(around.0 + 1, around.1).contains(right.span) {
                    around = tokens.around(around.0)?;
                }
                around
            }
            Body::Select(_) => match s.target_list.first().and_then(|n| n.node.as_ref()) {
                Some(NodeEnum::ResTarget(first)) => tokens.around(self.token(first.location)?)?,
                _ => return None,
            },
            Body::Values(_) => return None,
        };
        Some(tokens.span(open + 1, close))
    }

    /// The word SELECT of a query with a target list.
    fn select_word(&self, s: &pb::SelectStmt) -> Span {
        let tokens = self.tokens;
        let first = match s.target_list.first().and_then(|n| n.node.as_ref()) {
            Some(NodeEnum::ResTarget(first)) => self.token(first.location),
            _ => None,
        };
        let mut at = first.unwrap_or_default();
        while let Some(before) = at.checked_sub(1) {
            at = match tokens.kind(before) {
                Token::Select => return tokens.span(before, at),
                Token::Ascii41 => tokens.mate(before),
                Token::Distinct | Token::All | Token::On => before,
                _ => break,
            };
        }
        Span::default()
    }

    /// The word in front of an expression and the brackets around that.
    fn word_before(&self, span: Span, word: Token) -> Span {
        if !span.is_known() {
            return Span::default();
        }
        let mut at = self.tokens.from(span.start);
        while self.tokens.before(at) == Token::Ascii40 {
            at -= 1;
        }
        match self.tokens.before(at) == word {
            true => self.tokens.span(at - 1, at),
            false => Span::default(),
        }
    }

    fn with(&mut self, with: &Option<pb::WithClause>) -> Option<With> {
        let with = with.as_ref()?;
        let mut ctes = Vec::new();
        for node in &with.ctes {
            let Some(NodeEnum::CommonTableExpr(cte)) = &node.node else {
                self.unknown = true;
                continue;
            };
            let tree = match cte.ctequery.as_ref().and_then(|n| n.node.as_ref()) {
                Some(node) => self.statement(node),
                None => Tree::Utility,
            };
            if matches!(tree, Tree::Utility) {
                self.unknown = true;
            }
            ctes.push(Cte {
                name: cte.ctename.clone(),
                columns: strings(&cte.aliascolnames),
                tree,
                search_or_cycle: cte.search_clause.is_some() || cte.cycle_clause.is_some(),
                materialized: match pb::CteMaterialize::try_from(cte.ctematerialized) {
                    Ok(pb::CteMaterialize::Always) => Some(true),
                    Ok(pb::CteMaterialize::Never) => Some(false),
                    _ => None,
                },
            });
        }
        Some(With { recursive: with.recursive, ctes })
    }

    fn select(&mut self, s: &pb::SelectStmt) -> Select {
        let distinct = match s.distinct_clause.as_slice() {
            [] => Distinct::No,
            [one] if one.node.is_none() => Distinct::All,
            list => Distinct::On(self.exprs(list)),
        };
        let mut grouping_sets = false;
        let group_by = s
            .group_clause
            .iter()
            .map(|n| {
                if let Some(NodeEnum::GroupingSet(_)) = &n.node {
                    grouping_sets = true;
                    Expr::default()
                } else {
                    self.expr(n)
                }
            })
            .collect();
        if grouping_sets {
            self.unknown = true;
        }
        let windows = s
            .window_clause
            .iter()
            .filter_map(|n| match &n.node {
                Some(NodeEnum::WindowDef(w)) => Some(self.window(w)),
                _ => None,
            })
            .collect();
        let filter = s.where_clause.as_ref().map(|n| self.expr(n));
        let filter_word = filter.as_ref().map_or(Span::default(), |filter| self.word_before(filter.span, Token::Where));
        Select {
            word: self.select_word(s),
            distinct,
            items: self.targets(&s.target_list),
            from: s.from_clause.iter().map(|n| self.table_ref(n)).collect(),
            filter,
            filter_word,
            group_by,
            group_distinct: s.group_distinct,
            grouping_sets,
            having: s.having_clause.as_ref().map(|n| self.expr(n)),
            windows,
        }
    }

    fn targets(&mut self, list: &[Node]) -> Vec<SelectItem> {
        list.iter()
            .map(|n| match &n.node {
                Some(NodeEnum::ResTarget(t)) => {
                    SelectItem { expr: t.val.as_ref().map(|v| self.expr(v)).unwrap_or_default(), alias: some(&t.name) }
                }
                _ => {
                    self.unknown = true;
                    SelectItem { expr: Expr::default(), alias: None }
                }
            })
            .collect()
    }

    fn sorts(&mut self, list: &[Node]) -> Vec<SortBy> {
        list.iter()
            .map(|n| match &n.node {
                Some(NodeEnum::SortBy(s)) => SortBy {
                    expr: s.node.as_ref().map(|v| self.expr(v)).unwrap_or_default(),
                    descending: s.sortby_dir == pb::SortByDir::SortbyDesc as i32,
                    nulls_first: match pb::SortByNulls::try_from(s.sortby_nulls) {
                        Ok(pb::SortByNulls::SortbyNullsFirst) => Some(true),
                        Ok(pb::SortByNulls::SortbyNullsLast) => Some(false),
                        _ => None,
                    },
                    using: s.sortby_dir == pb::SortByDir::SortbyUsing as i32,
                },
                _ => {
                    self.unknown = true;
                    SortBy { expr: Expr::default(), descending: false, nulls_first: None, using: true }
                }
            })
            .collect()
    }

    fn window(&mut self, w: &pb::WindowDef) -> Window {
        let mut frame = Vec::new();
        frame.extend(w.start_offset.as_ref().map(|n| self.expr(n)));
        frame.extend(w.end_offset.as_ref().map(|n| self.expr(n)));
        Window {
            name: some(&w.name),
            reference: some(&w.refname),
            partition_by: self.exprs(&w.partition_clause),
            order_by: self.sorts(&w.order_clause),
            frame,
        }
    }

    pub fn relation(&self, r: &pb::RangeVar) -> Relation {
        let mut span = Span::default();
        let mut full_span = span;
        if let Some(at) = self.token(r.location) {
            let mut after = self.tokens.after_name(at);
            // `t.*` is not a relation name, but `t *` is: the star is a token of its own.
            if self.tokens.before(after) == Token::Ascii42 {
                after = after.saturating_sub(1);
            }
            span = self.tokens.span(at, after);
            let (mut from, mut to) = (at, after);
            while self.tokens.before(from) == Token::Ascii40
                && self.tokens.kind(to) == Token::Ascii41
                && matches!(self.tokens.before(from - 1), Token::Only | Token::Ascii40)
            {
                from -= 1;
                to += 1;
            }
            if !r.inh && self.tokens.before(from) == Token::Only {
                from -= 1;
            } else {
                (from, to) = (at, after);
            }
            if r.inh && self.tokens.kind(to) == Token::Ascii42 {
                to += 1;
            }
            full_span = self.tokens.span(from, to);
        }
        Relation {
            catalog: some(&r.catalogname),
            schema: some(&r.schemaname),
            name: r.relname.clone(),
            alias: alias(&r.alias),
            span,
            full_span,
            only: !r.inh,
        }
    }

    fn table_ref(&mut self, n: &Node) -> FromItem {
        match &n.node {
            Some(NodeEnum::RangeVar(r)) => FromItem::Relation(self.relation(r)),
            Some(NodeEnum::JoinExpr(j)) => {
                let kind = match pb::JoinType::try_from(j.jointype) {
                    Ok(pb::JoinType::JoinInner) => JoinKind::Inner,
                    Ok(pb::JoinType::JoinLeft) => JoinKind::Left,
                    Ok(pb::JoinType::JoinRight) => JoinKind::Right,
                    _ => JoinKind::Full,
                };
                let side = |me: &mut Self, n: &Option<Box<Node>>| match n {
                    Some(n) => me.table_ref(n),
                    None => me.other("join"),
                };
                let left = side(self, &j.larg);
                let right = side(self, &j.rarg);
                if j.join_using_alias.is_some() {
                    self.unknown = true;
                }
                FromItem::Join(Box::new(Join {
                    kind,
                    natural: j.is_natural,
                    left,
                    right,
                    using: strings(&j.using_clause),
                    on: j.quals.as_ref().map(|n| self.expr(n)),
                    alias: alias(&j.alias),
                }))
            }
            Some(NodeEnum::RangeSubselect(s)) => FromItem::Subquery {
                query: Box::new(self.query_of(&s.subquery)),
                lateral: s.lateral,
                alias: alias(&s.alias),
            },
            Some(NodeEnum::RangeFunction(f)) => {
                let mut calls = Vec::new();
                let mut column_definitions = !f.coldeflist.is_empty();
                for node in &f.functions {
                    match &node.node {
                        Some(NodeEnum::List(list)) => {
                            calls.extend(list.items.first().map(|n| self.expr(n)));
                            if let Some(Node { node: Some(NodeEnum::List(defs)) }) = list.items.get(1) {
                                column_definitions |= !defs.items.is_empty();
                            }
                        }
                        _ => self.unknown = true,
                    }
                }
                FromItem::Function {
                    calls,
                    lateral: f.lateral,
                    alias: alias(&f.alias),
                    column_definitions,
                    ordinality: f.ordinality,
                }
            }
            Some(NodeEnum::RangeTableSample(s)) => {
                let relation = match &s.relation {
                    Some(n) => self.table_ref(n),
                    None => self.other("tablesample"),
                };
                let mut args = self.exprs(&s.args);
                args.extend(s.repeatable.as_ref().map(|n| self.expr(n)));
                let clause = self.position(s.location).and_then(|at| self.tokens.sample_clause(at)).unwrap_or_default();
                FromItem::Sample { relation: Box::new(relation), args, clause }
            }
            Some(NodeEnum::RangeTableFunc(_)) => self.other("xmltable"),
            Some(NodeEnum::JsonTable(_)) => self.other("json_table"),
            _ => self.other("from item"),
        }
    }

    fn other(&mut self, what: &'static str) -> FromItem {
        self.unknown = true;
        FromItem::Other(what)
    }

    fn insert(&mut self, s: &pb::InsertStmt) -> Option<Insert> {
        let with = self.with(&s.with_clause);
        let target = self.relation(s.relation.as_ref()?);
        let columns = s
            .cols
            .iter()
            .filter_map(|n| match &n.node {
                Some(NodeEnum::ResTarget(t)) => Some((t.name.clone(), !t.indirection.is_empty())),
                _ => None,
            })
            .collect();
        let mut source = match s.select_stmt.as_ref().and_then(|n| n.node.as_ref()) {
            None => InsertSource::DefaultValues,
            Some(NodeEnum::SelectStmt(q)) => {
                let query = self.query(q);
                let plain = query.with.is_none() && query.order_by.is_empty();
                match query.body {
                    Body::Values(rows)
                        if plain && query.limit.is_none() && query.offset.is_none() && !query.locks_rows() =>
                    {
                        InsertSource::Values(rows)
                    }
                    _ => InsertSource::Query(Box::new(query)),
                }
            }
            Some(_) => return None,
        };
        // Positions: name [AS alias] [(columns)] [OVERRIDING … VALUE] source [ON CONFLICT …] [RETURNING …].
        let t = self.tokens;
        let mut i = t.from(target.span.end);
        if t.kind(i) == Token::As {
            i += 2;
        }
        let mut columns_span = None;
        if !s.cols.is_empty() {
            while i < t.list.len() && t.kind(i) != Token::Ascii40 {
                i += 1;
            }
            let close = t.mate(i);
            columns_span = Some(t.span(i, close + 1));
            i = close + 1;
        }
        let source_from = if let Some(overriding) =
            (i..(i + 3).min(t.list.len())).find(|j| t.kind(*j) == Token::Overriding && t.kind(j + 2) == Token::ValueP)
        {
            overriding + 3
        } else {
            i
        };
        let mut end = t.list.len();
        let mut j = source_from;
        while j < t.list.len() {
            if t.kind(j) == Token::Returning && !t.is_label(j) {
                end = j;
                break;
            }
            j = t.next_flat(j);
        }
        let mut on_conflict = s.on_conflict_clause.as_ref().map(|c| self.on_conflict(c));
        if let (Some(conflict), Some(clause)) = (on_conflict.as_mut(), &s.on_conflict_clause) {
            end = self.token(clause.location)?;
            self.conflict_spans(conflict, end);
        }
        if let InsertSource::Values(rows) = &mut source {
            // Each field's text is what stands between the commas, so that outer brackets are kept.
            let mut k = source_from;
            while k < end && t.kind(k) != Token::Values {
                k += 1;
            }
            let row_tokens = t.split_commas(k + 1, end);
            if row_tokens.len() == rows.len() {
                for (row, (from, to)) in rows.iter_mut().zip(row_tokens) {
                    let fields = t.split_commas(from + 1, to.saturating_sub(1));
                    if t.kind(from) != Token::Ascii40 || fields.len() != row.len() {
                        self.unknown = true;
                        continue;
                    }
                    for (field, (from, to)) in row.iter_mut().zip(fields) {
                        field.span = t.span(from, to);
                    }
                }
            } else {
                self.unknown = true;
            }
        }
        Some(Insert {
            with,
            target,
            columns,
            columns_span,
            overriding: overriding_of(s.r#override),
            source,
            on_conflict,
            returning: self.returning(&s.returning_clause),
            source_span: t.span(source_from, end),
            tail_span: Some(t.span(end, t.list.len())).filter(|s| s.is_known()),
        })
    }

    fn returning(&mut self, clause: &Option<pb::ReturningClause>) -> Vec<SelectItem> {
        match clause {
            None => Vec::new(),
            Some(c) => {
                let mut renamed = Vec::new();
                for option in &c.options {
                    match &option.node {
                        Some(NodeEnum::ReturningOption(option)) => {
                            let is_new = option.option == pb::ReturningOptionKind::ReturningOptionNew as i32;
                            renamed.push((option.value.clone(), if is_new { "new" } else { "old" }));
                        }
                        _ => self.unknown = true,
                    }
                }
                // What else is called so, in FROM perhaps, would be taken for it.
                let t = self.tokens;
                let is = |at: usize, name: &str| {
                    t.span(at, at + 1).of(self.text).trim_matches('"').eq_ignore_ascii_case(name)
                };
                let count = |known: &dyn Fn(usize) -> bool| (0..t.list.len()).filter(|at| known(*at)).count();
                self.unknown |= !renamed.is_empty() && count(&|at| is(at, "old") || is(at, "new")) > renamed.len();
                for (name, _) in &renamed {
                    self.unknown |= count(&|at| is(at, name) && t.kind(at + 1) != Token::Ascii46) > 1;
                }
                let outer = std::mem::replace(&mut self.renamed, renamed);
                let items = self.targets(&c.exprs);
                self.renamed = outer;
                items
            }
        }
    }

    fn on_conflict(&mut self, c: &pb::OnConflictClause) -> OnConflict {
        let mut columns = Some(Vec::new());
        let mut constraint = None;
        let mut infer_filter = None;
        if let Some(infer) = &c.infer {
            constraint = some(&infer.conname);
            infer_filter = infer.where_clause.as_ref().map(|n| self.expr(n));
            for n in &infer.index_elems {
                match &n.node {
                    Some(NodeEnum::IndexElem(e)) if e.expr.is_none() => {
                        if let Some(list) = columns.as_mut() {
                            list.push(e.name.clone());
                        }
                    }
                    Some(NodeEnum::IndexElem(e)) => {
                        if let Some(n) = &e.expr {
                            self.expr(n);
                        }
                        columns = None;
                    }
                    _ => columns = None,
                }
            }
        }
        OnConflict {
            update: c.action == pb::OnConflictAction::OnconflictUpdate as i32,
            constraint,
            columns,
            has_inference: c.infer.is_some(),
            infer_filter,
            set: self.assignments(&c.target_list),
            filter: c.where_clause.as_ref().map(|n| self.expr(n)),
            arbiter_span: Span::default(),
            span: Span::default(),
        }
    }

    /// The texts of the clause that begins at the token `from`, whatever they are.
    fn conflict_spans(&self, conflict: &mut OnConflict, from: usize) {
        let t = self.tokens;
        let end = t.around(from).map_or(t.list.len(), |(_, close)| close);
        let flat = |mut at: usize, found: &dyn Fn(Token) -> bool| {
            while at < end && (t.is_label(at) || !found(t.kind(at))) {
                at = t.next_flat(at);
            }
            at.min(end)
        };
        let word = flat(from, &|kind| kind == Token::Do);
        conflict.arbiter_span = t.span(from, word);
        let returning = flat(word, &|kind| kind == Token::Returning);
        conflict.span = t.span(from, returning);
        if !conflict.update || t.kind(word + 2) != Token::Set {
            return;
        }
        let condition = flat(word, &|kind| matches!(kind, Token::Where | Token::Returning));
        if let Some(filter) = conflict.filter.as_mut().filter(|_| condition < returning) {
            filter.span = t.span(condition + 1, returning);
        }
        let mut set = conflict.set.iter_mut();
        for (from, to) in t.split_commas(word + 3, condition) {
            let equals = flat(from, &|kind| kind == Token::Ascii61);
            if t.kind(from) != Token::Ascii40 {
                if let Some(assignment) = set.next().filter(|_| equals < to) {
                    assignment.value.span = t.span(equals + 1, to);
                }
                continue;
            }
            // `(a, b) = ROW (c, d)`, or a subquery.
            let columns = t.split_commas(from + 1, equals.saturating_sub(1)).len();
            let open = equals + if t.kind(equals + 1) == Token::Row { 2 } else { 1 };
            let values = t.split_commas(open + 1, to.saturating_sub(1));
            let is_row = t.kind(open) == Token::Ascii40 && t.mate(open) + 1 == to && values.len() == columns;
            for (at, assignment) in set.by_ref().take(columns).enumerate() {
                if let Some((from, to)) = values.get(at).filter(|_| is_row && !assignment.multi) {
                    assignment.value.span = t.span(*from, *to);
                }
            }
        }
    }

    fn assignments(&mut self, list: &[Node]) -> Vec<Assignment> {
        list.iter()
            .filter_map(|n| {
                let Some(NodeEnum::ResTarget(t)) = &n.node else {
                    self.unknown = true;
                    return None;
                };
                let (value, multi) = match t.val.as_ref().map(|v| (v, v.node.as_ref())) {
                    Some((_, Some(NodeEnum::MultiAssignRef(m)))) => {
                        match m.source.as_ref().map(|s| (s, s.node.as_ref())) {
                            Some((_, Some(NodeEnum::RowExpr(row)))) => {
                                let at = (m.colno - 1).max(0) as usize;
                                (row.args.get(at).map(|n| self.expr(n)).unwrap_or_default(), false)
                            }
                            Some((source, _)) => (self.expr(source), true),
                            None => (Expr::default(), true),
                        }
                    }
                    Some((value, _)) => (self.expr(value), false),
                    None => (Expr::default(), false),
                };
                for n in &t.indirection {
                    self.expr(n);
                }
                Some(Assignment { column: t.name.clone(), indirection: !t.indirection.is_empty(), value, multi })
            })
            .collect()
    }

    fn update(&mut self, s: &pb::UpdateStmt) -> Option<Update> {
        let with = self.with(&s.with_clause);
        let target = self.relation(s.relation.as_ref()?);
        Some(Update {
            clauses: self.update_clauses(&target),
            with,
            target,
            set: self.assignments(&s.target_list),
            from: s.from_clause.iter().map(|n| self.table_ref(n)).collect(),
            filter: s.where_clause.as_ref().map(|n| self.expr(n)),
            returning: self.returning(&s.returning_clause),
        })
    }

    fn update_clauses(&self, target: &Relation) -> Option<UpdateClauses> {
        let t = &self.tokens;
        let name = t.at(target.full_span.start)?;
        let word = name.checked_sub(1).filter(|word| t.kind(*word) == Token::Update)?;
        let mut at = t.from(target.full_span.end);
        let (mut set, mut from, mut filter, mut returning) = (None, None, None, None);
        while at < t.list.len() {
            let clause = match t.kind(at) {
                _ if t.is_label(at) => None,
                Token::Set if set.is_none() => Some(&mut set),
                // IS DISTINCT FROM stands in an expression.
                Token::From if t.before(at) != Token::Distinct && from.is_none() => Some(&mut from),
                Token::Where if filter.is_none() => Some(&mut filter),
                Token::Returning if returning.is_none() => Some(&mut returning),
                _ => None,
            };
            if let Some(clause) = clause {
                *clause = Some(at);
            }
            at = t.next_flat(at);
        }
        let set = set?;
        let end = [from, filter, returning].into_iter().flatten().min().unwrap_or(t.list.len());
        Some(UpdateClauses {
            word: t.span(word, word + 1),
            set: t.span(set, end),
            from: from.map(|at| t.span(at, at + 1)),
            returning: returning.map(|at| t.span(at, t.list.len())),
        })
    }

    fn delete(&mut self, s: &pb::DeleteStmt) -> Option<Delete> {
        Some(Delete {
            with: self.with(&s.with_clause),
            target: self.relation(s.relation.as_ref()?),
            using: s.using_clause.iter().map(|n| self.table_ref(n)).collect(),
            filter: s.where_clause.as_ref().map(|n| self.expr(n)),
            returning: self.returning(&s.returning_clause),
        })
    }

    fn merge(&mut self, s: &pb::MergeStmt) -> Option<Merge> {
        let mut clauses = Vec::new();
        for n in &s.merge_when_clauses {
            let Some(NodeEnum::MergeWhenClause(c)) = &n.node else {
                self.unknown = true;
                continue;
            };
            let action = match pb::CmdType::try_from(c.command_type) {
                Ok(pb::CmdType::CmdUpdate) => MergeAction::Update(self.assignments(&c.target_list)),
                Ok(pb::CmdType::CmdDelete) => MergeAction::Delete,
                Ok(pb::CmdType::CmdInsert) => MergeAction::Insert {
                    columns: c
                        .target_list
                        .iter()
                        .filter_map(|n| match &n.node {
                            Some(NodeEnum::ResTarget(t)) => {
                                self.unknown |= !t.indirection.is_empty();
                                Some(t.name.clone())
                            }
                            _ => None,
                        })
                        .collect(),
                    overriding: overriding_of(c.r#override),
                    values: self.exprs(&c.values),
                },
                _ => MergeAction::Nothing,
            };
            clauses.push(MergeClause {
                condition: c.condition.as_ref().map(|n| self.expr(n)),
                action,
                matched: match pb::MergeMatchKind::try_from(c.match_kind) {
                    Ok(pb::MergeMatchKind::MergeWhenMatched) => MergeMatch::Matched,
                    Ok(pb::MergeMatchKind::MergeWhenNotMatchedBySource) => MergeMatch::NotMatchedBySource,
                    _ => MergeMatch::NotMatchedByTarget,
                },
                span: Span::default(),
            });
        }
        let target = self.relation(s.relation.as_ref()?);
        let on = s.join_condition.as_ref().map(|n| self.expr(n)).unwrap_or_default();
        let (with_span, source_span) = self.merge_spans(&target, &on).unwrap_or_default();
        let spans = self.merge_clauses(&on);
        if spans.len() == clauses.len() {
            clauses.iter_mut().zip(spans).for_each(|(clause, span)| clause.span = span);
        }
        Some(Merge {
            with: self.with(&s.with_clause),
            target,
            source: match &s.source_relation {
                Some(n) => self.table_ref(n),
                None => self.other("merge source"),
            },
            on,
            clauses,
            returning: self.returning(&s.returning_clause),
            with_span,
            source_span,
        })
    }

    /// Where the clauses of a MERGE stand.
    fn merge_clauses(&self, on: &Expr) -> Vec<Span> {
        let t = &self.tokens;
        let (mut starts, mut cases, mut end) = (Vec::new(), 0usize, t.list.len());
        let mut at = t.from(on.span.start);
        while at < t.list.len() {
            match t.kind(at) {
                _ if t.is_label(at) => {}
                Token::Case => cases += 1,
                Token::EndP => cases = cases.saturating_sub(1),
                Token::When if cases == 0 => starts.push(at),
                Token::Returning if cases == 0 => {
                    end = at;
                    break;
                }
                _ => {}
            }
            at = t.next_flat(at);
        }
        let ends = starts.iter().skip(1).copied().chain([end]);
        starts.iter().zip(ends).map(|(from, to)| t.span(*from, to)).collect()
    }

    /// Where a MERGE has its WITH clause, and its source.
    fn merge_spans(&self, target: &Relation, on: &Expr) -> Option<(Span, Span)> {
        let t = &self.tokens;
        let name = t.at(target.full_span.start)?;
        let word = name.checked_sub(2).filter(|word| t.kind(*word) == Token::Merge)?;
        let mut at = t.from(target.full_span.end);
        let (mut using, mut condition) = (None, None);
        while at < t.list.len() && t.start_of(at) < on.span.start {
            match t.kind(at) {
                _ if t.is_label(at) => {}
                Token::Using if using.is_none() => using = Some(at),
                // Joins have one of their own.
                Token::On => condition = Some(at),
                _ => {}
            }
            at = t.next_flat(at);
        }
        Some((t.span(0, word), t.span(using? + 1, condition?)))
    }

    pub fn exprs(&mut self, list: &[Node]) -> Vec<Expr> {
        list.iter().map(|n| self.expr(n)).collect()
    }

    fn list_of(&mut self, n: &Node) -> Vec<Expr> {
        match &n.node {
            Some(NodeEnum::List(l)) => self.exprs(&l.items),
            _ => {
                self.unknown = true;
                Vec::new()
            }
        }
    }

    fn boxed(&mut self, n: &Option<Box<Node>>) -> Box<Expr> {
        Box::new(n.as_ref().map(|n| self.expr(n)).unwrap_or_default())
    }

    pub fn type_name(&mut self, t: &pb::TypeName) -> TypeName {
        let names = strings(&t.names);
        let span = match self.token(t.location) {
            Some(at) => self.tokens.span(at, self.after_type(at)),
            None => Span::default(),
        };
        let modifiers = t.typmods.iter().map(|n| self.expr(n).span.of(self.text).to_owned()).collect();
        TypeName {
            schema: names.len().checked_sub(2).and_then(|i| names.get(i)).cloned(),
            name: names.last().cloned().unwrap_or_default(),
            modifiers,
            is_array: !t.array_bounds.is_empty(),
            is_setof: t.setof,
            percent_type: t.pct_type,
            span,
        }
    }

    /// Index after the type name that starts at token `at` (gram.y, `Typename`).
    fn after_type(&self, at: usize) -> usize {
        let t = self.tokens;
        let mut i = at;
        if t.kind(i) == Token::Setof {
            i += 1;
        }
        let first = t.kind(i);
        i = t.after_name(i);
        match first {
            Token::DoubleP if t.kind(i) == Token::Precision => i += 1,
            Token::National if matches!(t.kind(i), Token::Character | Token::CharP) => i += 1,
            _ => {}
        }
        if matches!(first, Token::Character | Token::CharP | Token::National | Token::Nchar | Token::Bit)
            && t.kind(i) == Token::Varying
        {
            i += 1;
        }
        if t.kind(i) == Token::Ascii40 {
            i = t.mate(i) + 1;
        }
        if matches!(first, Token::Time | Token::Timestamp)
            && matches!(t.kind(i), Token::With | Token::Without | Token::WithLa | Token::WithoutLa)
            && t.kind(i + 1) == Token::Time
            && t.kind(i + 2) == Token::Zone
        {
            i += 3;
        }
        if first == Token::Interval {
            i = self.after_interval_fields(i);
        }
        if t.kind(i) == Token::Array {
            i += 1;
        }
        while t.kind(i) == Token::Ascii91
            && (t.kind(i + 1) == Token::Ascii93 || (t.kind(i + 1) == Token::Iconst && t.kind(i + 2) == Token::Ascii93))
        {
            i = t.mate(i) + 1;
        }
        i
    }

    fn after_interval_fields(&self, at: usize) -> usize {
        let t = self.tokens;
        let field = |k| {
            matches!(k, Token::YearP | Token::MonthP | Token::DayP | Token::HourP | Token::MinuteP | Token::SecondP)
        };
        let mut i = at;
        if field(t.kind(i)) {
            i += 1;
            if t.kind(i) == Token::To && field(t.kind(i + 1)) {
                i += 2;
            }
            if t.kind(i) == Token::Ascii40 {
                i = t.mate(i) + 1;
            }
        }
        i
    }

    /// The range from token `at` over the bracket that follows it, if one does.
    fn with_brackets(&self, at: usize) -> Span {
        let t = self.tokens;
        let open = at + 1;
        let end = if matches!(t.kind(open), Token::Ascii40 | Token::Ascii91) { t.mate(open) + 1 } else { open };
        t.span(at, end)
    }

    fn unknown(&mut self, what: &'static str) -> Expr {
        self.unknown = true;
        Expr { kind: ExprKind::Unknown(what), span: Span::default() }
    }

    pub fn expr(&mut self, n: &Node) -> Expr {
        let Some(node) = &n.node else { return self.unknown("nothing") };
        let t = self.tokens;
        match node {
            NodeEnum::ColumnRef(c) => {
                let mut path = strings(&c.fields);
                let is_row = path.len() == c.fields.len() && path.len() == 1;
                if let Some(first) = path.first_mut()
                    && let Some((_, known)) = self.renamed.iter().find(|(name, _)| name == first)
                {
                    // A whole row, or a column of that name.
                    self.unknown |= is_row;
                    *first = (*known).to_owned();
                }
                let star = c.fields.last().is_some_and(|f| matches!(f.node, Some(NodeEnum::AStar(_))));
                let span = self.token(c.location).map_or(Span::default(), |at| t.span(at, t.after_name(at)));
                let kind = if star { ExprKind::Star(std::mem::take(&mut path)) } else { ExprKind::Column(path) };
                Expr { kind, span }
            }
            NodeEnum::AConst(c) => self.constant(c),
            NodeEnum::ParamRef(p) => {
                let span = self.token(p.location).map_or(Span::default(), |at| t.span(at, at + 1));
                match u16::try_from(p.number) {
                    Ok(number) if number > 0 => Expr { kind: ExprKind::Param(number), span },
                    _ => self.unknown("parameter"),
                }
            }
            NodeEnum::TypeCast(c) => self.cast(c),
            NodeEnum::AExpr(e) => self.operator(e),
            NodeEnum::BoolExpr(b) => {
                let args = self.exprs(&b.args);
                let mut span = args.iter().fold(Span::default(), |s, e| s.join(e.span));
                let kind = match pb::BoolExprType::try_from(b.boolop) {
                    Ok(pb::BoolExprType::AndExpr) => ExprKind::And(args),
                    Ok(pb::BoolExprType::OrExpr) => ExprKind::Or(args),
                    _ => {
                        if let Some(at) = self.token(b.location) {
                            span = span.join(t.span(at, at + 1));
                        }
                        ExprKind::Not(Box::new(args.into_iter().next().unwrap_or_default()))
                    }
                };
                Expr { kind, span: t.balance(span) }
            }
            NodeEnum::FuncCall(f) => self.call(f),
            NodeEnum::MergeSupportFunc(f) => {
                let span = self.token(f.location).map_or(Span::default(), |at| self.with_brackets(at));
                let call = Call { name: "merge_action".to_owned(), call_span: span, ..Call::default() };
                Expr { kind: ExprKind::Call(Box::new(call)), span }
            }
            NodeEnum::SqlvalueFunction(f) => {
                use pb::SqlValueFunctionOp as V;
                let name = match V::try_from(f.op) {
                    Ok(V::SvfopCurrentDate) => "current_date",
                    Ok(V::SvfopCurrentTime | V::SvfopCurrentTimeN) => "current_time",
                    Ok(V::SvfopCurrentTimestamp | V::SvfopCurrentTimestampN) => "current_timestamp",
                    Ok(V::SvfopLocaltime | V::SvfopLocaltimeN) => "localtime",
                    Ok(V::SvfopLocaltimestamp | V::SvfopLocaltimestampN) => "localtimestamp",
                    Ok(V::SvfopCurrentRole) => "current_role",
                    Ok(V::SvfopCurrentUser) => "current_user",
                    Ok(V::SvfopUser) => "user",
                    Ok(V::SvfopSessionUser) => "session_user",
                    Ok(V::SvfopCurrentCatalog) => "current_catalog",
                    Ok(V::SvfopCurrentSchema) => "current_schema",
                    _ => return self.unknown("value function"),
                };
                let span = self.token(f.location).map_or(Span::default(), |at| {
                    if t.kind(at + 1) == Token::Ascii40 && f.typmod >= 0 {
                        self.with_brackets(at)
                    } else {
                        t.span(at, at + 1)
                    }
                });
                Expr { kind: ExprKind::ValueFunction(name), span }
            }
            NodeEnum::NullTest(x) => {
                let expr = self.boxed(&x.arg);
                let mut span = expr.span;
                if let Some(at) = self.token(x.location) {
                    let mut end = at + 1;
                    if t.kind(at) == Token::Is {
                        end += if matches!(t.kind(at + 1), Token::Not | Token::NotLa) { 2 } else { 1 };
                    }
                    span = t.balance(span.join(t.span(at, end)));
                }
                let negated = x.nulltesttype == pb::NullTestType::IsNotNull as i32;
                Expr { kind: ExprKind::NullTest { expr, negated }, span }
            }
            NodeEnum::BooleanTest(x) => {
                let expr = self.boxed(&x.arg);
                let mut span = expr.span;
                if let Some(at) = self.token(x.location) {
                    let end = if matches!(t.kind(at + 1), Token::Not | Token::NotLa) { at + 3 } else { at + 2 };
                    span = t.balance(span.join(t.span(at, end)));
                }
                Expr { kind: ExprKind::BooleanTest(expr), span }
            }
            NodeEnum::CaseExpr(c) => {
                let operand = c.arg.as_ref().map(|n| Box::new(self.expr(n)));
                let whens = c
                    .args
                    .iter()
                    .filter_map(|n| match &n.node {
                        Some(NodeEnum::CaseWhen(w)) => Some((*self.boxed(&w.expr), *self.boxed(&w.result))),
                        _ => None,
                    })
                    .collect();
                let default = c.defresult.as_ref().map(|n| Box::new(self.expr(n)));
                let span = self.token(c.location).map_or(Span::default(), |at| {
                    let (mut depth, mut i) = (0usize, at);
                    while i < t.list.len() {
                        match t.kind(i) {
                            Token::Case if !t.is_label(i) => depth += 1,
                            Token::EndP if !t.is_label(i) => depth = depth.saturating_sub(1),
                            _ => {}
                        }
                        i = t.next_flat(i);
                        if depth == 0 {
                            break;
                        }
                    }
                    t.span(at, i)
                });
                Expr { kind: ExprKind::Case { operand, whens, default }, span }
            }
            NodeEnum::CoalesceExpr(c) => {
                let span = self.token(c.location).map_or(Span::default(), |at| self.with_brackets(at));
                Expr { kind: ExprKind::Coalesce(self.exprs(&c.args)), span }
            }
            NodeEnum::MinMaxExpr(c) => {
                let span = self.token(c.location).map_or(Span::default(), |at| self.with_brackets(at));
                let args = self.exprs(&c.args);
                let greatest = c.op == pb::MinMaxOp::IsGreatest as i32;
                Expr { kind: if greatest { ExprKind::Greatest(args) } else { ExprKind::Least(args) }, span }
            }
            NodeEnum::AArrayExpr(a) => {
                let elements = self.exprs(&a.elements);
                let span = self.token(a.location).map_or(Span::default(), |at| {
                    if t.kind(at) == Token::Ascii91 { t.span(at, t.mate(at) + 1) } else { self.with_brackets(at) }
                });
                Expr { kind: ExprKind::Array(elements), span }
            }
            NodeEnum::RowExpr(r) => {
                let args = self.exprs(&r.args);
                let span = self.token(r.location).map_or(Span::default(), |at| {
                    if t.kind(at) == Token::Ascii40 { t.span(at, t.mate(at) + 1) } else { self.with_brackets(at) }
                });
                Expr { kind: ExprKind::Row(args), span }
            }
            NodeEnum::SubLink(s) => self.sublink(s),
            NodeEnum::CollateClause(c) => {
                let expr = self.boxed(&c.arg);
                let mut span = expr.span;
                if let Some(at) = self.token(c.location) {
                    span = t.balance(span.join(t.span(at, t.after_name(at + 1))));
                }
                Expr { kind: ExprKind::Collate { expr, collation: strings(&c.collname) }, span }
            }
            NodeEnum::AIndirection(x) => {
                let expr = self.boxed(&x.arg);
                let mut subscripts = Vec::new();
                let mut last_field = None;
                for n in &x.indirection {
                    match &n.node {
                        Some(NodeEnum::String(s)) => last_field = Some(s.sval.clone()),
                        Some(NodeEnum::AIndices(i)) => {
                            subscripts.extend(i.lidx.as_ref().map(|n| self.expr(n)));
                            subscripts.extend(i.uidx.as_ref().map(|n| self.expr(n)));
                        }
                        _ => {
                            self.unknown = true;
                        }
                    }
                }
                let mut i = t.list.partition_point(|k| k.end <= expr.span.end);
                loop {
                    match t.kind(i) {
                        Token::Ascii41 if t.mate(i) < i && t.start_of(t.mate(i)) < expr.span.start => i += 1,
                        Token::Ascii91 => i = t.mate(i) + 1,
                        Token::Ascii46 if t.is_word(i + 1) => i += 2,
                        _ => break,
                    }
                }
                let span = match i.checked_sub(1) {
                    Some(last) => t.balance(Span::new(expr.span.start, t.end_of(last))),
                    None => Span::default(),
                };
                Expr { kind: ExprKind::Indirection { expr, subscripts, last_field }, span }
            }
            NodeEnum::AIndices(i) => {
                // The subscript of an assignment's target.
                let mut list: Vec<Expr> = Vec::new();
                list.extend(i.lidx.as_ref().map(|n| self.expr(n)));
                list.extend(i.uidx.as_ref().map(|n| self.expr(n)));
                if list.iter().any(|e| !matches!(e.kind, ExprKind::Const(_) | ExprKind::Param(_) | ExprKind::Column(_)))
                {
                    self.unknown = true;
                }
                Expr { kind: ExprKind::List(list), span: Span::default() }
            }
            NodeEnum::String(_) => Expr { kind: ExprKind::List(Vec::new()), span: Span::default() },
            NodeEnum::NamedArgExpr(a) => {
                let expr = self.boxed(&a.arg);
                let mut span = expr.span;
                if let Some(at) = self.token(a.location) {
                    span = span.join(t.span(at, at + 1));
                }
                Expr { kind: ExprKind::NamedArg { name: a.name.clone(), expr }, span: t.balance(span) }
            }
            NodeEnum::List(l) => {
                let list = self.exprs(&l.items);
                let span = list.iter().fold(Span::default(), |s, e| s.join(e.span));
                Expr { kind: ExprKind::List(list), span: t.balance(span) }
            }
            NodeEnum::SetToDefault(d) => {
                let span = self.token(d.location).map_or(Span::default(), |at| t.span(at, at + 1));
                Expr { kind: ExprKind::Default, span }
            }
            NodeEnum::GroupingFunc(g) => {
                let span = self.token(g.location).map_or(Span::default(), |at| self.with_brackets(at));
                Expr { kind: ExprKind::Grouping(self.exprs(&g.args)), span }
            }
            NodeEnum::CurrentOfExpr(c) => {
                Expr { kind: ExprKind::CurrentOf(c.cursor_name.clone()), span: Span::default() }
            }
            _ => self.unknown("expression"),
        }
    }

    fn constant(&mut self, c: &pb::AConst) -> Expr {
        let t = self.tokens;
        let mut span = Span::default();
        if let Some(at) = self.token(c.location) {
            let mut end = at;
            if matches!(t.kind(at), Token::Ascii45 | Token::Ascii43) {
                // doNegate() puts the constant where the sign is; brackets may stand between.
                end += 1;
                if t.kind(end) == Token::Ascii40 {
                    end = t.mate(end);
                }
            }
            end += 1;
            if t.kind(end) == Token::Uescape {
                end += 2;
            }
            span = t.span(at, end);
        }
        use pb::a_const::Val;
        let value = match &c.val {
            _ if c.isnull => Const::Null,
            Some(Val::Ival(i)) => Const::Integer(i.ival),
            Some(Val::Fval(f)) => Const::Number(f.fval.clone()),
            Some(Val::Boolval(b)) => Const::Bool(b.boolval),
            Some(Val::Sval(s)) => Const::String(s.sval.clone()),
            Some(Val::Bsval(s)) => Const::BitString(s.bsval.clone()),
            None => Const::Null,
        };
        Expr { kind: ExprKind::Const(value), span }
    }

    fn cast(&mut self, c: &pb::TypeCast) -> Expr {
        let t = self.tokens;
        let expr = self.boxed(&c.arg);
        let Some(type_name) = &c.type_name else { return self.unknown("cast") };
        let to = self.type_name(type_name);
        let mut span = expr.span.join(to.span);
        match self.token(c.location) {
            Some(at) if matches!(t.kind(at), Token::Cast | Token::Treat) => span = self.with_brackets(at),
            Some(at) => span = span.join(t.span(at, at + 1)),
            None => {
                // `type 'literal'`, with fields after the literal of an interval.
                let after = t.list.partition_point(|k| k.end <= span.end);
                let end = self.after_interval_fields(after);
                if end > after && to.name == "interval" {
                    span = span.join(t.span(after, end));
                }
            }
        }
        Expr { kind: ExprKind::Cast { expr, to }, span: t.balance(span) }
    }

    fn operator(&mut self, e: &pb::AExpr) -> Expr {
        use pb::AExprKind as K;
        let t = self.tokens;
        let at = self.token(e.location);
        let left = e.lexpr.as_ref().map(|n| self.expr(n));
        let right = e.rexpr.as_ref().map(|n| self.expr(n));
        let mut span = Span::default();
        for side in left.iter().chain(right.iter()) {
            span = span.join(side.span);
        }
        if let Some(at) = at {
            span = span.join(t.span(at, at + 1));
        }
        let names = strings(&e.name);
        let kind = match K::try_from(e.kind) {
            Ok(K::AexprOp) => OpKind::Plain,
            Ok(K::AexprOpAny) => OpKind::Any,
            Ok(K::AexprOpAll) => OpKind::All,
            Ok(K::AexprDistinct) => OpKind::Distinct,
            Ok(K::AexprNotDistinct) => OpKind::NotDistinct,
            Ok(K::AexprNullif) => OpKind::NullIf,
            Ok(K::AexprIn) => OpKind::In,
            Ok(K::AexprLike) => OpKind::Like,
            Ok(K::AexprIlike) => OpKind::Ilike,
            Ok(K::AexprSimilar) => OpKind::Similar,
            Ok(K::AexprBetween | K::AexprBetweenSym) => OpKind::Between,
            Ok(K::AexprNotBetween | K::AexprNotBetweenSym) => OpKind::NotBetween,
            _ => return self.unknown("operator"),
        };
        match kind {
            OpKind::NullIf => {
                if let Some(at) = at {
                    span = self.with_brackets(at);
                }
            }
            OpKind::Any | OpKind::All | OpKind::In => {
                // The list's or array's closing bracket: the first bracket after the operator.
                if let Some(at) = at {
                    let mut i = at;
                    while i < t.list.len() && t.kind(i) != Token::Ascii40 {
                        i += 1;
                    }
                    span = span.join(t.span(i, t.mate(i) + 1));
                }
            }
            _ => {}
        }
        Expr {
            kind: ExprKind::Op(Box::new(Op {
                kind,
                schema: names.len().checked_sub(2).and_then(|i| names.get(i)).cloned(),
                name: names.last().cloned().unwrap_or_default(),
                left,
                right,
            })),
            span: t.balance(span),
        }
    }

    fn call(&mut self, f: &pb::FuncCall) -> Expr {
        let t = self.tokens;
        let names = strings(&f.funcname);
        let mut call = Call {
            schema: names.len().checked_sub(2).and_then(|i| names.get(i)).cloned(),
            name: names.last().cloned().unwrap_or_default(),
            args: self.exprs(&f.args),
            star: f.agg_star,
            distinct: f.agg_distinct,
            variadic: f.func_variadic,
            order_by: self.sorts(&f.agg_order),
            filter: f.agg_filter.as_ref().map(|n| self.expr(n)),
            within_group: f.agg_within_group,
            over: f.over.as_ref().map(|w| self.window(w)),
            sql_syntax: f.funcformat == pb::CoercionForm::CoerceSqlSyntax as i32,
            call_span: Span::default(),
        };
        let mut span = Span::default();
        if call.sql_syntax && matches!(call.name.as_str(), "like_escape" | "similar_to_escape") {
            // Not an expression of its own: the pattern with its ESCAPE.
            span = t.balance(call.args.iter().fold(span, |s, e| s.join(e.span)));
            call.call_span = span;
        } else if let Some(at) = self.token(f.location) {
            let open = t.after_name(at);
            if t.kind(open) == Token::Ascii40
                && t.is_word(at)
                && !(call.sql_syntax
                    && matches!(t.kind(at), Token::At | Token::Similar | Token::Like | Token::Overlaps | Token::Escape))
            {
                let mut end = t.mate(open) + 1;
                call.call_span = t.span(at, end);
                if t.kind(end) == Token::Within && t.kind(end + 2) == Token::Ascii40 {
                    end = t.mate(end + 2) + 1;
                }
                if t.kind(end) == Token::Filter && t.kind(end + 1) == Token::Ascii40 {
                    end = t.mate(end + 1) + 1;
                }
                if t.kind(end) == Token::Over {
                    end = if t.kind(end + 1) == Token::Ascii40 { t.mate(end + 1) + 1 } else { end + 2 };
                }
                span = t.span(at, end);
            } else {
                // `a AT TIME ZONE b`, `a LIKE b ESCAPE c`, …: the operands and the words between.
                span = call.args.iter().fold(t.span(at, at + 1), |s, e| s.join(e.span));
                if t.kind(at) == Token::At && t.kind(at + 1) == Token::Local {
                    span = span.join(t.span(at, at + 2));
                }
                span = t.balance(span);
                call.call_span = span;
                if t.kind(at) == Token::Is {
                    self.unknown = true;
                }
            }
        } else {
            span = call.args.iter().fold(span, |s, e| s.join(e.span));
            span = t.balance(span);
            call.call_span = span;
        }
        Expr { kind: ExprKind::Call(Box::new(call)), span }
    }

    fn sublink(&mut self, s: &pb::SubLink) -> Expr {
        use pb::SubLinkType as L;
        let t = self.tokens;
        let test = s.testexpr.as_ref().map(|n| self.expr(n));
        let query = self.query_of(&s.subselect);
        let kind = match L::try_from(s.sub_link_type) {
            Ok(L::ExistsSublink) => SublinkKind::Exists,
            Ok(L::AllSublink) => SublinkKind::All,
            Ok(L::AnySublink) => SublinkKind::Any,
            Ok(L::ExprSublink) => SublinkKind::Scalar,
            Ok(L::ArraySublink) => SublinkKind::Array,
            Ok(L::MultiexprSublink) => SublinkKind::Multi,
            _ => return self.unknown("sublink"),
        };
        let mut span = test.as_ref().map_or(Span::default(), |e| e.span);
        if let Some(at) = self.token(s.location) {
            let mut i = at;
            while i < t.list.len() && t.kind(i) != Token::Ascii40 {
                i += 1;
            }
            span = t.balance(span.join(t.span(at, t.mate(i) + 1)));
        }
        let op = strings(&s.oper_name).last().cloned();
        Expr { kind: ExprKind::Sublink(Box::new(Sublink { kind, test, op, query })), span }
    }
}

fn row_lock(clause: &Node) -> Option<RowLock> {
    let Some(NodeEnum::LockingClause(clause)) = &clause.node else { return None };
    let name = |node: &Node| match &node.node {
        Some(NodeEnum::RangeVar(relation)) => Some(relation.relname.clone()),
        _ => None,
    };
    Some(RowLock {
        to_change: matches!(
            pb::LockClauseStrength::try_from(clause.strength),
            Ok(pb::LockClauseStrength::LcsForupdate | pb::LockClauseStrength::LcsFornokeyupdate)
        ),
        of: clause.locked_rels.iter().filter_map(name).collect(),
        wait: match pb::LockWaitPolicy::try_from(clause.wait_policy) {
            Ok(pb::LockWaitPolicy::LockWaitSkip) => Some(" SKIP LOCKED"),
            Ok(pb::LockWaitPolicy::LockWaitError) => Some(" NOWAIT"),
            _ => None,
        },
    })
}
