use crate::PeerId;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The names that decisions of plugins refer to: all peers that ever existed, with their ids, and the pace limits of the
/// configuration.
///
/// Messages and records carry ids. Ids are durable and never reused, so a record of a removed peer still names it.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    names: Vec<Arc<str>>,
    /// Only admins choose names, so an attacker cannot force collisions.
    ids: FxHashMap<Arc<str>, PeerId>,
    /// `None`: there is no configuration.
    pace_limits: Option<ConfiguredPaceLimits>,
}

/// The pace limits of the configuration.
#[derive(Clone, Debug)]
struct ConfiguredPaceLimits {
    buckets: BTreeSet<Arc<str>>,
    windows: BTreeSet<Arc<str>>,
}

/// All peer ids are used up (2^32).
#[derive(Debug, thiserror::Error)]
#[error("all peer ids are used up")]
pub struct DirectoryFull;

impl Directory {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The id of `name`, a new one if the name is unknown. The second value tells whether it is new; a new id must be
    /// durable before it is used.
    ///
    /// # Errors
    /// All ids are used up.
    pub fn intern(&mut self, name: &str) -> Result<(PeerId, bool), DirectoryFull> {
        if let Some(id) = self.ids.get(name) {
            return Ok((*id, false));
        }
        let id = PeerId(u32::try_from(self.names.len()).map_err(|_| DirectoryFull)?);
        let name: Arc<str> = name.into();
        self.names.push(name.clone());
        self.ids.insert(name, id);
        Ok((id, true))
    }

    /// The id of `name`.
    #[must_use]
    pub fn id(&self, name: &str) -> Option<PeerId> {
        self.ids.get(name).copied()
    }

    /// The name of `id`; `"?"` for an id that was never assigned.
    #[must_use]
    pub fn name(&self, id: PeerId) -> Arc<str> {
        self.names.get(id.0 as usize).cloned().unwrap_or_else(|| "?".into())
    }

    /// Sets the names of the pace buckets and send windows of the configuration, which decisions may name.
    pub fn set_pace_names(
        &mut self,
        buckets: impl IntoIterator<Item = Arc<str>>,
        windows: impl IntoIterator<Item = Arc<str>>,
    ) {
        self.pace_limits = Some(ConfiguredPaceLimits {
            buckets: buckets.into_iter().collect(),
            windows: windows.into_iter().collect(),
        });
    }

    /// Whether the configuration has a pace bucket of this name. Without a configuration, it has every name.
    #[must_use]
    pub fn has_pace_bucket(&self, name: &str) -> bool {
        self.pace_limits.as_ref().is_none_or(|names| names.buckets.contains(name))
    }

    /// Whether the configuration has a send window of this name. Without a configuration, it has every name.
    #[must_use]
    pub fn has_send_window(&self, name: &str) -> bool {
        self.pace_limits.as_ref().is_none_or(|names| names.windows.contains(name))
    }

    /// All ids and names, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (PeerId, &Arc<str>)> {
        self.names.iter().enumerate().filter_map(|(i, name)| Some((PeerId(u32::try_from(i).ok()?), name)))
    }
}
