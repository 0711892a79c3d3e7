//! The same statements on one PostgreSQL and on a cluster.

use crate::client::{Client, show_fields, show_row};
use crate::{Cluster, Plain, Side};

/// One PostgreSQL, and the cluster that the tests of a program share. `program`: `pgherd`.
pub fn sides(program: &str) -> (Plain, [Side; 2]) {
    let cluster = Cluster::shared(program);
    let plain = Plain::like(&cluster.target).unwrap_or_else(|error| panic!("a plain server: {error}"));
    let sides = [plain.side("postgres"), cluster.side()];
    (plain, sides)
}

/// What a statement says: tags, rows, and of an error the fields that are the same whoever raises it.
pub fn told(client: &mut Client, sql: &str) -> String {
    let reply = client.simple(sql, None).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut all: Vec<String> = Vec::new();
    for answer in &reply.answers {
        all.extend(answer.rows.iter().map(show_row));
        all.push(answer.tag.clone().unwrap_or_default());
    }
    if let Some(error) = reply.error() {
        all.push("SMDCstn".chars().map(|field| error.get(field).to_owned() + "|").collect());
    }
    all.join("\n")
}

/// Runs the statements in a new database of each; those that begin with "only: " on the cluster alone, where they must
/// succeed. Both say the same: what that is.
pub fn same<'a>(plain: &Side, cluster: &Side, database: &str, statements: &[&'a str]) -> Vec<(&'a str, String)> {
    let [said, found] = [plain, cluster].map(|side| {
        let made = side.create_database(database, "").and_then(|_| side.connect(database));
        let mut client = made.unwrap_or_else(|error| panic!("database {database}: {error}"));
        let mut said = Vec::new();
        for statement in statements {
            match statement.strip_prefix("only: ") {
                Some(sql) if side.is_cluster => {
                    let reply = client.simple(sql, None).unwrap_or_else(|error| panic!("{sql}: {error}"));
                    assert!(reply.error().is_none(), "{sql}: {}", reply.error().map(show_fields).unwrap_or_default());
                }
                Some(_) => {}
                None => said.push((*statement, told(&mut client, statement))),
            }
        }
        said
    });
    for (plain, cluster) in said.iter().zip(&found) {
        assert_eq!(plain.1, cluster.1, "{}", plain.0);
    }
    said
}
