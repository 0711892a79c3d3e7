//! Which constants may stand for a value of the distribution column: those whose comparison with the column uses the
//! column's own equality and hash (src/backend/parser/parse_coerce.c, src/include/catalog/pg_amop.dat).

use pgherd_catalog::{Column, Oid, Snapshot};
use pgherd_sql::ast::{Const, Expr, ExprKind, TypeName};

use crate::plan::KeyValue;
use crate::safety::{Now, is_moving_literal};

const BOOL: Oid = 16;
const INT8: Oid = 20;
const INT2: Oid = 21;
const INT4: Oid = 23;
const TEXT: Oid = 25;
const FLOAT4: Oid = 700;
const FLOAT8: Oid = 701;
const VARCHAR: Oid = 1043;
const NUMERIC: Oid = 1700;

/// Types whose values hash alike when they are equal across types.
pub(crate) fn same_family(a: Oid, b: Oid) -> bool {
    let integer = |t| matches!(t, INT2 | INT4 | INT8);
    let text = |t| matches!(t, TEXT | VARCHAR);
    a == b || (integer(a) && integer(b)) || (text(a) && text(b))
}

/// The object id of a built-in type name that may be cast to here.
pub(crate) fn type_oid(name: &str) -> Option<Oid> {
    Some(match name {
        "bool" => BOOL,
        "bytea" => 17,
        "name" => 19,
        "int8" => INT8,
        "int2" => INT2,
        "int4" => INT4,
        "text" => TEXT,
        "macaddr" => 829,
        "inet" => 869,
        "varchar" => VARCHAR,
        "date" => 1082,
        "time" => 1083,
        "timestamp" => 1114,
        "timestamptz" => 1184,
        "interval" => 1186,
        "timetz" => 1266,
        "numeric" => NUMERIC,
        "uuid" => 2950,
        _ => return None,
    })
}

pub(crate) fn is_text(type_oid: Oid) -> bool {
    same_family(type_oid, TEXT)
}

/// A constant or parameter, perhaps with casts.
pub(crate) fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Const(value) => *value != Const::Null,
        ExprKind::Param(_) => true,
        ExprKind::Cast { expr, .. } => is_constant(expr),
        _ => false,
    }
}

fn plain_type(to: &TypeName, snapshot: &Snapshot) -> Option<Oid> {
    let built_in =
        to.schema.as_deref() == Some("pg_catalog") || (to.schema.is_none() && !snapshot.user_types.contains(&to.name));
    if !built_in || to.is_array || to.is_setof || to.percent_type || !to.modifiers.is_empty() {
        return None;
    }
    type_oid(&to.name)
}

fn integer_for(text: &str, column: Oid) -> Option<KeyValue> {
    let value: i64 = text.trim().parse().ok()?;
    let fits = match column {
        INT2 => i16::try_from(value).is_ok(),
        INT4 => i32::try_from(value).is_ok(),
        INT8 => true,
        _ => return None,
    };
    // One that does not fit equals no row: not a key, and the servers find nothing.
    fits.then(|| KeyValue::Literal(value.to_string()))
}

/// A column of the type may have the value: it may have been compared with one of a wider type.
pub(crate) fn fits(value: &KeyValue, type_oid: Oid) -> bool {
    match value {
        KeyValue::Literal(text) if matches!(type_oid, INT2 | INT4) && text.trim().parse::<i64>().is_ok() => {
            integer_for(text, type_oid).is_some()
        }
        _ => true,
    }
}

fn constant(value: &Const, column: Oid) -> Option<KeyValue> {
    match (value, column) {
        (Const::Integer(i), INT2 | INT4 | INT8) => integer_for(&i.to_string(), column),
        (Const::Number(n), INT2 | INT4 | INT8) => integer_for(n, column),
        (Const::Integer(i), NUMERIC) => Some(KeyValue::Literal(i.to_string())),
        (Const::Number(n), NUMERIC) => Some(KeyValue::Literal(n.clone())),
        (Const::Bool(b), BOOL) => Some(KeyValue::Literal(if *b { "t" } else { "f" }.to_owned())),
        // An untyped literal takes the column's type.
        (Const::String(s), INT2 | INT4 | INT8) => integer_for(s, column),
        // Who reads it first gives it its value.
        (Const::String(s), _) if time_type(column).is_some() && is_moving_literal(s) => None,
        (Const::String(s), _) => Some(KeyValue::Literal(s.clone())),
        _ => None,
    }
}

/// The name of a type that reads words for the current time; none: of another.
pub(crate) fn time_type(type_oid: Oid) -> Option<&'static str> {
    Some(match type_oid {
        1082 => "date",
        1083 => "time",
        1114 => "timestamp",
        1184 => "timestamptz",
        1266 => "timetz",
        _ => return None,
    })
}

