//! Screening, routing and pricing for front ends: the hooks, and the daemon's own rules.

use crate::lookups::AppliedLookups;
use crate::peer_roles::PeerRoles;
use arc_swap::ArcSwap;
use hooks::{AccountAttributes, Hooks, LookupStep, PeerSecrets, RoutingStep, ScreeningStep, TenantLines};
use model::{
    Address, Directory, Leg, Message, PeerId, PluginVersion, RejectReason, RoutingDecision, Screening,
    Timestamp, Verdict,
};
use numbering::{DialledNumber, NumberPlan, NumberTarget};
use ports::Routing;
use shell::{NumberParser, ShellOptions, SubscriberNumber};
use std::sync::{Arc, LazyLock};

static NUMBER_PLAN: LazyLock<Arc<PluginVersion>> =
    LazyLock::new(|| Arc::new(PluginVersion { plugin: "number plan".to_owned(), version: String::new() }));

/// The answers of all plugins of the chains about a message.
#[derive(Debug, Default)]
pub(crate) struct Explanation {
    /// Answers of the screens.
    pub(crate) screens: Vec<ScreeningStep>,
    /// Answers of the lookups; empty if the answer was cached.
    pub(crate) lookups: Vec<LookupStep>,
    /// Answers of the routers.
    pub(crate) routers: Vec<RoutingStep>,
}

/// Screens and routes messages: removes legs back to the origin, sends unrouted MO messages to the default account, and
/// adds the biller's price.
pub(crate) struct ApplianceRouting {
    pub(crate) hooks: Arc<Hooks>,
    /// Lookups of numbers.
    pub(crate) lookups: AppliedLookups,
    /// A static verdict instead of the routers, for benchmarks.
    pub(crate) static_route: Option<RoutingDecision>,
    /// The roles of peers; replaced when the configuration changes.
    pub(crate) peer_roles: Arc<ArcSwap<PeerRoles>>,
    /// Attributes of accounts for plugins; replaced when the configuration changes.
    pub(crate) account_attributes: Arc<AccountAttributes>,
    pub(crate) peer_secrets: Arc<PeerSecrets>,
    /// Tenants of accounts, for bindings of tenants; replaced when the configuration changes.
    pub(crate) tenant_lines: Arc<TenantLines>,
    /// The number plan. A number that it assigns to the home network or to a peer is routed there without calling a
    /// router.
    pub(crate) plan: Option<NumberPlan>,
    /// The peer that serves the home network, for `plan`.
    pub(crate) home: Option<PeerId>,
    /// Peer ids by name, for `plan`.
    pub(crate) directory: Arc<ArcSwap<Directory>>,
    /// Numbers whose messages go to inboxes of the local socket.
    pub(crate) inboxes: Option<InboxRoutes>,
}

/// Numbers whose messages go to inboxes of the local socket, without calling a router.
pub(crate) struct InboxRoutes {
    /// The local socket's peer.
    peer: PeerId,
    numbers: shell::InboxNumbers,
    by: Arc<PluginVersion>,
}

impl InboxRoutes {
    pub(crate) fn new(options: &ShellOptions) -> Self {
        let by = Arc::new(PluginVersion { plugin: "built-in".to_owned(), version: String::new() });
        Self { peer: options.peer, numbers: options.inboxes(), by }
    }

    fn route(&self, message: &Message) -> Option<RoutingDecision> {
        let digits = SubscriberNumber::digits_of(&message.destination)?;
        self.numbers.contains(digits).then(|| RoutingDecision {
            note: Some("the number has an inbox in the shell".into()),
            ..RoutingDecision::new(Verdict::Forward(vec![Leg::to(self.peer)]), self.by.clone())
        })
    }
}

/// Parses numbers typed on the command line by the number plan, as if dialled on a phone.
pub(crate) struct PlanNumbering(pub(crate) NumberPlan);

impl NumberParser for PlanNumbering {
    fn parse(&self, typed: &str, caller: &SubscriberNumber) -> Result<Address, String> {
        let bare = shell::strip_separators(typed);
        let caller = std::str::from_utf8(caller.digits()).ok();
        match self.0.normalise(&DialledNumber::typed(&bare), caller) {
            Ok(number) => Ok(number.address()),
            Err(refused) => Err(format!("{typed:?}: {refused}")),
        }
    }
}

