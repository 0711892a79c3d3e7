//! Random tables and what is in them.

use super::Step;
use super::random::Random;

/// The types that generated columns and expressions have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ty {
    Bool,
    Int,
    BigInt,
    Numeric,
    Text,
    Uuid,
    Date,
    Timestamp,
    IntArray,
    Jsonb,
    Mood,
}

pub const TEXTS: [&str; 10] = ["", "a", "A", "b", "B", "ab", "ä", "x y", "o''c", "10"];
const MOODS: [&str; 3] = ["sad", "ok", "happy"];
/// Types of distribution columns.
const KEYS: [Ty; 8] = [Ty::Int, Ty::Int, Ty::BigInt, Ty::BigInt, Ty::Text, Ty::Uuid, Ty::Numeric, Ty::Date];
/// Types of other columns; Mood only where the schema has it.
const OTHERS: [Ty; 14] = [
    Ty::Int,
    Ty::Int,
    Ty::Int,
    Ty::BigInt,
    Ty::Text,
    Ty::Text,
    Ty::Numeric,
    Ty::Date,
    Ty::Bool,
    Ty::Uuid,
    Ty::Timestamp,
    Ty::IntArray,
    Ty::Jsonb,
    Ty::Mood,
];

impl Ty {
    /// As columns and casts have it. Numbers have one scale, so that equal ones are also shown alike.
    pub fn sql(self) -> &'static str {
        match self {
            Ty::Bool => "bool",
            Ty::Int => "int",
            Ty::BigInt => "bigint",
            Ty::Numeric => "numeric(12,2)",
            Ty::Text => "text",
            Ty::Uuid => "uuid",
            Ty::Date => "date",
            Ty::Timestamp => "timestamp",
            Ty::IntArray => "int[]",
            Ty::Jsonb => "jsonb",
            Ty::Mood => "mood",
        }
    }

    /// Numbers can be compared with each other whatever their types.
    pub fn is_number(self) -> bool {
        matches!(self, Ty::Int | Ty::BigInt | Ty::Numeric)
    }

    /// A value of the type, as the text that a parameter would have. From few, so that many are equal.
    pub fn value(self, random: &mut Random) -> String {
        let n = random.below(9);
        match self {
            Ty::Bool => ["true", "false"][n % 2].to_owned(),
            Ty::Int | Ty::BigInt if random.chance(5) => (n as i64 * 1_000_003 - 4_000_000).to_string(),
            Ty::Int | Ty::BigInt => (n as i64 - 1).to_string(),
            Ty::Numeric => ["0.00", "1.00", "2.00", "2.50", "3.00", "-1.00", "4.00", "5.25", "7.00"][n].to_owned(),
            Ty::Text => random.pick(&TEXTS).to_string(),
            Ty::Uuid => format!("00000000-0000-4000-8000-00000000000{n}"),
            Ty::Date => format!("2020-02-{:02}", 25 + n % 5),
            Ty::Timestamp => format!("2020-02-{:02} {:02}:00:00", 25 + n % 5, 3 * (n % 4)),
            Ty::IntArray => ["{}", "{1}", "{1,2}", "{NULL,3}", "{5,4,1}"][n % 5].to_owned(),
            Ty::Jsonb => ["{\"n\": 1}", "{\"n\": 2, \"a\": \"x\"}", "[1, 2]", "3", "null", "\"a\""][n % 6].to_owned(),
            Ty::Mood => MOODS[n % 3].to_owned(),
        }
    }

    /// A literal that has this type wherever it stands.
    pub fn literal(self, random: &mut Random) -> String {
        let value = self.value(random);
        match self {
            Ty::Bool => value,
            Ty::Int if !value.starts_with('-') => value,
            _ => format!("'{value}'::{}", self.sql()),
        }
    }
}

#[derive(Debug, Clone)]
pub struct Column {
    pub name: String,
    pub ty: Ty,
    pub not_null: bool,
    /// What it is computed from; nobody writes it.
    pub generated: Option<String>,
    pub default: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Local,
    Reference,
    /// By the first column. `group`: tables with the same number are colocated.
    Distributed {
        group: usize,
    },
}

