use super::TableStoreOptions;
use super::csv_reader::{self, ReadError, ReadErrorKind, ReadTable};
use super::table::Table;
use crate::Error;
use api::TableKind;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;

// File format of `<name>.table`:
// * one line of text, 48 octets including its end: "switchyard table 1 ", the kind ("exact " or "prefix"), a space, the
//   number of rows as 16 decimal digits, " rows", a line feed
// * the CSV as uploaded
// A truncated file has fewer rows than its header says.

const FORMAT: &str = "switchyard table 1 ";
const HEADER_OCTETS: usize = 48;
const FILE_SUFFIX: &str = ".table";
const UPLOAD_PREFIX: &str = ".incoming-";
/// A large buffer, to save system calls.
const BUFFER_OCTETS: usize = 256 * 1024;

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

fn folder_error(path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| Error::Folder { path: path.to_owned(), source: Arc::new(source) }
}

/// The tables of a folder. Removes remains of interrupted uploads.
pub(super) fn list(folder: &Path) -> Result<Vec<(String, PathBuf)>, Error> {
    fs::create_dir_all(folder).map_err(folder_error(folder))?;
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(folder_error(folder))? {
        let path = entry.map_err(folder_error(folder))?.path();
        let Some(file) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if file.starts_with(UPLOAD_PREFIX) {
            fs::remove_file(&path).map_err(folder_error(&path))?;
        } else if let Some(name) = file.strip_suffix(FILE_SUFFIX) {
            found.push((name.to_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

/// Reads a table's file.
pub(super) fn load(path: &Path, options: TableStoreOptions) -> Result<Table, Error> {
    let damaged = |what: String| Error::Damaged { path: path.to_owned(), what };
    let mut file = BufReader::new(File::open(path).map_err(folder_error(path))?);
    let mut line = String::new();
    let first = (&mut file).take(HEADER_OCTETS as u64).read_line(&mut line);
    first.map_err(|error| damaged(format!("its first line: {error}")))?;
    let (kind, written) =
        parse_header(&line).ok_or_else(|| damaged("its first line is not a table header".to_owned()))?;
    // A table that was accepted once is read again even if the limits are smaller now.
    let options = TableStoreOptions { rows: options.rows.max(written), octets: u64::MAX };
    let ReadTable { table, rows } = match csv_reader::read(kind, file, options) {
        Ok(finished) => finished,
        Err(error) => {
            let error = locate_error(error, path)?;
            return Err(damaged(format!("in its CSV, {error}")));
        }
    };
    if rows != written {
        return Err(damaged(format!("it has {rows} rows instead of {written}")));
    }
    Ok(table)
}

/// Reads an upload into memory and into an unnamed file. Both are complete on return, and the file is synced to disk.
pub(super) fn receive(
    folder: &Path,
    kind: TableKind,
    csv: impl Read,
    options: TableStoreOptions,
) -> Result<(NamedTempFile, Table), Error> {
    let file =
        tempfile::Builder::new().prefix(UPLOAD_PREFIX).tempfile_in(folder).map_err(folder_error(folder))?;
    let table = read_and_save(kind, csv, options, &file)?;
    Ok((file, table))
}

fn read_and_save(
    kind: TableKind,
    csv: impl Read,
    options: TableStoreOptions,
    file: &NamedTempFile,
) -> Result<Table, Error> {
    let failed = folder_error(file.path());
    let mut tee =
        TeeReader { csv, file: BufWriter::with_capacity(BUFFER_OCTETS, file.as_file()), failure: None };
    tee.file.write_all(header(kind, 0).as_bytes()).map_err(&failed)?;
    let read = csv_reader::read(kind, &mut tee, options);
    if let Some(failure) = tee.failure.take() {
        return Err(failed(failure));
    }
    let finished = match read {
        Ok(finished) => finished,
        Err(error) => {
            tee.file.flush().map_err(&failed)?;
            return Err(locate_error(error, file.path())?);
        }
    };
    let mut written = tee.file.into_inner().map_err(|error| failed(error.into_error()))?;
    written.rewind().map_err(&failed)?;
    written.write_all(header(kind, finished.rows).as_bytes()).map_err(&failed)?;
    written.sync_all().map_err(&failed)?;
    Ok(finished.table)
}

/// Adds the line number in the file's CSV to an error.
fn locate_error(error: ReadError, path: &Path) -> Result<Error, Error> {
    let mut file = File::open(path).map_err(folder_error(path))?;
    file.seek(SeekFrom::Start(HEADER_OCTETS as u64)).map_err(folder_error(path))?;
    let line = csv_reader::line_number(BufReader::with_capacity(BUFFER_OCTETS, file), error.offset)
        .map_err(folder_error(path))?;
    Ok(match error.kind {
        ReadErrorKind::Row(what) => Error::Line { line, what },
        ReadErrorKind::TooLarge(most, of) => Error::TooLarge { line, most, of },
        ReadErrorKind::Io(source) => Error::Upload { line, source: Arc::new(source) },
    })
}

/// Renames a received file to the table's file, durably, and replaces an older one.
pub(super) fn persist(file: NamedTempFile, folder: &Path, name: &str) -> Result<(), Error> {
    let path = folder.join(format!("{name}{FILE_SUFFIX}"));
    file.persist(&path).map_err(|error| folder_error(&path)(error.error))?;
    sync(folder)
}

/// Removes a table's file, durably.
pub(super) fn remove(folder: &Path, name: &str) -> Result<(), Error> {
    let path = folder.join(format!("{name}{FILE_SUFFIX}"));
    fs::remove_file(&path).map_err(folder_error(&path))?;
    sync(folder)
}

fn sync(folder: &Path) -> Result<(), Error> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(folder_error(folder))
}

/// A reader that copies its input to a file.
struct TeeReader<R, W: Write> {
    csv: R,
    file: BufWriter<W>,
    /// The error of a failed write; it ended the reading.
    failure: Option<io::Error>,
}

impl<R: Read, W: Write> Read for TeeReader<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let octets = self.csv.read(buffer)?;
        if let Err(error) = self.file.write_all(buffer.get(..octets).unwrap_or_default()) {
            self.failure = Some(error);
            return Err(io::Error::other("the disk"));
        }
        Ok(octets)
    }
}
