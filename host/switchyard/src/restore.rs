//! `switchyard restore`: creates a data directory from a backup, while no daemon uses it.
//!
//! The backup is unpacked and verified next to the directory. It replaces the directory only if it is complete.

use crate::manifest::{self, ArchiveMember, Manifest};
use crate::text_encryption::KEY_FILE;
use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use model::Timestamp;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{IsTerminal as _, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use store::{FollowedJournal, RestoredCounts, Store, StoreOptions};

/// Maximum size of a manifest, in octets.
const MAX_MANIFEST_OCTETS: u64 = 64 << 20;
/// The store's file in a data directory.
pub(crate) const STORE: &str = "switchyard.redb";

/// Restore a data directory from a backup (GET /v1/backup).
///
/// Messages that may have been sent since the backup was taken are not sent again automatically: they are uncertain and
/// wait for `POST /v1/uncertain/settle`. Message ids that may have been assigned since are not assigned again.
#[derive(Debug, Args)]
pub(crate) struct RestoreCommand {
    /// The backup; `-` for standard input.
    file: PathBuf,
    /// The data directory to create; it must not exist or must be empty.
    #[arg(long)]
    data: PathBuf,
    /// Replace a directory that is not empty; it is kept under another name.
    #[arg(long)]
    force: bool,
    /// The journal of the directory that was backed up (`switchyard.journal` in it). Changes after the backup are
    /// restored too, as far as the journal has them; see `journal-retention`.
    #[arg(long)]
    journal: Option<PathBuf>,
    /// Restore the state of this time, for example 2026-01-31T12:00:00Z; requires `--journal`.
    #[arg(long, requires = "journal", value_parser = parse_time)]
    until: Option<Timestamp>,
    /// Send messages that were waiting at the time of the backup, although they may have been sent since then.
    #[arg(long)]
    send_again: bool,
}

/// The result of a restore.
#[derive(Debug)]
pub(crate) struct RestoreResult {
    manifest: Manifest,
    /// Counts of the prepared messages.
    found: RestoredCounts,
    /// The part of the journal that was applied.
    followed: Option<FollowedJournal>,
    /// New path of the previous directory; `None` if there was none.
    before: Option<PathBuf>,
    /// Whether the keys of texts were moved from the previous directory.
    keys_moved: bool,
}

impl RestoreCommand {
    /// Restores the backup and describes the result.
    pub(crate) fn run(&self) -> Result<String> {
        let result = if self.file == Path::new("-") {
            self.restore(std::io::stdin().lock())?
        } else {
            let opening = || format!("opening {}", self.file.display());
            let file = File::open(&self.file).with_context(opening)?;
            let length = file.metadata().with_context(opening)?.len();
            let progress =
                client::Progress::for_octets(std::io::stderr().is_terminal(), "unpacked", Some(length));
            self.restore(progress.reader(std::io::BufReader::new(file)))?
        };
        let RestoreResult { manifest, found, followed, before, keys_moved } = result;
        let at = followed.and_then(|followed| followed.last).map_or(manifest.at, |last| last.0);
        let mut text = format!(
            "{}: restored {} files of {:?}, as they were at {}",
            self.data.display(),
            manifest.files.len(),
            manifest.name,
            format_time(at),
        );
        text.push_str(&format!(
            "\n{} messages wait; {} of them may have been sent since and are uncertain",
            found.waiting, found.uncertain
        ));
        if found.uncertain > 0 {
            text.push_str(": GET /v1/uncertain lists them, POST /v1/uncertain/settle settles them");
        }
        if let Some(followed) = followed {
            text.push_str(&format!(
                "\n{} batches of the journal were applied to the backup of {}",
                followed.batches,
                format_time(manifest.at)
            ));
        }
        if found.dlrs > 0 {
            text.push_str(&format!("\n{} DLRs are sent to accounts, some possibly twice", found.dlrs));
        }
        if let Some(before) = before {
            text.push_str(&format!("\nthe previous directory is {}", before.display()));
        }
        if keys_moved {
            text.push_str(&format!("\nthe keys of texts were moved from there: {KEY_FILE}"));
        }
        Ok(text)
    }

    fn restore(&self, from: impl Read) -> Result<RestoreResult> {
        let data = std::path::absolute(&self.data)?;
        self.check_target(&data)?;
        let (Some(parent), Some(name)) = (data.parent(), data.file_name()) else {
            bail!("{} cannot be a data directory", data.display());
        };
        std::fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
        let staging = tempfile::Builder::new()
            .prefix(&format!(".{}.restoring-", name.to_string_lossy()))
            .tempdir_in(parent)
            .with_context(|| format!("creating a directory in {}", parent.display()))?;
        let manifest = unpack(from, staging.path())?;
        let (found, followed) = self.prepare_store(staging.path(), &manifest)?;
        sync_folders(staging.path())?;
        let mut before = None;
        if is_occupied(&data)? {
            let aside =
                data.with_file_name(format!("{}.before-{}", name.to_string_lossy(), Timestamp::now().0));
            std::fs::rename(&data, &aside).with_context(|| format!("renaming {}", data.display()))?;
            before = Some(aside);
        }
        // The rename replaces an empty directory. From here on, there is nothing to clean up.
        let staged = staging.keep();
        std::fs::rename(&staged, &data)
            .with_context(|| format!("moving {} to {}", staged.display(), data.display()))?;
        let keys_moved = match &before {
            Some(before) => move_keys(before, &data)?,
            None => false,
        };
        File::open(parent)?.sync_all()?;
        Ok(RestoreResult { manifest, found, followed, before, keys_moved })
    }

    /// Applies the journal, and prepares the store for the time since the backup.
    fn prepare_store(
        &self,
        folder: &Path,
        manifest: &Manifest,
    ) -> Result<(RestoredCounts, Option<FollowedJournal>)> {
        let path = folder.join(STORE);
        ensure!(path.exists(), "the backup does not contain {STORE}");
        let options = StoreOptions { cache: 64 << 20, ..StoreOptions::default() };
        let until = self.until.unwrap_or(Timestamp(u64::MAX));
        ensure!(
            until.0 >= manifest.at,
            "the backup was taken at {}, after the time of --until: use an older backup",
            format_time(manifest.at)
        );
        let followed = match &self.journal {
            Some(journal) => Some(Store::follow(&path, &options, journal, until)?),
            None => None,
        };
        let at = followed.and_then(|followed| followed.last).unwrap_or(Timestamp(manifest.at));
        let store = Store::open(&path, options)?;
        let found = store.prepare_restored(at, Timestamp::now(), self.send_again)?;
        store.close()?;
        Ok((found, followed))
    }

    fn check_target(&self, data: &Path) -> Result<()> {
        if !is_occupied(data)? {
            return Ok(());
        }
        let store = data.join(STORE);
        ensure!(
            !store.exists() || !store::is_in_use(&store)?,
            "{} is in use: stop the daemon that runs on it first",
            data.display()
        );
        ensure!(
            self.force,
            "{} is not empty: use another directory, or --force to move this one aside",
            data.display()
        );
        Ok(())
    }
}

/// Moves the keys of texts from the previous directory: no backup contains them, and a second copy would undo their
/// destruction.
fn move_keys(before: &Path, data: &Path) -> Result<bool> {
    let (from, to) = (before.join(KEY_FILE), data.join(KEY_FILE));
    match std::fs::rename(&from, &to) {
        Ok(()) => {
            File::open(data)?.sync_all()?;
            Ok(true)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("moving {} to {}", from.display(), to.display())),
    }
}

/// Whether the directory exists and is not empty.
fn is_occupied(data: &Path) -> Result<bool> {
    match std::fs::read_dir(data) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("reading {}", data.display())),
    }
}

