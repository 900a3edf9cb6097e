//! Backups, taken while traffic flows.
//!
//! First all redb files are looked at (snapshots, which cost nothing), so that they tell of nearly the same moment; then they
//! and everything else are copied into a folder of their own inside the data directory, and summed up; then the copies are
//! sent. So a slow reader holds up nothing but the copies, and what is sent is what the manifest says.

use crate::appliance::Switchyard;
use crate::core_loop::wall;
use crate::manifest::{self, Manifest, Member};
use admin::{Backup, Export, Kind, Problem};
use anyhow::{Context as _, Result, bail};
use sha2::{Digest as _, Sha256};
use snapshot::{Snapshot, SnapshotError};
use std::fs::File;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};
use tempfile::TempDir;
use tokio::sync::mpsc;

/// How the names of folders begin that hold copies while they are sent.
const COPIES: &str = "backup-";
/// Octets that are sent at a time.
const CHUNK: usize = 256 << 10;

/// Takes a snapshot of one redb file.
pub(crate) type Look = Box<dyn Fn() -> Result<Snapshot, SnapshotError> + Send + Sync>;

/// Held while a backup is under way: the copies of two at once might not find room.
struct Running(Arc<AtomicBool>);

impl Running {
    fn begin(running: &Arc<AtomicBool>) -> Option<Self> {
        (!running.swap(true, AcqRel)).then(|| Self(running.clone()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}

/// What is backed up.
pub(crate) struct Backups {
    pub(crate) data: PathBuf,
    /// Room that must stay on the disk beside the copies.
    pub(crate) watermark: u64,
    /// All redb files under `data`.
    pub(crate) databases: Vec<Look>,
    /// The archive's own file, where it is one: it may be far larger than all else, and SQLite has backups of its own.
    pub(crate) archive: Option<PathBuf>,
    running: Arc<AtomicBool>,
}

impl Backups {
    pub(crate) fn new(data: PathBuf, watermark: u64, archive: Option<&str>) -> Self {
        let archive = archive.and_then(|url| url.strip_prefix("sqlite:")).map(PathBuf::from);
        Self { data, watermark, databases: Vec::new(), archive, running: Arc::default() }
    }

    /// What is to be copied as it is, relative to the data directory: a folder's files before those of the folders in it,
    /// so that what says which plugin is bound is copied before plugins, of which there are only ever more.
    fn plain(&self, folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
        let mut folders = Vec::new();
        let listed = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in listed {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let kind = entry.file_type()?;
            if kind.is_dir() {
                // Compiled plugins are made anew from their components.
                if !(name.starts_with(COPIES) || name == "artefacts" || name == "lost+found") {
                    folders.push(path);
                }
            } else if kind.is_file() && !self.is_left_out(&path, &name) {
                found.push(path);
            }
        }
        folders.iter().try_for_each(|folder| self.plain(folder, found))
    }

    fn is_left_out(&self, path: &Path, name: &str) -> bool {
        // Files that are being written, under another name until they are whole.
        let unfinished = name.starts_with(".tmp") || name.ends_with(".new") || name.contains(".new-");
        // The archive's file, and what SQLite keeps beside it.
        let archive = self.archive.as_deref().is_some_and(|archive| {
            let (archive, path) = (archive.to_string_lossy(), path.to_string_lossy());
            path.strip_prefix(&*archive).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        });
        unfinished || archive
    }

    /// Copies everything into a folder.
    fn copy(&self, name: &str) -> Result<(TempDir, Manifest)> {
        let at = wall();
        let looks: Vec<Snapshot> = self.databases.iter().map(|look| look()).collect::<Result<_, _>>()?;
        let mut plain = Vec::new();
        self.plain(&self.data, &mut plain)?;
        self.check_room(plain.iter().map(PathBuf::as_path))?;
        let folder = tempfile::Builder::new().prefix(COPIES).tempdir_in(&self.data)?;
        let mut files = Vec::new();
        let inside = |path: &Path| -> Result<String> {
            let path = path.strip_prefix(&self.data).context("a file is not in the data directory")?;
            path.to_str().map(str::to_owned).with_context(|| format!("{} is no UTF-8", path.display()))
        };
        let place = |path: &str| -> Result<PathBuf> {
            let place = folder.path().join(path);
            if let Some(parent) = place.parent() {
                std::fs::create_dir_all(parent)?;
            }
            Ok(place)
        };
        for path in &plain {
            let name = inside(path)?;
            if path.extension().is_some_and(|extension| extension == "redb") {
                if !looks.iter().any(|look| look.path() == path) {
                    bail!(
                        "{name} is a data base, and it is not known how to copy it: this is a fault of ours"
                    );
                }
                continue;
            }
            let copy = place(&name)?;
            match std::fs::copy(path, &copy) {
                // It was there a moment ago: removed meanwhile, as if it had been before.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                copied => copied.with_context(|| format!("copying {name}"))?,
            };
            files.push(summed(name, &copy)?);
        }
        for look in looks {
            let name = inside(look.path())?;
            let copy = place(&name)?;
            let rows = look.copy_to(&copy)?;
            tracing::debug!(file = name, rows, "copied for a backup");
            files.push(summed(name, &copy)?);
        }
        let manifest = Manifest {
            format: manifest::FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            at: at.0,
            name: name.to_owned(),
            files,
        };
        Ok((folder, manifest))
    }

    fn check_room<'a>(&self, files: impl Iterator<Item = &'a Path>) -> Result<()> {
        let needed: u64 = files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
        let free = store::free_space(&self.data)?;
        if free < needed.saturating_add(self.watermark) {
            let (needed, kept) = (needed >> 20, self.watermark >> 20);
            bail!(
                "the copies need {needed} MiB beside the {kept} MiB that must stay free, and the disk of {} has {} MiB",
                self.data.display(),
                free >> 20
            );
        }
        Ok(())
    }
}

/// Removes what a backup has left behind that was under way when the daemon died.
pub(crate) fn sweep(data: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(data)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name().to_string_lossy().starts_with(COPIES) {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn summed(path: String, copy: &Path) -> Result<Member> {
    let mut file = File::open(copy)?;
    let (mut sum, mut size, mut buffer) = (Sha256::new(), 0, vec![0; CHUNK]);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        sum.update(buffer.get(..read).unwrap_or_default());
        size += read as u64;
    }
    Ok(Member { path, size, sha256: hex(&sum.finalize()) })
}

pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The way to the one who asked.
struct Sending {
    chunks: mpsc::Sender<Result<Vec<u8>, String>>,
    buffer: Vec<u8>,
}

impl Write for Sending {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        self.buffer.extend_from_slice(octets);
        if self.buffer.len() >= CHUNK {
            self.flush()?;
        }
        Ok(octets.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        let chunk = std::mem::take(&mut self.buffer);
        if chunk.is_empty() {
            return Ok(());
        }
        self.chunks.blocking_send(Ok(chunk)).map_err(|_| std::io::ErrorKind::BrokenPipe.into())
    }
}

fn send(folder: &Path, manifest: &Manifest, to: &mut Sending) -> std::io::Result<()> {
    let mut tar = tar::Builder::new(&mut *to);
    let mut put = |path: &str, size: u64, octets: &mut dyn std::io::Read| {
        let mut header = tar::Header::new_gnu();
        header.set_size(size);
        header.set_mode(0o600);
        header.set_mtime(manifest.at / 1000);
        tar.append_data(&mut header, path, octets)
    };
    let first = serde_json::to_vec_pretty(manifest)?;
    put(manifest::NAME, first.len() as u64, &mut &first[..])?;
    for Member { path, size, .. } in &manifest.files {
        put(path, *size, &mut File::open(folder.join(path))?)?;
    }
    tar.into_inner()?.flush()
}

impl Backup for Switchyard {
    fn backup(&self, by: Arc<str>) -> Result<(String, Export), Problem> {
        let Some(running) = Running::begin(&self.backups.running) else {
            return Err(Problem::new(Kind::Conflict, "another backup is under way; wait for its end"));
        };
        let (folder, manifest) = self.backups.copy(&self.name).map_err(|error| {
            tracing::error!(error = format!("{error:#}"), "backup failed");
            Problem::new(Kind::Unavailable, format!("no backup: {error:#}"))
        })?;
        let (chunks, receiver) = mpsc::channel(4);
        let name = format!("switchyard-{}-{}.tar", file_name(&self.name), manifest.at);
        let sending = move || {
            let mut to = Sending { chunks, buffer: Vec::with_capacity(CHUNK) };
            let octets: u64 = manifest.files.iter().map(|file| file.size).sum();
            match send(folder.path(), &manifest, &mut to) {
                Ok(()) => tracing::info!(%by, files = manifest.files.len(), octets, "backup taken"),
                Err(error) => {
                    tracing::warn!(%by, %error, "backup broken off");
                    let _ = to.chunks.blocking_send(Err(error.to_string()));
                }
            }
            drop((folder, running));
        };
        std::thread::Builder::new()
            .name("backup".to_owned())
            .spawn(sending)
            .map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
        Ok((name, Export { media_type: "application/x-tar", chunks: receiver }))
    }
}

/// A name in which nothing stands that a header or a file system would take for something else.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}
