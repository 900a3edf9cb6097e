//! The formats of batches.

use crate::RecordError;

/// A format of batches, with the formats of all records in them.
///
/// The nodes of a cluster read each other's batches, and may have two versions during an upgrade: the leader writes the
/// newest format that all nodes read. A new section, or a new record format, requires a new batch format.
///
/// The first octet of a batch is its format. In format 1 this is also the octet of the first section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum BatchFormat {
    /// Sections up to 31, with records of format 8, and messages of format 9 if the content is encrypted.
    V1 = 1,
}

impl BatchFormat {
    /// All formats that this version reads and writes, oldest first.
    const ALL: [Self; 1] = [Self::V1];
    /// The oldest format.
    pub const OLDEST: Self = Self::ALL[0];
    /// The newest format.
    pub const NEWEST: Self = Self::ALL[Self::ALL.len() - 1];

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The newest format that is not above this number; the oldest format if all are above it.
    #[must_use]
    pub fn up_to(number: u8) -> Self {
        Self::ALL.into_iter().rev().find(|format| format.number() <= number).unwrap_or(Self::OLDEST)
    }

    /// The format of a batch.
    pub(crate) fn of(octets: &[u8]) -> Result<Self, RecordError> {
        let number = octets.first().ok_or(RecordError { what: "an empty batch", offset: 0 })?;
        let known = Self::ALL.into_iter().find(|format| format.number() == *number);
        known.ok_or(RecordError { what: "unknown batch format", offset: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_format_that_others_read_is_chosen() {
        assert_eq!(BatchFormat::up_to(u8::MAX), BatchFormat::NEWEST);
        for format in BatchFormat::ALL {
            assert_eq!(BatchFormat::up_to(format.number()), format);
        }
        assert_eq!(BatchFormat::up_to(0), BatchFormat::OLDEST, "others stop, this node goes on");
        assert!(BatchFormat::ALL.is_sorted());
    }

    /// Fails if records get a new format without a new batch format. Nodes of the previous version do not read the new
    /// records, so the previous batch format must still be written with the old record format.
    #[test]
    fn a_format_of_batches_has_its_formats_of_records() {
        let of_records = BatchFormat::ALL.map(|format| match format {
            BatchFormat::V1 => (8, 9),
        });
        assert_eq!(of_records.last(), Some(&(crate::FORMAT, crate::format::SEALED_FORMAT)));
    }
}
