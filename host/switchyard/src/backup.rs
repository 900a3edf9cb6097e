//! Backups while traffic flows.
//!
//! First, all redb files are snapshotted, which is fast, so they reflect nearly the same moment. Then snapshots and
//! other files are copied into a folder of the data directory, with checksums. Finally, the copies are sent. A slow
//! client therefore delays only the sending, and the data matches the manifest.

use crate::cluster_sinks::LOG_COPY_FOLDER;
use crate::manifest::{self, ArchiveMember, COPY_PREFIX, Manifest};
use crate::restore::STORE;
use crate::text_encryption::KEY_FILE;
use admin::{Backup, Export, Problem, ProblemKind};
use anyhow::{Context as _, Result, bail};
use model::Timestamp;
use sha2::{Digest as _, Sha256};
use snapshot::Snapshot;
use std::fs::File;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Release};
use tempfile::TempDir;
use tokio::sync::mpsc;

/// The folder with the history of the metrics, in the data directory.
pub(crate) const METRICS_FOLDER: &str = "metrics";

/// Octets per sent chunk.
const CHUNK: usize = 256 << 10;

/// Takes a snapshot of a redb file.
pub(crate) type SnapshotFn = Box<dyn Fn() -> Result<Snapshot> + Send + Sync>;

/// Held while a backup runs: two concurrent backups could exhaust the disk.
struct RunningBackup(Arc<AtomicBool>);

impl RunningBackup {
    fn begin(running: &Arc<AtomicBool>) -> Option<Self> {
        (!running.swap(true, AcqRel)).then(|| Self(running.clone()))
    }
}

impl Drop for RunningBackup {
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}

/// The files to back up.
pub(crate) struct Backups {
    /// The name of the appliance.
    name: String,
    pub(crate) data: PathBuf,
    /// Minimum free disk space in addition to the copies, in octets.
    pub(crate) free_space_watermark: u64,
    /// All redb files under `data`.
    pub(crate) databases: Vec<SnapshotFn>,
    /// SQLite file of the archive, if any. It is excluded: it may be huge, and SQLite has its own backups.
    pub(crate) archive: Option<PathBuf>,
    /// The root key. It is excluded, like the keys of texts: a backup must not undo their destruction.
    pub(crate) root_key: Option<PathBuf>,
    running: Arc<AtomicBool>,
}

impl Backups {
    pub(crate) fn new(name: &str, data: PathBuf, free_space_watermark: u64, archive: Option<&str>) -> Self {
        let archive = archive.and_then(|url| url.strip_prefix("sqlite:")).map(PathBuf::from);
        Self {
            name: name.to_owned(),
            data,
            free_space_watermark,
            databases: Vec::new(),
            archive,
            root_key: None,
            running: Arc::default(),
        }
    }

    /// Collects the files to copy unchanged. Files of a folder come before its subfolders, so that bindings are copied
    /// before plugins, which are never deleted.
    fn collect_files(&self, folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
        let mut folders = Vec::new();
        let listed = std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
        for entry in listed {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let kind = entry.file_type()?;
            if kind.is_dir() {
                // Compiled plugins are rebuilt from their components. The snapshot of the store can be opened without
                // a journal.
                let is_journal = path == store::journal_path(&self.data.join(STORE));
                // Excluded: the folder of a cluster node, which belongs to one machine and has copies of files that are
                // backed up in their own places; the copy of the log, since the positions of its readers are in etcd;
                // the history of the metrics, which changes all the time.
                let is_node = path == self.data.join("node")
                    || path == self.data.join("fetched")
                    || path == self.data.join(LOG_COPY_FOLDER)
                    || path == self.data.join(METRICS_FOLDER);
                if !(name.starts_with(COPY_PREFIX)
                    || name == "artefacts"
                    || name == "lost+found"
                    || is_journal
                    || is_node)
                {
                    folders.push(path);
                }
            } else if kind.is_file() && !self.is_excluded(&path, &name) {
                found.push(path);
            }
        }
        folders.iter().try_for_each(|folder| self.collect_files(folder, found))
    }

    fn is_excluded(&self, path: &Path, name: &str) -> bool {
        // Unfinished files have temporary names.
        let unfinished = name.starts_with(".tmp") || name.ends_with(".new") || name.contains(".new-");
        // The archive's file and SQLite's auxiliary files of it.
        let archive = self.archive.as_deref().is_some_and(|archive| {
            let (archive, path) = (archive.to_string_lossy(), path.to_string_lossy());
            path.strip_prefix(&*archive).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        });
        let key = path.parent() == Some(&*self.data) && name.starts_with(KEY_FILE)
            || self.root_key.as_deref().is_some_and(|key| is_same_file(key, path));
        unfinished || archive || key
    }

