//! Every node of a parse tree, whatever its type: a serde serializer that keeps nothing but what it is asked for. The
//! parser's own `nodes()` skips most places; a relation that is missed would be taken for none, so this one is
//! complete by construction (the tree's types derive `Serialize`).

use serde::ser::{self, Serialize};

/// What is collected.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// `(catalog, schema, name, inh, location)` of each RangeVar, in tree order.
    pub relations: Vec<RawRelation>,
    /// Schema and name of each function called.
    pub calls: Vec<(Option<String>, String)>,
    /// Names of WITH queries.
    pub ctes: Vec<String>,
    /// Last part of each type's name.
    pub types: Vec<(Option<String>, String)>,
    pub params: Vec<i64>,
    pub has_sublink: bool,
    pub has_modifying: bool,
    pub samples: Vec<RawSample>,
    /// A row lock, a system column, or a column qualified by a schema.
    pub names_physical_rows: bool,
    pub locks_rows: bool,
    columns: usize,
}

/// TABLESAMPLE.
#[derive(Debug, Default, Clone)]
pub(crate) struct RawSample {
    /// Which of the relations it is of.
    pub relation: usize,
    pub method: Option<String>,
    /// Its arguments name columns.
    pub reads_columns: bool,
    pub location: i64,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct RawRelation {
    pub catalog: String,
    pub schema: String,
    pub name: String,
    pub inh: bool,
    pub persistence: String,
    pub location: i64,
}

/// Walks any node of the parser.
pub(crate) fn walk<T: Serialize>(node: &T) -> Found {
    let mut walker = Walker::default();
    // The walker has no failing path of its own.
    let _ = node.serialize(&mut walker);
    walker.found
}

#[derive(Default)]
struct Walker {
    found: Found,
    /// The structure being walked and its scalar fields, innermost last.
    open: Vec<Open>,
    field: &'static str,
    /// Strings of the list being walked, for function and type names.
    last_strings: Vec<String>,
}

struct Open {
    kind: Kind,
    field: &'static str,
    relation: RawRelation,
    number: i64,
    /// How many relations and columns there were before.
    before: (usize, usize),
    method: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    RangeVar,
    Call,
    Type,
    Param,
    Text,
    Column,
    Sample,
    Other,
}

pub(crate) const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"];

#[derive(Debug)]
pub(crate) struct Never;

impl std::fmt::Display for Never {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("walk failed")
    }
}
impl std::error::Error for Never {}
impl ser::Error for Never {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Never
    }
}

impl Walker {
    fn string(&mut self, value: &str) {
        let Some(open) = self.open.last_mut() else { return };
        match (open.kind, open.field) {
            (Kind::RangeVar, "catalogname") => open.relation.catalog = value.to_owned(),
            (Kind::RangeVar, "schemaname") => open.relation.schema = value.to_owned(),
            (Kind::RangeVar, "relname") => open.relation.name = value.to_owned(),
            (Kind::RangeVar, "relpersistence") => open.relation.persistence = value.to_owned(),
            (Kind::Text, "sval") => self.last_strings.push(value.to_owned()),
            _ => {}
        }
    }

    fn number(&mut self, value: i64) {
        let Some(open) = self.open.last_mut() else { return };
        match (open.kind, open.field) {
            (Kind::RangeVar, "location") => open.relation.location = value,
            (Kind::Param, "number") | (Kind::Sample, "location") => open.number = value,
            _ => {}
        }
    }
}

