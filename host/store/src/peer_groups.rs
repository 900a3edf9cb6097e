//! Peer groups: the ids of their names, and the group of each peer.

use crate::{Store, StoreError};
use model::PeerId;
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use std::collections::HashMap;

/// Name → id of a peer group. Never changed once written.
pub(crate) const GROUPS: TableDefinition<'_, &str, u32> = TableDefinition::new("groups");
/// Peer id → id of the named group in which the peer was last configured.
pub(crate) const GROUP_OF: TableDefinition<'_, u32, u32> = TableDefinition::new("group_of");

/// The first id of named groups; lower ones are those of peers, each a group of its own.
const FIRST_GROUP: u32 = 1 << 31;

impl Store {
    /// Assigns ids to the groups of configured peers, and stores the group of each peer; durable on return. A name
    /// keeps its id for ever. A peer that is not in `peers` stays in its last group, so that DLRs for its messages
    /// are still matched.
    ///
    /// # Errors
    /// The disk fails.
    pub fn groups(&self, peers: &[(PeerId, Option<&str>)]) -> Result<HashMap<String, u32>, StoreError> {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut before: HashMap<u32, u32> = HashMap::new();
        {
            let transaction = self.database.begin_read()?;
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
                    fresh.push((name, next));
                    next = next.saturating_add(1);
                    next - 1
                })
            });
            if before.get(&peer.0).copied() != group {
                changed.push((peer.0, group));
            }
        }
        if !(fresh.is_empty() && changed.is_empty()) {
            let transaction = self.begin()?;
            {
                let mut groups = transaction.open_table(GROUPS)?;
                for (name, number) in fresh {
                    groups.insert(name, number)?;
                }
                let mut group_of = transaction.open_table(GROUP_OF)?;
                for (peer, group) in changed {
                    match group {
                        Some(group) => group_of.insert(peer, group)?,
                        None => group_of.remove(peer)?,
                    };
                }
            }
            transaction.commit()?;
        }
        Ok(numbers)
    }
}
