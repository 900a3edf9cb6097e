use super::ShelfOptions;
use super::table::{Building, Table, TableKind};
use csv::{ByteRecord, ErrorKind, ReaderBuilder};
use std::io::{self, Read};

/// Reading in pieces of this size keeps system calls few.
const PIECE: usize = 256 * 1024;

/// A table that was read.
pub(super) struct Finished {
    pub(super) table: Table,
    /// Rows that were read, those included whose key came again.
    pub(super) rows: u64,
}

/// Why a table was not read.
pub(super) struct Broken {
    /// Octets before the row, empty lines before it perhaps not included.
    pub(super) at: u64,
    pub(super) why: Why,
}

pub(super) enum Why {
    /// The row is wrong.
    Row(String),
    /// There are more than so many of these.
    TooLarge(u64, &'static str),
    /// There was no more to read.
    Io(io::Error),
}

/// Reads CSV into a table.
pub(super) fn read(kind: TableKind, csv: impl Read, options: ShelfOptions) -> Result<Finished, Broken> {
    let limit = options.octets.min(u64::from(u32::MAX));
    let counted = Counted { csv, left: limit };
    let mut csv =
        ReaderBuilder::new().has_headers(false).flexible(true).buffer_capacity(PIECE).from_reader(counted);
    let mut building = Building::new(kind);
    let mut record = ByteRecord::new();
    let mut rows = 0;
    let mut first = true;
    loop {
        let at = csv.position().byte();
        let broken = |why| Broken { at, why };
        match csv.read_byte_record(&mut record) {
            Ok(true) => (),
            Ok(false) => return Ok(Finished { table: building.done(), rows }),
            Err(error) => return Err(broken(reason(error, limit))),
        }
        let wrong = |what| broken(Why::Row(what));
        let (Some(key), Some(value), None) = (record.get(0), record.get(1), record.get(2)) else {
            let fields = record.len();
            let what =
                format!("{fields} fields, not a key and a value; a value that has a comma stands in quotes");
            return Err(wrong(what));
        };
        let utf8 = |octets, of| str::from_utf8(octets).map_err(|_| wrong(format!("the {of} is not UTF-8")));
        let (key, value) = (utf8(key, "key")?, utf8(value, "value")?);
        let is_title = std::mem::take(&mut first) && (key, value) == ("key", "value");
        if is_title {
            continue;
        }
        if rows == options.rows {
            return Err(broken(Why::TooLarge(options.rows, "rows")));
        }
        building.insert(key, value).map_err(wrong)?;
        rows += 1;
    }
}

fn reason(error: csv::Error, limit: u64) -> Why {
    match error.into_kind() {
        ErrorKind::Io(error) if error.kind() == io::ErrorKind::QuotaExceeded => {
            Why::TooLarge(limit, "octets")
        }
        ErrorKind::Io(error) => Why::Io(error),
        other => Why::Row(format!("{other:?}")),
    }
}

/// The line, counted from 1, of the row before which there are `at` octets and perhaps empty lines. The CSV reader counts
/// the ends of lines in another way, which is of no use to somebody with an editor.
pub(super) fn line(csv: impl io::BufRead, at: u64) -> io::Result<u64> {
    let mut line = 1;
    for (position, octet) in (0..).zip(csv.bytes()) {
        match octet? {
            b'\n' => line += 1,
            b'\r' => (),
            _ if position >= at => break,
            _ => (),
        }
    }
    Ok(line)
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
