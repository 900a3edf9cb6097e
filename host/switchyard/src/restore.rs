//! `switchyard restore`: a data directory out of a backup, while no daemon runs on it.
//!
//! Everything is unpacked and looked over beside the directory, and takes its place only when it is whole.

use crate::backup::hex;
use crate::core_loop::wall;
use crate::manifest::{self, Manifest, Member};
use anyhow::{Context as _, Result, bail, ensure};
use clap::Args;
use model::Timestamp;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use store::{Restored, Store, StoreOptions};

/// The largest manifest that is read.
const LARGEST_MANIFEST: u64 = 64 << 20;
/// The store in a data directory.
const STORE: &str = "switchyard.redb";

/// Makes a data directory out of a backup (GET /v1/backup).
///
/// Messages that the appliance may have sent since the backup was taken are not sent again by themselves: they are
/// uncertain, and wait for `POST /v1/uncertain/settle`. Ids that it may have given out since are not given out again.
#[derive(Debug, Args)]
pub(crate) struct RestoreCommand {
    /// The backup; `-` for standard input.
    file: PathBuf,
    /// The data directory to make; it must not be there, or be empty.
    #[arg(long)]
    data: PathBuf,
    /// Take the place of a directory that is not empty; it is kept beside, under another name.
    #[arg(long)]
    force: bool,
    /// Send what waited when the backup was taken, though it may have been sent since.
    #[arg(long)]
    send_again: bool,
}

/// What was restored.
#[derive(Debug)]
pub(crate) struct Done {
    manifest: Manifest,
    found: Restored,
    /// Where the directory is that was there before.
    before: Option<PathBuf>,
}

impl RestoreCommand {
    /// Restores, and says what that means, in words for people.
    pub(crate) fn run(&self) -> Result<String> {
        let done = if self.file == Path::new("-") {
            self.restore(std::io::stdin().lock())?
        } else {
            let file = File::open(&self.file).with_context(|| format!("opening {}", self.file.display()))?;
            self.restore(std::io::BufReader::new(file))?
        };
        let Done { manifest, found, before } = done;
        let mut words = format!(
            "{}: restored {} files of {:?}, as they were at {}\n{} messages wait; {} of them may have been sent since \
             and are uncertain",
            self.data.display(),
            manifest.files.len(),
            manifest.name,
            when(manifest.at),
            found.waiting,
            found.uncertain,
        );
        if found.uncertain > 0 {
            words.push_str(
                ": GET /v1/uncertain lists them, POST /v1/uncertain/settle says what becomes of them",
            );
        }
        if found.receipts > 0 {
            words.push_str(&format!(
                "\n{} receipts go to accounts, perhaps for the second time",
                found.receipts
            ));
        }
        if let Some(before) = before {
            words.push_str(&format!("\nwhat was there before is in {}", before.display()));
        }
        Ok(words)
    }

    fn restore(&self, from: impl Read) -> Result<Done> {
        let data = std::path::absolute(&self.data)?;
        self.check_place(&data)?;
        let (Some(parent), Some(name)) = (data.parent(), data.file_name()) else {
            bail!("{} cannot be a data directory", data.display());
        };
        std::fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
        let staging = tempfile::Builder::new()
            .prefix(&format!(".{}.restoring-", name.to_string_lossy()))
            .tempdir_in(parent)
            .with_context(|| format!("making a folder in {}", parent.display()))?;
        let manifest = unpack(from, staging.path())?;
        let found = prepare(staging.path(), &manifest, self.send_again)?;
        sync(staging.path())?;
        let mut before = None;
        if is_taken(&data)? {
            let aside = data.with_file_name(format!("{}.before-{}", name.to_string_lossy(), wall().0));
            std::fs::rename(&data, &aside).with_context(|| format!("moving {} aside", data.display()))?;
            before = Some(aside);
        }
        // An empty directory gives its place to a rename; from here on there is nothing to be cleaned up.
        let staged = staging.keep();
        std::fs::rename(&staged, &data)
            .with_context(|| format!("moving {} to {}", staged.display(), data.display()))?;
        File::open(parent)?.sync_all()?;
        Ok(Done { manifest, found, before })
    }

    fn check_place(&self, data: &Path) -> Result<()> {
        if !is_taken(data)? {
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
            "{} is not empty: name another directory, or have this one moved aside with --force",
            data.display()
        );
        Ok(())
    }
}

/// Whether there is something at a place.
fn is_taken(data: &Path) -> Result<bool> {
    match std::fs::read_dir(data) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("reading {}", data.display())),
    }
}

