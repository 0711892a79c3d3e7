//! What the tree of ALTER TABLE does not keep as text: the expressions of `ALTER COLUMN … TYPE … USING …`, and where
//! `DETACH PARTITION … CONCURRENTLY` says so. And where extensions go, and which foreign keys are to be checked.

use pg_query::NodeEnum;
use pg_query::protobuf::{self as pb, Token};

use crate::ast::Span;
use crate::kind::{Name, name_of, quoted};
use crate::tokens::Tokens;

/// The schema that CREATE EXTENSION names, or ALTER EXTENSION … SET SCHEMA.
pub fn schema_of_extension(text: &str) -> Option<String> {
    let parsed = pg_query::parse(text, 0).ok()?;
    let create = match parsed.protobuf.stmts.into_iter().next()?.stmt?.node? {
        NodeEnum::CreateExtensionStmt(create) => create,
        NodeEnum::AlterObjectSchemaStmt(alter) => return Some(alter.newschema),
        _ => return None,
    };
    create.options.into_iter().find_map(|option| match option.node {
        Some(NodeEnum::DefElem(option)) if option.defname == "schema" => match option.arg?.node? {
            NodeEnum::String(name) => Some(name.sval),
            _ => None,
        },
        _ => None,
    })
}

/// The foreign keys for which an ALTER TABLE looks at the rows that there are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckedKeys {
    /// Those of ADD FOREIGN KEY: the referenced table, and where NOT VALID would keep the rows from being looked at.
    pub added: Vec<(Name, usize)>,
    /// Those of new columns, which may have a default.
    pub filled: Vec<NewColumnKey>,
    /// The constraints of VALIDATE CONSTRAINT.
    pub validated: Vec<String>,
    /// The columns that get another type, or are computed otherwise.
    pub retyped: Vec<String>,
}

/// REFERENCES of a column that ALTER TABLE adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewColumnKey {
    pub column: String,
    pub if_not_exists: bool,
    pub referenced: Name,
    /// Where it stands, and where the command ends.
    pub written: Span,
    pub end: usize,
    /// The same key as a command of its own, which goes there.
    pub alone: String,
}

