//! Routing and pricing as links see them: the plugins, and what the house itself insists on.

use crate::config::Config;
use crate::core_loop::wall;
use arc_swap::ArcSwap;
use doors::Routing;
use hooks::{Considered, Hooks};
use model::{Address, DecidedBy, Directory, Leg, Message, PeerId, RejectReason, Routed, Verdict};
use numbering::{Called, Plan, Target};
use shell::{Number, Numbering, ShellOptions};
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
    /// Who is what; another when the configuration is.
    pub(crate) parties: Arc<ArcSwap<Parties>>,
    /// The number plan, and the peer that serves our own subscribers: a number that the plan gives to us or to a peer goes
    /// there before any router is asked.
    pub(crate) plan: Option<Plan>,
    /// See `plan`.
    pub(crate) home: Option<PeerId>,
    /// Names of peers, for the plan.
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    /// Numbers that are read on the command line.
    pub(crate) inboxes: Option<Inboxes>,
}

/// Which peers are accounts, and what comes of messages from the others.
#[derive(Debug, Default)]
pub(crate) struct Parties {
    /// Peer → its default account.
    defaults: HashMap<PeerId, PeerId>,
    /// Those whose messages are priced: what comes from the network is paid for by whoever is called, if at all.
    accounts: HashSet<PeerId>,
    /// The shell, whose users are accounts that pay, and subscribers as well.
    shell: Option<PeerId>,
}

impl Parties {
    pub(crate) fn of(config: &Config, names: &Directory) -> Self {
        let peers = config.peers.iter().map(|peer| (peer.links.peer, &peer.default_account));
        let gateways = config.gateways.iter().map(|gateway| (gateway.links.peer, &gateway.default_account));
        let networks = config.networks.iter().map(|network| (network.links.peer, &network.default_account));
        let defaults = peers.chain(gateways).chain(networks);
        let defaults =
            defaults.filter_map(|(peer, account)| Some((peer, names.id(account.as_deref()?)?))).collect();
        let shell = config.shell.as_ref().map(|shell| shell.options.peer);
        let accounts = config.accounts.iter().map(|account| account.links.peer).chain(shell).collect();
        Self { defaults, accounts, shell }
    }

    /// Whether a peer is an account, or the shell: one whose messages are priced.
    pub(crate) fn is_account(&self, peer: PeerId) -> bool {
        self.accounts.contains(&peer)
    }

    /// Whether a peer only ever submits: what comes from any other comes from a subscriber.
    pub(crate) fn is_submitter(&self, peer: PeerId) -> bool {
        self.is_account(peer) && self.shell != Some(peer)
    }
}

/// Numbers of which messages go to the shell's inbox, whatever routers would say.
pub(crate) struct Inboxes {
    /// The shell.
    peer: PeerId,
    numbers: shell::Inboxes,
    by: Arc<DecidedBy>,
}

impl Inboxes {
    pub(crate) fn new(options: &ShellOptions) -> Self {
        let by = Arc::new(DecidedBy { plugin: "house".to_owned(), version: String::new() });
        Self { peer: options.peer, numbers: options.inboxes(), by }
    }

    fn route(&self, message: &Message) -> Option<Routed> {
        let digits = Number::digits_of(&message.destination)?;
        self.numbers.has(digits).then(|| Routed {
            note: Some("the number has an inbox on the command line".into()),
            ..Routed::new(Verdict::Forward(vec![Leg::to(self.peer)]), self.by.clone())
        })
    }
}

/// What subscribers type on the command line, read as their phones' numbers are.
pub(crate) struct ByPlan(pub(crate) Plan);

impl Numbering for ByPlan {
    fn read(&self, typed: &str, caller: &Number) -> Result<Address, String> {
        let bare = shell::bare(typed);
        let caller = std::str::from_utf8(caller.digits()).ok();
        match self.0.normalise(&Called::typed(&bare), caller) {
            Ok(number) => Ok(number.address()),
            Err(refused) => Err(format!("{typed:?}: {refused}")),
        }
    }
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

    /// Where a message goes without any router being asked.
    fn to_inbox(&self, message: &Message) -> Option<Routed> {
        self.inboxes.as_ref()?.route(message)
    }

    /// Where a message goes: `routers` are asked where nothing goes before them.
    fn route_by(&self, message: &Message, routers: impl FnOnce() -> Routed) -> Routed {
        self.to_inbox(message).unwrap_or_else(|| {
            let routed = match &self.constant {
                Some(routed) => routed.clone(),
                None => self.by_plan(message).unwrap_or_else(routers),
            };
            self.settle_legs(message, routed)
        })
    }

    /// How a message would be routed and priced, and what each router would say of it. Nothing is counted.
    pub(crate) fn explain(&self, message: &Message) -> (Vec<Considered>, Routed) {
        let now = wall();
        let mut considered = Vec::new();
        let mut routed = self.route_by(message, || {
            let (steps, routed) = self.hooks.explain(message, now);
            considered = steps;
            routed
        });
        if self.parties.load().is_account(message.origin) {
            self.hooks.explain_price(message, &mut routed, now);
        }
        (considered, routed)
    }

    /// What the house makes of a verdict of the routers'.
    pub(crate) fn settle(&self, message: &Message, routed: Routed) -> Routed {
        self.to_inbox(message).unwrap_or_else(|| self.settle_legs(message, routed))
    }

    fn settle_legs(&self, message: &Message, mut routed: Routed) -> Routed {
        if let Verdict::Forward(legs) = &mut routed.verdict {
            // From one subscriber of a network to another is no way back.
            legs.retain(|leg| leg.resolve || leg.peer != message.origin);
            if legs.is_empty() {
                routed.verdict = Verdict::Reject(RejectReason::NoRoute);
                routed.sender = None;
                routed.note = Some("every leg leads back to where the message came from".into());
            }
        }
        if routed.verdict == Verdict::Reject(RejectReason::NoRoute)
            && let Some(account) = self.parties.load().defaults.get(&message.origin).copied()
        {
            routed.verdict = Verdict::Forward(vec![Leg::to(account)]);
            routed.note = Some("no route of its own: the default account of the peer it came from".into());
        }
        routed
    }
}

impl Routing for HouseRouting {
    fn route(&self, message: &Message) -> Routed {
        let now = wall();
        let mut routed = self.route_by(message, || self.hooks.route(message, now));
        if self.parties.load().is_account(message.origin) {
            self.hooks.price(message, &mut routed, now);
        }
        routed
    }
}
