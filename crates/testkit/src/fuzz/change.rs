//! Random writes. What they do never depends on the order in which rows are visited: a row that joins several others
//! gets nothing of theirs but an aggregate, and columns of unique constraints get constants.

use super::Gen;
use super::expression::Col;
use super::query::columns_of;
use super::schema::{Column, Table, Ty};

impl Gen<'_> {
    /// INSERT, UPDATE, DELETE or MERGE of a random table.
    pub fn change(&mut self) -> String {
        let table = self.random.pick(&self.schema.tables).clone();
        match self.random.below(20) {
            0..=5 => self.insert_values(&table),
            6..=8 => self.insert_select(&table),
            9..=13 => self.update(&table),
            14..=16 => self.delete(&table),
            17 | 18 => self.merge(&table),
            _ => self.modifying_cte(&table),
        }
    }

    fn returning(&mut self, table: &Table, alias: &str, percent: usize) -> String {
        if !self.random.chance(percent) {
            return String::new();
        }
        if self.random.chance(20) {
            return " RETURNING *".into();
        }
        let scope = columns_of(table, alias);
        let outputs: Vec<String> = self.some_types(2).into_iter().map(|t| self.expression(t, &scope, 1)).collect();
        format!(" RETURNING {}.{}, {}", alias, table.columns[0].name, outputs.join(", "))
    }

    /// Columns that an INSERT names: the first, and most others.
    fn some_columns(&mut self, table: &Table) -> Vec<Column> {
        let writable = table.writable();
        let mut columns = Vec::new();
        for i in writable {
            let must = table.unique.as_ref().is_some_and(|u| u.contains(&i)) || table.columns[i].not_null;
            if if i == 0 { self.random.chance(97) } else { must || self.random.chance(75) } {
                columns.push(table.columns[i].clone());
            }
        }
        if columns.is_empty() {
            columns.push(table.columns[0].clone());
        }
        if self.random.chance(20) {
            columns.reverse();
        }
        columns
    }

    fn insert_values(&mut self, table: &Table) -> String {
        let columns = self.some_columns(table);
        let names: Vec<&str> = columns.iter().map(|c| &*c.name).collect();
        let rows: Vec<String> = (0..if self.random.chance(50) { 1 } else { self.random.between(2, 6) })
            .map(|_| {
                let values: Vec<String> = columns
                    .iter()
                    .map(|c| match self.random.below(20) {
                        0 if !c.not_null => "NULL".to_owned(),
                        1 => "DEFAULT".to_owned(),
                        2 => self.expression(c.ty, &[], 2),
                        3..=7 => self.literal(c.ty),
                        _ => format!("'{}'", c.ty.value(self.random)),
                    })
                    .collect();
                format!("({})", values.join(", "))
            })
            .collect();
        let conflict = self.on_conflict(table);
        let returning = self.returning(table, &table.name, 30);
        format!("INSERT INTO {} ({}) VALUES {}{conflict}{returning}", table.name, names.join(", "), rows.join(", "))
    }

    fn on_conflict(&mut self, table: &Table) -> String {
        let Some(unique) = &table.unique else { return String::new() };
        let target: Vec<&str> = unique.iter().map(|&i| &*table.columns[i].name).collect();
        let others: Vec<&Column> = (0..table.columns.len())
            .filter(|i| !unique.contains(i) && table.columns[*i].generated.is_none())
            .map(|i| &table.columns[i])
            .collect();
        match self.random.below(5) {
            0 | 1 => " ON CONFLICT DO NOTHING".into(),
            2 | 3 if !others.is_empty() => {
                let column = (*self.random.pick(&others)).clone();
                let scope = columns_of(table, &table.name);
                let value = if self.random.chance(50) {
                    format!("excluded.{}", column.name)
                } else {
                    self.expression(column.ty, &scope, 1)
                };
                let filter = if self.random.chance(25) {
                    format!(" WHERE {}", self.predicate(&scope, 0))
                } else {
                    String::new()
                };
                format!(" ON CONFLICT ({}) DO UPDATE SET {} = {value}{filter}", target.join(", "), column.name)
            }
            _ => String::new(),
        }
    }

    fn insert_select(&mut self, table: &Table) -> String {
        let columns = self.some_columns(table);
        let names: Vec<&str> = columns.iter().map(|c| &*c.name).collect();
        let types: Vec<Ty> = columns.iter().map(|c| c.ty).collect();
        let query = self.inner_query(&types, &[], 2);
        // Which of several rows with one key stays would be a matter of order.
        let conflict = if table.unique.as_ref().is_some_and(|u| u.len() == columns.len()) && self.random.chance(60) {
            " ON CONFLICT DO NOTHING"
        } else {
            ""
        };
        let returning = self.returning(table, &table.name, 20);
        format!("INSERT INTO {} ({}) {query}{conflict}{returning}", table.name, names.join(", "))
    }

    /// SET, of what may be set by any expression, and of keys by constants.
    fn assignments(&mut self, table: &Table, scope: &[Col]) -> String {
        let writable = table.writable();
        let unique = table.unique.clone().unwrap_or_default();
        let mut parts = Vec::new();
        for i in writable {
            let column = &table.columns[i];
            let percent = if i == 0 { 12 } else { 45 };
            if !self.random.chance(percent) {
                continue;
            }
            let value = if unique.contains(&i) {
                column.ty.literal(self.random)
            } else if column.default.is_some() && self.random.chance(10) {
                "DEFAULT".to_owned()
            } else {
                self.expression(column.ty, scope, 2)
            };
            parts.push(format!("{} = {value}", column.name));
        }
        if parts.is_empty() {
            let column = table.columns[table.writable().last().copied().unwrap_or(0)].clone();
            let value =
                if unique.is_empty() { self.expression(column.ty, scope, 2) } else { column.ty.literal(self.random) };
            parts.push(format!("{} = {value}", column.name));
        }
        parts.join(", ")
    }

    fn update(&mut self, table: &Table) -> String {
        let alias = if self.random.chance(70) { "u".to_owned() } else { table.name.clone() };
        let shown = if alias == table.name { String::new() } else { format!(" {alias}") };
        let scope = columns_of(table, &alias);
        if self.random.chance(35) {
            // Each row meets one row of the source at most.
            let (from, columns) = self.clause_from(1, &[], 2);
            let (_, key) = self.comparable(&scope[..1], &columns);
            let ty = self.random_type();
            let value = self.aggregate(ty, &columns, 1).unwrap_or_else(|| "max(1)".into());
            let ty = if value == "max(1)" { Ty::Int } else { ty };
            let mut seen = scope.clone();
            seen.push(Col { sql: "s.v".into(), ty });
            let set = self.assignments(table, &seen);
            let filter =
                if self.random.chance(40) { format!(" AND {}", self.predicate(&seen, 1)) } else { String::new() };
            let returning = self.returning(table, &alias, 20);
            return format!(
                "UPDATE {}{shown} SET {set} FROM (SELECT {key} AS k, {value} AS v FROM {from} GROUP BY {key}) s \
                 WHERE s.k = {}{filter}{returning}",
                table.name, scope[0].sql
            );
        }
        let mut set = self.assignments(table, &scope);
        let free: Vec<Column> = (1..table.columns.len())
            .filter(|i| table.columns[*i].generated.is_none() && !table.unique.iter().flatten().any(|u| u == i))
            .map(|i| table.columns[i].clone())
            .collect();
        if free.len() > 1 && self.random.chance(15) {
            // Several columns from one row.
            let (a, b) = (&free[0], &free[1]);
            let (from, columns) = self.clause_from(1, &scope, 1);
            let on = self.comparable(&columns, &scope);
            if let (Some(x), Some(y)) = (self.aggregate(a.ty, &columns, 0), self.aggregate(b.ty, &columns, 0)) {
                set = format!("({}, {}) = (SELECT {x}, {y} FROM {from} WHERE {} = {})", a.name, b.name, on.0, on.1);
            }
        }
        let filter =
            if self.random.chance(92) { format!(" WHERE {}", self.predicate(&scope, 2)) } else { String::new() };
        let returning = self.returning(table, &alias, 25);
        format!("UPDATE {}{shown} SET {set}{filter}{returning}", table.name)
    }

    fn delete(&mut self, table: &Table) -> String {
        let alias = if self.random.chance(70) { "u".to_owned() } else { table.name.clone() };
        let shown = if alias == table.name { String::new() } else { format!(" {alias}") };
        let scope = columns_of(table, &alias);
        if self.random.chance(35) {
            let (from, columns) = self.clause_from(1, &[], 2);
            let (a, b) = self.comparable(&scope, &columns);
            let all = [&scope[..], &columns].concat();
            let filter = self.predicate(&all, 1);
            // Which of several rows of the other tables a row was joined to is nobody's promise.
            let returning = self.returning(table, &alias, 20).replace("RETURNING *", &format!("RETURNING {alias}.*"));
            return format!("DELETE FROM {}{shown} USING {from} WHERE {a} = {b} AND {filter}{returning}", table.name);
        }
        // Mostly few rows: something must be left for the statements that follow.
        let filter = format!("{} AND {}", self.predicate(&scope, 0), self.predicate(&scope, 2));
        let returning = self.returning(table, &alias, 25);
        format!("DELETE FROM {}{shown} WHERE {filter}{returning}", table.name)
    }

    fn merge(&mut self, table: &Table) -> String {
        let scope = columns_of(table, "u");
        let columns = self.some_columns(table);
        let (from, seen) = self.clause_from(1, &[], 2);
        // One source row for each key, so that no target row is met twice.
        let key = self.column(table.columns[0].ty, &seen).unwrap_or_else(|| "NULL".into());
        let mut source = vec![format!("{key} AS k")];
        let mut values = Vec::new();
        let mut both = scope.clone();
        for (i, column) in columns.iter().enumerate() {
            if column.name == "k" {
                values.push("s.k".to_owned());
                continue;
            }
            match self.aggregate(column.ty, &seen, 1) {
                Some(call) => {
                    source.push(format!("{call} AS v{i}"));
                    values.push(format!("s.v{i}"));
                    both.push(Col { sql: format!("s.v{i}"), ty: column.ty });
                }
                None => values.push(column.ty.literal(self.random)),
            }
        }
        let names: Vec<&str> = columns.iter().map(|c| &*c.name).collect();
        let mut clauses = String::new();
        if self.random.chance(40) {
            clauses += &format!(" WHEN MATCHED AND {} THEN DELETE", self.predicate(&scope, 0));
        }
        if self.random.chance(70) {
            let fixed = table.unique.clone().unwrap_or_default();
            let free: Vec<Column> = (1..table.columns.len())
                .filter(|i| !fixed.contains(i) && table.columns[*i].generated.is_none())
                .map(|i| table.columns[i].clone())
                .collect();
            if !free.is_empty() {
                let column = self.random.pick(&free).clone();
                clauses += &format!(
                    " WHEN MATCHED THEN UPDATE SET {} = {}",
                    column.name,
                    self.expression(column.ty, &both, 1)
                );
            }
        }
        if clauses.is_empty() || self.random.chance(60) {
            clauses += &format!(" WHEN NOT MATCHED THEN INSERT ({}) VALUES ({})", names.join(", "), values.join(", "));
        }
        let group = if key == "NULL" { String::new() } else { format!(" GROUP BY {key}") };
        let key_type = table.columns[0].ty.sql();
        let source = source.join(", ").replacen("NULL AS k", &format!("NULL::{key_type} AS k"), 1);
        format!("MERGE INTO {} u USING (SELECT {source} FROM {from}{group}) s ON s.k = u.k{clauses}", table.name)
    }

    fn modifying_cte(&mut self, table: &Table) -> String {
        let scope = columns_of(table, &table.name);
        let filter = self.predicate(&scope, 0);
        let inner = match self.random.below(3) {
            0 => format!("DELETE FROM {} WHERE {filter} RETURNING k, a", table.name),
            1 if table.unique.is_none() => format!("UPDATE {} SET a = a + 1 WHERE {filter} RETURNING k, a", table.name),
            _ => {
                let (k, a) = (table.columns[0].ty.literal(self.random), Ty::Int.literal(self.random));
                format!("INSERT INTO {} (k, a) VALUES ({k}, {a}) RETURNING k, a", table.name)
            }
        };
        let outer = match self.random.below(3) {
            0 => "SELECT count(*), min(a) FROM w".to_owned(),
            1 => "SELECT k, a FROM w".to_owned(),
            _ => {
                let other = self.random.pick(&self.schema.tables).clone();
                format!("SELECT w.a, o.a FROM w JOIN {} o ON o.a = w.a", other.name)
            }
        };
        format!("WITH w AS ({inner}) {outer}")
    }
}