#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    pub kind: Kind,
    pub columns: Vec<Column>,
    /// Columns of a unique constraint or primary key.
    pub unique: Option<Vec<usize>>,
    /// Other tables have foreign keys to it.
    pub referenced: bool,
}

impl Table {
    /// Columns that INSERT may name.
    pub fn writable(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|&i| self.columns[i].generated.is_none()).collect()
    }
}

/// The functions that a schema has, by what they take and give.
#[derive(Debug, Clone)]
pub struct Function {
    pub name: String,
    pub argument: Ty,
    pub result: Ty,
}

#[derive(Debug, Clone, Default)]
pub struct Schema {
    pub tables: Vec<Table>,
    pub views: Vec<Table>,
    pub functions: Vec<Function>,
    pub has_mood: bool,
}

impl Schema {
    pub fn other_type(&self, random: &mut Random) -> Ty {
        loop {
            let ty = *random.pick(&OTHERS);
            if ty != Ty::Mood || self.has_mood {
                return ty;
            }
        }
    }
}

/// A schema, and the statements that make it and fill it.
pub fn generate(random: &mut Random) -> (Schema, Vec<Step>) {
    let mut schema = Schema { has_mood: random.chance(25), ..Schema::default() };
    let mut steps = Vec::new();
    if schema.has_mood {
        steps.push(Step::sql("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')"));
    }
    let count = random.between(3, 6);
    // Key type, number of shards and first table of each group of colocated tables.
    let mut groups: Vec<(Ty, usize, String)> = Vec::new();
    let mut foreign_keys = Vec::new();
    for number in 1..=count {
        let name = format!("t{number}");
        let kind = match random.below(10) {
            0 | 1 => Kind::Reference,
            2 if number > 1 => Kind::Local,
            _ => Kind::Distributed {
                group: if random.chance(35) { groups.len() } else { random.below(groups.len() + 1) },
            },
        };
        let mut distribute = None;
        let key_type = match &kind {
            Kind::Distributed { group } => {
                if *group == groups.len() {
                    let (ty, shards) = (*random.pick(&KEYS), random.between(1, 8));
                    distribute = Some(format!(
                        "SELECT create_distributed_table('{name}', 'k', colocate_with => 'none', \
                         shard_count => {shards})"
                    ));
                    groups.push((ty, shards, name.clone()));
                    ty
                } else {
                    let (ty, _, first) = &groups[*group];
                    distribute =
                        Some(format!("SELECT create_distributed_table('{name}', 'k', colocate_with => '{first}')"));
                    *ty
                }
            }
            Kind::Reference => {
                distribute = Some(format!("SELECT create_reference_table('{name}')"));
                *random.pick(&KEYS)
            }
            Kind::Local => *random.pick(&KEYS),
        };
        let mut table = Table { name, kind, columns: Vec::new(), unique: None, referenced: false };
        let plain =
            |name: &str, ty| Column { name: name.to_owned(), ty, not_null: false, generated: None, default: None };
        table.columns.push(plain("k", key_type));
        for name in ["a", "b", "c", "d"].iter().take(random.between(1, 4)) {
            let mut column = plain(name, if *name == "a" { Ty::Int } else { schema.other_type(random) });
            if random.chance(12) {
                column.default = Some(column.ty.literal(random));
            }
            column.not_null = random.chance(8);
            table.columns.push(column);
        }
        if random.chance(15) {
            let mut column = plain("g", Ty::Int);
            column.generated = Some(["a + 1", "coalesce(a, 7)", "a % 3"][random.below(3)].to_owned());
            table.columns.push(column);
        }
        let mut constraint = String::new();
        match random.below(10) {
            0..=2 => {
                table.unique = Some(vec![0]);
                constraint = ", PRIMARY KEY (k)".into();
                table.columns[0].not_null = true;
            }
            3 => {
                table.unique = Some(vec![0, 1]);
                constraint = ", UNIQUE (k, a)".into();
            }
            4 => {
                table.unique = Some(vec![0, 1]);
                constraint = ", PRIMARY KEY (k, a)".into();
                table.columns[0].not_null = true;
                table.columns[1].not_null = true;
            }
            5 => {
                table.unique = Some(vec![0]);
                constraint = ", UNIQUE (k)".into();
            }
            _ => {}
        }
        let columns: Vec<String> = table
            .columns
            .iter()
            .map(|c| {
                let mut text = format!("{} {}", c.name, c.ty.sql());
                if let Some(from) = &c.generated {
                    text += &format!(" GENERATED ALWAYS AS ({from}) STORED");
                }
                if let Some(default) = &c.default {
                    text += &format!(" DEFAULT {default}");
                }
                if c.not_null {
                    text += " NOT NULL";
                }
                text
            })
            .collect();
        steps.push(Step::sql(&format!("CREATE TABLE {} ({}{constraint})", table.name, columns.join(", "))));
        let rows = rows(random, &table);
        // A table is distributed with its rows, or empty.
        if random.chance(30) {
            steps.extend(rows);
            steps.extend(distribute.iter().map(|sql| Step::on_cluster(sql)));
        } else {
            steps.extend(distribute.iter().map(|sql| Step::on_cluster(sql)));
            steps.extend(rows);
        }
        if random.chance(30) {
            foreign_keys.extend(foreign_key(random, &mut schema, &table));
        }
        if random.chance(25) {
            let column = &table.columns[random.below(table.columns.len())];
            if !matches!(column.ty, Ty::Jsonb | Ty::IntArray) {
                steps.push(Step::sql(&format!("CREATE INDEX ON {} ({})", table.name, column.name)));
            }
        }
        schema.tables.push(table);
    }
    steps.extend(foreign_keys);
    (schema, steps)
}

