//! Random queries: joins, subqueries, aggregates, windows, set operations, CTEs.

use super::Gen;
use super::expression::Col;
use super::schema::{Table, Ty};

/// Something that can stand in FROM.
struct Item {
    sql: String,
    columns: Vec<Col>,
    /// A bare table, with what it is called here.
    table: Option<(Table, String)>,
}

#[derive(Debug, Clone)]
pub struct Cte {
    pub name: String,
    pub columns: Vec<(String, Ty)>,
}

fn numbered(n: usize) -> String {
    (1..=n).map(|i| i.to_string()).collect::<Vec<_>>().join(", ")
}

impl Gen<'_> {
    fn alias(&mut self) -> String {
        self.aliases += 1;
        format!("r{}", self.aliases)
    }

    pub fn some_types(&mut self, most: usize) -> Vec<Ty> {
        (0..self.random.between(1, most)).map(|_| self.random_type()).collect()
    }

    /// A whole query as a client sends it, and whether the order of its rows is total.
    pub fn top_query(&mut self) -> (String, bool) {
        let types = self.some_types(4);
        let depth = self.random.between(1, 3);
        let mut with = String::new();
        if self.random.chance(18) {
            with = self.with_clause(depth);
        }
        let (body, may_limit) = self.query_body(&types, &[], depth);
        self.ctes.clear();
        let mut sql = format!("{with}{body}");
        let mut ordered = false;
        if may_limit && self.random.chance(50) {
            sql += &self.order_all(types.len());
            ordered = true;
            let limit = self.limit();
            // PostgreSQL reads the minimum WITH TIES too where an index gives it (21000), or our sorted foreign rows.
            let chosen = ["min(", "max("].iter().any(|call| sql.contains(call)) && !sql.contains("GROUP BY");
            sql += if chosen && limit.ends_with("TIES") { " LIMIT 3" } else { &limit };
        } else if with.is_empty() && self.random.chance(10) {
            return self.locking_or_whole_rows();
        }
        (sql, ordered)
    }

    /// What a query without named outputs looks like: stars, whole rows, sets in the output, row locks.
    fn locking_or_whole_rows(&mut self) -> (String, bool) {
        let (from, columns) = self.clause_from(1, &[], 2);
        let filter = self.where_clause(&columns, &[], 1, 60);
        let one = self.random.pick(&columns).sql.clone();
        let alias = one.split('.').next().unwrap_or_default().to_owned();
        let sql = match self.random.below(9) {
            0 => format!("SELECT * FROM {from}{filter}"),
            1 => format!("SELECT {alias}.* FROM {from}{filter}"),
            2 => format!("SELECT {alias}, {one} FROM {from}{filter}"),
            3 => format!("SELECT count({alias}), count(DISTINCT {one}) FROM {from}{filter}"),
            4 => format!("SELECT {one}, generate_series(1, 2) FROM {from}{filter}"),
            5 => {
                let table = self.random.pick(&self.schema.tables).name.clone();
                let filter = self.random.pick(&["", " WHERE x.k IS NOT NULL", " WHERE x.a > 1"]);
                let lock = self.random.pick(&["UPDATE", "SHARE", "NO KEY UPDATE", "KEY SHARE"]);
                format!("SELECT x.k, x.a FROM {table} x{filter} FOR {lock}")
            }
            6 => format!("SELECT {one} FROM {from}{filter} ORDER BY {one} IS NULL, {one}"),
            7 => {
                let a = self.random.pick(&columns).sql.clone();
                format!(
                    "SELECT {one}, grouping({one}), count(*) FROM {from}{filter} \
                     GROUP BY GROUPING SETS (({one}), ({a}), ())"
                )
            }
            _ => {
                let (a, b) =
                    (self.random.pick(&self.schema.tables).clone(), self.random.pick(&self.schema.tables).clone());
                let kind = self.random.pick(&["", "LEFT ", "FULL "]);
                format!("SELECT * FROM {} NATURAL {kind}JOIN {}", a.name, b.name)
            }
        };
        (sql, false)
    }

    /// ORDER BY every output column: rows that are equal then are the same.
    fn order_all(&mut self, n: usize) -> String {
        let keys: Vec<String> = (1..=n)
            .map(|i| format!("{i}{}", self.random.pick(&["", "", " DESC", " NULLS FIRST", " DESC NULLS LAST"])))
            .collect();
        format!(" ORDER BY {}", keys.join(", "))
    }

    fn limit(&mut self) -> String {
        match self.random.below(8) {
            0 | 1 => {
                let n = self.random.below(12);
                if !self.parameters_allowed || self.parameters.len() > 5 {
                    return format!(" LIMIT {n}");
                }
                self.parameters.push(Some(n.to_string()));
                format!(" LIMIT ${}", self.parameters.len())
            }
            2 => format!(" LIMIT {} OFFSET {}", self.random.below(12), self.random.below(5)),
            3 => format!(" OFFSET {}", self.random.below(5)),
            4 => format!(" FETCH FIRST {} ROWS WITH TIES", self.random.between(1, 6)),
            _ => String::new(),
        }
    }

    fn with_clause(&mut self, depth: usize) -> String {
        let mut parts = Vec::new();
        let mut recursive = false;
        for _ in 0..self.random.between(1, 2) {
            self.aliases += 1;
            let name = format!("q{}", self.aliases);
            let types = self.some_types(3);
            if self.random.chance(25) {
                recursive = true;
                parts.push(self.recursive_cte(&name));
                continue;
            }
            let (body, _) = self.query_body(&types, &[], depth.saturating_sub(1).max(1));
            let names: Vec<String> = (1..=types.len()).map(|i| format!("c{i}")).collect();
            let hint = *self.random.pick(&["", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
            parts.push(format!("{name} ({}) AS {hint}({body})", names.join(", ")));
            self.ctes.push(Cte { name, columns: names.into_iter().zip(types).collect() });
        }
        format!("WITH {}{} ", if recursive { "RECURSIVE " } else { "" }, parts.join(", "))
    }

    /// Three levels deep at most, without duplicates: it stays small.
    fn recursive_cte(&mut self, name: &str) -> String {
        let table = self.random.pick(&self.schema.tables).clone();
        let (a, b) = (self.alias(), self.alias());
        let key = table.columns[0].ty;
        let scope: Vec<Col> = columns_of(&table, &a);
        let filter = self.predicate(&scope, 1);
        let ints: Vec<&str> = table.columns.iter().filter(|c| c.ty == key).map(|c| &*c.name).collect();
        let step = (*self.random.pick(&ints)).to_owned();
        let back = (*self.random.pick(&ints)).to_owned();
        let sql = format!(
            "{name} (n, k) AS (SELECT 0, {a}.k FROM {t} {a} WHERE {filter} UNION SELECT {name}.n + 1, {b}.{step} \
             FROM {name} JOIN {t} {b} ON {b}.{back} = {name}.k WHERE {name}.n < 2)",
            t = table.name
        );
        self.ctes.push(Cte { name: name.to_owned(), columns: vec![("n".into(), Ty::Int), ("k".into(), key)] });
        sql
    }

    /// A subquery in parentheses-free form with these output types; it may see `outer`.
    pub fn inner_query(&mut self, types: &[Ty], outer: &[Col], depth: usize) -> String {
        self.subqueries_left = self.subqueries_left.saturating_sub(1);
        let (body, may_limit) = self.query_body(types, outer, depth);
        if may_limit && self.random.chance(12) {
            let order = self.order_all(types.len());
            return format!("{body}{order} LIMIT {}", self.random.between(1, 6));
        }
        body
    }

    /// One row at most, whatever the data.
    pub fn scalar_subquery(&mut self, ty: Ty, outer: &[Col], depth: usize) -> String {
        self.subqueries_left = self.subqueries_left.saturating_sub(1);
        let (from, columns) = self.clause_from(depth, outer, 1);
        let filter = self.where_clause(&columns, outer, depth, 75);
        if let Some(call) = self.random.chance(70).then(|| self.aggregate(ty, &columns, 1)).flatten() {
            return format!("(SELECT {call} FROM {from}{filter})");
        }
        let value = self.expression(ty, &columns, 1);
        format!("(SELECT {value} FROM {from}{filter} ORDER BY 1 LIMIT 1)")
    }

    pub fn exists_subquery(&mut self, outer: &[Col], depth: usize) -> String {
        self.subqueries_left = self.subqueries_left.saturating_sub(1);
        let (from, columns) = self.clause_from(depth, outer, 2);
        let mut conditions = Vec::new();
        if self.random.chance(85) {
            let (a, b) = self.comparable(&columns, outer);
            conditions.push(format!("{a} = {b}"));
        }
        if self.random.chance(40) || conditions.is_empty() {
            let all = [&columns[..], outer].concat();
            conditions.push(self.predicate(&all, depth.min(1)));
        }
        format!("SELECT 1 FROM {from} WHERE {}", conditions.join(" AND "))
    }

    fn where_clause(&mut self, columns: &[Col], outer: &[Col], depth: usize, percent: usize) -> String {
        let mut conditions = Vec::new();
        if !outer.is_empty() && self.random.chance(60) {
            let (a, b) = self.comparable(columns, outer);
            conditions.push(format!("{a} = {b}"));
        }
        if self.random.chance(percent) {
            conditions.push(self.predicate(columns, depth));
        }
        if self.random.chance(25) {
            let all = [columns, outer].concat();
            conditions.push(self.predicate(&all, depth.min(1)));
        }
        if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) }
    }

    /// A query without ORDER BY and LIMIT; false where none may follow.
    pub fn query_body(&mut self, types: &[Ty], outer: &[Col], depth: usize) -> (String, bool) {
        match self.random.below(20) {
            0..=7 => (self.plain_select(types, outer, depth), true),
            8..=11 => (self.grouped_select(types, outer, depth), true),
            12 => (self.plain_select(types, outer, depth).replacen("SELECT", "SELECT DISTINCT", 1), true),
            13 | 14 if depth > 0 => {
                let operator =
                    *self.random.pick(&["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT ALL", "INTERSECT ALL"]);
                let (a, _) = self.query_body(types, outer, depth - 1);
                let (b, _) = self.query_body(types, outer, depth - 1);
                // DISTINCT ON brings an ORDER BY of its own: everything in parentheses.
                (format!("(({a}) {operator} ({b}))"), true)
            }
            15 | 16 => (self.windowed_select(types, outer, depth), true),
            17 => (self.distinct_on(types, outer, depth), false),
            18 if self.random.chance(30) => {
                let rows: Vec<String> = (0..self.random.between(1, 3))
                    .map(|_| {
                        let row: Vec<String> = types.iter().map(|t| self.expression(*t, outer, 1)).collect();
                        format!("({})", row.join(", "))
                    })
                    .collect();
                (format!("VALUES {}", rows.join(", ")), true)
            }
            _ => (self.plain_select(types, outer, depth), true),
        }
    }

    fn outputs(&mut self, types: &[Ty], scope: &[Col], depth: usize) -> Vec<String> {
        types.iter().enumerate().map(|(i, t)| format!("{} AS c{}", self.expression(*t, scope, depth), i + 1)).collect()
    }

    fn plain_select(&mut self, types: &[Ty], outer: &[Col], depth: usize) -> String {
        let (from, columns) = self.clause_from(depth, outer, 3);
        let filter = self.where_clause(&columns, outer, depth, 60);
        let outputs = self.outputs(types, &columns, depth.min(2));
        format!("SELECT {} FROM {from}{filter}", outputs.join(", "))
    }

    fn grouped_select(&mut self, types: &[Ty], outer: &[Col], depth: usize) -> String {
        let (from, columns) = self.clause_from(depth, outer, 3);
        let filter = self.where_clause(&columns, outer, depth, 50);
        // Parameters in a group would have to be the same ones in the output.
        let mut groups: Vec<Col> = Vec::new();
        let mut outputs = Vec::new();
        for (i, &ty) in types.iter().enumerate() {
            let aggregate = if self.random.chance(55) { self.aggregate(ty, &columns, 1) } else { None };
            let output = match aggregate {
                Some(call) => call,
                None => match self.column(ty, &columns) {
                    Some(column) => {
                        let col = Col { sql: column.clone(), ty };
                        if !groups.contains(&col) {
                            groups.push(col);
                        }
                        column
                    }
                    None => ty.literal(self.random),
                },
            };
            outputs.push(format!("{output} AS c{}", i + 1));
        }
        if self.random.chance(20) && !columns.is_empty() {
            let more = self.random.pick(&columns).clone();
            if !groups.contains(&more) {
                groups.push(more);
            }
        }
        let names: Vec<&str> = groups.iter().map(|c| &*c.sql).collect();
        let mut tail = String::new();
        if !names.is_empty() {
            let list = names.join(", ");
            tail = match self.random.below(12) {
                0 => format!(" GROUP BY ROLLUP ({list})"),
                1 => format!(" GROUP BY CUBE ({list})"),
                2 => format!(" GROUP BY GROUPING SETS (({list}), ())"),
                _ => format!(" GROUP BY {list}"),
            };
        } else if !outputs.iter().any(|o| o.contains('(')) {
            tail = " GROUP BY ()".into();
        }
        if !tail.is_empty() && self.random.chance(25) {
            let having = match self.random.below(3) {
                0 => format!("count(*) > {}", self.random.below(4)),
                1 if !groups.is_empty() => self.predicate(&groups, 0),
                _ => format!("max({}) IS NOT NULL", self.expression(Ty::Int, &columns, 0)),
            };
            tail += &format!(" HAVING {having}");
        }
        format!("SELECT {} FROM {from}{filter}{tail}", outputs.join(", "))
    }

    /// Frames are those of peers, or the order is over all that is seen.
    fn windowed_select(&mut self, types: &[Ty], outer: &[Col], depth: usize) -> String {
        let (from, columns) = self.clause_from(depth, outer, 2);
        let filter = self.where_clause(&columns, outer, depth, 50);
        let mut outputs = Vec::new();
        for (i, &ty) in types.iter().enumerate() {
            let partition = if self.random.chance(70) && !columns.is_empty() {
                format!("PARTITION BY {} ", self.random.pick(&columns).sql)
            } else {
                String::new()
            };
            let all: Vec<&str> = columns.iter().map(|c| &*c.sql).collect();
            let all = all.join(", ");
            let one = columns.first().map_or("1".to_owned(), |_| self.random.pick(&columns).sql.clone());
            let direction = *self.random.pick(&["", " DESC", " NULLS FIRST"]);
            let output = match ty {
                Ty::BigInt => match self.random.below(5) {
                    0 => format!("row_number() OVER ({partition}ORDER BY {all})"),
                    1 => format!("rank() OVER ({partition}ORDER BY {one}{direction})"),
                    2 => format!("count(*) OVER ({partition})"),
                    3 => format!("dense_rank() OVER ({partition}ORDER BY {one}{direction})"),
                    _ => format!("sum({}) OVER ({partition}ORDER BY {one})", self.expression(Ty::Int, &columns, 0)),
                },
                _ => match self.random.below(4) {
                    0 => format!("lag({}) OVER ({partition}ORDER BY {all})", self.expression(ty, &columns, 1)),
                    1 => format!(
                        "first_value({}) OVER ({partition}ORDER BY {all} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
                        self.expression(ty, &columns, 1)
                    ),
                    2 if matches!(ty, Ty::Int | Ty::Text | Ty::Date) => {
                        format!("max({}) OVER ({partition}ORDER BY {one})", self.expression(ty, &columns, 1))
                    }
                    _ => self.expression(ty, &columns, 1),
                },
            };
            outputs.push(format!("{output} AS c{}", i + 1));
        }
        format!("SELECT {} FROM {from}{filter}", outputs.join(", "))
    }

    fn distinct_on(&mut self, types: &[Ty], outer: &[Col], depth: usize) -> String {
        let (from, columns) = self.clause_from(depth, outer, 2);
        let filter = self.where_clause(&columns, outer, depth, 50);
        let outputs = self.outputs(types, &columns, 1);
        let n = self.random.between(1, types.len());
        format!(
            "SELECT DISTINCT ON ({}) {} FROM {from}{filter} ORDER BY {}",
            numbered(n),
            outputs.join(", "),
            numbered(types.len())
        )
    }

    /// FROM, and the columns that it gives.
    pub fn clause_from(&mut self, depth: usize, outer: &[Col], most: usize) -> (String, Vec<Col>) {
        let first = self.item(depth, outer);
        let (mut sql, mut columns) = (first.sql.clone(), first.columns.clone());
        let mut last_table = first.table;
        let more = if depth == 0 { usize::from(most > 1 && self.random.chance(20)) } else { self.random.below(most) };
        for _ in 0..more {
            // LATERAL sees what stands on its left.
            if depth > 0 && self.subqueries_left > 0 && self.random.chance(12) {
                let alias = self.alias();
                let types = self.some_types(2);
                let seen = [&columns[..], outer].concat();
                let query = self.inner_query(&types, &seen, depth - 1);
                let names: Vec<String> = (1..=types.len()).map(|i| format!("c{i}")).collect();
                let lateral = format!("LATERAL ({query}) {alias} ({})", names.join(", "));
                sql += &match self.random.below(3) {
                    0 => format!(" CROSS JOIN {lateral}"),
                    1 => format!(" LEFT JOIN {lateral} ON true"),
                    _ => format!(" JOIN {lateral} ON true"),
                };
                columns.extend(names.iter().zip(types).map(|(n, ty)| Col { sql: format!("{alias}.{n}"), ty }));
                last_table = None;
                continue;
            }
            let next = if depth > 0 && self.random.chance(12) {
                self.nested_join(depth, outer)
            } else {
                self.item(depth, outer)
            };
            let kind = *self.random.pick(&[
                "JOIN",
                "JOIN",
                "JOIN",
                "LEFT JOIN",
                "LEFT JOIN",
                "RIGHT JOIN",
                "FULL JOIN",
                "CROSS JOIN",
            ]);
            if kind == "CROSS JOIN" {
                sql += &format!(" CROSS JOIN {}", next.sql);
            } else if let Some(shared) = self.shared_column(&last_table, &next.table) {
                sql += &format!(" {kind} {} USING ({shared})", next.sql);
            } else {
                let on = self.join_condition(&columns, &next.columns, kind == "FULL JOIN");
                sql += &format!(" {kind} {} ON {on}", next.sql);
            }
            columns.extend(next.columns);
            last_table = None;
        }
        if depth > 0 && self.random.chance(10) {
            let next = self.item(depth - 1, outer);
            sql += &format!(", {}", next.sql);
            columns.extend(next.columns);
        }
        (sql, columns)
    }

    fn nested_join(&mut self, depth: usize, outer: &[Col]) -> Item {
        let (a, b) = (self.item(depth - 1, outer), self.item(depth - 1, outer));
        let kind = *self.random.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
        let on = self.join_condition(&a.columns, &b.columns, kind == "FULL JOIN");
        Item {
            sql: format!("({} {kind} {} ON {on})", a.sql, b.sql),
            columns: [a.columns, b.columns].concat(),
            table: None,
        }
    }

    /// A column of both tables, of one type, for USING.
    fn shared_column(&mut self, a: &Option<(Table, String)>, b: &Option<(Table, String)>) -> Option<String> {
        let ((a, _), (b, _)) = (a.as_ref()?, b.as_ref()?);
        if !self.random.chance(25) {
            return None;
        }
        let shared: Vec<&str> = a
            .columns
            .iter()
            .filter(|x| b.columns.iter().any(|y| x.name == y.name && x.ty == y.ty))
            .map(|x| &*x.name)
            .collect();
        if shared.is_empty() {
            return None;
        }
        if shared.len() > 1 && self.random.chance(25) {
            return Some(shared[..2].join(", "));
        }
        Some((*self.random.pick(&shared)).to_owned())
    }

    fn join_condition(&mut self, left: &[Col], right: &[Col], equality_only: bool) -> String {
        let (a, b) = self.comparable(left, right);
        let mut on = format!("{a} = {b}");
        if equality_only {
            return on;
        }
        if self.random.chance(25) {
            let all = [left, right].concat();
            on += &format!(" AND {}", self.predicate(&all, 1));
        }
        on
    }

    fn item(&mut self, depth: usize, outer: &[Col]) -> Item {
        let alias = self.alias();
        if !self.ctes.is_empty() && self.random.chance(40) {
            let cte = self.random.pick(&self.ctes).clone();
            let columns = cte.columns.iter().map(|(n, ty)| Col { sql: format!("{alias}.{n}"), ty: *ty }).collect();
            return Item { sql: format!("{} {alias}", cte.name), columns, table: None };
        }
        if depth > 0 && self.subqueries_left > 0 && self.random.chance(22) {
            let types = self.some_types(3);
            // Without LATERAL it sees nothing of its own level, and sometimes what is further out.
            let outer = if self.random.chance(30) { outer } else { &[] };
            let query = self.inner_query(&types, outer, depth - 1);
            let names: Vec<String> = (1..=types.len()).map(|i| format!("c{i}")).collect();
            let columns =
                names.iter().zip(&types).map(|(n, ty)| Col { sql: format!("{alias}.{n}"), ty: *ty }).collect();
            return Item { sql: format!("({query}) {alias} ({})", names.join(", ")), columns, table: None };
        }
        match self.random.below(30) {
            0 => {
                let (a, b) = (Ty::Int.literal(self.random), Ty::Int.literal(self.random));
                let (x, y) = (Ty::Text.literal(self.random), Ty::Text.literal(self.random));
                Item {
                    sql: format!("(VALUES ({a}, {x}), ({b}, {y}), ({a}, NULL)) {alias} (c1, c2)"),
                    columns: vec![
                        Col { sql: format!("{alias}.c1"), ty: Ty::Int },
                        Col { sql: format!("{alias}.c2"), ty: Ty::Text },
                    ],
                    table: None,
                }
            }
            5 if outer.iter().any(|c| c.ty == Ty::IntArray) => {
                let array = self.column(Ty::IntArray, outer).unwrap_or_default();
                Item {
                    sql: format!("unnest({array}) WITH ORDINALITY {alias} (c1, c2)"),
                    columns: vec![
                        Col { sql: format!("{alias}.c1"), ty: Ty::Int },
                        Col { sql: format!("{alias}.c2"), ty: Ty::BigInt },
                    ],
                    table: None,
                }
            }
            1 => Item {
                sql: format!("generate_series(1, {}) {alias} (c1)", self.random.between(1, 6)),
                columns: vec![Col { sql: format!("{alias}.c1"), ty: Ty::Int }],
                table: None,
            },
            2..=4 if !self.schema.views.is_empty() => {
                let view = self.random.pick(&self.schema.views).clone();
                Item { sql: format!("{} {alias}", view.name), columns: columns_of(&view, &alias), table: None }
            }
            _ => {
                let table = self.random.pick(&self.schema.tables).clone();
                Item {
                    sql: format!("{} {alias}", table.name),
                    columns: columns_of(&table, &alias),
                    table: Some((table, alias)),
                }
            }
        }
    }
}

/// The columns of a table under an alias.
pub fn columns_of(table: &Table, alias: &str) -> Vec<Col> {
    table.columns.iter().map(|c| Col { sql: format!("{alias}.{}", c.name), ty: c.ty }).collect()
}
