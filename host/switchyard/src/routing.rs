//! Routing and pricing as links see them: the plugins, and what the house itself insists on.

use crate::core_loop::wall;
use doors::Routing;
use hooks::Hooks;
use model::{DecidedBy, Leg, Message, PeerId, RejectReason, Routed, Verdict};
use shell::{Number, ShellOptions};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The routers' verdict, without ways back to where a message came from, and with a place for messages from the network that
/// no route takes; and the biller's price for it.
pub(crate) struct HouseRouting {
    pub(crate) hooks: Arc<Hooks>,
    /// Instead of the routers: what the benchmark compares them with.
    pub(crate) constant: Option<Routed>,
    /// Peer → its default account.
    pub(crate) defaults: HashMap<PeerId, PeerId>,
    /// Numbers that are read on the command line.
    pub(crate) inboxes: Option<Inboxes>,
    /// Those whose messages are priced: what comes from the network is paid for by whoever is called, if at all.
    pub(crate) accounts: HashSet<PeerId>,
}

/// Numbers of which messages go to the shell's inbox, whatever routers would say.
pub(crate) struct Inboxes {
    /// The shell.
    peer: PeerId,
    /// Their digits.
    numbers: HashSet<Vec<u8>>,
    by: Arc<DecidedBy>,
}

impl Inboxes {
    pub(crate) fn new(options: &ShellOptions) -> Self {
        let numbers = options.inboxes().iter().map(|number| number.digits().to_vec()).collect();
        let by = Arc::new(DecidedBy { plugin: "house".to_owned(), version: String::new() });
        Self { peer: options.peer, numbers, by }
    }

    fn route(&self, message: &Message) -> Option<Routed> {
        let digits = Number::digits_of(&message.destination)?;
        self.numbers.contains(digits).then(|| Routed {
            note: Some("the number has an inbox on the command line".into()),
            ..Routed::new(Verdict::Forward(vec![Leg::to(self.peer)]), self.by.clone())
        })
    }
}

impl HouseRouting {
    /// Where a message goes without any router being asked.
    fn to_inbox(&self, message: &Message) -> Option<Routed> {
        self.inboxes.as_ref()?.route(message)
    }

    /// The house's rules on a verdict of the routers'.
    pub(crate) fn settle(&self, message: &Message, mut routed: Routed) -> Routed {
        if let Some(routed) = self.to_inbox(message) {
            return routed;
        }
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
        let now = wall();
        let mut routed = self.to_inbox(message).unwrap_or_else(|| {
            let routed = match &self.constant {
                None => self.hooks.route(message, now),
                Some(routed) => routed.clone(),
            };
            self.settle(message, routed)
        });
        if self.accounts.contains(&message.origin) {
            self.hooks.price(message, &mut routed, now);
        }
        routed
    }
}
