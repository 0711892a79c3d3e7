//! The clusters that the corpus is run on: how many workers, and into how many shards tables are cut. One shard leaves
//! workers without any, 32 are more than there are rows of many keys, and 4 on 3 workers are not spread evenly.

use std::fmt;

use crate::{Error, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    pub workers: u32,
    pub shards: u32,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.workers, self.shards)
    }
}

/// What a run of the corpus covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// By workers, so that each cluster is started once.
    pub shapes: Vec<Shape>,
    /// Every file in every mode. Else each in two modes on [`Shape::FULL`]; files and modes take turns on the others.
    pub everything: bool,
}

impl Shape {
    pub const FULL: Shape = Shape { workers: 3, shards: 4 };

    pub fn all() -> Vec<Shape> {
        let of = |workers| [1, 4, 32].map(|shards| Shape { workers, shards });
        (1..=3).flat_map(of).collect()
    }

    /// `3x32`: three workers, 32 shards.
    pub fn parse(text: &str) -> Result<Shape> {
        let parsed = text.split_once('x').and_then(|(workers, shards)| {
            Some(Shape { workers: workers.trim().parse().ok()?, shards: shards.trim().parse().ok()? })
        });
        parsed.ok_or_else(|| Error::from(format!("not a shape such as 3x32: {text}")))
    }

    /// The settings that tables of a database are made with.
    pub fn database_settings(self) -> Vec<(&'static str, String)> {
        vec![("citus.shard_count", self.shards.to_string())]
    }
}

impl Coverage {
    /// `PGHERD_DIFF_SHAPES=all`, or `1x4,3x32`: these, with everything. Without it all shapes, in short; or one, where
    /// `PGHERD_DIFF_FILES` or `PGHERD_DIFF_MODES` say that a person looks for a mistake.
    pub fn from_environment() -> Result<Coverage> {
        let set = |name| std::env::var_os(name).is_some_and(|v| !v.is_empty());
        let mut shapes = match std::env::var("PGHERD_DIFF_SHAPES").as_deref() {
            Ok("all") => Shape::all(),
            Ok(list) if !list.is_empty() => list.split(',').map(Shape::parse).collect::<Result<_>>()?,
            _ if set("PGHERD_DIFF_FILES") || set("PGHERD_DIFF_MODES") => vec![Shape::FULL],
            _ => return Ok(Coverage { shapes: Shape::all(), everything: false }),
        };
        shapes.sort_by_key(|shape| shape.workers);
        Ok(Coverage { shapes, everything: true })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_read_as_it_is_shown() {
        for shape in Shape::all() {
            assert_eq!(Shape::parse(&shape.to_string()).unwrap(), shape);
        }
        assert!(Shape::all().contains(&Shape::FULL));
        for bad in ["", "3", "3x", "x4", "3x4x5"] {
            assert!(Shape::parse(bad).is_err(), "{bad}");
        }
    }
}