impl ser::Serializer for &mut Walker {
    type Ok = ();
    type Error = Never;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    fn serialize_bool(self, v: bool) -> Result<(), Never> {
        if let Some(open) = self.open.last_mut()
            && open.kind == Kind::RangeVar
            && open.field == "inh"
        {
            open.relation.inh = v;
        }
        Ok(())
    }
    fn serialize_i8(self, v: i8) -> Result<(), Never> {
        self.number(v.into());
        Ok(())
    }
    fn serialize_i16(self, v: i16) -> Result<(), Never> {
        self.number(v.into());
        Ok(())
    }
    fn serialize_i32(self, v: i32) -> Result<(), Never> {
        self.number(v.into());
        Ok(())
    }
    fn serialize_i64(self, v: i64) -> Result<(), Never> {
        self.number(v);
        Ok(())
    }
    fn serialize_u8(self, _: u8) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_u16(self, _: u16) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_u32(self, _: u32) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_u64(self, _: u64) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_f32(self, _: f32) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_f64(self, _: f64) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_char(self, _: char) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_str(self, v: &str) -> Result<(), Never> {
        if self.field == "ctename" && !v.is_empty() {
            self.found.ctes.push(v.to_owned());
        }
        self.string(v);
        Ok(())
    }
    fn serialize_bytes(self, _: &[u8]) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_none(self) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), Never> {
        value.serialize(self)
    }
    fn serialize_unit(self) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, value: &T) -> Result<(), Never> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), Never> {
        value.serialize(self)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Never> {
        Ok(self)
    }
    fn serialize_tuple(self, _: usize) -> Result<Self, Never> {
        Ok(self)
    }
    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Never> {
        Ok(self)
    }
    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self, Never> {
        Ok(self)
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self, Never> {
        Ok(self)
    }
    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Self, Never> {
        let kind = match name {
            "RangeVar" => Kind::RangeVar,
            "FuncCall" => Kind::Call,
            "TypeName" => Kind::Type,
            "ParamRef" => Kind::Param,
            "String" => Kind::Text,
            "ColumnRef" => Kind::Column,
            "RangeTableSample" => Kind::Sample,
            "AStar" => {
                self.last_strings.push("*".to_owned());
                Kind::Other
            }
            "LockingClause" => {
                self.found.locks_rows = true;
                Kind::Other
            }
            "SubLink" => {
                self.found.has_sublink = true;
                Kind::Other
            }
            "InsertStmt" | "UpdateStmt" | "DeleteStmt" | "MergeStmt" => {
                self.found.has_modifying = true;
                Kind::Other
            }
            _ => Kind::Other,
        };
        let before = (self.found.relations.len(), self.found.columns);
        self.open.push(Open { kind, field: "", relation: RawRelation::default(), number: 0, before, method: None });
        Ok(self)
    }
    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Self, Never> {
        Ok(self)
    }
}

impl ser::SerializeSeq for &mut Walker {
    type Ok = ();
    type Error = Never;
    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Never> {
        value.serialize(&mut **self)
    }
    fn end(self) -> Result<(), Never> {
        Ok(())
    }
}
impl ser::SerializeTuple for &mut Walker {
    type Ok = ();
    type Error = Never;
    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Never> {
        value.serialize(&mut **self)
    }
    fn end(self) -> Result<(), Never> {
        Ok(())
    }
}
impl ser::SerializeTupleStruct for &mut Walker {
    type Ok = ();
    type Error = Never;
    fn serialize_field<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Never> {
        value.serialize(&mut **self)
    }
    fn end(self) -> Result<(), Never> {
        Ok(())
    }
}
impl ser::SerializeTupleVariant for &mut Walker {
    type Ok = ();
    type Error = Never;
    fn serialize_field<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Never> {
        value.serialize(&mut **self)
    }
    fn end(self) -> Result<(), Never> {
        Ok(())
    }
}
impl ser::SerializeMap for &mut Walker {
    type Ok = ();
    type Error = Never;
    fn serialize_key<T: ?Sized + Serialize>(&mut self, _: &T) -> Result<(), Never> {
        Ok(())
    }
    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), Never> {
        value.serialize(&mut **self)
    }
    fn end(self) -> Result<(), Never> {
        Ok(())
    }
}
impl ser::SerializeStruct for &mut Walker {
    type Ok = ();
    type Error = Never;
    fn serialize_field<T: ?Sized + Serialize>(&mut self, key: &'static str, value: &T) -> Result<(), Never> {
        self.field = key;
        let names = matches!(
            self.open.last().map(|o| (o.kind, key)),
            Some(
                (Kind::Call, "funcname") | (Kind::Type, "names") | (Kind::Column, "fields") | (Kind::Sample, "method")
            )
        );
        if let Some(open) = self.open.last_mut() {
            open.field = key;
        }
        if names {
            self.last_strings.clear();
        }
        value.serialize(&mut **self)?;
        if names {
            let words = self.last_strings.len();
            let name = self.last_strings.pop().unwrap_or_default();
            let schema = self.last_strings.pop();
            match self.open.last_mut().map(|o| (o.kind, o)) {
                Some((Kind::Call, _)) => self.found.calls.push((schema, name)),
                Some((Kind::Column, _)) => {
                    self.found.columns += 1;
                    self.found.names_physical_rows |= words > 2 || SYSTEM_COLUMNS.contains(&name.as_str());
                }
                Some((Kind::Sample, open)) => {
                    let built_in = schema.is_none_or(|s| s == "pg_catalog");
                    open.method = Some(name).filter(|_| built_in);
                }
                _ => self.found.types.push((schema, name)),
            }
            self.last_strings.clear();
        }
        Ok(())
    }
    fn end(self) -> Result<(), Never> {
        if let Some(open) = self.open.pop() {
            match open.kind {
                Kind::RangeVar => self.found.relations.push(open.relation),
                Kind::Param => self.found.params.push(open.number),
                Kind::Sample => self.found.samples.push(RawSample {
                    relation: open.before.0,
                    method: open.method,
                    reads_columns: self.found.columns > open.before.1,
                    location: open.number,
                }),
                _ => {}
            }
        }
        Ok(())
    }
}
impl ser::SerializeStructVariant for &mut Walker {
    type Ok = ();
    type Error = Never;
    fn serialize_field<T: ?Sized + Serialize>(&mut self, _: &'static str, value: &T) -> Result<(), Never> {
        value.serialize(&mut **self)
    }
    fn end(self) -> Result<(), Never> {
        Ok(())
    }
}