/// Unpacks a backup into a folder, every member as its manifest says, and no other.
fn unpack(from: impl Read, into: &Path) -> Result<Manifest> {
    let mut tar = tar::Archive::new(from);
    let mut members = tar.entries().context("this is no backup")?;
    let first = members.next().context("the file is empty")?.context("this is no backup")?;
    ensure!(
        first.path()?.as_os_str() == manifest::NAME && first.size() <= LARGEST_MANIFEST,
        "this is no backup: its first member is not {}",
        manifest::NAME
    );
    let manifest: Manifest = serde_json::from_reader(first).context("the manifest cannot be understood")?;
    ensure!(
        manifest.format <= manifest::FORMAT,
        "the backup has form {}, and this switchyard ({}) knows forms up to {}: restore it with version {} or newer",
        manifest.format,
        env!("CARGO_PKG_VERSION"),
        manifest::FORMAT,
        manifest.version
    );
    let mut wanted: HashMap<&str, &Member> = HashMap::new();
    for member in &manifest.files {
        ensure!(
            manifest::is_inside(&member.path),
            "the manifest names {:?}, which no backup has",
            member.path
        );
        ensure!(wanted.insert(&member.path, member).is_none(), "the manifest names {:?} twice", member.path);
    }
    for member in members {
        let mut member = member.context("the backup is cut off")?;
        let path = member.path()?.to_str().unwrap_or_default().to_owned();
        let Some(known) = wanted.remove(path.as_str()) else {
            bail!("{path:?} is in the backup, and not in its manifest");
        };
        ensure!(member.header().entry_type().is_file(), "{path:?} is no file");
        let place = into.join(&path);
        if let Some(folder) = place.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let (size, sha256) = write(&mut member, &place)
            .with_context(|| format!("{path}: the backup is cut off, or the disk full"))?;
        ensure!(size >= known.size, "the backup is cut off within {path}");
        ensure!(
            (size, sha256.as_str()) == (known.size, known.sha256.as_str()),
            "{path} is not what the manifest says: the backup is damaged"
        );
    }
    let mut missing: Vec<&str> = wanted.into_keys().collect();
    missing.sort_unstable();
    ensure!(missing.is_empty(), "the backup is cut off: {} are missing", missing.join(", "));
    Ok(manifest)
}

fn write(from: &mut impl Read, place: &Path) -> std::io::Result<(u64, String)> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(place)?;
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
    Ok((size, hex(&sum.finalize())))
}

/// Tells the store that time has gone on without it.
fn prepare(folder: &Path, manifest: &Manifest, send_again: bool) -> Result<Restored> {
    let path = folder.join(STORE);
    ensure!(path.exists(), "the backup has no {STORE}");
    let options = StoreOptions { cache: 64 << 20, ..StoreOptions::default() };
    let store = Store::open(&path, options)?;
    Ok(store.prepare_restored(Timestamp(manifest.at), wall(), send_again)?)
}

/// Makes the folders' entries durable; the files are.
fn sync(folder: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync(&entry.path())?;
        }
    }
    File::open(folder)?.sync_all()
}

/// A moment, as people write it.
fn when(at: u64) -> String {
    i64::try_from(at / 1000)
        .ok()
        .and_then(|seconds| time::OffsetDateTime::from_unix_timestamp(seconds).ok())
        .and_then(|at| at.format(&time::format_description::well_known::Rfc3339).ok())
        .unwrap_or_else(|| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A backup of these files, as the manifest says it or not.
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
        let member = |(path, octets): &(&str, &[u8])| Member {
            path: (*path).to_owned(),
            size: octets.len() as u64,
            sha256: hex(&Sha256::digest(octets)),
        };
        let files = files.iter().map(member).collect();
        Manifest { format: 1, version: "0.1.0".to_owned(), at: 5, name: "A".to_owned(), files }
    }

    fn told(octets: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        format!("{:#}", unpack(octets, folder.path()).unwrap_err())
    }

    #[test]
    fn what_is_whole_is_unpacked_for_its_owner_alone() {
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
    fn what_is_not_whole_is_refused_and_why_is_said() {
        let files: [(&str, &[u8]); 2] = [("token", b"secret"), ("tables/a", b"1,2")];
        let right = manifest(&files);
        assert!(told(b"").contains("empty"));
        assert!(told(&[7; 2000]).contains("no backup"));
        assert!(told(&backup(&right, &files[..1])).contains("cut off: tables/a are missing"));
        let other: [(&str, &[u8]); 2] = [("token", b"secret"), ("tables/a", b"1,3")];
        assert!(told(&backup(&right, &other)).contains("tables/a is not what the manifest says"));
        let more: [(&str, &[u8]); 3] = [files[0], files[1], ("x", b"")];
        assert!(told(&backup(&right, &more)).contains("\"x\" is in the backup, and not in its manifest"));
        let newer = Manifest { format: 2, version: "9.0".to_owned(), ..right.clone() };
        assert!(told(&backup(&newer, &files)).contains("restore it with version 9.0 or newer"));
        let mut outside = right.clone();
        outside.files[0].path = "../token".to_owned();
        assert!(told(&backup(&outside, &[])).contains("which no backup has"));
        let mut cut = backup(&right, &files);
        cut.truncate(1024 + 512 + 512 + 3);
        assert!(told(&cut).contains("cut off"), "{}", told(&cut));
        assert!(told(&[0; 1024]).contains("empty"));
    }
}
