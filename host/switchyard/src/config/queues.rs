//! Queues of accounts and of peers of other partitions.

use engine::{BranchLimits, PaceNames, PeerSettings, UncertainPolicy};
use model::PeerId;

/// The placeholder of peer ids until the store assigns them.
pub(super) const UNASSIGNED_PEER: PeerId = PeerId(u32::MAX);

/// The queue of a peer that delivers a message by accepting it.
pub(super) fn addressee_queue() -> PeerSettings {
    PeerSettings {
        addressee: true,
        sends_dlrs: false,
        uncertainty: UncertainPolicy::SendAgain,
        ..PeerSettings::new(UNASSIGNED_PEER)
    }
}

/// The queue of a peer or account of another partition, which applies its limits and settles uncertain messages.
pub(super) fn remote_queue(queue: &PeerSettings) -> PeerSettings {
    PeerSettings {
        remote: true,
        rate: None,
        send_pace: PaceNames::default(),
        branch: BranchLimits::default(),
        uncertainty: UncertainPolicy::SendAgain,
        ..queue.clone()
    }
}
