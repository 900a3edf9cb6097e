use crate::history::MAX_PAGE;
use crate::record::format_time;
use crate::{Archive, ArchiveError, ArchiveFilter, Record, RecordFields};
use api::FinishedMessageView;
use model::{AccountScope, MessageId, NumberDisplay, hex};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// The file format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExportFormat {
    /// Comma-separated values (RFC 4180) with a header line and CR LF line ends. Cells that a spreadsheet would run as
    /// formulas are prefixed with an apostrophe.
    Csv,
    /// One JSON object per line.
    JsonLines,
}

impl ExportFormat {
    /// The media type.
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::JsonLines => "application/jsonl",
        }
    }
}

/// A running export. It reads page by page and holds no lock in the database between pages.
#[derive(Debug)]
pub struct HistoryExport {
    archive: Archive,
    filter: ArchiveFilter,
    format: ExportFormat,
    fields: RecordFields,
    numbers: NumberDisplay,
    scope: AccountScope,
    position: ExportPosition,
}

#[derive(Debug)]
enum ExportPosition {
    Start,
    After(MessageId),
    End,
}

impl Archive {
    /// All matching messages, newest first, as chunks of a file.
    #[must_use]
    pub fn export(&self, filter: ArchiveFilter, format: ExportFormat, fields: RecordFields) -> HistoryExport {
        HistoryExport::new(self.clone(), filter, format, fields)
    }
}

impl HistoryExport {
    pub(crate) fn new(
        archive: Archive,
        filter: ArchiveFilter,
        format: ExportFormat,
        fields: RecordFields,
    ) -> Self {
        Self {
            archive,
            filter,
            format,
            fields,
            numbers: NumberDisplay::Masked,
            scope: AccountScope::Everything,
            position: ExportPosition::Start,
        }
    }

    /// Sets the display of numbers; they are masked by default.
    #[must_use]
    pub fn with_numbers(mut self, numbers: NumberDisplay) -> Self {
        self.numbers = numbers;
        self
    }

    /// Restricts the export to the messages of a scope; see [`Record::within`].
    #[must_use]
    pub fn within(mut self, scope: AccountScope) -> Self {
        self.filter.within = scope.accounts().map(Into::into);
        self.scope = scope;
        self
    }

    /// The next chunk of the file, up to some hundred kilobytes; `None` at the end.
    ///
    /// # Errors
    /// Fails if the database does not answer; the next call continues at the same position.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, ArchiveError> {
        let after = match self.position {
            ExportPosition::Start => None,
            ExportPosition::After(cursor) => Some(cursor),
            ExportPosition::End => return Ok(None),
        };
        let page = self.archive.page(&self.filter, after, MAX_PAGE, self.fields).await?;
        let records = page.records.into_iter().filter_map(|record| record.within(&self.scope));
        let records = records.map(|record| record.redacted(self.numbers, self.fields.body));
        let chunk = match self.format {
            ExportFormat::Csv => self.csv(&records.collect::<Vec<_>>())?,
            ExportFormat::JsonLines => {
                let mut lines = Vec::new();
                for record in records {
                    serde_json::to_writer(&mut lines, &FinishedMessageView::from(record))
                        .map_err(std::io::Error::from)?;
                    lines.push(b'\n');
                }
                lines
            }
        };
        self.position = page.next.map_or(ExportPosition::End, ExportPosition::After);
        Ok(Some(chunk))
    }

    /// Writes the whole export.
    ///
    /// # Errors
    /// Fails if the database does not answer or `out` fails.
    pub async fn write_to(mut self, out: &mut (impl AsyncWrite + Unpin)) -> Result<(), ArchiveError> {
        while let Some(chunk) = self.next().await? {
            out.write_all(&chunk).await?;
        }
        Ok(out.flush().await?)
    }

    fn csv(&self, records: &[Record]) -> std::io::Result<Vec<u8>> {
        let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(Vec::new());
        if matches!(self.position, ExportPosition::Start) {
            writer.write_record(self.names())?;
        }
        for record in records {
            writer.write_record(self.fields(record).into_iter().map(neutralize_formula))?;
        }
        writer.into_inner().map_err(csv::IntoInnerError::into_error)
    }

    fn names(&self) -> Vec<&'static str> {
        crate::record::columns(self.fields.body, self.fields.trace)
            .into_iter()
            .map(|(name, _)| name)
            .filter(|name| *name != "text_key")
            .collect()
    }

    /// In the order of [`HistoryExport::names`].
    fn fields(&self, record: &Record) -> Vec<String> {
        let mut fields = vec![
            record.id.to_string(),
            format_time(record.accepted_at),
            format_time(record.ended_at),
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
        if self.fields.body {
            fields.push(hex(record.body.as_deref().unwrap_or_default()));
        }
        fields.push(record.router.clone());
        fields.push(record.router_version.clone());
        fields.push(record.note.clone().unwrap_or_default());
        if self.fields.trace {
            fields.push(record.trace.as_ref().map(|trace| trace.get().to_owned()).unwrap_or_default());
        }
        let price = record.price.as_ref();
        fields.push(price.map(|price| price.amount.to_string()).unwrap_or_default());
        fields.push(price.and_then(|price| price.account.clone()).unwrap_or_default());
        fields.push(price.map(|price| price.state.name().to_owned()).unwrap_or_default());
        fields.push(record.content_erased_at.map(format_time).unwrap_or_default());
        fields
    }
}

/// Prefixes a cell that a spreadsheet would run as a formula with an apostrophe. Signed numbers, such as prices and
/// international addresses, stay unchanged.
fn neutralize_formula(cell: String) -> String {
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
    fn formula_cells_are_neutralized() {
        for bad in ["=1+1", "+1+cmd|'/C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "+", "-"] {
            assert_eq!(neutralize_formula(bad.to_owned()), format!("'{bad}"));
        }
        for good in ["", "+4917012345678", "-12", "-0.5", "shop", "a=b", "2026-11-23T18:00:00Z"] {
            assert_eq!(neutralize_formula(good.to_owned()), good);
        }
    }
}
