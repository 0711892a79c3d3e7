//! A statement by every way in which clients send one, often enough to take the shorter ways that there are.

use crate::client::{Answer, Client, Reply, show_row};
use crate::{Result, Target};

/// What of a reply is compared, and which values there are.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ways {
    /// Rows come in an order.
    pub ordered: bool,
    /// Details of errors and where they came from, too.
    pub contexts: bool,
    /// The number behind which those in texts begin: `$1` as a parameter begins with 1.
    pub literals_from: usize,
}

impl Ways {
    /// What is the same wherever rows come from.
    pub fn told(&self, reply: &Reply) -> String {
        let answer = |answer: &Answer| {
            let mut rows: Vec<String> = answer.rows.iter().map(show_row).collect();
            if !self.ordered {
                rows.sort();
            }
            let columns: Vec<&str> = answer.columns.iter().flatten().map(|c| c.name.as_str()).collect();
            let error = answer.error.as_ref().map(|error| {
                let more = if self.contexts { [error.get('D'), error.get('W')] } else { [""; 2] };
                format!("{} {} {}", error.sqlstate(), error.message(), more.join(" "))
            });
            format!("{:?} {columns:?} {rows:?} {error:?}", answer.tag)
        };
        let answers: Vec<String> = reply.answers.iter().map(answer).collect();
        format!("{} {}", answers.join("; "), reply.status as char)
    }

    /// By name, without one, as text, and in blocks that are rolled back and committed. `$1`: a number, another one
    /// each time.
    pub fn every(&self, client: &mut Client, number: usize, statement: &str) -> Result<Vec<String>> {
        let mut said = Vec::new();
        let types = &[23][..usize::from(statement.contains("$1"))];
        let name = format!("s{number}");
        let made = client.prepare(&name, statement, types)?;
        said.push(format!("{:?}", made.error().map(|error| error.sqlstate().to_owned())));
        let mut value = 0;
        let mut next = || {
            value += 1;
            vec![Some(value.to_string().into_bytes()); types.len()]
        };
        let mut literal = self.literals_from;
        let mut text = || {
            literal += 1;
            statement.replace("$1", &literal.to_string())
        };
        for _ in 0..4 {
            said.push(self.told(&client.execute(&name, &next(), 0, None)?));
        }
        for _ in 0..3 {
            said.push(self.told(&client.extended(statement, types, &next(), None)?));
            said.push(self.told(&client.simple(&text(), None)?));
        }
        for ends in ["ROLLBACK", "COMMIT"] {
            client.run("BEGIN")?;
            client.run("SAVEPOINT a")?;
            said.push(self.told(&client.execute(&name, &next(), 0, None)?));
            said.push(self.told(&client.simple("ROLLBACK TO a", None)?));
            said.push(self.told(&client.execute(&name, &next(), 0, None)?));
            said.push(self.told(&client.simple(&text(), None)?));
            said.push(self.told(&client.simple(ends, None)?));
        }
        client.run("BEGIN")?;
        client.run("SET LOCAL app.tenant = 'local'")?;
        said.push(self.told(&client.execute(&name, &next(), 0, None)?));
        said.push(self.told(&client.simple("COMMIT", None)?));
        said.push(self.told(&client.execute(&name, &next(), 0, None)?));
        Ok(said)
    }

    /// All of the statements in a session of its own; what each says, and what is there afterwards by `left`.
    pub fn all(&self, target: &Target, before: &[&str], statements: &[&str], left: &[&str]) -> Result<Vec<Said>> {
        let mut client = Client::connect(target)?;
        for statement in before {
            client.run(statement)?;
        }
        let mut all = Vec::new();
        for (number, statement) in statements.iter().enumerate() {
            all.push(((*statement).to_owned(), self.every(&mut client, number, statement)?));
        }
        for statement in left {
            all.push(((*statement).to_owned(), vec![self.told(&client.simple(statement, None)?)]));
        }
        Ok(all)
    }
}

/// A statement, and what was said at each step.
pub type Said = (String, Vec<String>);

/// Both have said the same.
pub fn compare(what: &str, plain: &[String], cluster: &[String]) {
    for (at, (plain, cluster)) in plain.iter().zip(cluster).enumerate() {
        assert_eq!(cluster, plain, "{what}, step {at}");
    }
    assert_eq!(plain.len(), cluster.len(), "{what}");
}

/// The same of all statements.
pub fn compare_all(plain: &[Said], cluster: &[Said]) {
    for (plain, cluster) in plain.iter().zip(cluster) {
        compare(&plain.0, &plain.1, &cluster.1);
    }
    assert_eq!(plain.len(), cluster.len());
}