/// INSERT of no rows to thirty.
fn rows(random: &mut Random, table: &Table) -> Option<Step> {
    let count = if random.chance(8) { random.below(2) } else { random.between(4, 25) };
    if count == 0 {
        return None;
    }
    let columns = table.writable();
    let names: Vec<&str> = columns.iter().map(|&i| &*table.columns[i].name).collect();
    let rows: Vec<String> = (0..count)
        .map(|_| {
            let values: Vec<String> = columns
                .iter()
                .map(|&i| {
                    let column = &table.columns[i];
                    if !column.not_null && random.chance(12) {
                        return "NULL".to_owned();
                    }
                    format!("'{}'", column.ty.value(random))
                })
                .collect();
            format!("({})", values.join(", "))
        })
        .collect();
    let conflict = if table.unique.is_some() { " ON CONFLICT DO NOTHING" } else { "" };
    Some(Step::sql(&format!("INSERT INTO {} ({}) VALUES {}{conflict}", table.name, names.join(", "), rows.join(", "))))
}

/// A foreign key to an earlier table, where there is one that it may have.
fn foreign_key(random: &mut Random, schema: &mut Schema, table: &Table) -> Vec<Step> {
    let action = ["", "", " ON DELETE CASCADE", " ON DELETE SET NULL"][random.below(4)];
    let found = schema.tables.iter().position(|other| {
        other.unique.as_deref() == Some(&[0])
            && match (&table.kind, &other.kind) {
                (Kind::Distributed { group: a }, Kind::Distributed { group: b }) => a == b,
                (Kind::Distributed { .. } | Kind::Reference, Kind::Reference) => true,
                (Kind::Local, Kind::Local) => true,
                _ => false,
            }
    });
    let Some(found) = found else { return Vec::new() };
    let other = &mut schema.tables[found];
    let column = match (&table.kind, &other.kind) {
        (Kind::Distributed { .. }, Kind::Distributed { .. }) => Some(0),
        _ => (0..table.columns.len())
            .find(|&i| table.columns[i].ty == other.columns[0].ty && table.columns[i].generated.is_none()),
    };
    let Some(column) = column else { return Vec::new() };
    // A distribution column cannot be set to NULL by the way.
    let action = if action.contains("NULL") && (column == 0 || table.columns[column].not_null) { "" } else { action };
    other.referenced = true;
    let (name, column, to) = (&table.name, &table.columns[column].name, &other.name);
    vec![
        Step::sql(&format!("DELETE FROM {name} WHERE {column} NOT IN (SELECT k FROM {to} WHERE k IS NOT NULL)")),
        Step::sql(&format!("ALTER TABLE {name} ADD FOREIGN KEY ({column}) REFERENCES {to} (k){action}")),
    ]
}
