//! A round: a schema, its data, and the statements that follow.

use super::random::Random;
use super::schema::{self, Column, Function, Kind, Schema, Table, Ty};
use super::{Gen, Step, Way};

#[derive(Debug, Clone)]
pub struct Round {
    pub seed: u64,
    /// Makes the tables and fills them.
    pub setup: Vec<Step>,
    pub steps: Vec<Step>,
}

/// The round of a seed, with about so many statements.
pub fn generate(seed: u64, statements: usize) -> Round {
    let mut random = Random::new(seed);
    let (mut schema, mut setup) = schema::generate(&mut random);
    for number in 0..random.below(3) {
        setup.push(function(&mut random, &mut schema, number));
    }
    for number in 0..random.below(3) {
        setup.push(view(&mut random, &mut schema, number));
    }
    if random.chance(12) {
        setup.extend(trigger(&mut random, &schema));
    }
    let mut steps = Vec::new();
    while steps.len() < statements {
        match random.below(20) {
            0..=10 => steps.push(read(&mut random, &schema)),
            11..=14 => steps.push(write(&mut random, &schema)),
            15..=17 => block(&mut random, &schema, &mut steps),
            18 => cursor(&mut random, &schema, &mut steps),
            _ => definition(&mut random, &mut schema, &mut steps),
        }
    }
    Round { seed, setup, steps }
}

fn way(random: &mut Random, parameters: bool, times: usize) -> Way {
    match random.below(3) {
        0 if !parameters => Way::Simple,
        0 | 1 => Way::Extended,
        _ => Way::Prepared { times, format: i16::from(random.chance(25)) },
    }
}

fn read(random: &mut Random, schema: &Schema) -> Step {
    let parameters = random.chance(35);
    let mut generator = Gen::new(random, schema, parameters);
    let (sql, ordered) = generator.top_query();
    let parameters = generator.parameters;
    let times = random.between(1, 7);
    let way = way(random, !parameters.is_empty(), times);
    Step { way, parameters, ordered, only_reads: true, ..Step::sql(&sql) }
}

fn write(random: &mut Random, schema: &Schema) -> Step {
    let parameters = random.chance(35);
    let mut generator = Gen::new(random, schema, parameters);
    let sql = generator.change();
    let parameters = generator.parameters;
    let way = way(random, !parameters.is_empty(), 1);
    Step { way, parameters, ..Step::sql(&sql) }
}

/// BEGIN to COMMIT or ROLLBACK.
fn block(random: &mut Random, schema: &Schema, steps: &mut Vec<Step>) {
    steps.push(Step::sql(["BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ"][random.below(3)]));
    let mut open = Vec::new();
    for number in 0..random.between(2, 7) {
        match random.below(10) {
            0..=2 => steps.push(read(random, schema)),
            3..=6 => steps.push(write(random, schema)),
            7 => {
                let name = format!("s{number}");
                steps.push(Step::sql(&format!("SAVEPOINT {name}")));
                open.push(name);
            }
            _ if open.is_empty() => steps.push(write(random, schema)),
            8 => {
                let at = random.below(open.len());
                open.truncate(at + 1);
                steps.push(Step::sql(&format!("ROLLBACK TO SAVEPOINT {}", open[at])));
            }
            _ => {
                let at = random.below(open.len());
                steps.push(Step::sql(&format!("RELEASE SAVEPOINT {}", open[at])));
                open.truncate(at);
            }
        }
    }
    if random.chance(8) {
        let table = random.pick(&schema.tables);
        let cascade = if table.referenced { " CASCADE" } else { "" };
        steps.push(Step::sql(&format!("TRUNCATE {}{cascade}", table.name)));
    }
    steps.push(Step::sql(if random.chance(70) { "COMMIT" } else { "ROLLBACK" }));
}

/// DECLARE, a few FETCHes, CLOSE. Only what is ordered is fetched in pieces.
fn cursor(random: &mut Random, schema: &Schema, steps: &mut Vec<Step>) {
    let (sql, ordered) = Gen::new(random, schema, false).top_query();
    steps.push(Step::sql("BEGIN"));
    steps.push(Step::sql(&format!("DECLARE cur CURSOR FOR {sql}")));
    if ordered {
        for _ in 0..random.between(1, 3) {
            let step = Step::sql(&format!("FETCH {} FROM cur", random.between(1, 4)));
            steps.push(Step { ordered, ..step });
        }
        steps.push(write(random, schema));
    }
    steps.push(Step { ordered, ..Step::sql("FETCH ALL FROM cur") });
    steps.push(Step::sql("CLOSE cur"));
    steps.push(Step::sql("COMMIT"));
}

