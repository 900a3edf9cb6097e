//! `switchyard backup`: writes the whole state of an appliance into one file while traffic flows.

use crate::format::octets;
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use clap::Args;
use client::{ApiClient, Progress};
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The block size of a tar archive, in octets. An archive ends with two blocks of zeros.
const BLOCK: usize = 512;

const AFTER_HELP: &str = concat!(
    exit_help!("     (an incomplete backup never gets the requested file name)"),
    "
Examples:
  switchyard backup /var/backups/switchyard-$(date +%F).tar
  switchyard restore /var/backups/switchyard-2026-11-21.tar --data /var/lib/switchyard"
);

/// Arguments of `backup`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct BackupCommand {
    /// The file. It holds secrets, so it is readable only by its owner.
    file: PathBuf,
    /// Overwrite an existing file; it is kept until the new one is complete.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    global: GlobalArgs,
}

impl BackupCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { file, force, global } = self;
        global.run(streams, |api, output| backup(api, output, &file, force))
    }
}

/// A file under a temporary name: `finish` renames it, and dropping it unfinished deletes it.
pub(crate) struct PartialFile {
    path: PathBuf,
    file: File,
    whole: bool,
}

impl PartialFile {
    pub(crate) fn create_next_to(file: &Path) -> Result<Self, Failure> {
        let name = file
            .file_name()
            .ok_or_else(|| Failure::Usage(format!("{} is not a file name", file.display())))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}", std::process::id()));
        let path = file.with_file_name(hidden);
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = opened.map_err(Failure::file(&path))?;
        Ok(Self { path, file, whole: false })
    }

    /// The file to write to.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Syncs the file and renames it to `target`, durably.
    pub(crate) fn finish(mut self, target: &Path) -> Result<(), Failure> {
        self.file.sync_all().map_err(Failure::file(&self.path))?;
        std::fs::rename(&self.path, target).map_err(Failure::file(target))?;
        self.whole = true;
        let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(Failure::file(folder))
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.whole {
            // Errors are ignored: a hidden file of an interrupted backup does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn backup(api: &ApiClient, output: &Output, file: &Path, force: bool) -> Result<(), Failure> {
    if file.exists() && !force {
        let what = format!("{} already exists; use --force to overwrite it", file.display());
        return Err(Failure::Refused(what));
    }
    // The file is opened first: if it cannot be written, no request is sent.
    let mut partial_file = PartialFile::create_next_to(file)?;
    let mut answer = api.open("/v1/backup", &[("accept", "application/x-tar")])?;
    // The size of a backup is not known beforehand.
    let progress = Progress::for_octets(output.shows_progress(), "written", None);
    let (mut written, mut end) = (0_u64, Vec::new());
    let mut piece = vec![0; 1 << 16];
    loop {
        let read = answer.read(&mut piece);
        let read =
            read.map_err(|error| Failure::Interrupted(format!("the backup ended too early: {error}")))?;
        if read == 0 {
            break;
        }
        partial_file.file.write_all(&piece[..read]).map_err(Failure::file(&partial_file.path))?;
        written += read as u64;
        progress.add(read as u64);
        end.extend_from_slice(&piece[..read]);
        end.drain(..end.len().saturating_sub(2 * BLOCK));
    }
    drop(progress);
    if written == 0 || end.len() < 2 * BLOCK || end.iter().any(|octet| *octet != 0) {
        let what = format!("the backup is incomplete: {} without an end", octets(written));
        return Err(Failure::Interrupted(what));
    }
    partial_file.finish(file)?;
    if output.json {
        return output.document(&json!({ "file": file.display().to_string(), "octets": written }));
    }
    output.line(&format!("{}: {}", file.display(), octets(written)))
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, run};
    use admin::{Problem, ProblemKind};
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt;

    fn tar() -> Vec<u8> {
        // Not a valid archive: only the end is checked.
        [vec![7; 100_000], vec![0; 1_024]].concat()
    }

    fn names(folder: &std::path::Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn an_incomplete_backup_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.tar");
        let path = file.to_str().unwrap();
        let url = FakeApi::default().with_file("GET /v1/backup", tar(), None).start();
        let done = run(&url, &["backup", path]);
        assert_eq!((done.code, done.out, done.error), (0, format!("{path}: 98.7 KiB\n"), String::new()));
        assert_eq!(std::fs::read(&file).unwrap(), tar());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let done = run(&url, &["backup", path]);
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.error.contains("--force"));

        let cut = FakeApi::default().with_file("GET /v1/backup", tar(), Some(50_000)).start();
        let endless = FakeApi::default().with_file("GET /v1/backup", vec![7; 5_000], None).start();
        let nothing = FakeApi::default().with_file("GET /v1/backup", Vec::new(), None).start();
        for url in [cut, endless, nothing] {
            let done = run(&url, &["backup", path, "--force"]);
            assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
            assert_eq!(std::fs::read(&file).unwrap(), tar(), "the old one is gone");
            assert_eq!(names(folder.path()), ["a.tar"]);
        }
        let done = run(&url, &["backup", path, "--force", "--json"]);
        let document: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(document, json!({ "file": path, "octets": 101_024 }));
    }

    #[test]
    fn a_refused_backup_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.tar");
        let refused = Problem::new(ProblemKind::Forbidden, "this is not for you");
        let url = FakeApi::default().refusing("GET /v1/backup", &refused).start();
        let done = run(&url, &["backup", file.to_str().unwrap()]);
        assert_eq!((done.code, done.error.as_str()), (2, "switchyard: not allowed: this is not for you\n"));
        assert_eq!(names(folder.path()), [""; 0]);
        let nowhere = folder.path().join("no/a.tar");
        let done = run(&url, &["backup", nowhere.to_str().unwrap()]);
        assert_eq!(done.code, 2, "{done:?}");
    }
}
