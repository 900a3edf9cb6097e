use std::{
    collections::HashSet,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sha1::{Digest, Sha1};

/// Maximum number of loaded scripts that are remembered.
const MAX_LOADED_SCRIPTS: usize = 1024;

/// The SHA-1 sum of a script, by which Redis identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScriptSha1([u8; 20]);

impl ScriptSha1 {
    /// Computes the sum of a script.
    #[must_use]
    pub fn of(script: &[u8]) -> Self {
        Self(Sha1::digest(script).into())
    }

    /// Parses 40 hexadecimal digits in either case; `None` for anything else.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let sum = model::from_hex(std::str::from_utf8(text).ok()?)?;
        Some(Self(sum.try_into().ok()?))
    }
}

impl fmt::Display for ScriptSha1 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&model::hex(&self.0))
    }
}

/// The scripts that implement the pool state machine. No script is executed.
///
/// Shared by all connections of a listener, since clients call scripts that other clients have loaded.
#[derive(Debug, Default)]
pub struct Scripts {
    configured: HashSet<ScriptSha1>,
    any_loaded: bool,
    loaded: Mutex<HashSet<ScriptSha1>>,
}

/// The status of a SHA-1 sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptStatus {
    /// The script is mapped to the state machine.
    Mapped,
    /// The script was loaded, and is not mapped.
    Loaded,
    /// The script is unknown.
    Unknown,
}

impl Scripts {
    /// Maps the configured sums; with `any_loaded` also every loaded script.
    #[must_use]
    pub fn new(configured: impl IntoIterator<Item = ScriptSha1>, any_loaded: bool) -> Self {
        Self { configured: configured.into_iter().collect(), any_loaded, loaded: Mutex::default() }
    }

    pub(crate) fn load(&self, sum: ScriptSha1) {
        let mut loaded = self.loaded();
        if loaded.len() < MAX_LOADED_SCRIPTS {
            loaded.insert(sum);
        }
    }

    pub(crate) fn flush(&self) {
        self.loaded().clear();
    }

    pub(crate) fn status(&self, sum: ScriptSha1) -> ScriptStatus {
        if self.configured.contains(&sum) {
            ScriptStatus::Mapped
        } else if !self.loaded().contains(&sum) {
            ScriptStatus::Unknown
        } else if self.any_loaded {
            ScriptStatus::Mapped
        } else {
            ScriptStatus::Loaded
        }
    }

    /// The set is consistent after each change, so a poisoned lock can be used.
    fn loaded(&self) -> MutexGuard<'_, HashSet<ScriptSha1>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
