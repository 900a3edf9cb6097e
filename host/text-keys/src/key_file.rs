//! The key file.
//!
//! Format; all numbers are little-endian:
//! * header, 56 octets: `SWTEXTK`, 1 format (1), 16 random, 32 HMAC-SHA-256 of these with a key derived from the root
//!   key
//! * entries, each: 2 length of the rest, 1 kind, fields of the kind:
//!   * 1, a key: 8 number, 8 start and 8 end of its period (ms since the epoch), 1 length and name of the account,
//!     12 nonce, 32 key and 16 tag: AES-256-GCM with a key derived from the root key and the header's random octets; the
//!     kind and the fields before the nonce are its associated data
//!   * 2, a destroyed key: 8 number, 8 time of the destruction, 16 HMAC-SHA-256 (cut) of kind and fields
//!
//! A new key is appended and synced. If a crash cut off the last entry, the next opening removes it: nothing was
//! encrypted with that key. To destroy keys, the file is rewritten under another name and renamed; then the octets of the
//! old file are overwritten, and it is removed. Until then, the old file also has the name `NAME.old`; after a crash, the
//! next opening completes the destruction.

use crate::TextKeyError;
use crate::cipher::encryption_key;
use crate::root_key::{KEY_OCTETS, RootKey, random, sync_folder_of};
use ring::aead::{Aad, LessSafeKey, NONCE_LEN, Nonce};
use ring::hmac;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 7] = b"SWTEXTK";
const FORMAT: u8 = 1;
const RANDOM: usize = 16;
const HEADER: usize = 8 + RANDOM + 32;

const KEY: u8 = 1;
const DESTROYED: u8 = 2;
/// Octets of the checksum of a destroyed key.
const MAC: usize = 16;
const TAG: usize = 16;

/// The longest name of an account, in octets.
const MAX_NAME: usize = 255;
/// The longest entry, in octets.
const MAX_ENTRY: usize = 26 + MAX_NAME + NONCE_LEN + KEY_OCTETS + TAG;

/// A key in the file.
#[derive(Clone)]
pub(crate) struct StoredKey {
    pub(crate) number: u64,
    pub(crate) account: Box<str>,
    /// The period of the messages that it encrypts, by their acceptance, in ms since the epoch.
    pub(crate) period: std::ops::Range<u64>,
    pub(crate) secret: [u8; KEY_OCTETS],
}

/// A key that was destroyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DestroyedKey {
    pub(crate) number: u64,
    /// When, in ms since the epoch.
    pub(crate) at: u64,
}

/// Contents of the key file.
#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) keys: Vec<StoredKey>,
    pub(crate) destroyed: Vec<DestroyedKey>,
}

/// The key file, open for appending. It is created with its first key.
pub(crate) struct KeyFile {
    path: PathBuf,
    root: RootKey,
    open: Option<OpenFile>,
}

struct OpenFile {
    file: File,
    /// Offset of the next entry.
    end: u64,
    protection: Protection,
}

/// A file that was read: closed, its contents, and the end of its entries with the keys derived for it.
type FileRead = (KeyFile, Contents, Option<(u64, Protection)>);

/// The keys of one file, derived from the root key.
pub(crate) struct Protection {
    random: [u8; RANDOM],
    wrap: LessSafeKey,
    check: hmac::Key,
}

impl Protection {
    fn new(root: &RootKey, random: [u8; RANDOM]) -> Option<Self> {
        let check = hmac::Key::new(hmac::HMAC_SHA256, &root.derive("check", &random));
        Some(Self { random, wrap: encryption_key(&root.derive("wrap", &random))?, check })
    }

    fn header(&self) -> Vec<u8> {
        let mut header = Vec::with_capacity(HEADER);
        header.extend_from_slice(MAGIC);
        header.push(FORMAT);
        header.extend_from_slice(&self.random);
        let check = hmac::sign(&self.check, &header);
        header.extend_from_slice(check.as_ref());
        header
    }

    fn put_key(&self, out: &mut Vec<u8>, key: &StoredKey) -> Result<(), TextKeyError> {
        let name = key.account.as_bytes();
        let name = name.get(..MAX_NAME).unwrap_or(name);
        let mut entry = vec![KEY];
        for number in [key.number, key.period.start, key.period.end] {
            entry.extend_from_slice(&number.to_le_bytes());
        }
        entry.push(name.len() as u8);
        entry.extend_from_slice(name);
        let nonce = random::<NONCE_LEN>()?;
        let mut wrapped = key.secret;
        let bound = Aad::from(&entry);
        let nonce_for = Nonce::assume_unique_for_key(nonce);
        // It fails only for more octets than a key has.
        if let Ok(tag) = self.wrap.seal_in_place_separate_tag(nonce_for, bound, &mut wrapped) {
            entry.extend_from_slice(&nonce);
            entry.extend_from_slice(&wrapped);
            entry.extend_from_slice(tag.as_ref());
        }
        put_entry(out, &entry);
        Ok(())
    }

