//! A function of a user's, as the coordinator describes it: what is needed to make one like it elsewhere.

use crate::Oid;

/// All its types are built in, it runs with the rights of whoever calls it, everybody may call it, it has no settings
/// of its own, and no other function has its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Routine {
    pub schema: String,
    pub name: String,
    /// As messages name it, without its schema: `f(integer)`.
    pub signature: String,
    pub language: String,
    pub body: String,
    pub arguments: Vec<Argument>,
    /// As `format_type` prints what it returns; with arguments that it gives back, not needed.
    pub result: String,
    pub returns_set: bool,
    /// It is not called with NULL.
    pub is_strict: bool,
    /// VOLATILE and its like, COST and ROWS.
    pub options: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Argument {
    /// Empty where it has none.
    pub name: String,
    pub type_oid: Oid,
    pub type_name: String,
    pub mode: ArgumentMode,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ArgumentMode {
    #[default]
    In,
    Out,
    InOut,
    /// A column of RETURNS TABLE.
    Table,
}

impl ArgumentMode {
    /// A call has a value for it.
    pub fn is_given(self) -> bool {
        matches!(self, ArgumentMode::In | ArgumentMode::InOut)
    }
}
