//! Verification of all pages of a file, without changing it.

use crate::StoreError;
use redb::{Database, StorageBackend};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::io::{Error, Result};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// Octets of a block.
const BLOCK: u64 = 4096;

/// A file whose changes stay in memory: redb repairs a damaged file, which must not be changed here.
#[derive(Debug)]
struct UnchangedFile {
    file: File,
    changed: Mutex<Changed>,
}

#[derive(Debug)]
struct Changed {
    length: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

impl UnchangedFile {
    fn open(path: &Path) -> Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file, changed: Mutex::new(Changed { length, blocks: BTreeMap::new() }) })
    }

    /// The content of a block of the file; zeros beyond its end.
    fn stored(&self, block: u64) -> Result<Box<[u8]>> {
        let mut octets = vec![0; BLOCK as usize];
        let mut filled = 0;
        while let Some(rest) = octets.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, block * BLOCK + filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(octets.into())
    }

    /// Splits a range into blocks and calls `each` with the block, the offset in the block, and the part's range in the
    /// whole.
    fn parts(
        offset: u64,
        length: usize,
        mut each: impl FnMut(u64, usize, std::ops::Range<usize>) -> Result<()>,
    ) -> Result<()> {
        let mut done = 0;
        while done < length {
            let at = offset + done as u64;
            let begin = (at % BLOCK) as usize;
            let count = (BLOCK as usize - begin).min(length - done);
            each(at / BLOCK, begin, done..done + count)?;
            done += count;
        }
        Ok(())
    }
}

impl StorageBackend for UnchangedFile {
    fn len(&self) -> Result<u64> {
        Ok(self.changed.lock().unwrap_or_else(PoisonError::into_inner).length)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        if offset.checked_add(out.len() as u64).is_none_or(|end| end > changed.length) {
            return Err(Error::other("a read beyond the end of the file"));
        }
        Self::parts(offset, out.len(), |block, begin, range| {
            let Some(out) = out.get_mut(range) else { return Ok(()) };
            let stored;
            let octets = match changed.blocks.get(&block) {
                Some(octets) => octets,
                None => {
                    stored = self.stored(block)?;
                    &stored
                }
            };
            if let Some(part) = octets.get(begin..begin + out.len()) {
                out.copy_from_slice(part);
            }
            Ok(())
        })
    }

    fn set_len(&self, length: u64) -> Result<()> {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        // Octets that a truncation removes must not reappear from the original file.
        for block in length.div_ceil(BLOCK)..changed.length.div_ceil(BLOCK) {
            changed.blocks.insert(block, vec![0; BLOCK as usize].into());
        }
        changed.length = length;
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        let mut changed = self.changed.lock().unwrap_or_else(PoisonError::into_inner);
        Self::parts(offset, data.len(), |block, begin, range| {
            let octets = match changed.blocks.entry(block) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(self.stored(block)?),
            };
            let octets = octets.get_mut(begin..);
            if let (Some(octets), Some(data)) = (octets, data.get(range)) {
                octets.iter_mut().zip(data).for_each(|(octet, new)| *octet = *new);
            }
            Ok(())
        })
    }
}

/// Verifies every page of a file by the checksums of redb. No process may use the file; it is not changed. Takes the
/// time to read the file.
///
/// # Errors
/// A page is damaged; the file cannot be opened.
pub fn verify(path: &Path) -> std::result::Result<(), StoreError> {
    let open = |source: redb::Error| StoreError::Open { path: path.to_owned(), source };
    let file = UnchangedFile::open(path).map_err(|error| open(error.into()))?;
    let mut database = Database::builder().create_with_backend(file).map_err(|error| open(error.into()))?;
    match database.check_integrity() {
        Ok(true) => Ok(()),
        Ok(false) => Err(StoreError::DamagedFile { path: path.to_owned() }),
        Err(error) => Err(open(error.into())),
    }
}