impl ApplianceRouting {
    /// Routes by the number plan. Numbers of submitters are not dialled, so they are taken as international.
    fn route_by_plan(&self, message: &Message) -> Option<RoutingDecision> {
        let plan = self.plan.as_ref()?;
        let mut called = DialledNumber::of(&message.destination)?;
        if called.ton == 0 && called.digits.len() >= 7 {
            called.ton = 1;
        }
        let number = plan.normalise(&called, None).ok()?;
        let (peer, resolve) = match &number.to {
            NumberTarget::Home => (self.home?, true),
            NumberTarget::Peer(name) => (self.directory.load().id(name)?, false),
            NumberTarget::Route | NumberTarget::Refuse => return None,
        };
        let address = number.address();
        let destination = (address != message.destination).then_some(address);
        let leg = Leg { resolve, destination, ..Leg::to(peer) };
        let by = NUMBER_PLAN.clone();
        Some(RoutingDecision::new(Verdict::Forward(vec![leg]), by).with_note(number.rule))
    }

    /// Routes to an inbox.
    fn route_to_inbox(&self, message: &Message) -> Option<RoutingDecision> {
        self.inboxes.as_ref()?.route(message)
    }

    /// Screens a message once: not if it is routed again or was released from quarantine. Returns whether it can be
    /// routed; otherwise its decision is set.
    fn screen(&self, message: &mut Message, now: Timestamp) -> bool {
        message.routed.screening.is_some() || {
            let screening = self.hooks.screen(message, now);
            apply_screening(message, screening)
        }
    }

    /// Like [`ApplianceRouting::screen`] for many messages. Returns those that can be routed.
    fn screen_many<'a>(&self, messages: &'a mut [&mut Message], now: Timestamp) -> Vec<&'a mut Message> {
        let mut unscreened: Vec<&mut Message> = messages
            .iter_mut()
            .map(|message| &mut **message)
            .filter(|message| message.routed.screening.is_none())
            .collect();
        let mut screenings = self.hooks.screen_many(&mut unscreened, now).into_iter();
        messages
            .iter_mut()
            .map(|message| &mut **message)
            .filter_map(|message| {
                let goes_on = message.routed.screening.is_some()
                    || screenings.next().is_none_or(|screening| apply_screening(message, screening));
                goes_on.then_some(message)
            })
            .collect()
    }

    /// Routes by the rules that come before the routers.
    fn route_without_routers(&self, message: &Message) -> Option<RoutingDecision> {
        if let Some(routed) = self.route_to_inbox(message) {
            return Some(routed);
        }
        let routed = self.static_route.clone().or_else(|| self.route_by_plan(message))?;
        Some(self.apply_leg_rules(message, routed))
    }

    /// Routes a message; `routers` is called only if no earlier rule applies.
    pub(crate) fn route_by(
        &self,
        message: &Message,
        routers: impl FnOnce() -> RoutingDecision,
    ) -> RoutingDecision {
        self.route_without_routers(message).unwrap_or_else(|| self.apply_leg_rules(message, routers()))
    }

    /// Routes a message that passes the screens. `routers` is called only if no earlier rule applies. A number that is
    /// not cached is looked up at once, without effects; the lookup steps are returned.
    pub(crate) fn preview_route(
        &self,
        message: &mut Message,
        routers: impl FnOnce(&Message) -> RoutingDecision,
    ) -> (Vec<LookupStep>, RoutingDecision) {
        if let Some(routed) = self.route_without_routers(message) {
            return (Vec::new(), routed);
        }
        let steps = self.preview_lookup(message);
        if let Some(rejected) = self.rejected_without_lookup(message) {
            return (steps, rejected);
        }
        let routed = routers(message);
        (steps, self.apply_leg_rules(message, routed))
    }

    /// Explains how a message would be screened, routed and priced, with the answer of each plugin of the chains, and
    /// sets its decision. Nothing is counted.
    pub(crate) fn explain(&self, message: &mut Message) -> Explanation {
        let now = Timestamp::now();
        let mut explanation = Explanation::default();
        let (steps, screening) = self.hooks.explain_screening(message, now);
        explanation.screens = steps;
        if !apply_screening(message, screening) {
            return explanation;
        }
        let (lookups, mut routed) = self.preview_route(message, |message| {
            let (steps, routed) = self.hooks.explain(message, now);
            explanation.routers = steps;
            routed
        });
        explanation.lookups = lookups;
        if self.peer_roles.load().is_account(message.origin) {
            self.hooks.explain_price(message, &mut routed, now);
        }
        set_routing(message, routed);
        explanation
    }

    /// Applies the daemon's own rules to a verdict of the routers.
    pub(crate) fn apply_own_rules(&self, message: &Message, routed: RoutingDecision) -> RoutingDecision {
        self.route_to_inbox(message).unwrap_or_else(|| self.apply_leg_rules(message, routed))
    }

    fn apply_leg_rules(&self, message: &Message, mut routed: RoutingDecision) -> RoutingDecision {
        if let Verdict::Forward(legs) = &mut routed.verdict {
            // A message between two subscribers of the same network does not go back to its origin.
            legs.retain(|leg| leg.resolve || leg.peer != message.origin);
            if legs.is_empty() {
                routed.verdict = Verdict::Reject(RejectReason::NoRoute);
                (routed.sender, routed.changes) = (None, None);
                routed.note = Some("every leg leads back to the origin".into());
            }
        }
        if routed.verdict == Verdict::Reject(RejectReason::NoRoute)
            && let Some(account) = self.peer_roles.load().defaults.get(&message.origin).copied()
        {
            routed.verdict = Verdict::Forward(vec![Leg::to(account)]);
            routed.note = Some("no route: default account of the origin peer".into());
        }
        routed
    }

    /// Routes messages, each hook asked about all of them in turn.
    fn route_batch(&self, messages: &mut [&mut Message]) {
        if messages.len() < Hooks::MIN_BATCH {
            messages.iter_mut().for_each(|message| self.route(message));
            return;
        }
        let now = Timestamp::now();
        let mut open: Vec<&mut Message> = Vec::with_capacity(messages.len());
        for message in self.screen_many(messages, now) {
            match self.route_without_routers(message) {
                Some(routed) => set_routing(message, routed),
                None if !self.look_up(message) => {}
                None => open.push(message),
            }
        }
        let asked: Vec<&Message> = open.iter().map(|message| &**message).collect();
        let decisions = self.hooks.route_many(&asked, now);
        for (message, routed) in open.into_iter().zip(decisions) {
            let routed = self.apply_leg_rules(message, routed);
            set_routing(message, routed);
        }
        let roles = self.peer_roles.load();
        let mut priced: Vec<&mut Message> = messages
            .iter_mut()
            .map(|message| &mut **message)
            .filter(|message| roles.is_account(message.origin))
            .collect();
        self.hooks.price_many(&mut priced, now);
    }
}

