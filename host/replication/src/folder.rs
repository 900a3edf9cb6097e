use crate::shared_files::FileStamp;
use crate::{LocalContent, ReplicationError, SharedFiles, SharedState};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Files up to this number of octets are values in etcd; larger ones are copied from node to node.
const MAX_VALUE: u64 = 32 << 10;
/// The prefix of unfinished files.
const UNFINISHED: &str = ".tmp-shared-";

/// A part of the shared state that is files of a folder.
pub struct SharedFolder {
    part: &'static str,
    folder: PathBuf,
    /// Whether a path, relative to the folder, is shared.
    is_shared: fn(&Path) -> bool,
    files: Arc<SharedFiles>,
}

impl SharedFolder {
    /// The files of `folder` for which `is_shared` holds; it is given paths relative to the folder.
    pub fn new(
        part: &'static str,
        folder: &Path,
        is_shared: fn(&Path) -> bool,
        files: Arc<SharedFiles>,
    ) -> Self {
        Self { part, folder: folder.to_owned(), is_shared, files }
    }

    fn list(&self) -> Result<Vec<(String, PathBuf)>, ReplicationError> {
        let mut found = Vec::new();
        let mut folders = vec![self.folder.clone()];
        while let Some(folder) = folders.pop() {
            let entries = match std::fs::read_dir(&folder) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                entries => entries.map_err(ReplicationError::file(&folder))?,
            };
            for entry in entries {
                let path = entry.map_err(ReplicationError::file(&folder))?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(name) = path.strip_prefix(&self.folder)
                    && (self.is_shared)(name)
                    && let Some(name) = name.to_str()
                {
                    found.push((name.to_owned(), path));
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// The path of a name, which may come from another version.
    fn path(&self, name: &str) -> Result<PathBuf, ReplicationError> {
        let path = Path::new(name);
        let is_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_inside || !(self.is_shared)(path) {
            return Err(self.failed(format!("{name:?} is no file that nodes share")));
        }
        Ok(self.folder.join(path))
    }

    fn failed(&self, reason: String) -> ReplicationError {
        ReplicationError::Part { part: self.part, reason }
    }

    fn put(&self, path: &Path, content: &LocalContent) -> std::io::Result<()> {
        let parent = path.parent().unwrap_or(&self.folder);
        std::fs::create_dir_all(parent)?;
        let mut temporary = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(parent)?;
        match content {
            LocalContent::Value(value) => temporary.write_all(value)?,
            LocalContent::File(_, from) => {
                std::io::copy(&mut std::fs::File::open(from)?, &mut temporary)?;
            }
        }
        temporary.as_file().sync_all()?;
        temporary.persist(path)?;
        std::fs::File::open(parent)?.sync_all()
    }
}

impl SharedState for SharedFolder {
    fn part(&self) -> &'static str {
        self.part
    }

    fn version(&self) -> Result<u64, ReplicationError> {
        let mut hasher = DefaultHasher::new();
        for (name, path) in self.list()? {
            name.hash(&mut hasher);
            // A file that was removed since: the next look sees it.
            FileStamp::of(&path).ok().hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    fn read(&self) -> Result<BTreeMap<String, LocalContent>, ReplicationError> {
        let mut all = BTreeMap::new();
        for (name, path) in self.list()? {
            let read = || -> std::io::Result<LocalContent> {
                if FileStamp::of(&path)?.octets() <= MAX_VALUE {
                    return Ok(LocalContent::Value(std::fs::read(&path)?));
                }
                Ok(LocalContent::File(self.files.describe(&path)?, path.clone()))
            };
            match read() {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                content => drop(all.insert(name, content.map_err(ReplicationError::file(&path))?)),
            }
        }
        Ok(all)
    }

    fn apply(&self, mut changes: Vec<(String, Option<LocalContent>)>) -> Result<(), ReplicationError> {
        // What is deeper first: components before the bindings that name them.
        changes.sort_by_key(|(name, _)| std::cmp::Reverse(Path::new(name).components().count()));
        for (name, content) in changes {
            let path = self.path(&name)?;
            match &content {
                Some(content) => {
                    self.put(&path, content).map_err(ReplicationError::file(&path))?;
                    if let LocalContent::File(file, from) = content {
                        self.files.put(&file.sha256, &path);
                        if from.starts_with(self.files.folder()) {
                            // It is in its place now; should it stay, a later start removes it.
                            let _ = std::fs::remove_file(from);
                        }
                    }
                }
                None => match std::fs::remove_file(&path) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(ReplicationError::file(&path)(error));
                    }
                    _ => {}
                },
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(data: &Path) -> SharedFolder {
        let files = Arc::new(SharedFiles::open(&data.join("fetched")).unwrap());
        let is_shared = |path: &Path| path.extension().is_some_and(|extension| extension != "redb");
        SharedFolder::new("plugins", &data.join("plugins"), is_shared, files)
    }

    #[test]
    fn content_read_from_one_folder_can_be_applied_to_another() {
        let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (from, to) = (folder(there.path()), folder(here.path()));
        assert!(from.read().unwrap().is_empty());
        let plugins = there.path().join("plugins");
        std::fs::create_dir_all(plugins.join("components/a")).unwrap();
        std::fs::write(plugins.join("components/a/1.wasm"), vec![7; 100_000]).unwrap();
        std::fs::write(plugins.join("router.json"), "{}").unwrap();
        std::fs::write(plugins.join("kv.redb"), "of this node").unwrap();
        let content = from.read().unwrap();
        let names: Vec<_> = content.keys().map(String::as_str).collect();
        assert_eq!(names, ["components/a/1.wasm", "router.json"]);
        assert!(matches!(content["components/a/1.wasm"], LocalContent::File(..)));
        to.apply(content.into_iter().map(|(name, content)| (name, Some(content))).collect()).unwrap();
        let sums = |folder: &SharedFolder| -> Vec<_> {
            folder.read().unwrap().values().map(LocalContent::sha256).collect()
        };
        assert_eq!(sums(&from), sums(&to));
        let before = to.version().unwrap();
        to.apply(vec![("router.json".to_owned(), None), ("router.json".to_owned(), None)]).unwrap();
        assert_ne!(to.version().unwrap(), before);
        assert_eq!(to.read().unwrap().len(), 1);
    }

    #[test]
    fn no_name_leads_outside() {
        let data = tempfile::tempdir().unwrap();
        let folder = folder(data.path());
        for name in ["../token", "/etc/passwd", "a/../../b", "", "kv.redb"] {
            let change = vec![(name.to_owned(), Some(LocalContent::Value(Vec::new())))];
            assert!(matches!(folder.apply(change), Err(ReplicationError::Part { .. })), "{name:?}");
        }
    }
}
