mod chain;

pub use chain::ChainHlr;

use crate::shelf::Shelf;
use std::sync::Arc;

/// The home location register: who stands behind a number.
pub trait Hlr: Send + Sync {
    /// Finds a subscriber by the number's digits; a leading plus sign does not count. May take its time: not to be called
    /// where a submitter waits.
    ///
    /// # Errors
    /// There is none, or there was no answer.
    fn look_up(&self, msisdn: &str) -> Result<HlrSubscriber, HlrFailure>;
}

/// A subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HlrSubscriber {
    /// International mobile subscriber identity: 6 to 15 decimal digits.
    pub imsi: String,
    /// The peer that serves the subscriber, where it is known.
    pub serving: Option<String>,
}

/// Why there is no subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HlrFailure {
    /// No such subscriber.
    Unknown,
    /// No answer.
    Unreachable,
}

/// Answers from the table `hlr`, where there is no link to a real register or none that answers: the number as key; IMSI and,
/// after a comma, the serving peer as value.
#[derive(Debug)]
pub struct TableHlr(Arc<Shelf>);

impl TableHlr {
    /// The table's name.
    pub const TABLE: &str = "hlr";

    /// Answers from this shelf.
    #[must_use]
    pub fn new(shelf: Arc<Shelf>) -> Self {
        Self(shelf)
    }
}

impl Hlr for TableHlr {
    /// Without the table, or with a value that is no IMSI, there is no answer: "unknown" would be taken for the truth.
    fn look_up(&self, msisdn: &str) -> Result<HlrSubscriber, HlrFailure> {
        let table = self.0.get(Self::TABLE).ok_or(HlrFailure::Unreachable)?;
        let value = table.get(msisdn.strip_prefix('+').unwrap_or(msisdn)).ok_or(HlrFailure::Unknown)?;
        let (imsi, serving) = match value.split_once(',') {
            Some((imsi, serving)) => (imsi.trim(), Some(serving.trim()).filter(|name| !name.is_empty())),
            None => (value.trim(), None),
        };
        if !(6..=15).contains(&imsi.len()) || !imsi.bytes().all(|digit| digit.is_ascii_digit()) {
            tracing::warn!(
                table = Self::TABLE,
                "a value is not an IMSI of 6 to 15 digits; upload the table again"
            );
            return Err(HlrFailure::Unreachable);
        }
        Ok(HlrSubscriber { imsi: imsi.to_owned(), serving: serving.map(str::to_owned) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shelf::{ShelfOptions, TableKind};

    #[test]
    fn a_table_answers() {
        let folder = tempfile::tempdir().unwrap();
        let shelf = Arc::new(Shelf::open(folder.path(), ShelfOptions::default()).unwrap());
        let hlr = TableHlr::new(Arc::clone(&shelf));
        assert_eq!(hlr.look_up("4915112345"), Err(HlrFailure::Unreachable), "no table, no answer");
        let csv = "4915112345,262011234567890\n4915112346,\"262011234567891, msc-a\"\n4915112347,nonsense\n";
        shelf.put("hlr", TableKind::Exact, csv.as_bytes()).unwrap();
        let subscriber = hlr.look_up("+4915112345").unwrap();
        assert_eq!(subscriber, HlrSubscriber { imsi: "262011234567890".into(), serving: None });
        assert_eq!(hlr.look_up("4915112346").unwrap().serving.as_deref(), Some("msc-a"));
        assert_eq!(hlr.look_up("4915112347"), Err(HlrFailure::Unreachable));
        assert_eq!(hlr.look_up("4915112348"), Err(HlrFailure::Unknown));
    }
}
