//! Shared state of this node: each store as a part that the cluster replicates.

use access::Access;
use capabilities::RedbKvStore;
use configuration::VersionStore;
use replication::{LocalContent, ReplicationError, SharedFiles, SharedFolder, SharedState};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::{Component, Path};
use std::sync::Arc;

/// The part that contains the configuration.
pub(crate) const CONFIGURATION: &str = "configuration";
/// The part that contains the plugins and the bindings of the hooks.
pub(crate) const PLUGINS: &str = "plugins";

/// The part that contains the lookup tables.
pub(crate) const TABLES: &str = "tables";

/// The stores of this node with shared state.
#[derive(Clone)]
pub(crate) struct NodeStores {
    /// Users and tokens. Sessions and the audit log are not shared.
    pub(crate) access: Arc<Access>,
    /// Versions of the configuration; `None` if each node has its own file.
    pub(crate) versions: Option<Arc<VersionStore>>,
    /// The plugins' values and durable counters.
    pub(crate) values: Arc<RedbKvStore>,
}

impl NodeStores {
    /// The parts that each partition has separately.
    pub(crate) fn own_parts(&self) -> Vec<Arc<dyn SharedState>> {
        vec![Arc::new(PluginValues(self.values.clone()))]
    }

    /// The parts that all partitions share. `data` is the data directory.
    pub(crate) fn parts_of_all(&self, data: &Path, files: &Arc<SharedFiles>) -> Vec<Arc<dyn SharedState>> {
        let mut parts: Vec<Arc<dyn SharedState>> = vec![
            Arc::new(Users(self.access.clone())),
            Arc::new(SharedFolder::new(TABLES, &data.join("tables"), is_table, files.clone())),
            Arc::new(SharedFolder::new(PLUGINS, &data.join("plugins"), is_plugin, files.clone())),
        ];
        if let Some(versions) = &self.versions {
            parts.push(Arc::new(Configuration(versions.clone())));
        }
        parts
    }
}

fn is_table(path: &Path) -> bool {
    let is_here = path.components().count() == 1;
    is_here && path.extension() == Some(OsStr::new("table"))
}

/// Whether a file is shared: bindings, components and their attachments are, compiled components are not.
fn is_plugin(path: &Path) -> bool {
    let parts: Vec<_> = path.components().collect();
    let extension = path.extension().and_then(OsStr::to_str);
    match parts.as_slice() {
        [_] => extension == Some("json"),
        [Component::Normal(folder), _, _] if *folder == "components" => {
            matches!(extension, Some("wasm" | "sig" | "json" | "sbom"))
        }
        _ => false,
    }
}

/// A row of a store: name, and value; without a value if it is removed.
type Row = (String, Option<Vec<u8>>);

fn failed(part: &'static str, error: impl Display) -> ReplicationError {
    ReplicationError::Part { part, reason: error.to_string() }
}

fn contents(rows: BTreeMap<String, Vec<u8>>) -> BTreeMap<String, LocalContent> {
    rows.into_iter().map(|(name, octets)| (name, LocalContent::Value(octets))).collect()
}

fn rows(
    part: &'static str,
    changes: Vec<(String, Option<LocalContent>)>,
) -> Result<Vec<Row>, ReplicationError> {
    let rows = changes.into_iter().map(|(name, content)| match content {
        None => Ok((name, None)),
        Some(LocalContent::Value(octets)) => Ok((name, Some(octets))),
        Some(LocalContent::File(..)) => Err(failed(part, format!("{name} is a file, and must be a value"))),
    });
    rows.collect()
}

struct Users(Arc<Access>);

impl Users {
    const PART: &str = "access";
}

impl SharedState for Users {
    fn part(&self) -> &'static str {
        Self::PART
    }

    fn version(&self) -> Result<u64, ReplicationError> {
        Ok(self.0.changes())
    }

    fn read(&self) -> Result<BTreeMap<String, LocalContent>, ReplicationError> {
        self.0.records().map(contents).map_err(|error| failed(Self::PART, error))
    }

    fn apply(&self, changes: Vec<(String, Option<LocalContent>)>) -> Result<(), ReplicationError> {
        self.0.set_records(&rows(Self::PART, changes)?).map_err(|error| failed(Self::PART, error))
    }
}

struct Configuration(Arc<VersionStore>);

impl SharedState for Configuration {
    fn part(&self) -> &'static str {
        CONFIGURATION
    }

    fn version(&self) -> Result<u64, ReplicationError> {
        Ok(self.0.changes())
    }

    fn read(&self) -> Result<BTreeMap<String, LocalContent>, ReplicationError> {
        self.0.rows().map(contents).map_err(|error| failed(CONFIGURATION, error))
    }

    fn apply(&self, changes: Vec<(String, Option<LocalContent>)>) -> Result<(), ReplicationError> {
        self.0.set_rows(&rows(CONFIGURATION, changes)?).map_err(|error| failed(CONFIGURATION, error))
    }
}

struct PluginValues(Arc<RedbKvStore>);

impl PluginValues {
    const PART: &str = "plugin-values";
}

impl SharedState for PluginValues {
    fn part(&self) -> &'static str {
        Self::PART
    }

    fn version(&self) -> Result<u64, ReplicationError> {
        Ok(self.0.metrics().commits)
    }

    fn read(&self) -> Result<BTreeMap<String, LocalContent>, ReplicationError> {
        self.0.rows().map(contents).map_err(|error| failed(Self::PART, error))
    }

    fn apply(&self, changes: Vec<(String, Option<LocalContent>)>) -> Result<(), ReplicationError> {
        self.0.set_rows(&rows(Self::PART, changes)?).map_err(|error| failed(Self::PART, error))
    }

    fn writes_through(&self) -> bool {
        true
    }
}

/// Name in etcd of a row of the plugins' values.
pub(crate) fn value_name(row: &str) -> String {
    format!("{}/{row}", PluginValues::PART)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_the_cluster_are_shared() {
        for shared in [
            "router.json",
            "components/a/0123.wasm",
            "components/a/0123.sig",
            "components/a/0123.json",
            "components/a/0123.sbom",
        ] {
            assert!(is_plugin(Path::new(shared)), "{shared}");
        }
        for own in [
            "kv.redb",
            "artefacts/0123.cwasm",
            "components/a/0123.0.new",
            "router.0.new",
            "x/router.json",
            "",
        ] {
            assert!(!is_plugin(Path::new(own)), "{own}");
        }
        assert!(is_table(Path::new("blocked.table")));
        assert!(!is_table(Path::new(".incoming-x")) && !is_table(Path::new("a/b.table")));
    }
}
