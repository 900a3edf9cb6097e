//! File descriptors: each connection uses one, and all listeners share the limit of the process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit of open files to the hard limit. Returns the new limit; `None` if there is none.
#[must_use]
pub fn raise_descriptor_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return limit.current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        Ok(()) => limit.maximum,
        Err(error) => {
            tracing::warn!(%error, "cannot raise the limit of open files");
            limit.current
        }
    }
}

/// The connections that a listener gets of the `connections` that it is configured for, if all listeners are
/// configured for `wanted` and `available` descriptors are left; at least 1.
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
    fn listeners_share_the_descriptors() {
        assert_eq!(descriptor_share(1_000, 3_000, 3_000), 1_000);
        assert_eq!(
            (descriptor_share(1_000, 4_000, 2_000), descriptor_share(3_000, 4_000, 2_000)),
            (500, 1_500)
        );
        assert_eq!(descriptor_share(1, 10_000, 0), 1);
    }
}
