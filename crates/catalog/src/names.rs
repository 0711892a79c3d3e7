//! Sets of names that are changed in part: each name counts how many objects have it.

use std::borrow::Borrow;
use std::sync::Arc;

use crate::chunked::Chunked;

/// Cheap to copy, and to change a copy of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameSet(Chunked<Arc<str>, u32>);

impl NameSet {
    pub fn contains<Q: Borrow<str> + ?Sized>(&self, name: &Q) -> bool {
        self.0.contains_key(name.borrow())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(|name| &**name)
    }

    /// For one more object.
    pub fn insert(&mut self, name: impl Into<Arc<str>>) {
        let name = name.into();
        let count = self.0.get(&*name).copied().unwrap_or_default();
        self.0.insert(name, count + 1);
    }

    /// For one object less.
    pub fn remove(&mut self, name: &str) {
        match self.0.get(name).copied() {
            Some(count) if count > 1 => _ = self.0.insert(name.into(), count - 1),
            _ => _ = self.0.remove(name),
        }
    }

    /// For whatever objects.
    pub fn remove_all(&mut self, name: &str) {
        self.0.remove(name);
    }
}

impl<N: Into<Arc<str>>> FromIterator<N> for NameSet {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> NameSet {
        let mut set = NameSet::default();
        set.extend(names);
        set
    }
}

impl<N: Into<Arc<str>>> Extend<N> for NameSet {
    fn extend<I: IntoIterator<Item = N>>(&mut self, names: I) {
        names.into_iter().for_each(|name| self.insert(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_as_long_as_some_object_has_it() {
        let mut set: NameSet = ["a", "a", "b"].into_iter().collect();
        let before = set.clone();
        set.remove("a");
        assert!(set.contains("a"));
        set.remove("a");
        set.remove("a");
        assert!(!set.contains("a") && set.contains("b"));
        assert_eq!(before, ["b", "a", "a"].into_iter().collect());
        set.remove_all("b");
        assert!(set.is_empty() && set.iter().next().is_none());
    }
}
