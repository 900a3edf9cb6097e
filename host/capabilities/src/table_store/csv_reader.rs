use super::TableStoreOptions;
use super::table::{Table, TableBuilder};
use api::TableKind;
use csv::{ByteRecord, ErrorKind, ReaderBuilder};
use std::io::{self, Read};

/// A large buffer, to save system calls.
const BUFFER_OCTETS: usize = 256 * 1024;

/// A table after reading.
pub(super) struct ReadTable {
    pub(super) table: Table,
    /// Number of rows read, including rows with repeated keys.
    pub(super) rows: u64,
}

/// The reason why a table could not be read.
pub(super) struct ReadError {
    /// Offset of the row, in octets; may exclude empty lines directly before it.
    pub(super) offset: u64,
    pub(super) kind: ReadErrorKind,
}

pub(super) enum ReadErrorKind {
    /// The row is invalid.
    Row(String),
    /// The table has more than this number of rows or octets.
    TooLarge(u64, &'static str),
    /// Reading failed.
    Io(io::Error),
}

/// Reads CSV into a table.
pub(super) fn read(
    kind: TableKind,
    csv: impl Read,
    options: TableStoreOptions,
) -> Result<ReadTable, ReadError> {
    let limit = options.octets.min(u64::from(u32::MAX));
    let limited = LimitedReader { csv, remaining: limit };
    let mut csv = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .buffer_capacity(BUFFER_OCTETS)
        .from_reader(limited);
    let mut builder = TableBuilder::new(kind);
    let mut record = ByteRecord::new();
    let mut rows = 0;
    let mut first = true;
    loop {
        let offset = csv.position().byte();
        let error_at = |kind| ReadError { offset, kind };
        match csv.read_byte_record(&mut record) {
            Ok(true) => (),
            Ok(false) => return Ok(ReadTable { table: builder.build(), rows }),
            Err(error) => return Err(error_at(error_kind(error, limit))),
        }
        let wrong = |what| error_at(ReadErrorKind::Row(what));
        let (Some(key), Some(value), None) = (record.get(0), record.get(1), record.get(2)) else {
            let fields = record.len();
            let what =
                format!("{fields} fields, instead of a key and a value; quote a value that has a comma");
            return Err(wrong(what));
        };
        let utf8 = |octets, of| str::from_utf8(octets).map_err(|_| wrong(format!("the {of} is not UTF-8")));
        let (key, value) = (utf8(key, "key")?, utf8(value, "value")?);
        let is_title = std::mem::take(&mut first) && (key, value) == ("key", "value");
        if is_title {
            continue;
        }
        if rows == options.rows {
            return Err(error_at(ReadErrorKind::TooLarge(options.rows, "rows")));
        }
        builder.insert(key, value).map_err(wrong)?;
        rows += 1;
    }
}

fn error_kind(error: csv::Error, limit: u64) -> ReadErrorKind {
    match error.into_kind() {
        ErrorKind::Io(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
            ReadErrorKind::TooLarge(limit, "octets")
        }
        ErrorKind::Io(error) => ReadErrorKind::Io(error),
        other => ReadErrorKind::Row(format!("{other:?}")),
    }
}

/// The line number, counted from 1, of the row at `offset`, which may exclude empty lines directly before it. The CSV
/// reader counts line ends differently from text editors.
pub(super) fn line_number(csv: impl io::BufRead, offset: u64) -> io::Result<u64> {
    let mut line = 1;
    for (position, octet) in (0..).zip(csv.bytes()) {
        match octet? {
            b'\n' => line += 1,
            b'\r' => (),
            _ if position >= offset => break,
            _ => (),
        }
    }
    Ok(line)
}

/// A reader that fails when the input exceeds a limit.
struct LimitedReader<R> {
    csv: R,
    remaining: u64,
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let octets = self.csv.read(buffer)?;
        self.remaining = self
            .remaining
            .checked_sub(octets as u64)
            .ok_or_else(|| io::Error::from(io::ErrorKind::QuotaExceeded))?;
        Ok(octets)
    }
}
