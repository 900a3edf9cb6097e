//! File access of a journal, as traits so that tests can simulate failing disks.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of a journal.
pub trait JournalDirectory: Send + Sync {
    /// The path of a file, for messages. The empty name stands for the directory.
    fn path(&self, name: &str) -> PathBuf;
    /// Locks the directory against other journals until the result is dropped; `None` if it is locked.
    ///
    /// # Errors
    /// The lock cannot be obtained for another reason.
    fn lock(&self) -> io::Result<Option<Box<dyn Send>>>;
    /// The names of all files, in any order.
    ///
    /// # Errors
    /// The directory cannot be read.
    fn names(&self) -> io::Result<Vec<String>>;
    /// Opens an existing file.
    ///
    /// # Errors
    /// The file does not exist or cannot be opened.
    fn open(&self, name: &str) -> io::Result<Arc<dyn JournalFile>>;
    /// Creates an empty file.
    ///
    /// # Errors
    /// The file exists or cannot be created.
    fn create(&self, name: &str) -> io::Result<Arc<dyn JournalFile>>;
    /// Renames a file, and replaces a file of the new name.
    ///
    /// # Errors
    /// The file cannot be renamed.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    ///
    /// # Errors
    /// The file cannot be removed.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes creations, renames and removals durable.
    ///
    /// # Errors
    /// It is unknown which of them are durable.
    fn sync(&self) -> io::Result<()>;
}

/// An open file of a journal.
pub trait JournalFile: Send + Sync {
    /// The length in octets.
    ///
    /// # Errors
    /// The length cannot be read.
    fn length(&self) -> io::Result<u64>;
    /// Reads from `offset` on; 0 at the end of the file.
    ///
    /// # Errors
    /// The disk cannot be read.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Writes at `offset`, possibly less than all.
    ///
    /// # Errors
    /// Any part may have been written.
    fn write_at(&self, offset: u64, octets: &[u8]) -> io::Result<usize>;
    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// It is unknown which writes are durable, and a repetition gives no answer: the system may have dropped them.
    fn sync_data(&self) -> io::Result<()>;
    /// Reserves disk space for `octets` octets, if the file system supports it; extends the file to that length.
    ///
    /// # Errors
    /// There is not enough disk space.
    fn allocate(&self, octets: u64) -> io::Result<()>;
}

/// Writes all of `octets` at `offset`.
pub(crate) fn write_all(file: &dyn JournalFile, mut offset: u64, mut octets: &[u8]) -> io::Result<()> {
    while !octets.is_empty() {
        match file.write_at(offset, octets) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                octets = octets.get(written..).unwrap_or_default();
                offset += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads until `into` is full or the file ends.
pub(crate) fn read_full(file: &dyn JournalFile, mut offset: u64, into: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match file.read_at(offset, rest) {
            Ok(0) => break,
            Ok(read) => {
                done += read;
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

/// A directory of the file system.
#[derive(Debug)]
pub struct FileDirectory {
    path: PathBuf,
}

/// The lock needs a file of its own, since the other files are replaced.
const LOCK: &str = "lock";

impl FileDirectory {
    /// The directory `path`, which must exist.
    #[must_use]
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The directory `path`, created durably if it does not exist.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn create_all(path: &Path) -> io::Result<Self> {
        // Only the parents of new directories are synced: a read-only file system above them refuses it.
        let missing: Vec<_> = path.ancestors().take_while(|folder| !is_directory(folder)).collect();
        for folder in missing.into_iter().rev() {
            match fs::DirBuilder::new().mode(0o700).create(folder) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
                created => created?,
            }
            let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
            fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        Ok(Self::new(path))
    }
}

/// Whether the path is a directory; the empty path is the current one.
fn is_directory(path: &Path) -> bool {
    path.as_os_str().is_empty() || path.is_dir()
}

impl JournalDirectory for FileDirectory {
    fn path(&self, name: &str) -> PathBuf {
        if name.is_empty() { self.path.clone() } else { self.path.join(name) }
    }

    fn lock(&self) -> io::Result<Option<Box<dyn Send>>> {
        let mut options = fs::OpenOptions::new();
        options.create(true).truncate(false).write(true).mode(0o600);
        let file = options.open(self.path.join(LOCK))?;
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Box::new(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // A name that is not UTF-8 does not belong to a journal.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn JournalFile>> {
        let path = self.path.join(name);
        let file = match fs::OpenOptions::new().read(true).write(true).open(&path) {
            // A reader without the permission to write.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => fs::File::open(&path)?,
            opened => opened?,
        };
        Ok(Arc::new(file))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn JournalFile>> {
        // Records contain message texts: only the owner may read them.
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        Ok(Arc::new(options.open(self.path.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        fs::File::open(&self.path)?.sync_all()
    }
}

impl JournalFile for fs::File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }

    fn write_at(&self, offset: u64, octets: &[u8]) -> io::Result<usize> {
        FileExt::write_at(self, octets, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        Self::sync_data(self)
    }

    fn allocate(&self, octets: u64) -> io::Result<()> {
        match rustix::fs::fallocate(self, rustix::fs::FallocateFlags::empty(), 0, octets) {
            // Without support for it, the zeros that are written next reserve the space.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(()),
            other => Ok(other?),
        }
    }
}
