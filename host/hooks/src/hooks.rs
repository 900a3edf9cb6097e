//! All plugins, and the four hooks that they serve.

use crate::binding::{Binding, BindingRecord, CandidateRecord, OnFault, Trying};
use crate::capabilities::Powers;
use crate::chain::Ended;
use crate::examples::Met;
use crate::generation::Surroundings;
use crate::library::{Library, VersionInfo};
use crate::reference::Conditions;
use crate::runtime::Runtime;
use crate::seen::Seen;
use crate::signature::Trust;
use crate::slot::{HookState, Means, PluginCounts, Slot};
use crate::steward::Alarm;
use crate::trial::Trial;
use crate::worlds::{Biller, Decision, DeliveryPolicy, Resolver, Router};
use crate::{Fault, HookError};
use arc_swap::ArcSwap;
use model::{
    Attempt, DecidedBy, Directory, Hook, Leg, Message, Next, PeerId, RejectReason, Resolution, Routed,
    Settlement, Subscriber, Timestamp, Verdict,
};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How the hooks are opened.
#[derive(Debug, Clone)]
pub struct HooksOptions {
    /// The most octets of memory that any instance may be allowed.
    pub memory: usize,
    /// The most instances at a time, over all plugins and generations.
    pub instances: u32,
    /// How long a message whose router or biller failed is held.
    pub hold_for: Duration,
    /// The peer that messages for our own subscribers go to, unless the resolver names another.
    pub home: Option<PeerId>,
    /// Whose plugins are taken.
    pub trust: Trust,
    /// Write down what routers see, so that a replay of archived messages is exact.
    pub record: bool,
}

impl Default for HooksOptions {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            instances: 256,
            hold_for: Duration::from_secs(30),
            home: None,
            trust: Trust::default(),
            record: false,
        }
    }
}

/// What one router of the chain made of a message, for `explain`.
#[derive(Debug, Clone)]
pub struct Considered {
    /// The plugin version.
    pub by: Arc<DecidedBy>,
    /// What it said, or its fault.
    pub outcome: Result<Decision, Fault>,
}

/// All plugins and all hooks.
pub struct Hooks {
    means: Arc<Means>,
    options: HooksOptions,
    router: Slot<Router>,
    resolver: Slot<Resolver>,
    delivery: Slot<DeliveryPolicy>,
    biller: Slot<Biller>,
    nobody: Arc<DecidedBy>,
}

/// The same for whichever hook is named.
macro_rules! at {
    ($self:ident, $hook:expr, $slot:ident => $what:expr) => {
        match $hook {
            Hook::Router => {
                let $slot = &$self.router;
                $what
            }
            Hook::Resolver => {
                let $slot = &$self.resolver;
                $what
            }
            Hook::DeliveryPolicy => {
                let $slot = &$self.delivery;
                $what
            }
            Hook::Biller => {
                let $slot = &$self.biller;
                $what
            }
        }
    };
}

