use std::{
    collections::HashSet,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use sha1::{Digest, Sha1};

/// Loaded scripts that are remembered; of more, only the sum is answered.
const REMEMBERED: usize = 1024;

/// A script's SHA-1 sum, as Redis names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sum([u8; 20]);

impl Sum {
    /// The sum of a script's text.
    #[must_use]
    pub fn of(script: &[u8]) -> Self {
        Self(Sha1::digest(script).into())
    }

    /// Reads 40 hexadecimal digits, of either case; `None` if they are not.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut sum = [0; 20];
        if text.len() != 40 {
            return None;
        }
        for (octet, pair) in sum.iter_mut().zip(text.chunks_exact(2)) {
            for &digit in pair {
                *octet = (*octet << 4) | u8::try_from(char::from(digit).to_digit(16)?).ok()?;
            }
        }
        Some(Self(sum))
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// Which scripts stand for the pools' state machine. No script is ever run.
///
/// Shared by all connections of a listener, since a script that one client loads is called by others.
#[derive(Debug, Default)]
pub struct Scripts {
    configured: HashSet<Sum>,
    any_loaded: bool,
    loaded: Mutex<HashSet<Sum>>,
}

/// What a sum means to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It stands for the state machine.
    Mapped,
    /// Somebody loaded it, but it stands for nothing.
    Loaded,
    /// Nobody ever loaded it.
    Unknown,
}

impl Scripts {
    /// Maps the configured sums; with `any_loaded` also every script that a client loads.
    #[must_use]
    pub fn new(configured: impl IntoIterator<Item = Sum>, any_loaded: bool) -> Self {
        Self { configured: configured.into_iter().collect(), any_loaded, loaded: Mutex::default() }
    }

    pub(crate) fn load(&self, sum: Sum) {
        let mut loaded = self.loaded();
        if loaded.len() < REMEMBERED {
            loaded.insert(sum);
        }
    }

    pub(crate) fn flush(&self) {
        self.loaded().clear();
    }

    pub(crate) fn standing(&self, sum: Sum) -> Standing {
        if self.configured.contains(&sum) {
            Standing::Mapped
        } else if !self.loaded().contains(&sum) {
            Standing::Unknown
        } else if self.any_loaded {
            Standing::Mapped
        } else {
            Standing::Loaded
        }
    }

    /// A set of sums is whole after every single change, so a panic elsewhere spoils nothing.
    fn loaded(&self) -> MutexGuard<'_, HashSet<Sum>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