    fn put_destroyed(&self, out: &mut Vec<u8>, key: DestroyedKey) {
        let mut entry = vec![DESTROYED];
        entry.extend_from_slice(&key.number.to_le_bytes());
        entry.extend_from_slice(&key.at.to_le_bytes());
        let mac = hmac::sign(&self.check, &entry);
        entry.extend_from_slice(&mac.as_ref()[..MAC]);
        put_entry(out, &entry);
    }

    /// Reads an entry. `None`: it is not one.
    fn read_entry(&self, entry: &[u8], contents: &mut Contents) -> Option<()> {
        let number = |at: usize| Some(u64::from_le_bytes(entry.get(at..at + 8)?.try_into().ok()?));
        match *entry.first()? {
            KEY => {
                let name_end = 26 + usize::from(*entry.get(25)?);
                let (bound, rest) = entry.split_at_checked(name_end)?;
                let (nonce, wrapped) = rest.split_at_checked(NONCE_LEN)?;
                let mut wrapped: [u8; KEY_OCTETS + TAG] = wrapped.try_into().ok()?;
                let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
                let secret = self.wrap.open_in_place(nonce, Aad::from(bound), &mut wrapped).ok()?;
                contents.keys.push(StoredKey {
                    number: number(1)?,
                    account: std::str::from_utf8(bound.get(26..)?).ok()?.into(),
                    period: number(9)?..number(17)?,
                    secret: (&*secret).try_into().ok()?,
                });
            }
            DESTROYED => {
                let (fields, mac) = entry.split_at_checked(17)?;
                let wanted = hmac::sign(&self.check, fields);
                if wanted.as_ref().get(..MAC)? != mac {
                    return None;
                }
                contents.destroyed.push(DestroyedKey { number: number(1)?, at: number(9)? });
            }
            _ => return None,
        }
        Some(())
    }
}

fn put_entry(out: &mut Vec<u8>, entry: &[u8]) {
    out.extend_from_slice(&(entry.len() as u16).to_le_bytes());
    out.extend_from_slice(entry);
}

impl KeyFile {
    /// Opens the file. If it does not exist, or is empty, there are no keys yet.
    pub(crate) fn open(path: &Path, root: RootKey) -> Result<(Self, Contents), TextKeyError> {
        finish_destruction(path).map_err(TextKeyError::file(path, "written"))?;
        let (mut opened, contents, incomplete) = Self::read(path, root)?;
        if let Some((end, protection)) = incomplete {
            let file = OpenOptions::new().write(true).open(path);
            let file = file.map_err(TextKeyError::file(path, "written"))?;
            if file.metadata().is_ok_and(|found| found.len() > end) {
                tracing::warn!(path = %path.display(), "an incomplete entry of the file of text keys is removed");
                let cut = file.set_len(end).and_then(|()| file.sync_all());
                cut.map_err(TextKeyError::file(path, "written"))?;
            }
            opened.open = Some(OpenFile { file, end, protection });
        }
        Ok((opened, contents))
    }

