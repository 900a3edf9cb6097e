//! File descriptors: every connection takes one, and all listeners share the process's limit.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard limit and gives the limit that counts from now on; nothing where there is
/// none.
#[must_use]
pub fn raise_descriptor_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return limit.current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "the limit of open files cannot be raised");
            limit.current
        }
    }
}

/// The share of a listener that wants `connections` of `wanted` in all, where there are descriptors for `available`; at least 1.
#[must_use]
pub fn descriptor_share(connections: usize, wanted: u64, available: u64) -> usize {
    if wanted <= available {
        return connections;
    }
    let share = u128::from(available) * connections as u128 / u128::from(wanted);
    usize::try_from(share).unwrap_or(connections).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let raised = raise_descriptor_limit();
        assert_eq!(
            (raised, getrlimit(Resource::Nofile).current),
            (getrlimit(Resource::Nofile).maximum, raised)
        );
    }

    #[test]
    fn listeners_share_what_there_is() {
        assert_eq!(descriptor_share(1_000, 3_000, 3_000), 1_000);
        assert_eq!(
            (descriptor_share(1_000, 4_000, 2_000), descriptor_share(3_000, 4_000, 2_000)),
            (500, 1_500)
        );
        assert_eq!(descriptor_share(1, 10_000, 0), 1);
    }
}
