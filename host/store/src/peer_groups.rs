//! Peer groups: the ids of their names, and the group of each peer.

use crate::tables::{GROUP_OF, GROUPS};
use crate::{Store, StoreError};
use model::{Batch, PeerId};
use redb::ReadableTable as _;
use std::collections::HashMap;

/// The first id of a named group. Lower ids are peer ids: each peer without a named group is a group of its own.
const FIRST_GROUP: u32 = 1 << 31;

impl Store {
    /// Assigns ids to the groups of configured peers, and stores the group of each peer; durable on return. A name
    /// keeps its id for ever. A peer that is not in `peers` stays in its last group, so that DLRs for its messages are
    /// still matched.
    ///
    /// # Errors
    /// The disk fails.
    pub fn groups(&self, peers: &[(PeerId, Option<&str>)]) -> Result<HashMap<String, u32>, StoreError> {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut before: HashMap<u32, u32> = HashMap::new();
        {
            let transaction = self.read()?;
            for row in transaction.open_table(GROUPS)?.iter()? {
                let (name, number) = row?;
                numbers.insert(name.value().to_owned(), number.value());
            }
            for row in transaction.open_table(GROUP_OF)?.iter()? {
                let (peer, group) = row?;
                before.insert(peer.value(), group.value());
            }
        }
        let mut next = numbers.values().max().map_or(FIRST_GROUP, |last| last.saturating_add(1));
        let mut fresh = Vec::new();
        let mut changed = Vec::new();
        for (peer, name) in peers {
            let group = name.map(|name| {
                *numbers.entry(name.to_owned()).or_insert_with(|| {
                    fresh.push(((*name).into(), next));
                    next = next.saturating_add(1);
                    next - 1
                })
            });
            if before.get(&peer.0).copied() != group {
                changed.push((*peer, group));
            }
        }
        if !(fresh.is_empty() && changed.is_empty()) {
            self.commit(Batch { group_names: fresh, groups: changed, ..Batch::default() })?;
        }
        Ok(numbers)
    }
}
