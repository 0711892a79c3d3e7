//! Random expressions of a wanted type over the columns at hand.

use super::Gen;
use super::schema::Ty;

/// A column that an expression may name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Col {
    pub sql: String,
    pub ty: Ty,
}

impl Gen<'_> {
    /// A column of the type, mostly of the inner scope.
    pub fn column(&mut self, ty: Ty, scope: &[Col]) -> Option<String> {
        let found: Vec<&Col> = scope.iter().filter(|c| c.ty == ty).collect();
        if found.is_empty() {
            return None;
        }
        Some(self.random.pick(&found).sql.clone())
    }

    /// A literal of the type, or a parameter in its place.
    pub fn literal(&mut self, ty: Ty) -> String {
        if self.parameters_allowed && self.parameters.len() < 6 && self.random.chance(50) {
            let value = if self.random.chance(6) { None } else { Some(ty.value(self.random)) };
            self.parameters.push(value);
            return format!("${}::{}", self.parameters.len(), ty.sql());
        }
        ty.literal(self.random)
    }

    /// A literal to compare a column of the type with: its type is left to the server at times.
    fn bare(&mut self, ty: Ty) -> String {
        if self.parameters_allowed && self.parameters.len() < 6 && self.random.chance(50) {
            let value = ty.value(self.random);
            self.parameters.push(Some(value));
            return format!("${}", self.parameters.len());
        }
        match self.random.below(3) {
            0 => ty.literal(self.random),
            1 if ty.is_number() => {
                let value = ty.value(self.random);
                if value.starts_with('-') { format!("({value})") } else { value }
            }
            _ => format!("'{}'", ty.value(self.random)),
        }
    }

    pub fn expression(&mut self, ty: Ty, scope: &[Col], depth: usize) -> String {
        if depth == 0 || self.random.chance(45) {
            if self.random.chance(85)
                && let Some(column) = self.column(ty, scope)
            {
                return column;
            }
            return self.literal(ty);
        }
        let d = depth - 1;
        // What every type has.
        match self.random.below(12) {
            0 => {
                let (a, b) = (self.expression(ty, scope, d), self.expression(ty, scope, d));
                return format!("coalesce({a}, {b})");
            }
            1 => {
                let (p, a, b) =
                    (self.predicate(scope, d), self.expression(ty, scope, d), self.expression(ty, scope, d));
                return format!("CASE WHEN {p} THEN {a} ELSE {b} END");
            }
            2 => {
                let (a, b) = (self.expression(ty, scope, d), self.literal(ty));
                return format!("nullif({a}, {b})");
            }
            3 if self.subqueries_left > 0 => return self.scalar_subquery(ty, scope, d),
            4 => {
                let found: Vec<_> = self.schema.functions.iter().filter(|f| f.result == ty).cloned().collect();
                if !found.is_empty() {
                    let function = self.random.pick(&found).clone();
                    let argument = self.expression(function.argument, scope, d);
                    return format!("{}({argument})", function.name);
                }
            }
            _ => {}
        }
        match ty {
            Ty::Bool => self.predicate(scope, d),
            Ty::Int => match self.random.below(8) {
                0 | 1 => format!("({} + {})", self.expression(ty, scope, d), self.random.below(4)),
                2 => format!("({} - {})", self.expression(ty, scope, d), self.expression(ty, scope, d)),
                3 => format!("({} % {})", self.expression(ty, scope, d), self.random.between(2, 5)),
                4 => format!("length({})", self.expression(Ty::Text, scope, d)),
                5 => format!("extract(day FROM {})::int", self.expression(Ty::Date, scope, d)),
                6 => format!("greatest({}, {})", self.expression(ty, scope, d), self.expression(ty, scope, d)),
                _ => format!("cardinality({})", self.expression(Ty::IntArray, scope, d)),
            },
            Ty::BigInt => match self.random.below(3) {
                0 => format!("{}::bigint", self.expression(Ty::Int, scope, d)),
                1 => format!("({} + {})", self.expression(ty, scope, d), self.expression(Ty::Int, scope, d)),
                _ => format!("abs({})", self.expression(ty, scope, d)),
            },
            Ty::Numeric => match self.random.below(3) {
                0 => format!("{}::numeric(12,2)", self.expression(Ty::Int, scope, d)),
                1 => format!("({} * 1.5)::numeric(12,2)", self.expression(Ty::Int, scope, d)),
                _ => format!(
                    "({} + {})::numeric(12,2)",
                    self.expression(ty, scope, d),
                    self.expression(Ty::Int, scope, d)
                ),
            },
            Ty::Text => match self.random.below(6) {
                0 => format!("({} || {})", self.expression(ty, scope, d), self.expression(ty, scope, d)),
                1 => format!("upper({})", self.expression(ty, scope, d)),
                2 => format!("{}::text", self.expression(Ty::Int, scope, d)),
                3 => format!("left({}, {})", self.expression(ty, scope, d), self.random.between(1, 2)),
                4 => format!("({} ->> 'n')", self.expression(Ty::Jsonb, scope, d)),
                _ => {
                    let other = self.random_type();
                    format!("concat({}, '-', {})", self.expression(ty, scope, d), self.expression(other, scope, d))
                }
            },
            Ty::Date => match self.random.below(2) {
                0 => format!("({} + {})", self.expression(ty, scope, d), self.random.between(1, 3)),
                _ => format!("{}::date", self.expression(Ty::Timestamp, scope, d)),
            },
            Ty::Timestamp => match self.random.below(2) {
                0 => format!("({} + interval '3 hours')", self.expression(ty, scope, d)),
                _ => format!("{}::timestamp", self.expression(Ty::Date, scope, d)),
            },
            Ty::Uuid | Ty::Mood => self.expression(ty, scope, d),
            Ty::IntArray => match self.random.below(2) {
                0 => {
                    format!("ARRAY[{}, {}]", self.expression(Ty::Int, scope, d), self.expression(Ty::Int, scope, d))
                }
                _ => format!("({} || {})", self.expression(ty, scope, d), self.expression(Ty::Int, scope, d)),
            },
            Ty::Jsonb => match self.random.below(3) {
                0 => format!("jsonb_build_object('n', {})", self.expression(Ty::Int, scope, d)),
                1 => format!("to_jsonb({})", self.expression(Ty::Text, scope, d)),
                _ => format!("({} -> 'n')", self.expression(ty, scope, d)),
            },
        }
    }

    /// Two expressions that can be compared with `=`; mostly columns.
    pub fn comparable(&mut self, left: &[Col], right: &[Col]) -> (String, String) {
        if !left.is_empty() && self.random.chance(85) {
            // Distribution columns come first in their tables and are drawn more often.
            let keys: Vec<&Col> = left.iter().filter(|c| c.sql.ends_with(".k")).collect();
            let a = if !keys.is_empty() && self.random.chance(60) {
                (*self.random.pick(&keys)).clone()
            } else {
                self.random.pick(left).clone()
            };
            let fits: Vec<&Col> =
                right.iter().filter(|b| b.ty == a.ty || (a.ty.is_number() && b.ty.is_number())).collect();
            if !fits.is_empty() {
                let keys: Vec<&&Col> = fits.iter().filter(|c| c.sql.ends_with(".k")).collect();
                let b = if !keys.is_empty() && self.random.chance(60) {
                    self.random.pick(&keys).sql.clone()
                } else {
                    self.random.pick(&fits).sql.clone()
                };
                return (a.sql, b);
            }
        }
        let ty = self.random_type();
        (self.expression(ty, left, 1), self.expression(ty, right, 1))
    }

    pub fn predicate(&mut self, scope: &[Col], depth: usize) -> String {
        let d = depth.saturating_sub(1);
        let column = if scope.is_empty() { None } else { Some(self.random.pick(scope).clone()) };
        let keys: Vec<Col> = scope.iter().filter(|c| c.sql.ends_with(".k")).cloned().collect();
        let column =
            if !keys.is_empty() && self.random.chance(40) { Some(self.random.pick(&keys).clone()) } else { column };
        let Some(column) = column else {
            return ["true", "1 = 1", "false", "NULL::bool"][self.random.below(4)].to_owned();
        };
        let (c, ty) = (column.sql, column.ty);
        match self.random.below(if depth > 0 { 22 } else { 9 }) {
            0..=2 => format!("{c} = {}", self.bare(ty)),
            3 => {
                let operator = *self.random.pick(&["<", "<=", ">", ">=", "<>"]);
                format!("{c} {operator} {}", self.bare(ty))
            }
            4 => {
                let list: Vec<String> = (0..self.random.between(1, 3)).map(|_| self.bare(ty)).collect();
                let not = if self.random.chance(20) { "NOT " } else { "" };
                format!("{c} {not}IN ({})", list.join(", "))
            }
            5 => format!("{c} IS {}NULL", if self.random.chance(50) { "NOT " } else { "" }),
            6 => {
                let (a, b) = self.comparable(scope, scope);
                let operator = *self.random.pick(&["=", "=", "<", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]);
                format!("{a} {operator} {b}")
            }
            7 => format!("{c} BETWEEN {} AND {}", self.bare(ty), self.bare(ty)),
            8 => match ty {
                Ty::Bool => c,
                Ty::Text => format!("{c} LIKE '{}%'", ["a", "", "x_"][self.random.below(3)]),
                Ty::Jsonb => format!("{c} @> '{{\"n\": 1}}'"),
                Ty::IntArray => format!("1 = ANY ({c})"),
                _ => format!("{c} = ANY (ARRAY[{}, {}])", ty.literal(self.random), ty.literal(self.random)),
            },
            9 | 10 => format!("({} AND {})", self.predicate(scope, d), self.predicate(scope, d)),
            11 | 12 => format!("({} OR {})", self.predicate(scope, d), self.predicate(scope, d)),
            13 => format!("NOT ({})", self.predicate(scope, d)),
            14 => {
                let ty = self.random_type();
                let operator = *self.random.pick(&["=", "<", ">=", "<>", "IS DISTINCT FROM"]);
                format!("{} {operator} {}", self.expression(ty, scope, d), self.expression(ty, scope, d))
            }
            15 | 16 if self.subqueries_left > 0 => {
                let not = if self.random.chance(35) { "NOT " } else { "" };
                format!("{not}EXISTS ({})", self.exists_subquery(scope, d))
            }
            17 | 18 if self.subqueries_left > 0 => {
                let not = if self.random.chance(30) { "NOT " } else { "" };
                let query = self.inner_query(&[ty], scope, d);
                format!("{c} {not}IN ({query})")
            }
            19 if self.subqueries_left > 0 => {
                let other = self.random.pick(scope).clone();
                let query = self.inner_query(&[ty, other.ty], scope, d);
                format!("({c}, {}) IN ({query})", other.sql)
            }
            20 if self.subqueries_left > 0 => {
                let operator = *self.random.pick(&["= ANY", "<> ALL", "< ANY", ">= ALL"]);
                let query = self.inner_query(&[ty], scope, d);
                format!("{c} {operator} ({query})")
            }
            _ if self.subqueries_left > 0 => {
                let operator = *self.random.pick(&["=", "<", ">", "<>", "<="]);
                let query = self.scalar_subquery(ty, scope, d);
                format!("{c} {operator} {query}")
            }
            _ => format!("{c} = {}", self.bare(ty)),
        }
    }

    /// An aggregate of the type over the columns, or none. What depends on order is ordered.
    pub fn aggregate(&mut self, ty: Ty, scope: &[Col], depth: usize) -> Option<String> {
        let d = depth.min(1);
        let distinct = if self.random.chance(20) { "DISTINCT " } else { "" };
        let filter = if self.random.chance(20) {
            format!(" FILTER (WHERE {})", self.predicate(scope, 0))
        } else {
            String::new()
        };
        let call = match ty {
            Ty::Bool => {
                let name = *self.random.pick(&["bool_and", "bool_or", "every"]);
                format!("{name}({}){filter}", self.predicate(scope, 0))
            }
            Ty::Int => match self.random.below(3) {
                0 => format!("(sum({distinct}{}){filter} % 1000)::int", self.expression(ty, scope, d)),
                1 => {
                    let fraction = ["0", "0.5", "1"][self.random.below(3)];
                    let argument = self.expression(ty, scope, d);
                    format!("percentile_disc({fraction}) WITHIN GROUP (ORDER BY {argument}){filter}")
                }
                _ => {
                    let name = *self.random.pick(&["max", "min"]);
                    format!("{name}({}){filter}", self.expression(ty, scope, d))
                }
            },
            Ty::BigInt => match self.random.below(4) {
                0 => format!("count(*){filter}"),
                1 => {
                    let ty = self.random_type();
                    format!("count({distinct}{}){filter}", self.expression(ty, scope, d))
                }
                2 => format!("sum({distinct}{}){filter}", self.expression(Ty::Int, scope, d)),
                _ => format!("max({}){filter}", self.expression(ty, scope, d)),
            },
            Ty::Numeric => match self.random.below(4) {
                0 => format!("(avg({distinct}{}){filter})::numeric(12,2)", self.expression(Ty::Int, scope, d)),
                1 => format!("sum({distinct}{}){filter}::numeric(12,2)", self.expression(ty, scope, d)),
                2 => format!("(sum({}){filter})::numeric(12,2)", self.expression(Ty::BigInt, scope, d)),
                _ => format!("min({}){filter}", self.expression(ty, scope, d)),
            },
            Ty::Text => match self.random.below(2) {
                0 => {
                    let value = self.expression(ty, scope, d);
                    format!("string_agg({distinct}{value}, ',' ORDER BY {value}){filter}")
                }
                _ => format!("max({}){filter}", self.expression(ty, scope, d)),
            },
            Ty::IntArray => {
                let value = self.expression(Ty::Int, scope, d);
                format!("array_agg({distinct}{value} ORDER BY {value}){filter}")
            }
            Ty::Jsonb => {
                let value = self.expression(Ty::Text, scope, d);
                format!("jsonb_agg({value} ORDER BY {value} DESC){filter}")
            }
            Ty::Date | Ty::Timestamp | Ty::Mood => {
                let name = *self.random.pick(&["max", "min"]);
                format!("{name}({}){filter}", self.expression(ty, scope, d))
            }
            Ty::Uuid => return None,
        };
        // A parameter or subquery may not be ordered by its text twice; the server says so on both sides.
        Some(call)
    }

    pub fn random_type(&mut self) -> Ty {
        if self.random.chance(35) {
            return Ty::Int;
        }
        self.schema.other_type(self.random)
    }
}
