//! Selects the configuration at startup: the file's, or the newest stored version.

use super::ConfigManager;
use crate::config::{Config, ConfigError, ConfigFile, ManagementMode, keys};
use anyhow::{Context as _, Result, bail};
use configuration::{
    ConfigProblem, ConfigVersion, ConfigVersionSummary, Diagnostics, Section, VersionDraft, VersionStore,
    VersionStoreError, upgrade_keys,
};
use model::Timestamp;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The startup configuration.
pub(crate) struct StartupConfig {
    /// The path of the configuration file.
    pub(super) file: PathBuf,
    /// The folder to which relative paths refer.
    pub(super) base: PathBuf,
    pub(super) mode: ManagementMode,
    pub(super) versions: Arc<VersionStore>,
    pub(super) summary: ConfigVersionSummary,
    pub(super) document: Value,
    /// Warnings to log once logging has started.
    pub(super) warnings: Vec<String>,
    /// The version to store once the configuration is active.
    pub(super) from_file: Option<FileVersion>,
}

/// A version that a start takes from the file. If the start fails, for example because a port is in use, the version is
/// not stored, and the next start reads the file again.
pub(super) struct FileVersion {
    /// The new version; `None` if the newest one is identical.
    draft: Option<VersionDraft>,
    seed: Value,
}

impl FileVersion {
    /// Stores the version.
    pub(super) fn record(self, versions: &VersionStore) -> Result<(), VersionStoreError> {
        if let Some(draft) = self.draft {
            versions.append(&draft)?;
        }
        versions.set_seed(&self.seed)
    }
}

/// The author of versions taken from the file.
pub(super) const BY_FILE: &str = "file";
/// The author of versions created by the daemon.
pub(super) const BY_DAEMON: &str = "switchyard";

/// Whether the nodes of a cluster share the configuration: only if it is managed over the API.
fn is_shared(file: &Value) -> bool {
    let mode = file.pointer("/configuration/mode").and_then(Value::as_str);
    file.get("cluster").is_some() && mode != Some("file")
}

/// The sections that a cluster node reads from its own file, in addition to those of every appliance.
fn own_sections(file: &Value) -> Vec<&str> {
    if !is_shared(file) {
        return Vec::new();
    }
    let more = file.pointer("/cluster/own-sections").and_then(Value::as_array);
    let more = more.into_iter().flatten().filter_map(Value::as_str);
    ["http"].into_iter().chain(more).collect()
}

/// Copies the file-only keys into a document: the data directory, the management mode, the cluster, and the own
/// sections of a cluster node.
pub(super) fn keep_file_only_keys(document: &mut Value, file: &Value) {
    let Some(map) = document.as_object_mut() else { return };
    if let Some(data) = file.pointer("/appliance/data")
        && let Some(appliance) = map.entry("appliance").or_insert_with(|| json!({})).as_object_mut()
    {
        appliance.insert("data".to_owned(), data.clone());
    }
    for section in own_sections(file).into_iter().chain(["configuration", "cluster"]) {
        match file.get(section) {
            Some(own) => map.insert(section.to_owned(), own.clone()),
            None => map.remove(section),
        };
    }
}

/// Reads the file and selects the configuration.
pub(crate) fn load_configuration(path: &Path) -> Result<(Config, StartupConfig)> {
    let source = ConfigFile::load(path)?;
    let wrong = |problems| ConfigError::Invalid { path: path.to_owned(), problems };
    let (data, mode) = bootstrap(&source).map_err(wrong)?;
    let versions_path = data.join("configuration.redb");
    let open = || -> Result<Arc<VersionStore>> {
        std::fs::create_dir_all(&data).with_context(|| format!("creating {}", data.display()))?;
        crate::data_folder::restrict_permissions(&data)?;
        Ok(Arc::new(VersionStore::open(&versions_path, keys())?))
    };
    let file_first = mode == ManagementMode::File || !versions_path.exists();
    if !file_first {
        let versions = open()?;
        if let Some(newest) = versions.newest()?
            && (is_shared(&source.document) || !is_file_newer(&versions, &newest, &source.document)?)
        {
            return from_version(path, source, versions, newest);
        }
        drop(versions);
    }
    let ConfigFile { document, lines, base } = source;
    let config = Config::from_document(&document, Some(lines), &base).map_err(wrong)?;
    let versions = open()?;
    let newest = versions.newest()?.filter(|newest| newest.document == document);
    let (summary, draft) = match newest {
        Some(newest) => {
            versions.confirm()?;
            (newest.summary, None)
        }
        None => {
            let why = format!("read from {}", path.display());
            let (at, by) = (Timestamp::now().0, BY_FILE.to_owned());
            let draft = VersionDraft { at, by, why, document: document.clone(), confirm_until: None };
            (versions.preview(&draft)?, Some(draft))
        }
    };
    let from_file = Some(FileVersion { draft, seed: document.clone() });
    let (file, warnings) = (path.to_owned(), Vec::new());
    let startup = StartupConfig { file, base, mode, versions, summary, document, warnings, from_file };
    Ok((config, startup))
}

