//! Imports and exports the numbers of a pool.

use super::path;
use crate::output::{Failure, Output};
use api::PoolImportResult;
use client::{ApiClient, Progress};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufReader, Read, Write};
use std::path::Path;

/// Whether the format is JSON lines, by option or file extension.
fn is_ndjson(file: Option<&Path>, format: Option<&str>) -> bool {
    let ending = file.and_then(Path::extension).and_then(OsStr::to_str);
    format.map_or_else(|| matches!(ending, Some("ndjson" | "jsonl")), |format| format == "ndjson")
}

pub(super) fn import(
    api: &ApiClient,
    output: &Output,
    pool: &str,
    file: &Path,
    format: Option<&str>,
    reg: bool,
) -> Result<(), Failure> {
    let kind = if is_ndjson(Some(file), format) { "application/x-ndjson" } else { "text/csv" };
    let (input, length): (Box<dyn Read>, Option<u64>) = match file.to_str() {
        Some("-") => (Box::new(std::io::stdin().lock()), None),
        _ => {
            let opened = File::open(file).map_err(Failure::file(file))?;
            let length = opened.metadata().map_err(Failure::file(file))?.len();
            (Box::new(BufReader::new(opened)), Some(length))
        }
    };
    let path = path(pool, if reg { "/import?reg=true" } else { "/import" });
    let progress = Progress::for_octets(output.shows_progress(), "imported", length);
    let answer = api.send_all("POST", &path, &[("content-type", kind)], &mut progress.reader(input))?;
    drop(progress);
    let result: PoolImportResult = api.typed(&path, answer)?;
    if output.json {
        output.document(&result)?;
    } else {
        output.line(&format!("{} added, {} already exist", result.added, result.already))?;
        for invalid in &result.errors {
            output.remark(&format!("line {}: {}", invalid.line, invalid.detail));
        }
    }
    match (result.wrong, result.refused) {
        (0, 0) => Ok(()),
        (invalid, refused) => Err(Failure::PartlyRefused(format!(
            "{invalid} lines are wrong, {refused} numbers were refused: the appliance's limit is reached"
        ))),
    }
}

pub(super) fn export(
    api: &ApiClient,
    output: &Output,
    pool: &str,
    file: Option<&Path>,
    format: Option<&str>,
) -> Result<(), Failure> {
    let format = if output.json || is_ndjson(file, format) { "ndjson" } else { "csv" };
    let mut answer = api.open(&path(pool, &format!("/export?format={format}")), &[])?;
    let mut out: Box<dyn Write> = match file {
        Some(path) => Box::new(File::create(path).map_err(Failure::file(path))?),
        None => Box::new(std::io::stdout().lock()),
    };
    // No progress if the numbers themselves are printed on the terminal.
    let progress = Progress::for_octets(file.is_some() && output.shows_progress(), "exported", None);
    let mut piece = vec![0; 1 << 16];
    loop {
        let read = answer.read(&mut piece);
        let read =
            read.map_err(|error| Failure::Interrupted(format!("the export ended too early: {error}")))?;
        if read == 0 {
            return out.flush().map_err(|_| Failure::Output);
        }
        progress.add(read as u64);
        match (out.write_all(&piece[..read]), file) {
            (Ok(()), _) => {}
            (Err(error), Some(path)) => return Err(Failure::file(path)(error)),
            (Err(_), None) => return Err(Failure::Output),
        }
    }
}
