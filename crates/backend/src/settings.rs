//! Session settings as a value that is cheap to copy and to compare: most connections have the very settings that the
//! next session wants.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

/// Settings by lower-case name, with the value as `current_setting` gives it. Copies share memory until one changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings(Arc<BTreeMap<String, String>>);

impl Settings {
    pub fn new() -> Self {
        Settings::default()
    }

    /// The same value because nobody has changed it since it was copied. Cheaper than `==`, and false more often.
    pub fn is_same(&self, other: &Settings) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub fn insert(&mut self, name: String, value: String) {
        Arc::make_mut(&mut self.0).insert(name, value);
    }

    pub fn remove(&mut self, name: &str) -> Option<String> {
        if self.0.contains_key(name) { Arc::make_mut(&mut self.0).remove(name) } else { None }
    }

    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        if !self.0.keys().all(|name| keep(name)) {
            Arc::make_mut(&mut self.0).retain(|name, _| keep(name));
        }
    }

    pub fn clear(&mut self) {
        *self = Settings::default();
    }
}

impl Deref for Settings {
    type Target = BTreeMap<String, String>;
    fn deref(&self) -> &BTreeMap<String, String> {
        &self.0
    }
}

impl FromIterator<(String, String)> for Settings {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(iter: I) -> Self {
        Settings(Arc::new(iter.into_iter().collect()))
    }
}

impl<const N: usize> From<[(String, String); N]> for Settings {
    fn from(entries: [(String, String); N]) -> Self {
        entries.into_iter().collect()
    }
}

impl<'a> IntoIterator for &'a Settings {
    type Item = (&'a String, &'a String);
    type IntoIter = std::collections::btree_map::Iter<'a, String, String>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