pub fn checked_keys(text: &str) -> CheckedKeys {
    let mut found = CheckedKeys::default();
    let Ok(parsed) = pg_query::parse(text, 0) else { return found };
    let Some(tokens) = Tokens::scan(text) else { return found };
    let statement = parsed.protobuf.stmts.into_iter().next().and_then(|raw| raw.stmt?.node);
    let Some(NodeEnum::AlterTableStmt(alter)) = statement else { return found };
    let referenced = |key: &pb::Constraint| {
        let is_key = key.contype() == pb::ConstrType::ConstrForeign;
        key.pktable.as_ref().filter(|_| is_key).map(name_of)
    };
    for command in alter.cmds {
        let Some(NodeEnum::AlterTableCmd(command)) = command.node else { continue };
        match command.def.and_then(|def| def.node) {
            Some(NodeEnum::Constraint(key)) => {
                if let Some(name) = referenced(&key).filter(|_| !key.skip_validation) {
                    let end = tokens.end_of_piece(key.location.max(0) as usize);
                    found.added.extend(end.map(|end| (name, end)));
                }
            }
            Some(NodeEnum::ColumnDef(_)) if command.subtype == pb::AlterTableType::AtAlterColumnType as i32 => {
                found.retyped.push(command.name);
            }
            _ if command.subtype == pb::AlterTableType::AtSetExpression as i32 => found.retyped.push(command.name),
            Some(NodeEnum::ColumnDef(column)) => {
                let constraints = column.constraints.iter().filter_map(|each| match &each.node {
                    Some(NodeEnum::Constraint(constraint)) => Some(constraint),
                    _ => None,
                });
                let keys = constraints.clone().filter(|c| referenced(c).is_some());
                found.filled.extend(keys.filter_map(|key| {
                    use pb::ConstrType as C;
                    let start = key.location.max(0) as usize;
                    let end = tokens.end_of_piece(start)?;
                    let attribute = |c: &pb::Constraint| {
                        matches!(
                            c.contype(),
                            C::ConstrAttrDeferrable
                                | C::ConstrAttrNotDeferrable
                                | C::ConstrAttrDeferred
                                | C::ConstrAttrImmediate
                        )
                    };
                    let behind = constraints.clone().filter(|c| !attribute(c)).map(|c| c.location.max(0) as usize);
                    let collation = column.coll_clause.as_ref().map(|clause| clause.location.max(0) as usize);
                    let until = behind.chain(collation).filter(|at| *at > start).min().unwrap_or(end);
                    let at = tokens.from(start);
                    // CONSTRAINT and its name come first.
                    let named = if tokens.kind(at) == Token::Constraint { at + 2 } else { at };
                    let head = text.get(start..tokens.start_of(named))?;
                    let rest = text.get(tokens.start_of(named)..until)?;
                    let alone = format!(", ADD {head}FOREIGN KEY ({}) {}", quoted(&column.colname), rest.trim_end());
                    Some(NewColumnKey {
                        column: column.colname.clone(),
                        if_not_exists: command.missing_ok,
                        referenced: referenced(key)?,
                        written: Span { start, end: until },
                        end,
                        alone,
                    })
                }));
            }
            _ if command.subtype == pb::AlterTableType::AtValidateConstraint as i32 => {
                found.validated.push(command.name);
            }
            _ => {}
        }
    }
    found
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
    use super::{checked_keys, detached_concurrently, using_clauses};

    #[test]
    fn keys_that_are_checked_are_found() {
        let text = "ALTER TABLE c ADD FOREIGN KEY (a, b) REFERENCES s.t (x, y), ADD COLUMN n int REFERENCES t, \
                    ADD COLUMN d int DEFAULT 1 CONSTRAINT k REFERENCES u ON DELETE CASCADE DEFERRABLE NOT NULL, \
                    VALIDATE CONSTRAINT v, \
                    ADD CONSTRAINT w FOREIGN KEY (a) REFERENCES t NOT VALID, ADD CHECK (a > 0), \
                    ALTER COLUMN e TYPE bigint USING e + 1, ALTER f SET EXPRESSION AS (e * 2), \
                    ADD CONSTRAINT x FOREIGN KEY (a) REFERENCES t MATCH FULL DEFERRABLE /* later */ ;";
        let found = checked_keys(text);
        let written = |end: usize| text[..end].rsplit(", ADD").next().unwrap_or_default().to_owned();
        let added: Vec<(String, String)> =
            found.added.into_iter().map(|(name, end)| (name.name, written(end))).collect();
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let first = pair("t", "ALTER TABLE c ADD FOREIGN KEY (a, b) REFERENCES s.t (x, y)");
        assert_eq!(added, [first, pair("t", " CONSTRAINT x FOREIGN KEY (a) REFERENCES t MATCH FULL DEFERRABLE")]);
        let filled: Vec<_> = found
            .filled
            .iter()
            .map(|key| (key.referenced.name.as_str(), key.written.of(text), written(key.end), key.alone.as_str()))
            .collect();
        let whole =
            " COLUMN d int DEFAULT 1 CONSTRAINT k REFERENCES u ON DELETE CASCADE DEFERRABLE NOT NULL".to_owned();
        let alone = ", ADD CONSTRAINT k FOREIGN KEY (\"d\") REFERENCES u ON DELETE CASCADE DEFERRABLE";
        let plain =
            ("t", "REFERENCES t", " COLUMN n int REFERENCES t".to_owned(), ", ADD FOREIGN KEY (\"n\") REFERENCES t");
        assert_eq!(filled, [plain, ("u", "CONSTRAINT k REFERENCES u ON DELETE CASCADE DEFERRABLE ", whole, alone)]);
        assert_eq!((found.validated, found.retyped), (vec!["v".to_owned()], vec!["e".to_owned(), "f".to_owned()]));
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
