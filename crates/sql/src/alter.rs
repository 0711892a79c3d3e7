//! What the tree of ALTER TABLE does not keep as text: the expressions of `ALTER COLUMN … TYPE … USING …`, and where
//! `DETACH PARTITION … CONCURRENTLY` says so. And the foreign keys that it has PostgreSQL check.

use pg_query::NodeEnum;
use pg_query::protobuf::{self as pb, Token};

use crate::ast::Span;
use crate::kind::{Name, name_of};
use crate::lower::strings;
use crate::tokens::Tokens;

/// A foreign key that ALTER TABLE adds, whose rows PostgreSQL looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddedKey {
    /// None: a new column, of which every row gets the default.
    pub columns: Option<Vec<String>>,
    pub referenced: Name,
    /// Empty: those of the primary key.
    pub referenced_columns: Vec<String>,
}

/// The foreign keys for whose rows an ALTER TABLE looks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckedKeys {
    pub added: Vec<AddedKey>,
    /// The constraints that VALIDATE CONSTRAINT names.
    pub validated: Vec<String>,
}

/// Those of a statement. A new column without a default refers to nothing yet.
pub fn checked_keys(text: &str) -> CheckedKeys {
    let mut found = CheckedKeys::default();
    let Ok(parsed) = pg_query::parse(text, 0) else { return found };
    let statement = parsed.protobuf.stmts.into_iter().next().and_then(|raw| raw.stmt?.node);
    let Some(NodeEnum::AlterTableStmt(alter)) = statement else { return found };
    for command in alter.cmds {
        let Some(NodeEnum::AlterTableCmd(command)) = command.node else { continue };
        match command.def.and_then(|def| def.node) {
            Some(NodeEnum::Constraint(key)) if !key.skip_validation => {
                found.added.extend(added_key(&key, Some(strings(&key.fk_attrs))));
            }
            Some(NodeEnum::ColumnDef(column)) => {
                let constraints = column.constraints.iter().filter_map(|each| match &each.node {
                    Some(NodeEnum::Constraint(constraint)) => Some(constraint),
                    _ => None,
                });
                let is_null = constraints.clone().all(|c| {
                    use pb::ConstrType as C;
                    !matches!(c.contype(), C::ConstrDefault | C::ConstrIdentity | C::ConstrGenerated)
                });
                if !is_null {
                    found.added.extend(constraints.filter_map(|constraint| added_key(constraint, None)));
                }
            }
            _ if command.subtype == pb::AlterTableType::AtValidateConstraint as i32 => {
                found.validated.push(command.name);
            }
            _ => {}
        }
    }
    found
}

fn added_key(key: &pb::Constraint, columns: Option<Vec<String>>) -> Option<AddedKey> {
    let referenced = key.pktable.as_ref().filter(|_| key.contype() == pb::ConstrType::ConstrForeign)?;
    Some(AddedKey { columns, referenced: name_of(referenced), referenced_columns: strings(&key.pk_attrs) })
}

/// `(column, expression)` of each `ALTER [COLUMN] name [SET DATA] TYPE … USING expression` in a statement.
pub fn using_clauses(text: &str) -> Vec<(String, String)> {
    let Some(tokens) = Tokens::scan(text) else { return Vec::new() };
    let mut found = Vec::new();
    for (from, to) in tokens.split_commas(0, tokens.list.len()) {
        // The first subcommand has `ALTER TABLE name` before it: the last ALTER of the piece counts.
        let Some(alter) = (from..to).rev().find(|i| tokens.kind(*i) == Token::Alter) else { continue };
        let name_at = if tokens.kind(alter + 1) == Token::Column { alter + 2 } else { alter + 1 };
        let Some(using) = (alter..to).find(|i| tokens.kind(*i) == Token::Using) else { continue };
        let name = tokens.span(name_at, name_at + 1).of(text);
        let expression = tokens.span(using + 1, to).of(text).trim_end_matches(';').trim();
        if !expression.is_empty() {
            found.push((identifier(name), expression.to_owned()));
        }
    }
    found
}

/// The word CONCURRENTLY of DETACH PARTITION, CREATE INDEX or DROP INDEX: no name is written like it.
pub fn detached_concurrently(text: &str) -> Option<Span> {
    let tokens = Tokens::scan(text)?;
    let at = (0..tokens.list.len()).rev().find(|i| tokens.kind(*i) == Token::Concurrently)?;
    Some(tokens.span(at, at + 1))
}

/// The name that an identifier stands for.
pub(crate) fn identifier(written: &str) -> String {
    match written.strip_prefix('"').and_then(|w| w.strip_suffix('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => written.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::{AddedKey, checked_keys, detached_concurrently, using_clauses};
    use crate::kind::Name;

    #[test]
    fn the_keys_that_are_checked_are_found() {
        let text = "ALTER TABLE c ADD FOREIGN KEY (a, b) REFERENCES s.t (x, y), ADD COLUMN n int REFERENCES t, \
                    ADD COLUMN d int DEFAULT 1 REFERENCES t ON DELETE CASCADE, VALIDATE CONSTRAINT v, \
                    ADD CONSTRAINT u FOREIGN KEY (a) REFERENCES t NOT VALID, ADD CHECK (a > 0)";
        let name = |schema: Option<&str>| Name { schema: schema.map(str::to_owned), name: "t".to_owned() };
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let found = checked_keys(text);
        let first = AddedKey {
            columns: Some(words(&["a", "b"])),
            referenced: name(Some("s")),
            referenced_columns: words(&["x", "y"]),
        };
        let second = AddedKey { columns: None, referenced: name(None), referenced_columns: Vec::new() };
        assert_eq!(found.added, [first, second]);
        assert_eq!(found.validated, ["v"]);
    }

    #[test]
    fn concurrently_is_found() {
        let text = "ALTER TABLE t DETACH PARTITION s.\"concurrently\" CONCURRENTLY ;";
        assert_eq!(detached_concurrently(text).map(|span| span.of(text)), Some("CONCURRENTLY"));
        assert_eq!(detached_concurrently("ALTER TABLE t DETACH PARTITION p"), None);
    }

    #[test]
    fn the_expression_of_each_column_is_found() {
        let text = "ALTER TABLE s.t ALTER COLUMN a TYPE int USING (a::int + f(1, 2)), \
                    ALTER \"B c\" SET DATA TYPE text USING upper(x);";
        assert_eq!(
            using_clauses(text),
            [("a".to_owned(), "(a::int + f(1, 2))".to_owned()), ("B c".to_owned(), "upper(x)".to_owned())]
        );
        assert_eq!(using_clauses("ALTER TABLE t ADD COLUMN x int"), []);
    }
}
