//! Files that the document names.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// Maximum size of a file that is read, in octets.
const MAX_OCTETS: u64 = 1 << 20;

/// Opens a regular file. Pipes and devices are refused because reading them may not end.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("is not a regular file"));
    }
    File::open(path)
}

/// Reads a text file that a key names: a secret, a URL, a number plan.
///
/// # Errors
/// If the file cannot be read, is not a regular file, or is larger than a megabyte.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_regular(path)?.take(MAX_OCTETS + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_OCTETS {
        return Err(io::Error::other(format!("is larger than {MAX_OCTETS} octets")));
    }
    Ok(text)
}
