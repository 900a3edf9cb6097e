use crate::PeerId;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The names of all peers that ever were, and their numbers.
///
/// Numbers are what messages and records carry; they are durable and never given out twice, so that a record of a
/// peer that was since removed still says which one it was.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    names: Vec<Arc<str>>,
    /// Names are the admin's: nobody else can choose some that collide.
    ids: FxHashMap<Arc<str>, PeerId>,
}

/// More than four thousand million peers.
#[derive(Debug, thiserror::Error)]
#[error("there are more peers than numbers for them")]
pub struct DirectoryFull;

impl Directory {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of `name`, a new one if it was never seen. The second value says whether it is new (and so must be
    /// made durable before it is used).
    ///
    /// # Errors
    /// When all numbers are used up.
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

    /// The number of `name`.
    #[must_use]
    pub fn id(&self, name: &str) -> Option<PeerId> {
        self.ids.get(name).copied()
    }

    /// The name of `id`; `"?"` for a number that was never given out.
    #[must_use]
    pub fn name(&self, id: PeerId) -> Arc<str> {
        self.names.get(id.0 as usize).cloned().unwrap_or_else(|| "?".into())
    }

    /// All numbers and names, in the order in which they were given out.
    pub fn iter(&self) -> impl Iterator<Item = (PeerId, &Arc<str>)> {
        self.names.iter().enumerate().filter_map(|(i, name)| Some((PeerId(u32::try_from(i).ok()?), name)))
    }
}