impl Routing for ApplianceRouting {
    fn route(&self, message: &mut Message) {
        let now = Timestamp::now();
        if !self.screen(message, now) {
            return;
        }
        let mut routed = match self.route_without_routers(message) {
            Some(routed) => routed,
            None if !self.look_up(message) => return,
            None => self.apply_leg_rules(message, self.hooks.route(message, now)),
        };
        if self.peer_roles.load().is_account(message.origin) {
            self.hooks.price(message, &mut routed, now);
        }
        set_routing(message, routed);
    }

    fn route_many(&self, messages: &mut [&mut Message]) {
        for batch in messages.chunks_mut(Hooks::MAX_BATCH) {
            self.route_batch(batch);
        }
    }
}

/// Sets the routing decision of a message; the results of screens and lookups stay.
pub(crate) fn set_routing(message: &mut Message, routed: RoutingDecision) {
    let (screening, lookup) = (message.routed.screening.take(), message.routed.lookup.take());
    message.routed = RoutingDecision { screening, lookup, ..routed };
}

/// Applies the screens' result to a message. Returns whether it can be routed; otherwise its decision is set.
fn apply_screening(
    message: &mut Message,
    screening: Result<Option<Box<Screening>>, Box<RoutingDecision>>,
) -> bool {
    match screening {
        Ok(screening) => {
            let stopped = screening.as_ref().and_then(|screening| {
                let verdict = screening.verdict.verdict_without_routing()?;
                let note = screening.note.clone();
                Some(RoutingDecision { note, ..RoutingDecision::new(verdict, screening.by.clone()) })
            });
            let fault_message_id = message.routed.fault_message_id.take();
            let goes_on = stopped.is_none();
            if let Some(stopped) = stopped {
                message.routed = stopped;
            }
            message.routed.screening = screening;
            message.routed.fault_message_id = fault_message_id;
            goes_on
        }
        Err(decision) => {
            let fault_message_id = message.routed.fault_message_id.take();
            message.routed = RoutingDecision { fault_message_id, ..*decision };
            false
        }
    }
}
