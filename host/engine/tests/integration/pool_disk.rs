//! The number pools on disk.

use model::{
    JournalPart, MessageId, NumberRow, PoolBatch, PoolId, PoolName, PoolNumber, PoolPurge, PoolRecord,
    RecoveredRecord,
};
use std::collections::BTreeMap;

#[derive(Clone, Default, PartialEq)]
pub(crate) struct PoolDisk {
    records: BTreeMap<PoolId, PoolRecord>,
    journal: BTreeMap<(PoolId, u64), JournalPart>,
    numbers: BTreeMap<(PoolId, PoolNumber), NumberRow>,
}

impl PoolDisk {
    pub(crate) fn commit(&mut self, batch: PoolBatch) {
        for record in batch.records {
            self.records.insert(record.id, record);
        }
        for part in batch.journal {
            let last = self.journal.range((part.pool, 0)..(part.pool, u64::MAX)).next_back();
            if let Some((_, last)) = last {
                assert_eq!(last.first + last.entries.len() as u64, part.first, "a gap in a journal");
            }
            self.journal.insert((part.pool, part.first), part);
        }
        for (pool, number, row) in batch.numbers {
            match row {
                Some(row) => self.numbers.insert((pool, number), row),
                None => self.numbers.remove(&(pool, number)),
            };
        }
        for (pool, upto) in batch.trimmed {
            self.journal.retain(|(of, first), part| *of != pool || first + part.entries.len() as u64 > upto);
        }
        if let Some((pool, PoolPurge::Rest)) = batch.purged {
            self.records.remove(&pool);
            self.numbers.retain(|(of, _), _| *of != pool);
            self.journal.retain(|(of, _), _| *of != pool);
        }
    }

    /// The records that a start reads.
    pub(crate) fn records(&self) -> Vec<RecoveredRecord> {
        let mut found = Vec::new();
        for (id, record) in &self.records {
            found.push(if record.removed {
                RecoveredRecord::PoolRemoved(*id, self.numbers.len() + self.journal.len())
            } else {
                RecoveredRecord::Pool(record.clone())
            });
        }
        let numbers = self.numbers.iter();
        found.extend(
            numbers.map(|((pool, number), row)| RecoveredRecord::Number(*pool, *number, row.clone())),
        );
        let ahead = self.journal.values().filter(|part| {
            let folded = self.records.get(&part.pool).map_or(0, |record| record.folded);
            part.first + part.entries.len() as u64 > folded
        });
        found.extend(ahead.cloned().map(RecoveredRecord::Journal));
        found
    }

    /// All numbers of existing pools, in their current state.
    pub(crate) fn numbers(&self) -> BTreeMap<(PoolName, PoolNumber), NumberRow> {
        let name = |pool: &PoolId| {
            self.records.get(pool).filter(|record| !record.removed).map(|record| record.name.clone())
        };
        let mut standing = BTreeMap::new();
        for ((pool, number), row) in &self.numbers {
            if let Some(name) = name(pool) {
                standing.insert((name, *number), row.clone());
            }
        }
        for part in self.journal.values() {
            let Some(name) = name(&part.pool) else { continue };
            let folded = self.records[&part.pool].folded;
            let behind = usize::try_from(folded.saturating_sub(part.first)).unwrap_or(usize::MAX);
            for entry in part.entries.iter().skip(behind) {
                match &entry.row {
                    Some(row) => standing.insert((name.clone(), entry.number), row.clone()),
                    None => standing.remove(&(name.clone(), entry.number)),
                };
            }
        }
        standing
    }

    /// The leases on disk.
    pub(crate) fn held(&self) -> Vec<(PoolName, PoolNumber, MessageId)> {
        let held = self.numbers().into_iter();
        held.filter_map(|((pool, number), row)| Some((pool, number, row.message?))).collect()
    }

    /// The entries of the pools' journals, in the order of writing.
    pub(crate) fn journal(&self) -> impl Iterator<Item = &model::JournalEntry> {
        self.journal.values().flat_map(|part| &part.entries)
    }
}
