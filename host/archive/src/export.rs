use crate::history::LIMIT;
use crate::record::{hex, shown};
use crate::{Archive, ArchiveError, Cursor, Filter, Record, Wanted};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// How an export is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// Comma separated values (RFC 4180) with a line of names; lines end with CR LF. A cell that a spreadsheet would run as a
    /// formula begins with an apostrophe.
    Csv,
    /// One JSON object a line.
    JsonLines,
}

impl Format {
    /// The media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::JsonLines => "application/jsonl",
        }
    }
}

/// An export under way. It reads page by page and holds nothing in the data base between them.
#[derive(Debug)]
pub struct Export {
    archive: Archive,
    filter: Filter,
    format: Format,
    wanted: Wanted,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Start,
    After(Cursor),
    End,
}

impl Export {
    pub(crate) fn new(archive: Archive, filter: Filter, format: Format, wanted: Wanted) -> Self {
        Self { archive, filter, format, wanted, place: Place::Start }
    }

    /// The next piece of the file, up to some hundred kilobytes; `None` when it is complete.
    ///
    /// # Errors
    /// When the data base does not answer; asked again, the export goes on where it was.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ArchiveError> {
        let after = match self.place {
            Place::Start => None,
            Place::After(cursor) => Some(cursor),
            Place::End => return Ok(None),
        };
        let page = self.archive.page(&self.filter, after, LIMIT, self.wanted).await?;
        let chunk = match self.format {
            Format::Csv => self.csv(&page.records)?,
            Format::JsonLines => {
                let mut lines = Vec::new();
                for record in &page.records {
                    serde_json::to_writer(&mut lines, record).map_err(std::io::Error::from)?;
                    lines.push(b'\n');
                }
                lines
            }
        };
        self.place = page.next.map_or(Place::End, Place::After);
        Ok(Some(chunk))
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// When the data base does not answer, or the receiver takes no more.
    pub async fn write_to(mut self, out: &mut (impl AsyncWrite + Unpin)) -> Result<(), ArchiveError> {
        while let Some(chunk) = self.next().await? {
            out.write_all(&chunk).await?;
        }
        Ok(out.flush().await?)
    }

    fn csv(&self, records: &[Record]) -> std::io::Result<Vec<u8>> {
        let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        if matches!(self.place, Place::Start) {
            writer.write_record(self.names())?;
        }
        for record in records {
            writer.write_record(self.fields(record).into_iter().map(harmless))?;
        }
        writer.into_inner().map_err(csv::IntoInnerError::into_error)
    }

    fn names(&self) -> Vec<&'static str> {
        crate::record::columns(self.wanted.body, self.wanted.trace)
            .into_iter()
            .map(|(name, _)| name)
            .collect()
    }

    /// In the order of [`Export::names`].
    fn fields(&self, record: &Record) -> Vec<String> {
        let mut fields = vec![
            record.id.to_string(),
            shown(record.accepted_at),
            shown(record.ended_at),
            record.direction.name().to_owned(),
            record.account.clone(),
            record.peer.clone(),
            record.source.clone(),
            record.source_ton.to_string(),
            record.source_npi.to_string(),
            record.destination.clone(),
            record.destination_ton.to_string(),
            record.destination_npi.to_string(),
            record.state.name().to_owned(),
            record.error.to_string(),
            record.peer_message_id.clone().unwrap_or_default(),
            record.attempts.to_string(),
            record.priority.to_string(),
            record.data_coding.to_string(),
            record.udhi.to_string(),
        ];
        if self.wanted.body {
            fields.push(hex(record.body.as_deref().unwrap_or_default()));
        }
        fields.push(record.router.clone());
        fields.push(record.router_version.clone());
        fields.push(record.note.clone().unwrap_or_default());
        if self.wanted.trace {
            fields.push(record.trace.as_ref().map(|trace| trace.get().to_owned()).unwrap_or_default());
        }
        let price = record.price.as_ref();
        fields.push(price.map(|price| price.amount.to_string()).unwrap_or_default());
        fields.push(price.and_then(|price| price.account.clone()).unwrap_or_default());
        fields.push(price.map(|price| price.state.name().to_owned()).unwrap_or_default());
        fields
    }
}

/// A cell that a spreadsheet would run as a formula gets an apostrophe in front, which makes it a text. A number with a
/// sign, such as a price or an international address, stays as it is.
fn harmless(cell: String) -> String {
    let is_number = || {
        let digits = cell.strip_prefix(['+', '-']).unwrap_or(&cell);
        !digits.is_empty() && digits.bytes().all(|octet| octet.is_ascii_digit() || octet == b'.')
    };
    if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number() { format!("'{cell}") } else { cell }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_a_spreadsheet_would_run_become_texts() {
        for bad in ["=1+1", "+1+cmd|'/C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "+", "-"] {
            assert_eq!(harmless(bad.to_owned()), format!("'{bad}"));
        }
        for good in ["", "+4917012345678", "-12", "-0.5", "shop", "a=b", "2026-11-23T18:00:00Z"] {
            assert_eq!(harmless(good.to_owned()), good);
        }
    }
}
