//! `switchyard backup`: the whole state of an appliance in one file, while traffic flows.

use crate::output::{Failure, Output, Streams};
use crate::table::octets;
use crate::way::{Way, exits};
use clap::Args;
use client::Appliance;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A tar archive is made of blocks of so many octets, and ends with two of zeros.
const BLOCK: usize = 512;

const AFTER: &str = concat!(
    exits!("     (a file that is not whole is never left under the name that was asked for)"),
    "
Examples:
  switchyard backup /var/backups/switchyard-$(date +%F).tar
  switchyard restore /var/backups/switchyard-2026-11-21.tar --data /var/lib/switchyard"
);

/// Arguments of `backup`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct BackupCommand {
    /// The file. It holds secrets, so only its owner can read it.
    file: PathBuf,
    /// Also if there is such a file; that is kept until the new one is whole.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    way: Way,
}

impl BackupCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { file, force, way } = self;
        way.ask(streams, |appliance, output| backup(appliance, output, &file, force))
    }
}

/// A file that takes its name when it is whole, and is gone when it never is.
pub(crate) struct Unfinished {
    path: PathBuf,
    file: File,
    whole: bool,
}

impl Unfinished {
    pub(crate) fn beside(file: &Path) -> Result<Self, Failure> {
        let name = file
            .file_name()
            .ok_or_else(|| Failure::Usage(format!("{} is no name of a file", file.display())))?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}", std::process::id()));
        let path = file.with_file_name(hidden);
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let file = opened.map_err(Failure::file(&path))?;
        Ok(Self { path, file, whole: false })
    }

    /// What is written to.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Puts it in its place, durably.
    pub(crate) fn finish(mut self, place: &Path) -> Result<(), Failure> {
        self.file.sync_all().map_err(Failure::file(&self.path))?;
        std::fs::rename(&self.path, place).map_err(Failure::file(place))?;
        self.whole = true;
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(Failure::file(folder))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.whole {
            // There is nobody left to tell; a hidden file of an interrupted backup does no harm.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn backup(appliance: &Appliance, output: &Output, file: &Path, force: bool) -> Result<(), Failure> {
    if file.exists() && !force {
        let what = format!("{} is there already; --force writes over it", file.display());
        return Err(Failure::Refused(what));
    }
    // First the file: whoever cannot write it need not trouble the appliance.
    let mut unfinished = Unfinished::beside(file)?;
    let mut answer = appliance.open("/v1/backup", &[("accept", "application/x-tar")])?;
    let bar = bar(output);
    let (mut written, mut end) = (0_u64, Vec::new());
    let mut piece = vec![0; 1 << 16];
    loop {
        let read = answer.read(&mut piece);
        let read = read.map_err(|error| Failure::Broken(format!("the backup ended too early: {error}")))?;
        if read == 0 {
            break;
        }
        unfinished.file.write_all(&piece[..read]).map_err(Failure::file(&unfinished.path))?;
        written += read as u64;
        bar.inc(read as u64);
        end.extend_from_slice(&piece[..read]);
        end.drain(..end.len().saturating_sub(2 * BLOCK));
    }
    bar.finish_and_clear();
    if written == 0 || end.len() < 2 * BLOCK || end.iter().any(|octet| *octet != 0) {
        let what = format!("what came is no whole backup: {} without an end", octets(written));
        return Err(Failure::Broken(what));
    }
    unfinished.finish(file)?;
    if output.json {
        return output.document(&json!({ "file": file.display().to_string(), "octets": written }));
    }
    output.line(&format!("{}: {}", file.display(), octets(written)))
}

/// Nobody knows how large a backup will be, so there is no end to run to.
fn bar(output: &Output) -> ProgressBar {
    if !output.is_watched() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = "{spinner} {binary_bytes} written, {binary_bytes_per_sec}, {elapsed}";
    bar.set_style(ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar
}

#[cfg(test)]
mod tests {
    use crate::stub::{Stub, run};
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt;

    fn tar() -> Vec<u8> {
        // Not one that could be unpacked: only its end is looked at.
        [vec![7; 100_000], vec![0; 1_024]].concat()
    }

    fn names(folder: &std::path::Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_backup_is_whole_or_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.tar");
        let path = file.to_str().unwrap();
        let url = Stub::default().with_octets("GET /v1/backup", 200, tar(), None).start();
        let done = run(&url, &["backup", path]);
        assert_eq!((done.code, done.out, done.error), (0, format!("{path}: 98.7 KiB\n"), String::new()));
        assert_eq!(std::fs::read(&file).unwrap(), tar());
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let done = run(&url, &["backup", path]);
        assert_eq!(done.code, 1, "{done:?}");
        assert!(done.error.contains("--force"));

        let cut = Stub::default().with_octets("GET /v1/backup", 200, tar(), Some(50_000)).start();
        let endless = Stub::default().with_octets("GET /v1/backup", 200, vec![7; 5_000], None).start();
        let nothing = Stub::default().with_octets("GET /v1/backup", 200, Vec::new(), None).start();
        for url in [cut, endless, nothing] {
            let done = run(&url, &["backup", path, "--force"]);
            assert_eq!((done.code, done.out.as_str()), (2, ""), "{done:?}");
            assert_eq!(std::fs::read(&file).unwrap(), tar(), "the old one is gone");
            assert_eq!(names(folder.path()), ["a.tar"]);
        }
        let done = run(&url, &["backup", path, "--force", "--json"]);
        let told: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(told, json!({ "file": path, "octets": 101_024 }));
    }

    #[test]
    fn who_may_not_has_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.tar");
        let refused = json!({ "title": "forbidden", "detail": "this is not for you" });
        let url = Stub::default().with("GET /v1/backup", 403, &refused).start();
        let done = run(&url, &["backup", file.to_str().unwrap()]);
        assert_eq!((done.code, done.error.as_str()), (2, "switchyard: forbidden: this is not for you\n"));
        assert_eq!(names(folder.path()), [""; 0]);
        let nowhere = folder.path().join("no/a.tar");
        let done = run(&url, &["backup", nowhere.to_str().unwrap()]);
        assert_eq!(done.code, 2, "{done:?}");
    }
}
