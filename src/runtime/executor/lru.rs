//! A map that forgets what was not used for longest.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;

/// A map that forgets the entry that was not used for longest when it is full. Keys are compared in full; their hash only finds
/// them, and is one that is fast for long keys: a kernel is one.
pub(super) struct Bounded<K, V, S = RandomState> {
    pub(super) map: HashMap<K, (u64, V), S>,
    pub(super) clock: u64,
}

impl<K, V, S: Default> Default for Bounded<K, V, S> {
    fn default() -> Self {
        Bounded { map: HashMap::default(), clock: 0 }
    }
}

impl<K: Hash + Eq + Clone, V: Clone, S: BuildHasher> Bounded<K, V, S> {
    pub(super) fn get(&mut self, key: &K) -> Option<V> {
        self.clock += 1;
        let (used, v) = self.map.get_mut(key)?;
        *used = self.clock;
        Some(v.clone())
    }

    pub(super) fn insert(&mut self, key: K, v: V, most: usize) {
        if self.map.len() >= most
            && !self.map.contains_key(&key)
            && let Some(oldest) = self.map.iter().min_by_key(|(_, (used, _))| *used).map(|(k, _)| k.clone())
        {
            self.map.remove(&oldest);
        }
        self.clock += 1;
        self.map.insert(key, (self.clock, v));
    }
}