/// Whether the file takes precedence over stored versions: the file has changed, and all versions so far came from
/// the file.
///
/// Stored versions have current keys. A file counts as unchanged if it differs only in old names of keys.
fn is_file_newer(
    versions: &VersionStore,
    newest: &ConfigVersion,
    file: &Value,
) -> Result<bool, VersionStoreError> {
    let mut file = file.clone();
    upgrade_keys(keys(), &mut file);
    // The seed distinguishes versions of the file from those of an author named "file".
    let newest_is_from_file = versions.seed()?.is_none_or(|seed| seed == newest.document)
        || newest.document.pointer("/configuration/mode").is_some_and(|mode| mode == "file");
    let changed = newest.document != file;
    Ok(changed
        && newest_is_from_file
        && versions.list(None, usize::MAX)?.iter().all(|version| version.by == BY_FILE))
}

/// Describes which configuration the next start uses, for `switchyard check`. The file must be valid.
pub(crate) fn describe_next_start(path: &Path) -> Result<String> {
    let source = ConfigFile::load(path)?;
    let wrong = |problems| ConfigError::Invalid { path: path.to_owned(), problems };
    let (data, mode) = bootstrap(&source).map_err(wrong)?;
    let versions_path = data.join("configuration.redb");
    if mode == ManagementMode::File {
        return Ok("the next start uses this file: it has mode = \"file\"".to_owned());
    }
    if !versions_path.try_exists().with_context(|| format!("checking for {}", versions_path.display()))? {
        return Ok(format!("the next start uses this file: {} has no configuration yet", data.display()));
    }
    let versions = VersionStore::open(&versions_path, keys())?;
    let Some(newest) = versions.newest()? else {
        return Ok(format!("the next start uses this file: {} has no configuration yet", data.display()));
    };
    let (version, by) = (newest.summary.version, &newest.summary.by);
    if is_file_newer(&versions, &newest, &source.document)? {
        return Ok(format!(
            "the next start uses this file instead of version {version} in {}",
            data.display()
        ));
    }
    let mut document = newest.document;
    keep_file_only_keys(&mut document, &source.document);
    if document == source.document {
        return Ok(format!("this file is the same as the active version {version} in {}", data.display()));
    }
    Ok(format!(
        "to apply this file, run `switchyard config apply {}`: the next start does not use it, because version {version} \
         in {}, by {by}, is active",
        path.display(),
        data.display()
    ))
}

/// Reads the few keys that are needed to select the configuration.
fn bootstrap(source: &ConfigFile) -> Result<(PathBuf, ManagementMode), Vec<ConfigProblem>> {
    let reading = Diagnostics::new(Some(source.lines.clone()), &source.base);
    let (data, mode) = crate::config::bootstrap(&Section::root(&reading, &source.document));
    let problems = reading.problems();
    if problems.is_empty() {
        return Ok((data, mode));
    }
    // Report all problems of the file, not only those of these keys.
    match Config::from_document(&source.document, Some(source.lines.clone()), &source.base) {
        Ok(_) => Err(problems),
        Err(all) => Err(all),
    }
}

