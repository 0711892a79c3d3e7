//! Options of the programs in `src/bin`: words like `minutes=60`.

use std::collections::BTreeMap;

use crate::Result;

pub struct Words(BTreeMap<String, String>);

impl Words {
    /// Those without a value say nothing.
    pub fn from_arguments() -> Words {
        let pairs = std::env::args().skip(1).filter_map(|word| {
            let (name, value) = word.split_once('=')?;
            (!value.is_empty()).then(|| (name.to_owned(), value.to_owned()))
        });
        Words(pairs.collect())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub fn number(&self, name: &str, default: u64) -> Result<u64> {
        match self.get(name) {
            Some(text) => text.parse().map_err(|_| format!("{name}={text} is no number").into()),
            None => Ok(default),
        }
    }

    /// The pgherd to run.
    pub fn program(&self) -> String {
        self.get("program").unwrap_or("target/release/pgherd").to_owned()
    }
}
