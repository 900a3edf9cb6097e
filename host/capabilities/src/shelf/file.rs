use super::ShelfOptions;
use super::reading::{self, Broken, Finished, Why};
use super::table::{Table, TableKind};
use crate::Error;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

// On disk, `<name>.table`:
// * one line of text, 48 octets with its end: "switchyard table 1 ", the kind ("exact " or "prefix"), a space, the rows that
//   follow as 16 decimal digits, " rows", a line feed
// * CSV, as it was uploaded
// A file that breaks off has fewer rows than it says.

const FORMAT: &str = "switchyard table 1 ";
const HEADER: usize = 48;
const ENDING: &str = ".table";
const INCOMING: &str = ".incoming-";
/// Writing in pieces of this size keeps system calls few.
const PIECE: usize = 256 * 1024;

fn header(kind: TableKind, rows: u64) -> String {
    let kind = match kind {
        TableKind::Exact => "exact ",
        TableKind::Prefix => "prefix",
    };
    format!("{FORMAT}{kind} {rows:016} rows\n")
}

fn parse_header(line: &str) -> Option<(TableKind, u64)> {
    let (kind, rows) = line.strip_prefix(FORMAT)?.strip_suffix(" rows\n")?.split_at_checked(7)?;
    let kind = match kind {
        "exact  " => TableKind::Exact,
        "prefix " => TableKind::Prefix,
        _ => return None,
    };
    Some((kind, rows.parse().ok()?))
}

fn failed(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Folder { path: path.to_owned(), source: Arc::new(source) }
}

/// The tables of a folder. Removes what broken uploads have left.
pub(super) fn names(folder: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        let Some(file) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if file.starts_with(INCOMING) {
            fs::remove_file(&path).map_err(failed(&path))?;
        } else if let Some(name) = file.strip_suffix(ENDING) {
            names.push((name.to_owned(), path));
        }
    }
    names.sort();
    Ok(names)
}

/// Reads a table's file.
pub(super) fn load(path: &Path, options: ShelfOptions) -> Result<Table, Error> {
    let damaged = |what: String| Error::Damaged { path: path.to_owned(), what };
    let mut file = BufReader::new(File::open(path).map_err(failed(path))?);
    let mut line = String::new();
    let first = (&mut file).take(HEADER as u64).read_line(&mut line);
    first.map_err(|error| damaged(format!("its first line: {error}")))?;
    let (kind, written) =
        parse_header(&line).ok_or_else(|| damaged("its first line is not that of a table".to_owned()))?;
    // What was taken once is read again, also if the limits are smaller now.
    let options = ShelfOptions { rows: options.rows.max(written), octets: u64::MAX };
    let Finished { table, rows } = match reading::read(kind, file, options) {
        Ok(finished) => finished,
        Err(broken) => {
            let error = explain(broken, path)?;
            return Err(damaged(format!("in its CSV, {error}")));
        }
    };
    if rows != written {
        return Err(damaged(format!("it has {rows} rows, and {written} were written")));
    }
    Ok(table)
}

/// Reads an upload into memory and into a file that has no name yet; both are whole then, and the file is on disk.
pub(super) fn receive(
    folder: &Path,
    kind: TableKind,
    csv: impl Read,
    options: ShelfOptions,
) -> Result<(NamedTempFile, Table), Error> {
    let file = tempfile::Builder::new().prefix(INCOMING).tempfile_in(folder).map_err(failed(folder))?;
    let table = copy(kind, csv, options, &file)?;
    Ok((file, table))
}

fn copy(
    kind: TableKind,
    csv: impl Read,
    options: ShelfOptions,
    file: &NamedTempFile,
) -> Result<Table, Error> {
    let failed = failed(file.path());
    let mut copying = Copying { csv, file: BufWriter::with_capacity(PIECE, file.as_file()), failure: None };
    copying.file.write_all(header(kind, 0).as_bytes()).map_err(&failed)?;
    let read = reading::read(kind, &mut copying, options);
    if let Some(failure) = copying.failure.take() {
        return Err(failed(failure));
    }
    let finished = match read {
        Ok(finished) => finished,
        Err(broken) => {
            copying.file.flush().map_err(&failed)?;
            return Err(explain(broken, file.path())?);
        }
    };
    let mut written = copying.file.into_inner().map_err(|error| failed(error.into_error()))?;
    written.rewind().map_err(&failed)?;
    written.write_all(header(kind, finished.rows).as_bytes()).map_err(&failed)?;
    written.sync_all().map_err(&failed)?;
    Ok(finished.table)
}

/// Says in which line of the CSV of a file it broke.
fn explain(broken: Broken, path: &Path) -> Result<Error, Error> {
    let mut file = File::open(path).map_err(failed(path))?;
    file.seek(SeekFrom::Start(HEADER as u64)).map_err(failed(path))?;
    let line = reading::line(BufReader::with_capacity(PIECE, file), broken.at).map_err(failed(path))?;
    Ok(match broken.why {
        Why::Row(what) => Error::Line { line, what },
        Why::TooLarge(most, of) => Error::TooLarge { line, most, of },
        Why::Io(source) => Error::Upload { line, source: Arc::new(source) },
    })
}

/// Gives a received file the table's name, in the place of an older one; durable when it returns.
pub(super) fn keep(file: NamedTempFile, folder: &Path, name: &str) -> Result<(), Error> {
    let path = folder.join(format!("{name}{ENDING}"));
    file.persist(&path).map_err(|error| failed(&path)(error.error))?;
    sync(folder)
}

/// Removes a table's file, durably.
pub(super) fn remove(folder: &Path, name: &str) -> Result<(), Error> {
    let path = folder.join(format!("{name}{ENDING}"));
    fs::remove_file(&path).map_err(failed(&path))?;
    sync(folder)
}

fn sync(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed(folder))
}

/// Writes what is read to a file.
struct Copying<R, W: Write> {
    csv: R,
    file: BufWriter<W>,
    /// Why writing failed; reading ended there.
    failure: Option<io::Error>,
}

impl<R: Read, W: Write> Read for Copying<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let octets = self.csv.read(buffer)?;
        if let Err(error) = self.file.write_all(buffer.get(..octets).unwrap_or_default()) {
            self.failure = Some(error);
            return Err(io::Error::other("the disk"));
        }
        Ok(octets)
    }
}
