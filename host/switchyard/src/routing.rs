//! The routing hook as links see it: the chain of plugins, and what the house itself insists on.

use crate::core_loop::wall;
use doors::Routing;
use hooks::Hooks;
use model::{Leg, Message, PeerId, RejectReason, Routed, Verdict};
use std::collections::HashMap;
use std::sync::Arc;

/// Who decides.
pub(crate) enum Decider {
    /// The plugins.
    Hooks(Arc<Hooks>),
    /// A constant: what the benchmark compares plugins with.
    Constant(Routed),
}

/// The chain's verdict, without ways back to where a message came from, and with a place for messages from the network
/// that no route takes.
pub(crate) struct HouseRouting {
    pub(crate) decider: Decider,
    /// Peer → its default account.
    pub(crate) defaults: HashMap<PeerId, PeerId>,
}

impl HouseRouting {
    /// The house's rules on a verdict of the chain's.
    pub(crate) fn settle(&self, message: &Message, mut routed: Routed) -> Routed {
        if let Verdict::Forward(legs) = &mut routed.verdict {
            legs.retain(|leg| leg.peer != message.origin);
            if legs.is_empty() {
                routed.verdict = Verdict::Reject(RejectReason::NoRoute);
                routed.note = Some("every leg leads back to where the message came from".into());
            }
        }
        if routed.verdict == Verdict::Reject(RejectReason::NoRoute)
            && let Some(account) = self.defaults.get(&message.origin)
        {
            routed.verdict = Verdict::Forward(vec![Leg::to(*account)]);
            routed.note = Some("no route of its own: the default account of the peer it came from".into());
        }
        routed
    }
}

impl Routing for HouseRouting {
    fn route(&self, message: &Message) -> Routed {
        let routed = match &self.decider {
            Decider::Hooks(hooks) => hooks.route(message, wall()),
            Decider::Constant(routed) => routed.clone(),
        };
        self.settle(message, routed)
    }
}
