//! Routing and pricing as links see them: the plugins, and what the house itself insists on.

use crate::core_loop::wall;
use arc_swap::ArcSwap;
use doors::Routing;
use hooks::Hooks;
use model::{DecidedBy, Directory, Leg, Message, PeerId, RejectReason, Routed, Verdict};
use numbering::{Called, Plan, Target};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

static BY_PLAN: LazyLock<Arc<DecidedBy>> =
    LazyLock::new(|| Arc::new(DecidedBy { plugin: "number plan".to_owned(), version: String::new() }));

/// The routers' verdict, without ways back to where a message came from, and with a place for messages from the network that
/// no route takes; and the biller's price for it.
pub(crate) struct HouseRouting {
    pub(crate) hooks: Arc<Hooks>,
    /// Instead of the routers: what the benchmark compares them with.
    pub(crate) constant: Option<Routed>,
    /// Peer → its default account.
    pub(crate) defaults: HashMap<PeerId, PeerId>,
    /// The number plan, and the peer that serves our own subscribers: a number that the plan gives to us or to a peer goes
    /// there before any router is asked.
    pub(crate) plan: Option<Plan>,
    /// See `plan`.
    pub(crate) home: Option<PeerId>,
    /// Names of peers, for the plan.
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    /// Those whose messages are priced: what comes from the network is paid for by whoever is called, if at all.
    pub(crate) accounts: HashSet<PeerId>,
    /// Core networks.
    pub(crate) networks: HashSet<PeerId>,
}

impl HouseRouting {
    /// Where the number plan sends a message. Submitters who are no subscribers do not dial: their numbers are taken as
    /// international ones.
    fn by_plan(&self, message: &Message) -> Option<Routed> {
        let plan = self.plan.as_ref()?;
        let mut called = Called::of(&message.destination)?;
        if called.ton == 0 && called.digits.len() >= 7 {
            called.ton = 1;
        }
        let number = plan.normalise(&called, None).ok()?;
        let (peer, resolve) = match &number.to {
            Target::Home => (self.home?, true),
            Target::Peer(name) => (self.directory.load().id(name)?, false),
            Target::Route | Target::Refuse => return None,
        };
        let address = number.address();
        let destination = (address != message.destination).then_some(address);
        let leg = Leg { resolve, destination, ..Leg::to(peer) };
        let by = BY_PLAN.clone();
        Some(Routed::new(Verdict::Forward(vec![leg]), by).because(number.rule))
    }

    /// The house's rules on a verdict of the routers'.
    pub(crate) fn settle(&self, message: &Message, mut routed: Routed) -> Routed {
        if let Verdict::Forward(legs) = &mut routed.verdict {
            // But for phones of one network, which write to each other.
            legs.retain(|leg| leg.peer != message.origin || self.networks.contains(&leg.peer));
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
        let now = wall();
        let routed = match (&self.constant, self.by_plan(message)) {
            (Some(routed), _) => routed.clone(),
            (None, Some(routed)) => routed,
            (None, None) => self.hooks.route(message, now),
        };
        let mut routed = self.settle(message, routed);
        if self.accounts.contains(&message.origin) {
            self.hooks.price(message, &mut routed, now);
        }
        routed
    }
}