fn from_version(
    path: &Path,
    source: ConfigFile,
    versions: Arc<VersionStore>,
    newest: ConfigVersion,
) -> Result<(Config, StartupConfig)> {
    let (mut newest, mut warnings) = (newest, Vec::new());
    // A partition other than 0 uses the configuration of partition 0.
    let follows = source
        .document
        .pointer("/cluster/partition")
        .and_then(Value::as_u64)
        .is_some_and(|number| number > 0);
    if let Some(pending) = versions.pending()?.filter(|_| !follows) {
        let why = format!("the appliance was started before version {} was confirmed", pending.version);
        let Some(before) = versions.get(pending.back_to)? else {
            bail!("version {} of the configuration was deleted, and {why}", pending.back_to);
        };
        let document = before.document;
        let (at, by) = (Timestamp::now().0, BY_DAEMON.to_owned());
        let draft =
            VersionDraft { at, by, why: why.clone(), document: document.clone(), confirm_until: None };
        let summary = versions.append(&draft)?;
        warnings.push(format!("configuration reverted to version {}: {why}", pending.back_to));
        newest = ConfigVersion { summary, document };
    }
    let mut document = newest.document;
    keep_file_only_keys(&mut document, &source.document);
    let mut seeded = source.document.clone();
    upgrade_keys(keys(), &mut seeded);
    keep_file_only_keys(&mut seeded, &source.document);
    if seeded == document {
        versions.set_seed(&seeded)?;
    } else if versions.seed()?.is_none_or(|seed| seed != seeded) {
        warnings.push(
            "the configuration file has changed, but the configuration last set over the API is active: to activate the file, run \
             `switchyard config apply FILE`, or set [configuration] mode = \"file\""
                .to_owned(),
        );
    }
    let config = read_version(path, &source.base, &document, newest.summary.version)?;
    let (summary, base) = (newest.summary, source.base);
    let startup = StartupConfig {
        file: path.to_owned(),
        base,
        mode: ManagementMode::Api,
        versions,
        summary,
        document,
        warnings,
        from_file: None,
    };
    Ok((config, startup))
}

/// Reads the document of a stored version, with the file-only keys.
fn read_version(path: &Path, base: &Path, document: &Value, version: u64) -> Result<Config> {
    Config::from_document(document, None, base).map_err(|problems| {
        let message: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!(
            "correct these errors, or set [configuration] mode = \"file\" in {} to start from that file: the active configuration, \
             version {version}, is no longer valid:\n{}",
            path.display(),
            message.join("\n"),
        )
    })
}

impl StartupConfig {
    /// The versions, if the nodes of a cluster share them.
    pub(crate) fn shared_versions(&self) -> Option<Arc<VersionStore>> {
        is_shared(&self.document).then(|| self.versions.clone())
    }

    /// The configuration of the cluster's newest version, for a follower.
    pub(crate) fn read_newest(&self) -> Result<Option<Config>> {
        let Some(mut newest) = self.versions.newest()? else { return Ok(None) };
        keep_file_only_keys(&mut newest.document, &self.document);
        let version = newest.summary.version;
        read_version(&self.file, &self.base, &newest.document, version).map(Some)
    }

    /// Selects the configuration again, when this node has become the leader.
    pub(crate) fn select_again(self, config: Config) -> Result<(Config, Self)> {
        let newest = self.versions.newest()?.filter(|_| is_shared(&self.document));
        let Some(newest) = newest else { return Ok((config, self)) };
        let source = ConfigFile::load(&self.file)?;
        from_version(&self.file, source, self.versions, newest)
    }

    /// Creates the manager; [`ConfigManager::open`] connects it to the components later.
    pub(crate) fn config_manager(self, config: Config) -> ConfigManager {
        ConfigManager::new(self, config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str =
        "[appliance]\ndata = \"data\"\n[[peer]]\nname = \"up\"\naddress = \"localhost:1\"\nlinks = 2\n";

    fn links(config: &Config) -> usize {
        config.peers[0].links.links
    }

    /// A successful start.
    fn start(path: &Path) -> (Config, StartupConfig) {
        let (config, mut startup) = load_configuration(path).unwrap();
        if let Some(from_file) = startup.from_file.take() {
            from_file.record(&startup.versions).unwrap();
        }
        (config, startup)
    }

    /// Stores a version with another number of links, as a change over the API would.
    fn append(startup: &StartupConfig, links: u64, confirm_until: Option<u64>) {
        let mut document = startup.document.clone();
        document["peer"][0]["links"] = links.into();
        let draft = VersionDraft { at: 1, by: "ada".into(), why: String::new(), document, confirm_until };
        startup.versions.append(&draft).unwrap();
    }

    #[test]
    fn the_file_is_used_at_the_first_start_only_unless_mode_is_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, FIRST).unwrap();
        let (config, startup) = start(&path);
        assert_eq!((links(&config), startup.summary.version, startup.warnings.len()), (2, 1, 0));
        append(&startup, 5, None);
        drop(startup);
        let (config, startup) = start(&path);
        assert_eq!((links(&config), startup.summary.version, startup.warnings.len()), (5, 2, 0));
        drop(startup);
        // The changed file only causes a warning.
        std::fs::write(&path, FIRST.replace("links = 2", "links = 7")).unwrap();
        let (config, startup) = start(&path);
        assert_eq!((links(&config), startup.warnings.len()), (5, 1));
        drop(startup);
        let counts = FIRST.replace("links = 2", "links = 7\n[configuration]\nmode = \"file\"");
        std::fs::write(&path, counts).unwrap();
        let (config, startup) = start(&path);
        assert_eq!((links(&config), startup.summary.version, startup.mode), (7, 3, ManagementMode::File));
        assert_eq!(startup.summary.by, BY_FILE);
    }

