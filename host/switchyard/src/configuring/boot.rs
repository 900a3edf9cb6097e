//! Which configuration a start takes: the file's, or the newest version.

use super::Configuring;
use crate::config::{Config, ConfigError, Mode, Source};
use crate::core_loop::wall;
use anyhow::{Context as _, Result, bail};
use configuration::{Draft, Problem, Reading, Section, Summary, Version, Versions, VersionsError};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// What a start has found.
pub(crate) struct Booted {
    /// The file that the start was given.
    pub(super) file: PathBuf,
    /// Where relative paths begin.
    pub(super) base: PathBuf,
    pub(super) mode: Mode,
    pub(super) versions: Versions,
    pub(super) summary: Summary,
    pub(super) document: Value,
    /// What is to be logged, once there is a log.
    pub(super) remarks: Vec<String>,
    /// What is written down once the configuration is in force.
    pub(super) from_file: Option<FromFile>,
}

/// A configuration that a start takes from the file. A start may fail half-way, because a port is in use for example; then
/// nothing of it is kept, and the next start reads the file again.
pub(super) struct FromFile {
    /// The new version; none where the newest is the same.
    draft: Option<Draft>,
    seed: Value,
}

impl FromFile {
    /// Writes the version down.
    pub(super) fn record(self, versions: &Versions) -> Result<(), VersionsError> {
        if let Some(draft) = self.draft {
            versions.append(&draft)?;
        }
        versions.set_seed(&self.seed)
    }
}

/// Who the file's versions are by.
pub(super) const FILE: &str = "file";
/// Who the appliance's own versions are by.
pub(super) const HOUSE: &str = "switchyard";

/// What the file says that is nobody else's to say: where the data is, and who manages the configuration.
pub(super) fn keep_own(document: &mut Value, file: &Value) {
    let Some(map) = document.as_object_mut() else { return };
    if let Some(data) = file.pointer("/appliance/data")
        && let Some(appliance) = map.entry("appliance").or_insert_with(|| json!({})).as_object_mut()
    {
        appliance.insert("data".to_owned(), data.clone());
    }
    match file.get("configuration") {
        Some(own) => map.insert("configuration".to_owned(), own.clone()),
        None => map.remove("configuration"),
    };
}

/// Reads the file and finds out what counts.
pub(crate) fn boot(path: &Path) -> Result<(Config, Booted)> {
    let source = Source::load(path)?;
    let wrong = |problems| ConfigError::Wrong { path: path.to_owned(), problems };
    let (data, mode) = bootstrap(&source).map_err(wrong)?;
    let kept = data.join("configuration.redb");
    let open = || -> Result<Versions> {
        std::fs::create_dir_all(&data).with_context(|| format!("making {}", data.display()))?;
        crate::serve::restrict(&data)?;
        Ok(Versions::open(&kept)?)
    };
    let file_first = mode == Mode::File || !kept.exists();
    if !file_first {
        let versions = open()?;
        if let Some(newest) = versions.newest()?
            && !takes_file(&versions, &newest, &source.document)?
        {
            return from_version(path, source, versions, newest);
        }
        drop(versions);
    }
    let Source { document, lines, base } = source;
    let config = Config::of(&document, Some(lines), &base).map_err(wrong)?;
    let versions = open()?;
    let newest = versions.newest()?.filter(|newest| newest.document == document);
    let (summary, draft) = match newest {
        Some(newest) => {
            versions.confirm()?;
            (newest.summary, None)
        }
        None => {
            let why = format!("read from {}", path.display());
            let (at, by) = (wall().0, FILE.to_owned());
            let draft = Draft { at, by, why, document: document.clone(), confirm_until: None };
            (versions.preview(&draft)?, Some(draft))
        }
    };
    let from_file = Some(FromFile { draft, seed: document.clone() });
    let (file, remarks) = (path.to_owned(), Vec::new());
    let booted = Booted { file, base, mode, versions, summary, document, remarks, from_file };
    Ok((config, booted))
}

/// Whether a start takes the file although there are versions: the file has changed, and nothing but the file was ever in force.
fn takes_file(versions: &Versions, newest: &Version, file: &Value) -> Result<bool, VersionsError> {
    // The seed tells versions of the file from those of somebody of that name.
    let was_file = versions.seed()?.is_none_or(|seed| seed == newest.document)
        || newest.document.pointer("/configuration/mode").is_some_and(|mode| mode == "file");
    let changed = newest.document != *file;
    Ok(changed && was_file && versions.list(None, usize::MAX)?.iter().all(|version| version.by == FILE))
}