/// Unpacks a backup into a folder and verifies it: exactly the members of its manifest, with their sizes and checksums.
fn unpack(from: impl Read, into: &Path) -> Result<Manifest> {
    let mut tar = tar::Archive::new(from);
    let mut members = tar.entries().context("this is not a backup")?;
    let first = members.next().context("the file is empty")?.context("this is not a backup")?;
    ensure!(
        first.path()?.as_os_str() == manifest::NAME && first.size() <= MAX_MANIFEST_OCTETS,
        "this is not a backup: its first member is not {}",
        manifest::NAME
    );
    let manifest: Manifest = serde_json::from_reader(first).context("the manifest is malformed")?;
    ensure!(
        manifest.format <= manifest::FORMAT,
        "the backup has format {}, but this switchyard ({}) reads formats up to {}: restore it with version {} or newer",
        manifest.format,
        env!("CARGO_PKG_VERSION"),
        manifest::FORMAT,
        manifest.version
    );
    let mut unread: HashMap<&str, &ArchiveMember> = HashMap::new();
    for member in &manifest.files {
        ensure!(
            manifest::is_inside(&member.path),
            "the manifest contains the invalid path {:?}",
            member.path
        );
        ensure!(
            unread.insert(&member.path, member).is_none(),
            "the manifest contains {:?} twice",
            member.path
        );
    }
    for member in members {
        let mut member = member.context("the backup is truncated")?;
        let path = member.path()?.to_str().unwrap_or_default().to_owned();
        let Some(known) = unread.remove(path.as_str()) else {
            bail!("{path:?} is in the backup, but not in its manifest");
        };
        ensure!(member.header().entry_type().is_file(), "{path:?} is not a file");
        let target = into.join(&path);
        if let Some(folder) = target.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let (size, sha256) = write_member(&mut member, &target)
            .with_context(|| format!("{path}: the backup is truncated, or the disk is full"))?;
        ensure!(size >= known.size, "the backup is truncated within {path}");
        ensure!(
            (size, sha256.as_str()) == (known.size, known.sha256.as_str()),
            "{path} does not match the manifest: the backup is damaged"
        );
    }
    let mut missing: Vec<&str> = unread.into_keys().collect();
    missing.sort_unstable();
    ensure!(missing.is_empty(), "the backup is truncated: {} are missing", missing.join(", "));
    Ok(manifest)
}

