//! A plan as text: stable, one fact per line, for golden tests, logs and EXPLAIN.

use std::fmt::{self, Display, Formatter};

use pgherd_sql::Splice;

use crate::plan::*;

impl Display for KeyValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            KeyValue::Literal(text) => write!(f, "'{text}'"),
            KeyValue::Null => f.write_str("NULL"),
            KeyValue::Param(n) => write!(f, "${n}"),
            KeyValue::Each(n) => write!(f, "each of ${n}"),
        }
    }
}

fn keys(list: &[KeyValue]) -> String {
    list.iter().map(|k| k.to_string()).collect::<Vec<_>>().join(", ")
}

/// Tables in a splice are shown in braces.
fn marked(splice: &Splice) -> String {
    splice
        .parts
        .iter()
        .map(|part| match part {
            pgherd_sql::Part::Text { text, .. } => text.clone(),
            pgherd_sql::Part::Table { as_written, .. } => format!("{{{as_written}}}"),
            pgherd_sql::Part::Beside { .. } => "{copy}".to_owned(),
        })
        .collect()
}

impl Tier {
    /// The tier's name.
    pub fn name(&self) -> &'static str {
        match self {
            Tier::Coordinator { .. } => "coordinator",
            Tier::Federate { .. } => "federate",
            Tier::Route(_) => "route",
            Tier::Scatter(_) => "scatter",
            Tier::Stage(_) => "stage",
            Tier::InsertRows(_) => "insert rows",
            Tier::InsertSelect(_) => "insert select",
            Tier::ReplicateWrite { .. } => "replicate write",
            Tier::ReplicateRows { .. } => "replicate rows",
            Tier::Refuse(_) => "refuse",
        }
    }
}

fn write_scatter(f: &mut Formatter<'_>, scatter: &Scatter) -> fmt::Result {
    if let Some(list) = &scatter.keys {
        writeln!(f, "keys: {}", keys(&list.values))?;
    }
    writeln!(f, "sql: {}", marked(&scatter.sql))?;
    if let Combine::Merge(merge) = &scatter.combine {
        let asked = if merge.collated { " (with the collations that columns have)" } else { "" };
        writeln!(f, "merge: {}{asked}", merge.sql)?;
    }
    Ok(())
}

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "tier: {}", self.tier.name())?;
        let scatter = match &self.tier {
            Tier::Scatter(scatter) => Some(scatter),
            Tier::Stage(Stage { rest: Rest::Scatter(scatter), .. }) => Some(scatter),
            _ => None,
        };
        if let Some(scatter) = scatter {
            match &scatter.combine {
                Combine::Concatenate => write!(f, ", concatenate")?,
                Combine::ConcatenateLimit(n) => write!(f, ", concatenate {n}")?,
                Combine::Merge(_) => write!(f, ", merge")?,
            }
        }
        if let Tier::Coordinator { in_block: true, .. } = &self.tier {
            write!(f, ", in block")?;
        }
        if let Tier::Coordinator { rides: true, .. } = &self.tier {
            write!(f, ", rides")?;
        }
        writeln!(f)?;
        writeln!(f, "reason: {}", self.reason)?;
        match &self.tier {
            Tier::Coordinator { sql, .. } | Tier::Federate { sql, .. } => writeln!(f, "sql: {}", marked(sql))?,
            Tier::Route(route) => {
                writeln!(f, "key: {} = {}", route.table.name, route.key)?;
                if route.parent_only {
                    writeln!(f, "by the parent's name")?;
                }
                writeln!(f, "sql: {}", marked(&route.sql))?;
            }
            Tier::Scatter(scatter) => write_scatter(f, scatter)?,
            Tier::Stage(stage) => {
                for (number, part) in (1..).zip(&stage.parts) {
                    match &part.ship {
                        Ship::Everywhere => write!(f, "part {number}")?,
                        Ship::Split { column, table } => {
                            write!(f, "part {number}, split by column {} like {}", column + 1, table.name)?;
                        }
                        Ship::SplitByLast { table, stored } => {
                            let kept = if *stored { ", which is inserted" } else { "" };
                            write!(f, "part {number}, split by its last column like {}{kept}", table.name)?;
                        }
                        Ship::ByPlace { .. } => write!(f, "part {number}, to the rows it names")?,
                    }
                    writeln!(f, ": {}", part.sql)?;
                }
                match &stage.rest {
                    Rest::Scatter(scatter) => write_scatter(f, scatter)?,
                    Rest::Coordinator(sql) => writeln!(f, "coordinator: {}", marked(sql))?,
                    Rest::Steps(steps) => {
                        for (number, step) in (1..).zip(steps) {
                            writeln!(f, "step {number}: {}", step.text())?;
                        }
                    }
                }
            }
            Tier::InsertRows(insert) => {
                writeln!(f, "head: {}", marked(&insert.head))?;
                for row in &insert.rows {
                    match &row.key {
                        RowKey::Value(value) => write!(f, "row {value}:")?,
                        RowKey::Computed { field } => write!(f, "row of field {}:", field + 1)?,
                    }
                    for (at, field) in row.fields.iter().enumerate() {
                        let comma = if at == 0 { "" } else { "," };
                        match field {
                            Field::Text(splice) => write!(f, "{comma} {}", marked(splice))?,
                            Field::Evaluate { sql, type_name } => write!(f, "{comma} [{sql}]::{type_name}")?,
                        }
                    }
                    writeln!(f)?;
                }
                if !insert.tail.parts.is_empty() {
                    writeln!(f, "tail: {}", marked(&insert.tail))?;
                }
            }
            Tier::InsertSelect(insert) => {
                let open = if insert.width_known { "" } else { " …" };
                let overriding = if insert.identity_is_own { "OVERRIDING USER VALUE" } else { "" };
                writeln!(f, "into: {} ({}{open}) {overriding}", insert.table.name, insert.columns.join(", "))?;
                writeln!(f, "{}: {}", if insert.moves { "moved" } else { "select" }, insert.select)?;
                for (column, sql) in &insert.defaults {
                    writeln!(f, "default: {column} = {sql}")?;
                }
                if let Some(tail) = &insert.tail {
                    writeln!(f, "tail: {}", marked(tail))?;
                }
            }
            Tier::ReplicateWrite { sql, .. } | Tier::ReplicateRows { sql, .. } => writeln!(f, "sql: {}", marked(sql))?,
            Tier::Refuse(refusal) => {
                writeln!(f, "error {}: {}", refusal.sqlstate, refusal.message)?;
                if let Some(detail) = &refusal.detail {
                    writeln!(f, "detail: {detail}")?;
                }
                if let Some(hint) = &refusal.hint {
                    writeln!(f, "hint: {hint}")?;
                }
            }
        }
        if !self.given.is_empty() {
            let given: Vec<String> = self.given.iter().map(|given| format!("{given:?}")).collect();
            writeln!(f, "given: {}", given.join(", "))?;
        }
        Ok(())
    }
}