    /// Reads the file, which another process may be writing to. With the end of its entries, if it has any.
    pub(crate) fn read(path: &Path, root: RootKey) -> Result<FileRead, TextKeyError> {
        let read = TextKeyError::file(path, "read");
        let none = Self { path: path.to_owned(), root, open: None };
        let octets = match std::fs::read(path) {
            Ok(octets) if octets.is_empty() => return Ok((none, Contents::default(), None)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Ok((none, Contents::default(), None));
            }
            octets => octets.map_err(read)?,
        };
        let damaged = |offset| TextKeyError::Damaged { path: path.to_owned(), offset };
        let (header, mut rest) = octets.split_at_checked(HEADER).ok_or_else(|| damaged(octets.len()))?;
        if header.get(..7) != Some(MAGIC) {
            return Err(damaged(0));
        }
        if header.get(7) != Some(&FORMAT) {
            return Err(TextKeyError::TooNew(path.to_owned()));
        }
        let random = header.get(8..8 + RANDOM).and_then(|random| random.try_into().ok());
        let protection = random.and_then(|random| Protection::new(&none.root, random));
        let protection = protection.ok_or_else(|| damaged(8))?;
        if protection.header() != header {
            return Err(TextKeyError::WrongRootKey(path.to_owned()));
        }
        let mut contents = Contents::default();
        let mut end = HEADER;
        while let Some((length, after)) = rest.split_at_checked(2) {
            let length = usize::from(u16::from_le_bytes([length[0], length[1]]));
            if length > MAX_ENTRY {
                return Err(damaged(end));
            }
            let Some((entry, after)) = after.split_at_checked(length) else { break };
            if protection.read_entry(entry, &mut contents).is_none() {
                // A crash may have left the end of an append without its octets, but no entry after it.
                if entry.iter().chain(after).all(|octet| *octet == 0) || after.is_empty() {
                    break;
                }
                return Err(damaged(end));
            }
            end += 2 + length;
            rest = after;
        }
        Ok((none, contents, Some((end as u64, protection))))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Appends keys, durably.
    pub(crate) fn append(&mut self, keys: &[StoredKey]) -> Result<(), TextKeyError> {
        let Some(open) = &mut self.open else {
            // Someone has put a copy there since the start: its keys must not be overwritten.
            if self.path.metadata().is_ok_and(|found| found.len() > 0) {
                return Err(TextKeyError::NotRead(self.path.clone()));
            }
            let contents = Contents { keys: keys.to_vec(), destroyed: Vec::new() };
            return self.rewrite(&contents);
        };
        let mut octets = Vec::new();
        // One after the other, so that a crash cuts off only the last entry.
        for key in keys {
            octets.clear();
            open.protection.put_key(&mut octets, key)?;
            // After a failure, the next append overwrites these octets.
            let written = open
                .file
                .seek(SeekFrom::Start(open.end))
                .and_then(|_| open.file.write_all(&octets))
                .and_then(|()| open.file.sync_all());
            written.map_err(TextKeyError::file(&self.path, "written"))?;
            open.end += octets.len() as u64;
        }
        Ok(())
    }

    /// Replaces the file with one that has these contents, and overwrites the old one.
    pub(crate) fn rewrite(&mut self, contents: &Contents) -> Result<(), TextKeyError> {
        let random = random()?;
        let protection = Protection::new(&self.root, random);
        let Some(protection) = protection else {
            return Err(TextKeyError::Damaged { path: self.path.clone(), offset: 0 });
        };
        let mut octets = protection.header();
        for key in &contents.keys {
            protection.put_key(&mut octets, key)?;
        }
        for key in &contents.destroyed {
            protection.put_destroyed(&mut octets, *key);
        }
        let file = self.replace(&octets).map_err(TextKeyError::file(&self.path, "written"))?;
        self.open = Some(OpenFile { file, end: octets.len() as u64, protection });
        finish_destruction(&self.path).map_err(TextKeyError::file(&self.path, "written"))
    }

    fn replace(&self, octets: &[u8]) -> io::Result<File> {
        let new = with_suffix(&self.path, "new");
        ignore_missing(std::fs::remove_file(&new))?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
        file.write_all(octets)?;
        file.sync_all()?;
        // The old file keeps a name until it is overwritten, so that a crash cannot leave its octets on the disk.
        ignore_missing(std::fs::hard_link(&self.path, with_suffix(&self.path, "old")))?;
        sync_folder_of(&self.path)?;
        std::fs::rename(&new, &self.path)?;
        sync_folder_of(&self.path)?;
        Ok(file)
    }
}

fn with_suffix(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

fn ignore_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Overwrites and removes the old file of a replacement, and removes an unfinished new one.
fn finish_destruction(path: &Path) -> io::Result<()> {
    ignore_missing(std::fs::remove_file(with_suffix(path, "new")))?;
    let old = with_suffix(path, "old");
    let file = match OpenOptions::new().write(true).open(&old) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    // If it was not replaced, it is the same file under another name.
    let is_current = match std::fs::metadata(path) {
        Ok(current) => (current.dev(), current.ino()) == (found.dev(), found.ino()),
        // Someone has moved the current one away.
        Err(error) if error.kind() == ErrorKind::NotFound => true,
        Err(error) => return Err(error),
    };
    if !is_current {
        overwrite(file, found.len())?;
    }
    std::fs::remove_file(&old)?;
    sync_folder_of(path)
}

/// Overwrites a file in place with random octets, then with zeros.
fn overwrite(mut file: File, length: u64) -> io::Result<()> {
    let mut part = [0; 4096];
    for pass in 0..2 {
        file.rewind()?;
        let mut left = length;
        while left > 0 {
            if pass == 0 {
                getrandom::fill(&mut part).map_err(|error| io::Error::other(error.to_string()))?;
            } else {
                part.fill(0);
            }
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(part.len());
            file.write_all(part.get(..count).unwrap_or(&part))?;
            left -= count as u64;
        }
        file.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> StoredKey {
        StoredKey { number, account: "acme".into(), period: 0..10, secret: [number as u8; KEY_OCTETS] }
    }

    fn root() -> RootKey {
        RootKey::new(&[9; KEY_OCTETS])
    }

    fn numbers(path: &Path) -> Vec<u64> {
        let (_, contents) = KeyFile::open(path, root()).unwrap();
        assert!(contents.keys.iter().all(|key| key.secret == [key.number as u8; KEY_OCTETS]));
        contents.keys.iter().map(|key| key.number).collect()
    }

    #[test]
    fn keys_are_appended_destroyed_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.keys");
        let (mut file, contents) = KeyFile::open(&path, root()).unwrap();
        assert!(contents.keys.is_empty() && !path.exists());
        file.append(&[key(1), key(2)]).unwrap();
        file.append(&[key(3)]).unwrap();
        assert_eq!(numbers(&path), [1, 2, 3]);
        let destroyed = vec![DestroyedKey { number: 2, at: 77 }];
        file.rewrite(&Contents { keys: vec![key(1), key(3)], destroyed: destroyed.clone() }).unwrap();
        file.append(&[key(4)]).unwrap();
        assert_eq!(numbers(&path), [1, 3, 4]);
        assert_eq!(KeyFile::open(&path, root()).unwrap().1.destroyed, destroyed);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no other file stays");
        let wrong = KeyFile::open(&path, RootKey::new(&[8; KEY_OCTETS])).err().unwrap().to_string();
        assert!(wrong.contains("another root key"), "{wrong}");
    }

    #[test]
    fn a_file_that_appears_after_the_opening_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.keys");
        let (mut late, _) = KeyFile::open(&path, root()).unwrap();
        let (mut file, _) = KeyFile::open(&path, root()).unwrap();
        file.append(&[key(1)]).unwrap();
        assert!(matches!(late.append(&[key(2)]), Err(TextKeyError::NotRead(_))));
        assert_eq!(numbers(&path), [1]);
        // An empty one has no keys.
        std::fs::write(&path, b"").unwrap();
        late.append(&[key(2)]).unwrap();
        assert_eq!(numbers(&path), [2]);
    }

    #[test]
    fn a_truncated_append_is_removed_and_other_damage_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.keys");
        let (mut file, _) = KeyFile::open(&path, root()).unwrap();
        file.append(&[key(1)]).unwrap();
        let first = std::fs::metadata(&path).unwrap().len() as usize;
        file.append(&[key(2)]).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for end in first..whole.len() {
            std::fs::write(&path, &whole[..end]).unwrap();
            assert_eq!(numbers(&path), [1], "cut at {end}");
            let mut zeros = whole[..end].to_vec();
            zeros.resize(whole.len(), 0);
            // The length of the file may be durable before its octets.
            std::fs::write(&path, zeros).unwrap();
            assert_eq!(numbers(&path), [1], "zeros from {end}");
            let (mut file, _) = KeyFile::open(&path, root()).unwrap();
            file.append(&[key(3)]).unwrap();
            assert_eq!(numbers(&path), [1, 3]);
        }
        for at in 0..first {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x40;
            std::fs::write(&path, damaged).unwrap();
            assert!(KeyFile::open(&path, root()).is_err(), "octet {at}");
        }
    }

    #[test]
    fn a_crash_while_keys_are_destroyed_loses_no_other_key_and_leaves_no_old_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.keys");
        let (mut file, _) = KeyFile::open(&path, root()).unwrap();
        file.append(&[key(1), key(2)]).unwrap();
        let before = std::fs::read(&path).unwrap();
        // Before the new file has replaced the old one: the old one has two names.
        std::fs::hard_link(&path, with_suffix(&path, "old")).unwrap();
        std::fs::write(with_suffix(&path, "new"), b"half").unwrap();
        assert_eq!(numbers(&path), [1, 2]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        // After that, and before the old one is overwritten. The test has a name of its own for the old file, to see
        // its octets.
        file.rewrite(&Contents { keys: vec![key(1)], destroyed: Vec::new() }).unwrap();
        std::fs::write(with_suffix(&path, "old"), &before).unwrap();
        let watched = folder.path().join("watched");
        std::fs::hard_link(with_suffix(&path, "old"), &watched).unwrap();
        assert_eq!(numbers(&path), [1]);
        assert_eq!(std::fs::read(&watched).unwrap(), vec![0; before.len()], "overwritten in place");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