/// Which configuration the next start takes, in words for `switchyard check`. The file itself has been found right.
pub(crate) fn what_counts(path: &Path) -> Result<String> {
    let source = Source::load(path)?;
    let wrong = |problems| ConfigError::Wrong { path: path.to_owned(), problems };
    let (data, mode) = bootstrap(&source).map_err(wrong)?;
    let kept = data.join("configuration.redb");
    if mode == Mode::File {
        return Ok("the next start takes this file: it says mode = \"file\"".to_owned());
    }
    if !kept.try_exists().with_context(|| format!("looking for {}", kept.display()))? {
        return Ok(format!("the next start takes this file: {} has no configuration yet", data.display()));
    }
    let versions = Versions::open(&kept)?;
    let Some(newest) = versions.newest()? else {
        return Ok(format!("the next start takes this file: {} has no configuration yet", data.display()));
    };
    let (version, by) = (newest.summary.version, &newest.summary.by);
    if takes_file(&versions, &newest, &source.document)? {
        return Ok(format!(
            "the next start takes this file in place of version {version} in {}",
            data.display()
        ));
    }
    let mut document = newest.document;
    keep_own(&mut document, &source.document);
    if document == source.document {
        return Ok(format!("this file is the same as version {version} in {}, which counts", data.display()));
    }
    Ok(format!(
        "to put this file in force, run `switchyard config apply {}`: the next start does not take it, because version {version} \
         in {}, by {by}, counts",
        path.display(),
        data.display()
    ))
}

/// The little that must be known before it is known what counts.
fn bootstrap(source: &Source) -> Result<(PathBuf, Mode), Vec<Problem>> {
    let reading = Reading::new(Some(source.lines.clone()));
    let (data, mode) = {
        let root = Section::root(&reading, &source.document);
        let data = source.base.join(root.section("appliance").required("data", "\"/var/lib/switchyard\""));
        (data, crate::config::mode(&root))
    };
    let problems = reading.problems();
    if problems.is_empty() {
        return Ok((data, mode));
    }
    // The whole truth, not only what is needed first.
    match Config::of(&source.document, Some(source.lines.clone()), &source.base) {
        Ok(_) => Err(problems),
        Err(all) => Err(all),
    }
}

fn from_version(
    path: &Path,
    source: Source,
    versions: Versions,
    newest: Version,
) -> Result<(Config, Booted)> {
    let (mut newest, mut remarks) = (newest, Vec::new());
    if let Some(pending) = versions.pending()? {
        let why = format!("the appliance was started before version {} was confirmed", pending.version);
        let Some(before) = versions.get(pending.back_to)? else {
            bail!("version {} of the configuration is gone, and {why}", pending.back_to);
        };
        let document = before.document;
        let (at, by) = (wall().0, HOUSE.to_owned());
        let draft = Draft { at, by, why: why.clone(), document: document.clone(), confirm_until: None };
        let summary = versions.append(&draft)?;
        remarks.push(format!("configuration reverted to version {}: {why}", pending.back_to));
        newest = Version { summary, document };
    }
    let mut document = newest.document;
    keep_own(&mut document, &source.document);
    let mut seeded = source.document.clone();
    keep_own(&mut seeded, &source.document);
    if seeded == document {
        versions.set_seed(&seeded)?;
    } else if versions.seed()?.is_none_or(|seed| seed != seeded) {
        remarks.push(
            "to put the file in force, run `switchyard config apply FILE`, or write [configuration] mode = \"file\" into it: it has \
             changed, and what counts is the configuration that was last set over the API"
                .to_owned(),
        );
    }
    let config = Config::of(&document, None, &source.base).map_err(|problems| {
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!(
            "put right what is named below, or write [configuration] mode = \"file\" into {} to start from that file: version {} \
             of the configuration, which counts, cannot be used any more:\n{}",
            path.display(),
            newest.summary.version,
            told.join("\n"),
        )
    })?;
    let (summary, base) = (newest.summary, source.base);
    let booted = Booted {
        file: path.to_owned(),
        base,
        mode: Mode::Api,
        versions,
        summary,
        document,
        remarks,
        from_file: None,
    };
    Ok((config, booted))
}

