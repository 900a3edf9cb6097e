//! Peer groups: numbers of their names, and in which group each peer is.

use crate::{Store, StoreError};
use model::PeerId;
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use std::collections::HashMap;

/// Name → number of a peer group. Never changed once written.
pub(crate) const GROUPS: TableDefinition<'_, &str, u32> = TableDefinition::new("groups");
/// Peer number → number of the named group in which the peer was last configured.
pub(crate) const GROUP_OF: TableDefinition<'_, u32, u32> = TableDefinition::new("group_of");

/// Numbers of named groups begin here; below are those of peers, each a group of its own.
const FIRST_GROUP: u32 = 1 << 31;

impl Store {
    /// Numbers the groups of configured peers, and remembers which peer is in which group; both durable on return. A
    /// name keeps its number for ever, whichever peers are in the group and in whatever order. A peer that is not
    /// among `peers` stays in its last group, so that DLRs for its messages are still found.
    ///
    /// # Errors
    /// When the disk fails.
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
