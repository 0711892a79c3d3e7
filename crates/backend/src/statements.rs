//! Which statements a server connection keeps under the router's numbers: least recently used ones make room, by count
//! and by the length of their texts.

use std::collections::HashMap;

/// Statements that one server connection keeps.
pub const STATEMENTS_MAX: usize = 512;
/// Bytes of their texts. (A server needs some ten times as much for the plans.)
pub const STATEMENT_BYTES_MAX: usize = 1024 * 1024;

/// The name under which connections keep BEGIN.
pub(crate) const BEGIN_NAME: &str = "pgherd_begin";

#[derive(Debug, Default)]
pub struct Statements {
    /// By number: when it was last used, and its size.
    kept: HashMap<u64, (u64, usize)>,
    bytes: usize,
    uses: u64,
    /// BEGIN is there too, under [`BEGIN_NAME`].
    pub(crate) begin: bool,
}

impl Statements {
    pub fn contains(&self, id: u64) -> bool {
        self.kept.contains_key(&id)
    }

    /// Whether the statement is there; it counts as used now.
    pub fn touch(&mut self, id: u64) -> bool {
        self.uses += 1;
        match self.kept.get_mut(&id) {
            Some((used, _)) => {
                *used = self.uses;
                true
            }
            None => false,
        }
    }

    pub fn insert(&mut self, id: u64, bytes: usize) {
        self.uses += 1;
        if let Some((_, old)) = self.kept.insert(id, (self.uses, bytes)) {
            self.bytes -= old;
        }
        self.bytes += bytes;
    }

    pub fn remove(&mut self, id: u64) {
        if let Some((_, bytes)) = self.kept.remove(&id) {
            self.bytes -= bytes;
        }
    }

    /// One more of this size fits without another making room.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.kept.len() < STATEMENTS_MAX && self.bytes + bytes <= STATEMENT_BYTES_MAX
    }

    /// Forgets the statement that was used longest ago, if there is no room for one more of this size. To be repeated
    /// until there is.
    pub fn make_room(&mut self, bytes: usize) -> Option<u64> {
        if self.has_room(bytes) {
            return None;
        }
        let (&oldest, _) = self.kept.iter().min_by_key(|(_, (used, _))| *used)?;
        self.remove(oldest);
        Some(oldest)
    }

    pub fn clear(&mut self) {
        *self = Statements::default();
    }

    pub fn len(&self) -> usize {
        self.kept.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_makes_room_by_count_and_by_size() {
        let mut statements = Statements::default();
        for id in 0..STATEMENTS_MAX as u64 {
            assert_eq!(statements.make_room(10), None);
            statements.insert(id, 10);
        }
        assert!(statements.touch(0));
        assert_eq!(statements.make_room(10), Some(1));
        assert_eq!(statements.make_room(10), None);
        assert!(!statements.touch(1));
        let mut gone = 0;
        while statements.make_room(STATEMENT_BYTES_MAX - 25).is_some() {
            gone += 1;
        }
        assert_eq!((gone, statements.len()), (STATEMENTS_MAX - 1 - 2, 2));
        // One that is too large alone is kept alone.
        while statements.make_room(2 * STATEMENT_BYTES_MAX).is_some() {}
        assert!(statements.is_empty());
    }
}
