use super::ShelfOptions;
use super::table::{Building, Table, TableKind};
use crate::Error;
use csv::{ByteRecord, ErrorKind, ReaderBuilder};
use std::io::{self, Read};
use std::sync::Arc;

/// Reading in pieces of this size keeps system calls few.
const PIECE: usize = 256 * 1024;

/// A table that was read.
pub(crate) struct Finished {
    pub(crate) table: Table,
    /// Rows that were read, those included whose key came again.
    pub(crate) rows: u64,
}

/// Reads CSV into a table. `line_offset`: lines that stand before it in its file.
pub(crate) fn read(
    kind: TableKind,
    csv: impl Read,
    options: ShelfOptions,
    line_offset: u64,
) -> Result<Finished, Error> {
    let limit = options.octets.min(u64::from(u32::MAX));
    let counted = Counted { csv, left: limit };
    let mut csv =
        ReaderBuilder::new().has_headers(false).flexible(true).buffer_capacity(PIECE).from_reader(counted);
    let mut building = Building::new(kind);
    let mut record = ByteRecord::new();
    let mut rows = 0;
    loop {
        let begins = csv.position().line() + line_offset;
        match csv.read_byte_record(&mut record) {
            Ok(true) => (),
            Ok(false) => break,
            Err(error) => return Err(broken(error, begins, limit)),
        }
        let line = record.position().map_or(begins, |position| position.line() + line_offset);
        let wrong = |what: String| Error::Line { line, what };
        let (Some(key), Some(value), None) = (record.get(0), record.get(1), record.get(2)) else {
            let fields = record.len();
            let what =
                format!("{fields} fields, not a key and a value; a value that has a comma stands in quotes");
            return Err(wrong(what));
        };
        let utf8 = |octets, of| str::from_utf8(octets).map_err(|_| wrong(format!("the {of} is not UTF-8")));
        let (key, value) = (utf8(key, "key")?, utf8(value, "value")?);
        if rows == 0 && line == line_offset + 1 && (key, value) == ("key", "value") {
            continue;
        }
        if rows == options.rows {
            return Err(Error::TooLarge { line, most: options.rows, of: "rows" });
        }
        building.insert(key, value).map_err(wrong)?;
        rows += 1;
    }
    Ok(Finished { table: building.done(), rows })
}

fn broken(error: csv::Error, line: u64, limit: u64) -> Error {
    match error.into_kind() {
        ErrorKind::Io(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
            Error::TooLarge { line, most: limit, of: "octets" }
        }
        ErrorKind::Io(source) => Error::Upload { line, source: Arc::new(source) },
        other => Error::Line { line, what: format!("{other:?}") },
    }
}

/// Ends with an error when more comes than is allowed.
struct Counted<R> {
    csv: R,
    left: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let octets = self.csv.read(buffer)?;
        self.left = self
            .left
            .checked_sub(octets as u64)
            .ok_or_else(|| io::Error::from(io::ErrorKind::QuotaExceeded))?;
        Ok(octets)
    }
}