/// DDL that succeeds, so that the schema that is known here stays true.
fn definition(random: &mut Random, schema: &mut Schema, steps: &mut Vec<Step>) {
    let index = random.below(schema.tables.len());
    let new_type = schema.other_type(random);
    let literal = new_type.literal(random);
    // Views hold on to columns and tables by themselves; functions do not.
    let free = schema.views.is_empty() && schema.functions.is_empty();
    let count = schema.tables.len();
    let table = &mut schema.tables[index];
    let name = table.name.clone();
    match random.below(6) {
        0 | 1 if table.columns.len() < 7 => {
            let column = format!("e{}", table.columns.len());
            if table.columns.iter().any(|c| c.name == column) {
                return;
            }
            let with_default = random.chance(50);
            let default = if with_default { format!(" DEFAULT {literal}") } else { String::new() };
            steps.push(Step::sql(&format!("ALTER TABLE {name} ADD COLUMN {column} {}{default}", new_type.sql())));
            table.columns.push(Column {
                name: column,
                ty: new_type,
                not_null: false,
                generated: None,
                default: with_default.then_some(literal),
            });
        }
        2 if free && table.columns.len() > 3 => {
            let last = table.columns.len() - 1;
            let column = &table.columns[last];
            if column.generated.is_some() || table.unique.as_ref().is_some_and(|u| u.contains(&last)) {
                return;
            }
            steps.push(Step::sql(&format!("ALTER TABLE {name} DROP COLUMN {}", column.name)));
            table.columns.pop();
        }
        3 if free => {
            let new = format!("n{}_{count}", name.trim_start_matches('n'));
            steps.push(Step::sql(&format!("ALTER TABLE {name} RENAME TO {new}")));
            table.name = new;
        }
        4 if table.columns.len() > 2 => {
            let at = table.columns.len() - 1;
            if matches!(table.columns[at].ty, Ty::Jsonb | Ty::IntArray) {
                return;
            }
            steps.push(Step::sql(&format!("CREATE INDEX ON {name} ({}, a)", table.columns[at].name)));
        }
        5 if random.chance(30) => {
            let cascade = if table.referenced { " CASCADE" } else { "" };
            steps.push(Step::sql(&format!("TRUNCATE {name}{cascade}")));
        }
        _ => {}
    }
}

fn view(random: &mut Random, schema: &mut Schema, number: usize) -> Step {
    let name = format!("v{number}");
    let mut generator = Gen::new(random, schema, false);
    let types = generator.some_types(3);
    let (body, _) = generator.query_body(&types, &[], 1);
    let names: Vec<String> = (1..=types.len()).map(|i| format!("c{i}")).collect();
    let columns = names
        .iter()
        .zip(types)
        .map(|(name, ty)| Column { name: name.clone(), ty, not_null: false, generated: None, default: None })
        .collect();
    let sql = format!("CREATE VIEW {name} ({}) AS {body}", names.join(", "));
    schema.views.push(Table { name, kind: Kind::Local, columns, unique: None, referenced: false });
    Step::sql(&sql)
}

/// A row trigger that changes what is written, or one that notes it in a local table.
fn trigger(random: &mut Random, schema: &Schema) -> Vec<Step> {
    let table = random.pick(&schema.tables);
    let writable = table.unique.as_ref().is_none_or(|u| !u.contains(&1));
    if !writable {
        return Vec::new();
    }
    let when = *random.pick(&["INSERT", "UPDATE", "INSERT OR UPDATE"]);
    vec![
        Step::sql(
            "CREATE FUNCTION tf() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.a := coalesce(NEW.a, 0) + 1; RETURN \
             NEW; END $$",
        ),
        Step::sql(&format!("CREATE TRIGGER tr BEFORE {when} ON {} FOR EACH ROW EXECUTE FUNCTION tf()", table.name)),
    ]
}

/// A function of one argument: arithmetic, or a question to a table.
fn function(random: &mut Random, schema: &mut Schema, number: usize) -> Step {
    let name = format!("f{number}");
    let table = random.pick(&schema.tables).clone();
    let (argument, result, body, volatility) = match random.below(5) {
        0 => (Ty::Int, Ty::Int, "SELECT x + 1".to_owned(), "IMMUTABLE"),
        1 => (Ty::Text, Ty::Text, "SELECT coalesce(x, '?') || '!'".to_owned(), "IMMUTABLE"),
        2 => (Ty::Int, Ty::BigInt, format!("SELECT count(*) FROM {} WHERE a = x", table.name), "STABLE"),
        3 => (table.columns[0].ty, Ty::Int, format!("SELECT max(a) FROM {} WHERE k = x", table.name), "STABLE"),
        _ => {
            schema.functions.push(Function { name: name.clone(), argument: Ty::Int, result: Ty::Int });
            return Step::sql(&format!(
                "CREATE FUNCTION {name}(x int) RETURNS int LANGUAGE plpgsql STABLE AS $$ DECLARE n int; BEGIN \
                 SELECT count(*) INTO n FROM {} WHERE a > x; RETURN n; END $$",
                table.name
            ));
        }
    };
    schema.functions.push(Function { name: name.clone(), argument, result });
    let (argument, result) = (argument.sql().replace("(12,2)", ""), result.sql().replace("(12,2)", ""));
    Step::sql(&format!(
        "CREATE FUNCTION {name}(x {argument}) RETURNS {result} LANGUAGE sql {volatility} AS $$ {body} $$"
    ))
}