/// What a parameter of a type stands for at a moment, as SQL; none: for what it says.
pub fn moving_parameter(value: &[u8], type_oid: Oid, now: Now<'_>) -> Option<String> {
    let word = std::str::from_utf8(value).ok()?;
    crate::safety::moving_value(word, time_type(type_oid)?, &[], now)
}

pub(crate) fn is_array_of(to: &TypeName, element: Oid, snapshot: &Snapshot) -> bool {
    to.is_array && plain_type(&TypeName { is_array: false, ..to.clone() }, snapshot) == Some(element)
}

/// An array with which the column is compared, without casts that leave its elements as they are.
fn bare_array<'e>(array: &'e Expr, column: &Column, snapshot: &Snapshot) -> Option<&'e Expr> {
    match &array.kind {
        ExprKind::Cast { expr, to } if to.is_array => {
            let element = plain_type(&TypeName { is_array: false, ..to.clone() }, snapshot)?;
            same_family(element, column.type_oid).then(|| bare_array(expr, column, snapshot)).flatten()
        }
        _ => Some(array),
    }
}

/// The values of an array with which the column is compared, as if they were compared one by one.
pub(crate) fn elements<'e>(array: &'e Expr, column: &Column, snapshot: &Snapshot) -> Option<&'e [Expr]> {
    match &bare_array(array, column, snapshot)?.kind {
        ExprKind::Array(list) => Some(list),
        _ => None,
    }
}

/// The parameter that is an array of values with which the column is compared.
pub(crate) fn array_parameter(array: &Expr, column: &Column, snapshot: &Snapshot) -> Option<u16> {
    match &bare_array(array, column, snapshot)?.kind {
        ExprKind::Param(number) => Some(*number),
        _ => None,
    }
}

/// The value, if `column = expr` pins the column to a value known before any server is asked.
pub(crate) fn key_value(expr: &Expr, column: &Column, snapshot: &Snapshot) -> Option<KeyValue> {
    let (mut inner, mut types) = (expr, Vec::new());
    while let ExprKind::Cast { expr, to } = &inner.kind {
        types.push(plain_type(to, snapshot)?);
        inner = expr;
    }
    if types.iter().any(|t| !same_family(*t, column.type_oid)) {
        return None;
    }
    match &inner.kind {
        ExprKind::Param(n) => Some(KeyValue::Param(*n)),
        ExprKind::Const(Const::Number(n)) if !types.is_empty() && n.contains(['.', 'e', 'E']) => None,
        ExprKind::Const(value) => constant(value, column.type_oid).filter(|_| {
            // A number cast to text or the like is another literal than the one written.
            types.is_empty() || !matches!(value, Const::Integer(_) | Const::Number(_)) || column.type_oid != NUMERIC
        }),
        _ => None,
    }
}

/// The value, if a VALUES field or SET expression stores a known value in the column (assignment, not comparison:
/// the literal is converted to the column's type).
pub(crate) fn stored_value(expr: &Expr, column: &Column, snapshot: &Snapshot) -> Option<KeyValue> {
    if let ExprKind::Const(Const::Null) = &expr.kind {
        return Some(KeyValue::Null);
    }
    if matches!(column.type_oid, FLOAT4 | FLOAT8) {
        return match &expr.kind {
            ExprKind::Const(Const::Integer(i)) => Some(KeyValue::Literal(i.to_string())),
            ExprKind::Const(Const::Number(s) | Const::String(s)) => Some(KeyValue::Literal(s.clone())),
            ExprKind::Param(n) => Some(KeyValue::Param(*n)),
            _ => None,
        };
    }
    // Storing applies the column's modifier (varchar(n) truncates blanks, numeric(p,s) rounds): only without one.
    if column.typmod >= 0 && modifier_matters(column.type_oid) {
        return match (&expr.kind, column.type_oid) {
            (ExprKind::Param(n), VARCHAR | 1042) => Some(KeyValue::Param(*n)),
            (ExprKind::Const(Const::String(s)), VARCHAR) if !s.ends_with(' ') => Some(KeyValue::Literal(s.clone())),
            (ExprKind::Const(Const::String(s)), 1042) => Some(KeyValue::Literal(s.clone())),
            _ => None,
        };
    }
    match &expr.kind {
        ExprKind::Const(Const::Integer(i)) if same_family(column.type_oid, TEXT) || column.type_oid == 1042 => {
            Some(KeyValue::Literal(i.to_string()))
        }
        _ => key_value(expr, column, snapshot),
    }
}

/// True where storing a value in the column may change it by the column's modifier.
fn modifier_matters(column: Oid) -> bool {
    !matches!(column, BOOL | INT2 | INT4 | INT8 | TEXT | 17 | 2950 | 1082 | 869 | 829)
}
