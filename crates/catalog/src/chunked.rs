//! A map that is cheap to copy and to change in part: a copy shares with the original what neither has changed.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// So many parts have a map each; a change copies one of them.
const CHUNKS: usize = 128;

/// Unlike a persistent tree it has few parts to follow when it is read, which happens far more often.
#[derive(Debug, Clone)]
pub struct Chunked<K, V> {
    /// Empty, or [`CHUNKS`].
    chunks: Arc<Vec<Arc<HashMap<K, V>>>>,
    len: usize,
}

impl<K, V> Default for Chunked<K, V> {
    fn default() -> Self {
        Chunked { chunks: Arc::default(), len: 0 }
    }
}

fn chunk_of<Q: Hash + ?Sized>(key: &Q) -> usize {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() as usize % CHUNKS
}

impl<K: Clone + Eq + Hash, V: Clone> Chunked<K, V> {
    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        if self.len == 0 { None } else { self.chunks.get(chunk_of(key))?.get(key) }
    }

    pub fn contains_key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    fn chunk_mut<Q: Hash + ?Sized>(&mut self, key: &Q) -> &mut HashMap<K, V> {
        let chunks = Arc::make_mut(&mut self.chunks);
        if chunks.is_empty() {
            chunks.resize_with(CHUNKS, Arc::default);
        }
        Arc::make_mut(&mut chunks[chunk_of(key)])
    }

    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        let before = self.chunk_mut(&key).insert(key, value);
        self.len += usize::from(before.is_none());
        before
    }

    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if !self.contains_key(key) {
            return None;
        }
        self.len -= 1;
        self.chunk_mut(key).remove(key)
    }
}

impl<K: Clone + Eq + Hash, V: Clone + PartialEq> PartialEq for Chunked<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl<K: Clone + Eq + Hash, V: Clone + Eq> Eq for Chunked<K, V> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_is_changed_leaves_the_original_as_it_was() {
        let mut map: Chunked<String, u32> = Chunked::default();
        assert!(map.is_empty() && map.get("k1").is_none() && map.remove("k1").is_none());
        for n in 0..1000 {
            assert_eq!(map.insert(format!("k{n}"), n), None);
        }
        let mut copy = map.clone();
        assert_eq!(copy, map);
        assert_eq!(copy.insert("k7".to_owned(), 0), Some(7));
        assert_eq!(copy.remove("k8"), Some(8));
        assert_ne!(copy, map);
        assert_eq!((map.get("k7"), map.get("k8")), (Some(&7), Some(&8)));
        assert_eq!((copy.get("k7"), copy.get("k8")), (Some(&0), None));
        let shared = map.chunks.iter().zip(copy.chunks.iter()).filter(|(a, b)| Arc::ptr_eq(a, b)).count();
        assert!(shared >= CHUNKS - 2, "{shared}");
        assert_eq!((copy.keys().count(), map.values().count()), (999, 1000));
        (0..1000).for_each(|n| _ = copy.remove(&format!("k{n}")));
        assert!(copy.is_empty());
        assert_eq!(copy, Chunked::default());
    }
}