/// The wall clock.
pub(crate) fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl Hooks {
    /// Opens the plugin folder and brings back what was bound. `directory` knows the peers that verdicts may name.
    ///
    /// # Errors
    /// When the folder cannot be used, or something that was live does not start.
    pub fn open(
        folder: &Path,
        options: HooksOptions,
        directory: Arc<ArcSwap<Directory>>,
        powers: Powers,
    ) -> Result<Arc<Self>, HookError> {
        let library = Library::open(folder, options.trust.clone())?;
        let runtime = Runtime::new(options.memory, options.instances)?;
        let (alarm, alarms) = Alarm::new();
        let means = Arc::new(Means {
            runtime: Arc::new(runtime),
            library: Arc::new(library),
            around: Surroundings { powers: Arc::new(powers), directory, home: options.home },
            alarm,
        });
        let hooks = Arc::new(Self {
            router: Slot::open(means.clone())?,
            resolver: Slot::open(means.clone())?,
            delivery: Slot::open(means.clone())?,
            biller: Slot::open(means.clone())?,
            means,
            options,
            nobody: Arc::new(DecidedBy { plugin: "none".to_owned(), version: String::new() }),
        });
        let house = Arc::downgrade(&hooks);
        std::thread::Builder::new()
            .name("hook-steward".to_owned())
            .spawn(move || {
                for hook in alarms {
                    let Some(hooks) = house.upgrade() else { return };
                    at!(hooks, hook, slot => slot.attend(wall()));
                }
            })
            .map_err(|error| HookError::Engine(format!("starting the steward: {error}")))?;
        Ok(hooks)
    }

    /// Keeps a new version of a plugin. It serves nothing until it is activated. `signature` is the base64 form of an
    /// ed25519 signature over the component's octets.
    ///
    /// # Errors
    /// When it is not a component of a served world and version, or its signature does not count.
    pub fn upload(
        &self,
        plugin: &str,
        octets: &[u8],
        signature: Option<&str>,
    ) -> Result<VersionInfo, HookError> {
        self.means.library.add(&self.means.runtime.engine, plugin, octets, signature)
    }

    /// Makes plugins live: compile, instantiate, configure, try out, and only then one exchange of a pointer. Calls in
    /// flight end on what was live before. What fails changes nothing. The conditions may be a serial alone.
    ///
    /// # Errors
    /// When one of them does not start or refuses its document, or the conditions do not hold.
    pub fn activate(
        &self,
        hook: Hook,
        now: Timestamp,
        chain: Vec<Binding>,
        conditions: impl Into<Conditions>,
    ) -> Result<BindingRecord, HookError> {
        let conditions = conditions.into();
        at!(self, hook, slot => slot.activate(now, chain, conditions))
    }

    /// Leaves a hook without any plugin.
    ///
    /// # Errors
    /// When it cannot be written down.
    pub fn unbind(&self, hook: Hook, now: Timestamp) -> Result<BindingRecord, HookError> {
        at!(self, hook, slot => slot.unbind(now))
    }

    /// Goes back to what was live before; what was taken back by itself is passed over.
    ///
    /// # Errors
    /// When there is nothing, or it does not start any more.
    pub fn rollback(&self, hook: Hook, now: Timestamp) -> Result<BindingRecord, HookError> {
        at!(self, hook, slot => slot.rollback(now))
    }

    /// Takes a candidate on trial; one that is there already goes.
    ///
    /// # Errors
    /// As for [`Hooks::activate`]; and for a share that is none.
    pub fn try_out(
        &self,
        hook: Hook,
        now: Timestamp,
        trying: Trying,
        chain: Vec<Binding>,
        conditions: impl Into<Conditions>,
    ) -> Result<CandidateRecord, HookError> {
        let conditions = conditions.into();
        at!(self, hook, slot => slot.try_out(now, trying, chain, conditions))
    }

    /// Ends the trial.
    ///
    /// # Errors
    /// When there is none.
    pub fn dismiss(&self, hook: Hook, now: Timestamp) -> Result<(), HookError> {
        at!(self, hook, slot => slot.dismiss(now, "candidate-ended", "by an admin"))
    }

    /// Makes the candidate live.
    ///
    /// # Errors
    /// When there is none, or somebody was faster.
    pub fn promote(
        &self,
        hook: Hook,
        now: Timestamp,
        expected: Option<u64>,
    ) -> Result<BindingRecord, HookError> {
        at!(self, hook, slot => slot.promote(now, expected))
    }

    /// Whether any plugin serves the hook.
    #[must_use]
    pub fn is_bound(&self, hook: Hook) -> bool {
        at!(self, hook, slot => slot.is_bound())
    }

    /// The history of a hook, oldest first; the last record is live.
    #[must_use]
    pub fn history(&self, hook: Hook) -> Vec<BindingRecord> {
        at!(self, hook, slot => slot.history())
    }

    /// Everything there is to see of a hook.
    #[must_use]
    pub fn state(&self, hook: Hook) -> HookState {
        at!(self, hook, slot => slot.state())
    }

    /// Counts of all plugins at work for a hook.
    #[must_use]
    pub fn counts(&self, hook: Hook) -> Vec<PluginCounts> {
        at!(self, hook, slot => slot.counts())
    }

    /// All versions kept.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn versions(&self) -> Result<Vec<VersionInfo>, HookError> {
        self.means.library.list(&self.means.runtime.engine)
    }

    /// Plugins that serve nobody, to be asked by a replay or a harness. What they count, they count for themselves.
    ///
    /// # Errors
    /// When one of them does not start or refuses its document.
    pub fn trial(&self, hook: Hook, chain: &[Binding]) -> Result<Trial, HookError> {
        Ok(match hook {
            Hook::Router => Trial::router(self.router.trial(chain)?),
            Hook::Resolver => Trial::resolver(self.resolver.trial(chain)?),
            Hook::DeliveryPolicy => Trial::delivery(self.delivery.trial(chain)?),
            Hook::Biller => Trial::biller(self.biller.trial(chain)?),
        })
    }

    fn seen(&self) -> Seen {
        if self.options.record { Seen::recording() } else { Seen::Off }
    }

    /// Asks the routers about a message. Never fails: a fault is answered as its binding says.
    #[must_use]
    pub fn route(&self, message: &Message, now: Timestamp) -> Routed {
        let met = Met::default();
        let mut routed = self.routed(message, now, &met);
        routed.faulted = met.into_mark();
        routed
    }

    fn routed(&self, message: &Message, now: Timestamp, met: &Met) -> Routed {
        let mut seen = self.seen();
        let ended = self.router.ask(message, now, &mut seen, met);
        self.concluded(ended, seen, now)
    }

    /// What becomes of a message by what its routers said.
    fn concluded(&self, ended: Ended<Router>, seen: Seen, now: Timestamp) -> Routed {
        match ended {
            Ended::Decided(Decision { verdict, sender, note }, generation) => {
                let verdict = verdict.unwrap_or(Verdict::Reject(RejectReason::NoRoute));
                let by = generation.by.clone();
                Routed { note, sender, seen: seen.record(), ..Routed::new(verdict, by) }
            }
            Ended::Fault(fault, generation) => {
                let verdict = match &generation.binding.on_fault {
                    OnFault::Hold | OnFault::Pass => Verdict::Hold(now + self.options.hold_for),
                    OnFault::Reject => Verdict::Reject(RejectReason::Fault),
                    OnFault::Peer(peer) => match self.means.around.directory.load().id(peer) {
                        Some(peer) => Verdict::Forward(vec![Leg::to(peer)]),
                        None => Verdict::Hold(now + self.options.hold_for),
                    },
                };
                Routed::new(verdict, generation.by.clone()).because(words(&fault))
            }
            Ended::Nobody { last, fault } => {
                let note = match (&last, &fault) {
                    (None, _) => "no router is bound".into(),
                    (_, None) => "no router decided".into(),
                    (_, Some(fault)) => format!("no router decided; {}", words(fault)).into_boxed_str(),
                };
                let by = last.map_or_else(|| self.nobody.clone(), |last| last.by.clone());
                let routed = Routed::new(Verdict::Reject(RejectReason::NoRoute), by).because(note);
                Routed { seen: seen.record(), ..routed }
            }
        }
    }

    /// Prices a message that is to be forwarded: `routed` gets its quote, or, if the biller refuses it or fails, another
    /// verdict.
    pub fn price(&self, message: &Message, routed: &mut Routed, now: Timestamp) {
        let Verdict::Forward(legs) = &routed.verdict else { return };
        if !self.biller.is_bound() {
            return;
        }
        let met = Met::again(routed.faulted.take());
        let ended = self.biller.ask((message, priced_leg(legs)), now, &mut Seen::Off, &met);
        routed.faulted = met.into_mark();
        self.quoted(ended, routed, now);
    }

    fn quoted(&self, ended: Ended<Biller>, routed: &mut Routed, now: Timestamp) {
        match ended {
            Ended::Decided(price, generation) => match price.quote {
                Ok(quote) => routed.quote = Some(Box::new(quote)),
                Err(note) => {
                    routed.verdict = Verdict::Reject(RejectReason::NoCredit);
                    routed.by = generation.by.clone();
                    routed.note = note;
                }
            },
            Ended::Fault(fault, generation) => {
                routed.verdict = match &generation.binding.on_fault {
                    OnFault::Reject => Verdict::Reject(RejectReason::Fault),
                    OnFault::Pass => return,
                    OnFault::Hold | OnFault::Peer(_) => Verdict::Hold(now + self.options.hold_for),
                };
                routed.by = generation.by.clone();
                routed.note = Some(words(&fault));
            }
            // Its binding says that a fault makes it free.
            Ended::Nobody { .. } => {}
        }
    }

    /// Asks the resolver who stands behind a number. May take long; a fault means "try later".
    #[must_use]
    pub fn resolve(&self, msisdn: &str, now: Timestamp) -> Resolution {
        match self.resolver.ask(msisdn, now, &mut Seen::Off, &Met::default()) {
            Ended::Decided(resolution, _) => resolution,
            Ended::Fault(fault, generation) => Resolution {
                subscriber: Subscriber::TryLater { after: None },
                by: generation.by.clone(),
                note: Some(words(&fault)),
            },
            Ended::Nobody { last, fault } => Resolution {
                subscriber: Subscriber::TryLater { after: None },
                by: last.map_or_else(|| self.nobody.clone(), |last| last.by.clone()),
                note: Some(fault.map_or_else(|| "no resolver is bound".into(), |fault| words(&fault))),
            },
        }
    }

    /// Asks the delivery policy what follows a failed attempt; `None` when there is none, or it failed: the built-in
    /// schedule holds.
    #[must_use]
    pub fn next(&self, message: &Message, attempt: &Attempt, now: Timestamp) -> Option<Next> {
        match self.delivery.ask((message, attempt), now, &mut Seen::Off, &Met::default()) {
            Ended::Decided(next, _) => Some(next),
            Ended::Fault(..) | Ended::Nobody { .. } => None,
        }
    }

    /// Tells the biller how charges ended. May take long.
    ///
    /// # Errors
    /// When it failed, or says that it did, in words: it is to be told again.
    pub fn settle(&self, settlements: &[Settlement], now: Timestamp) -> Result<(), String> {
        let chain = self.biller.chain();
        let Some(biller) = chain.0.first() else { return Err("no biller is bound".to_owned()) };
        match biller.settle(settlements, now) {
            Ok(told) => told,
            Err(fault) => {
                let told = format!("how charges ended: {}", settlements.len());
                let mark = Met::default().mark(settlements.first().map(|first| first.message));
                self.means.alarm.examples.add(Hook::Biller, &biller.by, now, &fault, told, mark);
                crate::chain::note(biller, &fault, &self.means.alarm);
                Err(words(&fault).into())
            }
        }
    }

    /// What each router of the live chain makes of a message, up to the one that decides, and what becomes of the message.
    /// It is no traffic: nothing is counted, kept or sampled.
    #[must_use]
    pub fn explain(&self, message: &Message, now: Timestamp) -> (Vec<Considered>, Routed) {
        let mut steps = Vec::new();
        let ended = self.router.chain().look(message, now, |by, outcome| {
            steps.push(Considered { by: by.clone(), outcome: outcome.clone() });
        });
        (steps, self.concluded(ended, Seen::Looking, now))
    }

    /// The same for the price of a message that is to be forwarded.
    pub fn explain_price(&self, message: &Message, routed: &mut Routed, now: Timestamp) {
        let Verdict::Forward(legs) = &routed.verdict else { return };
        let ended = self.biller.chain().look((message, priced_leg(legs)), now, |_, _| ());
        self.quoted(ended, routed, now);
    }
}

/// The leg by which a message is priced.
fn priced_leg(legs: &[Leg]) -> Option<&Leg> {
    legs.iter().filter(|leg| !leg.resolve).min_by_key(|leg| leg.rank)
}

fn words(fault: &Fault) -> Box<str> {
    format!("fault ({}): {}", fault.kind.name(), fault.what).into()
}
