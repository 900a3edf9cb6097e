use crate::ReplicationError;
use cluster::SharedFile;
use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The files that this node can give to others, by digest: those in use, and those that were fetched and are not in use yet.
#[derive(Debug)]
pub struct SharedFiles {
    fetched: PathBuf,
    paths: Mutex<HashMap<String, PathBuf>>,
    /// Digests of files that have not changed since.
    digests: Mutex<HashMap<PathBuf, (FileStamp, SharedFile)>>,
}

/// Changes whenever the file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FileStamp {
    modified: SystemTime,
    octets: u64,
    inode: u64,
}

impl FileStamp {
    pub(crate) fn of(path: &Path) -> std::io::Result<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let metadata = path.metadata()?;
        Ok(Self { modified: metadata.modified()?, octets: metadata.len(), inode: metadata.ino() })
    }

    pub(crate) const fn octets(&self) -> u64 {
        self.octets
    }
}

impl SharedFiles {
    /// Keeps fetched files in this folder until they are used. What an earlier run has left there is removed.
    ///
    /// # Errors
    /// If the folder cannot be made or emptied.
    pub fn open(fetched: &Path) -> Result<Self, ReplicationError> {
        match std::fs::remove_dir_all(fetched) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(ReplicationError::file(fetched)(error));
            }
            _ => {}
        }
        std::fs::create_dir_all(fetched).map_err(ReplicationError::file(fetched))?;
        Ok(Self { fetched: fetched.to_owned(), paths: Mutex::default(), digests: Mutex::default() })
    }

    /// The path for a fetched file.
    pub(crate) fn fetched_path(&self, file: &SharedFile) -> PathBuf {
        self.fetched.join(&file.sha256)
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.fetched
    }

    /// The path of a file; `None` if this node does not have it.
    pub(crate) fn find(&self, sha256: &str) -> Option<PathBuf> {
        self.paths.lock().get(sha256).filter(|path| path.exists()).cloned()
    }

    pub(crate) fn put(&self, sha256: &str, path: &Path) {
        self.paths.lock().insert(sha256.to_owned(), path.to_owned());
    }

    /// The digest of a file; it is calculated again only if the file has changed.
    pub(crate) fn describe(&self, path: &Path) -> std::io::Result<SharedFile> {
        let stamp = FileStamp::of(path)?;
        let known = self.digests.lock().get(path).filter(|(known, _)| *known == stamp).cloned();
        if let Some((_, file)) = known {
            return Ok(file);
        }
        let file = SharedFile { sha256: digest(path)?, octets: stamp.octets };
        self.digests.lock().insert(path.to_owned(), (stamp, file.clone()));
        self.put(&file.sha256, path);
        Ok(file)
    }
}

fn digest(path: &Path) -> std::io::Result<String> {
    let (mut file, mut sum, mut buffer) = (File::open(path)?, Sha256::new(), vec![0; 256 << 10]);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(model::hex(&sum.finalize()));
        }
        sum.update(buffer.get(..read).unwrap_or_default());
    }
}