fn write_member(from: &mut impl Read, target: &Path) -> std::io::Result<(u64, String)> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(target)?;
    let (mut sum, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 256 << 10]);
    loop {
        let read = from.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        let octets = buffer.get(..read).unwrap_or_default();
        file.write_all(octets)?;
        sum.update(octets);
        size += read as u64;
    }
    file.sync_all()?;
    Ok((size, model::hex(&sum.finalize())))
}

/// Makes directory entries durable; the files are durable already.
fn sync_folders(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}

/// Parses a time in RFC 3339.
fn parse_time(text: &str) -> Result<Timestamp, String> {
    let at = time::OffsetDateTime::parse(text, &time::format_description::well_known::Rfc3339)
        .map_err(|error| format!("{error}; write it like 2026-01-31T12:00:00Z"))?;
    u64::try_from(at.unix_timestamp_nanos() / 1_000_000).map(Timestamp).map_err(|_| "before 1970".to_owned())
}

/// Formats a time in RFC 3339.
pub(crate) fn format_time(at: u64) -> String {
    i64::try_from(at / 1000)
        .ok()
        .and_then(|seconds| time::OffsetDateTime::from_unix_timestamp(seconds).ok())
        .and_then(|at| at.format(&time::format_description::well_known::Rfc3339).ok())
        .unwrap_or_else(|| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A backup with these files; the manifest may differ.
    fn backup(manifest: &Manifest, files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        let first = serde_json::to_vec(manifest).unwrap();
        for (path, octets) in [(manifest::NAME, first.as_slice())].iter().chain(files) {
            let mut header = tar::Header::new_gnu();
            header.set_size(octets.len() as u64);
            header.set_mode(0o600);
            tar.append_data(&mut header, path, *octets).unwrap();
        }
        tar.into_inner().unwrap()
    }

    fn manifest(files: &[(&str, &[u8])]) -> Manifest {
        let member = |(path, octets): &(&str, &[u8])| ArchiveMember {
            path: (*path).to_owned(),
            size: octets.len() as u64,
            sha256: model::hex(&Sha256::digest(octets)),
        };
        let files = files.iter().map(member).collect();
        Manifest { format: 1, version: "0.1.0".to_owned(), at: 5, name: "A".to_owned(), files }
    }

    fn unpack_error(octets: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        format!("{:#}", unpack(octets, folder.path()).unwrap_err())
    }

    #[test]
    fn a_complete_backup_is_unpacked_with_owner_permissions() {
        use std::os::unix::fs::PermissionsExt as _;
        let files: [(&str, &[u8]); 2] = [("token", b"secret"), ("plugins/router.json", b"{}")];
        let folder = tempfile::tempdir().unwrap();
        let read = unpack(&*backup(&manifest(&files), &files), folder.path()).unwrap();
        assert_eq!(read, manifest(&files));
        assert_eq!(std::fs::read(folder.path().join("plugins/router.json")).unwrap(), b"{}");
        let mode = std::fs::metadata(folder.path().join("token")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_damaged_backup_is_rejected_with_a_reason() {
        let files: [(&str, &[u8]); 2] = [("token", b"secret"), ("tables/a", b"1,2")];
        let right = manifest(&files);
        assert!(unpack_error(b"").contains("empty"));
        assert!(unpack_error(&[7; 2000]).contains("not a backup"));
        assert!(unpack_error(&backup(&right, &files[..1])).contains("truncated: tables/a are missing"));
        let other: [(&str, &[u8]); 2] = [("token", b"secret"), ("tables/a", b"1,3")];
        assert!(unpack_error(&backup(&right, &other)).contains("tables/a does not match the manifest"));
        let more: [(&str, &[u8]); 3] = [files[0], files[1], ("x", b"")];
        assert!(
            unpack_error(&backup(&right, &more)).contains("\"x\" is in the backup, but not in its manifest")
        );
        let newer = Manifest { format: 2, version: "9.0".to_owned(), ..right.clone() };
        assert!(unpack_error(&backup(&newer, &files)).contains("restore it with version 9.0 or newer"));
        let mut outside = right.clone();
        outside.files[0].path = "../token".to_owned();
        assert!(unpack_error(&backup(&outside, &[])).contains("invalid path"));
        let mut cut = backup(&right, &files);
        cut.truncate(1024 + 512 + 512 + 3);
        assert!(unpack_error(&cut).contains("truncated"), "{}", unpack_error(&cut));
        assert!(unpack_error(&[0; 1024]).contains("empty"));
    }
}