    #[test]
    fn an_unconfirmed_version_is_reverted_at_startup() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, FIRST).unwrap();
        let (_, startup) = start(&path);
        append(&startup, 5, Some(u64::MAX));
        drop(startup);
        let (config, startup) = start(&path);
        assert_eq!((links(&config), startup.summary.version, startup.summary.by.as_str()), (2, 3, BY_DAEMON));
        assert_eq!((startup.warnings.len(), startup.versions.pending().unwrap()), (1, None));
        drop(startup);
        assert_eq!(links(&load_configuration(&path).unwrap().0), 2);
    }

    #[test]
    fn an_unusable_stored_version_is_reported_with_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "x").unwrap();
        std::fs::write(&path, format!("{FIRST}password-file = {:?}\n", secret.display().to_string()))
            .unwrap();
        drop(start(&path));
        std::fs::remove_file(&secret).unwrap();
        let message = load_configuration(&path).err().unwrap().to_string();
        assert!(
            message.contains("peer[0].password-file") && message.contains("mode = \"file\""),
            "{message}"
        );
    }

    #[test]
    fn a_configuration_that_was_never_applied_is_not_stored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, FIRST).unwrap();
        // The start fails after this and never marks the configuration as active.
        drop(load_configuration(&path).unwrap());
        std::fs::write(&path, FIRST.replace("links = 2", "links = 7")).unwrap();
        assert!(describe_next_start(&path).unwrap().starts_with("the next start uses this file"));
        let (config, startup) = start(&path);
        assert_eq!((links(&config), startup.summary.version, startup.warnings.len()), (7, 1, 0));
        assert_eq!(startup.versions.list(None, 10).unwrap(), [startup.summary]);
    }

    #[test]
    fn a_changed_file_is_used_until_a_change_over_the_api() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, FIRST).unwrap();
        drop(start(&path));
        assert!(
            describe_next_start(&path).unwrap().starts_with("this file is the same as the active version 1")
        );
        std::fs::write(&path, FIRST.replace("links = 2", "links = 7")).unwrap();
        let message = describe_next_start(&path).unwrap();
        assert!(message.starts_with("the next start uses this file instead of version 1"), "{message}");
        let (config, startup) = start(&path);
        assert_eq!((links(&config), startup.summary.version, startup.summary.by.as_str()), (7, 2, BY_FILE));
        append(&startup, 5, None);
        drop(startup);
        std::fs::write(&path, FIRST).unwrap();
        let message = describe_next_start(&path).unwrap();
        assert!(message.starts_with("to apply this file, run `switchyard config apply"), "{message}");
        assert!(message.contains("version 3") && message.contains("by ada"), "{message}");
        assert_eq!(links(&start(&path).0), 5);
    }

    #[test]
    fn a_version_and_an_unchanged_file_of_an_older_daemon_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, format!("{FIRST}receipts = false\n")).unwrap();
        let document = ConfigFile::load(&path).unwrap().document;
        std::fs::create_dir(folder.path().join("data")).unwrap();
        let versions = VersionStore::open(&folder.path().join("data/configuration.redb"), keys()).unwrap();
        let (by, why) = (BY_FILE.to_owned(), String::new());
        let draft = VersionDraft { at: 1, by, why, document: document.clone(), confirm_until: None };
        versions.append(&draft).unwrap();
        versions.set_seed(&document).unwrap();
        drop(versions);
        let (config, startup) = start(&path);
        assert_eq!((startup.summary.version, startup.warnings.len()), (1, 0), "{:?}", startup.warnings);
        assert!(!config.peers[0].queue.sends_dlrs);
        drop(startup);
        // A changed file must use the current keys.
        std::fs::write(&path, format!("{FIRST}receipts = true\n")).unwrap();
        let message = load_configuration(&path).err().unwrap().to_string();
        assert!(message.contains("peer[0].receipts"), "{message}");
    }

    #[test]
    fn an_invalid_file_creates_no_data_directory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, FIRST.replace("links = 2", "links = 0")).unwrap();
        assert!(load_configuration(&path).is_err());
        assert!(!folder.path().join("data").exists());
        std::fs::write(&path, "[appliance]\n[[peer]]\n").unwrap();
        let message = load_configuration(&path).err().unwrap().to_string();
        // All problems are reported, even if the file-only keys are missing.
        assert!(message.contains("appliance.data") && message.contains("peer[0].address"), "{message}");
    }
}