impl Booted {
    /// Everything else is brought by [`Configuring::open`], once it is there.
    pub(crate) fn configuring(self, config: Config) -> Configuring {
        Configuring::new(self, config)
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

    /// A start that succeeds.
    fn start(path: &Path) -> (Config, Booted) {
        let (config, mut booted) = boot(path).unwrap();
        if let Some(from_file) = booted.from_file.take() {
            from_file.record(&booted.versions).unwrap();
        }
        (config, booted)
    }

    /// Puts another number of links in force, as a change over the API would.
    fn append(booted: &Booted, links: u64, confirm_until: Option<u64>) {
        let mut document = booted.document.clone();
        document["peer"][0]["links"] = links.into();
        let draft = Draft { at: 1, by: "ada".into(), why: String::new(), document, confirm_until };
        booted.versions.append(&draft).unwrap();
    }

    #[test]
    fn a_file_is_for_the_first_start_unless_it_says_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, FIRST).unwrap();
        let (config, booted) = start(&path);
        assert_eq!((links(&config), booted.summary.version, booted.remarks.len()), (2, 1, 0));
        append(&booted, 5, None);
        drop(booted);
        let (config, booted) = start(&path);
        assert_eq!((links(&config), booted.summary.version, booted.remarks.len()), (5, 2, 0));
        drop(booted);
        // Changed in the meantime: told, and no more.
        std::fs::write(&path, FIRST.replace("links = 2", "links = 7")).unwrap();
        let (config, booted) = start(&path);
        assert_eq!((links(&config), booted.remarks.len()), (5, 1));
        drop(booted);
        let counts = FIRST.replace("links = 2", "links = 7\n[configuration]\nmode = \"file\"");
        std::fs::write(&path, counts).unwrap();
        let (config, booted) = start(&path);
        assert_eq!((links(&config), booted.summary.version, booted.mode), (7, 3, Mode::File));
        assert_eq!(booted.summary.by, FILE);
    }

    #[test]
    fn what_was_not_confirmed_does_not_survive_a_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, FIRST).unwrap();
        let (_, booted) = start(&path);
        append(&booted, 5, Some(u64::MAX));
        drop(booted);
        let (config, booted) = start(&path);
        assert_eq!((links(&config), booted.summary.version, booted.summary.by.as_str()), (2, 3, HOUSE));
        assert_eq!((booted.remarks.len(), booted.versions.pending().unwrap()), (1, None));
        drop(booted);
        assert_eq!(links(&boot(&path).unwrap().0), 2);
    }

    #[test]
    fn a_version_that_cannot_be_used_any_more_says_why_and_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        let secret = folder.path().join("secret");
        std::fs::write(&secret, "x").unwrap();
        std::fs::write(&path, format!("{FIRST}password-file = {:?}\n", secret.display().to_string()))
            .unwrap();
        drop(start(&path));
        std::fs::remove_file(&secret).unwrap();
        let told = boot(&path).err().unwrap().to_string();
        assert!(told.contains("peer[0].password-file") && told.contains("mode = \"file\""), "{told}");
    }

    #[test]
    fn a_configuration_that_never_came_into_force_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, FIRST).unwrap();
        // The start fails after this: it never says that the configuration is in force.
        drop(boot(&path).unwrap());
        std::fs::write(&path, FIRST.replace("links = 2", "links = 7")).unwrap();
        assert!(what_counts(&path).unwrap().starts_with("the next start takes this file"));
        let (config, booted) = start(&path);
        assert_eq!((links(&config), booted.summary.version, booted.remarks.len()), (7, 1, 0));
        assert_eq!(booted.versions.list(None, 10).unwrap(), [booted.summary]);
    }

    #[test]
    fn a_changed_file_is_taken_as_long_as_nothing_was_set_over_the_api() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, FIRST).unwrap();
        drop(start(&path));
        assert!(what_counts(&path).unwrap().starts_with("this file is the same as version 1"));
        std::fs::write(&path, FIRST.replace("links = 2", "links = 7")).unwrap();
        let told = what_counts(&path).unwrap();
        assert!(told.starts_with("the next start takes this file in place of version 1"), "{told}");
        let (config, booted) = start(&path);
        assert_eq!((links(&config), booted.summary.version, booted.summary.by.as_str()), (7, 2, FILE));
        append(&booted, 5, None);
        drop(booted);
        std::fs::write(&path, FIRST).unwrap();
        let told = what_counts(&path).unwrap();
        assert!(told.starts_with("to put this file in force, run `switchyard config apply"), "{told}");
        assert!(told.contains("version 3") && told.contains("by ada"), "{told}");
        assert_eq!(links(&start(&path).0), 5);
    }

    #[test]
    fn a_wrong_file_makes_no_data() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("switchyard.toml");
        std::fs::write(&path, FIRST.replace("links = 2", "links = 0")).unwrap();
        assert!(boot(&path).is_err());
        assert!(!folder.path().join("data").exists());
        std::fs::write(&path, "[appliance]\n[[peer]]\n").unwrap();
        let told = boot(&path).err().unwrap().to_string();
        // All of it, also where what is needed first is missing.
        assert!(told.contains("appliance.data") && told.contains("peer[0].address"), "{told}");
    }
}