    /// Copies everything into a folder.
    fn copy(&self) -> Result<(TempDir, Manifest)> {
        let at = Timestamp::now();
        let snapshots: Vec<Snapshot> =
            self.databases.iter().map(|take_snapshot| take_snapshot()).collect::<Result<_, _>>()?;
        let mut plain = Vec::new();
        self.collect_files(&self.data, &mut plain)?;
        self.check_free_space(plain.iter().map(PathBuf::as_path))?;
        let folder = tempfile::Builder::new().prefix(COPY_PREFIX).tempdir_in(&self.data)?;
        let mut files = Vec::new();
        let relative = |path: &Path| -> Result<String> {
            let path = path.strip_prefix(&self.data).context("a file is outside the data directory")?;
            path.to_str().map(str::to_owned).with_context(|| format!("{} is not UTF-8", path.display()))
        };
        let target = |path: &str| -> Result<PathBuf> {
            let target = folder.path().join(path);
            if let Some(parent) = target.parent() {
                std::fs::create_dir_all(parent)?;
            }
            Ok(target)
        };
        for path in &plain {
            let name = relative(path)?;
            if path.extension().is_some_and(|extension| extension == "redb") {
                if !snapshots.iter().any(|snapshot| snapshot.path() == path) {
                    bail!("{name} is an unknown database: this is a bug");
                }
                continue;
            }
            let copy = target(&name)?;
            match std::fs::copy(path, &copy) {
                // Removed since the listing.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                copied => copied.with_context(|| format!("copying {name}"))?,
            };
            files.push(checksum_member(name, &copy)?);
        }
        for snapshot in snapshots {
            let name = relative(snapshot.path())?;
            let copy = target(&name)?;
            let rows = snapshot.copy_to(&copy)?;
            tracing::debug!(file = name, rows, "file copied for backup");
            files.push(checksum_member(name, &copy)?);
        }
        let manifest = Manifest {
            format: manifest::FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            at: at.0,
            name: self.name.clone(),
            files,
        };
        Ok((folder, manifest))
    }

    fn check_free_space<'a>(&self, files: impl Iterator<Item = &'a Path>) -> Result<()> {
        let needed: u64 = files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
        let free = store::free_space(&self.data)?;
        if free < needed.saturating_add(self.free_space_watermark) {
            let (needed, kept) = (needed >> 20, self.free_space_watermark >> 20);
            bail!(
                "the copies need {needed} MiB, {kept} MiB must stay free, and the disk of {} has {} MiB free",
                self.data.display(),
                free >> 20
            );
        }
        Ok(())
    }
}

/// Removes folders of backups that were interrupted when the daemon died.
pub(crate) fn remove_leftovers(data: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(data)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() && entry.file_name().to_string_lossy().starts_with(COPY_PREFIX) {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

/// Whether two paths name the same file, in any notation.
fn is_same_file(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

fn checksum_member(path: String, copy: &Path) -> Result<ArchiveMember> {
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
    Ok(ArchiveMember { path, size, sha256: model::hex(&sum.finalize()) })
}

/// Sends chunks to the client.
struct ChunkWriter {
    chunks: mpsc::Sender<Result<Vec<u8>, String>>,
    buffer: Vec<u8>,
}

impl Write for ChunkWriter {
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

fn send(folder: &Path, manifest: &Manifest, to: &mut ChunkWriter) -> std::io::Result<()> {
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
    for ArchiveMember { path, size, .. } in &manifest.files {
        put(path, *size, &mut File::open(folder.join(path))?)?;
    }
    tar.into_inner()?.flush()
}

impl Backup for Backups {
    fn backup(&self, by: Arc<str>) -> Result<(String, Export), Problem> {
        let Some(running) = RunningBackup::begin(&self.running) else {
            return Err(Problem::new(
                ProblemKind::Conflict,
                "another backup is running; wait until it has finished",
            ));
        };
        let (folder, manifest) = self.copy().map_err(|error| {
            tracing::error!(error = format!("{error:#}"), "backup failed");
            Problem::new(ProblemKind::Unavailable, format!("backup failed: {error:#}"))
        })?;
        let (chunks, receiver) = mpsc::channel(4);
        let name = format!("switchyard-{}-{}.tar", file_name(&self.name), manifest.at);
        let sending = move || {
            let mut to = ChunkWriter { chunks, buffer: Vec::with_capacity(CHUNK) };
            let octets: u64 = manifest.files.iter().map(|file| file.size).sum();
            match send(folder.path(), &manifest, &mut to) {
                Ok(()) => tracing::info!(%by, files = manifest.files.len(), octets, "backup completed"),
                Err(error) => {
                    tracing::warn!(%by, %error, "backup interrupted");
                    let _ = to.chunks.blocking_send(Err(error.to_string()));
                }
            }
            drop((folder, running));
        };
        std::thread::Builder::new()
            .name("backup".to_owned())
            .spawn(sending)
            .map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
        Ok((name, Export { media_type: "application/x-tar", chunks: receiver }))
    }
}

/// Replaces characters that are special in headers or file names.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}
