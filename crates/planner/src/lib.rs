//! Statement + catalog → [`Plan`]. Pure.
mod plan;
pub use plan::*;
