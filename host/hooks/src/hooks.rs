//! The public API of the plugin host: versions, bindings, trials and calls of the hooks.

use crate::batch::{self, BatchQuestion};
use crate::binding::{CandidateRecord, TrialMode};
use crate::chain::ChainOutcome;
use crate::dry_run::DryRun;
use crate::fault_examples::{FailedQuestion, FaultDetails, LazyMessageId, NewFault};
use crate::fault_reporter::FaultReporter;
use crate::front_end_calls::{FrontEndOutcome, FrontEndReading, FrontEndRequest, FrontEndResponse};
use crate::generation::HostEnvironment;
use crate::hook_slot::{HookDeps, HookSlot, HookStatus, PluginCounts};
use crate::host_call_log::HostCallLog;
use crate::host_calls::HostServices;
use crate::library::{Library, VersionInfo};
use crate::peer_calls::{CallbackAnswer, CallbackRequest, PeerSubmission, Submitted};
use crate::policy_reference::ActivationConditions;
use crate::runtime::Runtime;
use crate::signature::Trust;
use crate::worlds::{
    Biller, Decision, DeliveryPolicy, FrontEnd, FrontEndAnswer, FrontEndCall, FrontEndQuestion,
    Lookup as LookupWorld, NumberAnswer, Peer, PeerAnswer, PeerQuestion, PriceQuestion, Receipt,
    ReceiptQuestion, Resolver, Router, Screen, ScreenDecision, unsure,
};
use crate::{Fault, HookError};
use api::{Binding, BindingRecord, FaultyVersion, OnFault};
use arc_swap::ArcSwap;
use model::{
    AcceptedSubmission, Attempt, DeliveryDecision, Directory, ErrorClass, Hook, Leg, Lookup, LookupNumber,
    LookupResult, Message, MessageChanges, Outcome, PeerId, PluginVersion, ReceiptDecision, ReceiptEvent,
    RejectReason, Resolution, RoutingDecision, ScreenVerdict, Screening, Settlement, Subscriber, Timestamp,
    Verdict,
};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Options for [`Hooks::open`].
#[derive(Debug, Clone)]
pub struct HooksOptions {
    /// Maximum memory of one instance, in octets. A binding may allow less.
    pub memory: usize,
    /// Maximum number of instances, over all plugins and generations.
    pub instances: u32,
    /// Hold time of a message whose router or biller failed.
    pub hold_for: Duration,
    /// The default peer for messages to our own subscribers. A resolver may name another one.
    pub home: Option<PeerId>,
    /// Trusted signing keys.
    pub trust: Trust,
    /// Record the host calls of screens and routers, so that a replay of archived messages is exact.
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

/// The result of one router of the chain, for `explain`.
#[derive(Debug, Clone)]
pub struct RoutingStep {
    /// The plugin version.
    pub by: Arc<PluginVersion>,
    /// The decision, or the fault of the call.
    pub outcome: Result<Decision, Fault>,
}

/// The result of one screen of the chain, for `explain`.
#[derive(Debug, Clone)]
pub struct ScreeningStep {
    /// The plugin version.
    pub by: Arc<PluginVersion>,
    /// The decision, or the fault of the call.
    pub outcome: Result<ScreenDecision, Fault>,
}

/// The result of one lookup of the chain, for `explain`.
#[derive(Debug, Clone)]
pub struct LookupStep {
    /// The plugin version.
    pub by: Arc<PluginVersion>,
    /// The answer, or the fault of the call.
    pub outcome: Result<NumberAnswer, Fault>,
}

/// The plugin host: the plugin library and the slots of all hooks.
pub struct Hooks {
    deps: Arc<HookDeps>,
    options: HooksOptions,
    screen: HookSlot<Screen>,
    lookup: HookSlot<LookupWorld>,
    router: HookSlot<Router>,
    resolver: HookSlot<Resolver>,
    delivery: HookSlot<DeliveryPolicy>,
    receipt: HookSlot<Receipt>,
    biller: HookSlot<Biller>,
    peer: HookSlot<Peer>,
    front_end: HookSlot<FrontEnd>,
    no_plugin: Arc<PluginVersion>,
}

/// Evaluates an expression with the slot of the given hook.
macro_rules! with_slot {
    ($self:ident, $hook:expr, $slot:ident => $what:expr) => {
        match $hook {
            Hook::Screen => {
                let $slot = &$self.screen;
                $what
            }
            Hook::Lookup => {
                let $slot = &$self.lookup;
                $what
            }
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
            Hook::Receipt => {
                let $slot = &$self.receipt;
                $what
            }
            Hook::Biller => {
                let $slot = &$self.biller;
                $what
            }
            Hook::Peer => {
                let $slot = &$self.peer;
                $what
            }
            Hook::FrontEnd => {
                let $slot = &$self.front_end;
                $what
            }
        }
    };
}

impl Hooks {
    /// Minimum number of messages for which [`Hooks::route_many`] and [`Hooks::price_many`] cost less than single calls.
    pub const MIN_BATCH: usize = batch::MIN_BATCH;

    /// Opens the plugin folder and restores the stored bindings and candidates. `directory` holds the peers that a
    /// verdict may name.
    ///
    /// # Errors
    /// The folder is not usable, or a live plugin does not start.
    pub fn open(
        folder: &Path,
        options: HooksOptions,
        directory: Arc<ArcSwap<Directory>>,
        services: HostServices,
    ) -> Result<Arc<Self>, HookError> {
        let library = Library::open(folder, options.trust.clone())?;
        let runtime = Runtime::new(options.memory, options.instances)?;
        let (reporter, faulty_hooks) = FaultReporter::new();
        let deps = Arc::new(HookDeps {
            runtime: Arc::new(runtime),
            library: Arc::new(library),
            environment: HostEnvironment { services: Arc::new(services), directory, home: options.home },
            reporter,
        });
        let hooks = Arc::new(Self {
            screen: HookSlot::open(deps.clone())?,
            lookup: HookSlot::open(deps.clone())?,
            router: HookSlot::open(deps.clone())?,
            resolver: HookSlot::open(deps.clone())?,
            delivery: HookSlot::open(deps.clone())?,
            receipt: HookSlot::open(deps.clone())?,
            biller: HookSlot::open(deps.clone())?,
            peer: HookSlot::open(deps.clone())?,
            front_end: HookSlot::open(deps.clone())?,
            deps,
            options,
            no_plugin: Arc::new(PluginVersion { plugin: "none".to_owned(), version: String::new() }),
        });
        let weak_hooks = Arc::downgrade(&hooks);
        std::thread::Builder::new()
            .name("hook-rollback".to_owned())
            .spawn(move || {
                for hook in faulty_hooks {
                    let Some(hooks) = weak_hooks.upgrade() else { return };
                    with_slot!(hooks, hook, slot => slot.roll_back_faulty(Timestamp::now()));
                }
            })
            .map_err(|error| HookError::Engine(format!("starting the rollback thread: {error}")))?;
        Ok(hooks)
    }

    /// Compiles the stored plugins of this folder, and these components beside them, as far as they are not compiled yet, so that
    /// [`Hooks::open`] and [`Hooks::upload`] need not. Returns how many stored ones there are; one that does not compile is left out.
    ///
    /// # Errors
    /// The folder cannot be read or written, or the octets are no component.
    pub fn compile_ahead(
        folder: &Path,
        options: &HooksOptions,
        components: &[Vec<u8>],
    ) -> Result<usize, HookError> {
        let library = Library::open(folder, options.trust.clone())?;
        let runtime = Runtime::new(options.memory, options.instances)?;
        for octets in components {
            library.compile(&runtime.engine, octets)?;
        }
        let versions = library.list(&runtime.engine)?;
        let compiled = versions.iter().filter(|info| {
            library.compiled(&runtime.engine, &info.plugin, &info.version, &info.sha256).is_ok()
        });
        Ok(compiled.count())
    }

    /// Stores a new version of a plugin without activating it. `signature` is a base64-encoded ed25519 signature over
    /// the component's octets.
    ///
    /// # Errors
    /// The octets are not a component of a supported world and contract version, or the signature is not accepted.
    pub fn upload(
        &self,
        plugin: &str,
        octets: &[u8],
        signature: Option<&str>,
    ) -> Result<VersionInfo, HookError> {
        self.deps.library.add(&self.deps.runtime.engine, plugin, octets, signature)
    }

    /// Stores the debug information of a stored version, which the stacks of its faults then use.
    ///
    /// # Errors
    /// There is no such version, or the octets without their debug sections are not its component.
    pub fn add_debug_info(
        &self,
        plugin: &str,
        version: &str,
        octets: &[u8],
    ) -> Result<VersionInfo, HookError> {
        self.deps.library.add_debug_info(&self.deps.runtime.engine, plugin, version, octets)
    }

    /// The JSON Schema of a stored version's policy document.
    ///
    /// # Errors
    /// There is no such version, or it has no schema.
    pub fn policy_schema(&self, plugin: &str, version: &str) -> Result<serde_json::Value, HookError> {
        self.deps.library.policy_schema(plugin, version)
    }

    /// Activates a chain: compiles, instantiates, configures and self-checks every plugin, then replaces the live chain
    /// atomically. Calls in flight finish on the old chain. A failure changes nothing. `conditions` may be a serial
    /// alone.
    ///
    /// # Errors
    /// A plugin does not start or refuses its policy document, or a condition does not hold.
    pub fn activate(
        &self,
        hook: Hook,
        now: Timestamp,
        chain: Vec<Binding>,
        conditions: impl Into<ActivationConditions>,
    ) -> Result<BindingRecord, HookError> {
        let conditions = conditions.into();
        with_slot!(self, hook, slot => slot.activate(now, chain, conditions))
    }

    /// Removes all plugins from a hook.
    ///
    /// # Errors
    /// The change cannot be stored.
    pub fn unbind(&self, hook: Hook, now: Timestamp) -> Result<BindingRecord, HookError> {
        with_slot!(self, hook, slot => slot.unbind(now))
    }

    /// Activates the previous chain again. Chains that were rolled back automatically are skipped.
    ///
    /// # Errors
    /// There is no such chain, or it does not start any more.
    pub fn rollback(&self, hook: Hook, now: Timestamp) -> Result<BindingRecord, HookError> {
        with_slot!(self, hook, slot => slot.rollback(now))
    }

    /// Starts the trial of a candidate chain, in shadow or as a canary. It replaces an earlier candidate.
    ///
    /// # Errors
    /// As for [`Hooks::activate`], or the canary's share is out of range.
    pub fn start_trial(
        &self,
        hook: Hook,
        now: Timestamp,
        mode: TrialMode,
        chain: Vec<Binding>,
        conditions: impl Into<ActivationConditions>,
    ) -> Result<CandidateRecord, HookError> {
        let conditions = conditions.into();
        with_slot!(self, hook, slot => slot.start_trial(now, mode, chain, conditions))
    }

    /// Ends the trial of the candidate. The live chain stays.
    ///
    /// # Errors
    /// There is no candidate.
    pub fn end_trial(&self, hook: Hook, now: Timestamp) -> Result<(), HookError> {
        with_slot!(self, hook, slot => slot.end_trial(now, "candidate-ended", "by an admin"))
    }

    /// Makes the candidate live.
    ///
    /// # Errors
    /// There is no candidate, or the serial is not the expected one.
    pub fn promote(
        &self,
        hook: Hook,
        now: Timestamp,
        expected: Option<u64>,
    ) -> Result<BindingRecord, HookError> {
        with_slot!(self, hook, slot => slot.promote(now, expected))
    }

    /// Whether the hook has a live plugin.
    #[must_use]
    pub fn is_bound(&self, hook: Hook) -> bool {
        with_slot!(self, hook, slot => slot.is_bound())
    }

    /// The binding history of a hook, oldest first. The last record is live.
    #[must_use]
    pub fn history(&self, hook: Hook) -> Vec<BindingRecord> {
        with_slot!(self, hook, slot => slot.history())
    }

    /// The full status of a hook.
    #[must_use]
    pub fn status(&self, hook: Hook) -> HookStatus {
        with_slot!(self, hook, slot => slot.status())
    }

    /// The versions of a hook with faults since the start, most recent fault first. Reads debug information from disk.
    #[must_use]
    pub fn faults(&self, hook: Hook) -> Vec<FaultyVersion> {
        let library = &self.deps.library;
        self.deps.reporter.examples.of(hook, |version| library.debug_info(&version.plugin, &version.version))
    }

    /// The fault of a hook with this number, with its whole question; `None` once later faults have replaced it.
    #[must_use]
    pub fn fault(&self, hook: Hook, id: u64) -> Option<FaultDetails> {
        self.deps.reporter.examples.details(hook, id)
    }

    /// Call counts of all active plugins of a hook.
    #[must_use]
    pub fn counts(&self, hook: Hook) -> Vec<PluginCounts> {
        with_slot!(self, hook, slot => slot.counts())
    }

    /// All stored plugin versions.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn versions(&self) -> Result<Vec<VersionInfo>, HookError> {
        self.deps.library.list(&self.deps.runtime.engine)
    }

    /// Starts a chain for a replay or a test harness. It serves no traffic, and its counters and values are isolated.
    ///
    /// # Errors
    /// A plugin does not start or refuses its policy document.
    pub fn dry_run(&self, hook: Hook, chain: &[Binding]) -> Result<DryRun, HookError> {
        Ok(match hook {
            Hook::Screen => DryRun::screens(self.screen.dry_run(chain)?),
            Hook::Lookup => DryRun::lookups(self.lookup.dry_run(chain)?),
            Hook::Router => DryRun::router(self.router.dry_run(chain)?),
            Hook::Resolver => DryRun::resolver(self.resolver.dry_run(chain)?),
            Hook::DeliveryPolicy => DryRun::delivery(self.delivery.dry_run(chain)?),
            Hook::Receipt => DryRun::receipts(self.receipt.dry_run(chain)?),
            Hook::Biller => DryRun::biller(self.biller.dry_run(chain)?),
            Hook::Peer => DryRun::peer(self.peer.dry_run(chain)?),
            Hook::FrontEnd => DryRun::front_end(self.front_end.dry_run(chain)?),
        })
    }

    /// Starts a chain as [`Hooks::dry_run`] does, whose counters in memory begin empty: for a few questions of a person.
    ///
    /// # Errors
    /// A plugin does not start or refuses its policy document.
    pub fn try_run(&self, hook: Hook, chain: &[Binding]) -> Result<DryRun, HookError> {
        Ok(match hook {
            Hook::Screen => DryRun::screens(self.screen.try_run(chain)?),
            Hook::Lookup => DryRun::lookups(self.lookup.try_run(chain)?),
            Hook::Router => DryRun::router(self.router.try_run(chain)?),
            Hook::Resolver => DryRun::resolver(self.resolver.try_run(chain)?),
            Hook::DeliveryPolicy => DryRun::delivery(self.delivery.try_run(chain)?),
            Hook::Receipt => DryRun::receipts(self.receipt.try_run(chain)?),
            Hook::Biller => DryRun::biller(self.biller.try_run(chain)?),
            Hook::Peer => DryRun::peer(self.peer.try_run(chain)?),
            Hook::FrontEnd => DryRun::front_end(self.front_end.try_run(chain)?),
        })
    }

    fn new_call_log(&self) -> HostCallLog {
        if self.options.record { HostCallLog::recording() } else { HostCallLog::Off }
    }

    /// Screens a message, and gives it the text that a screen put in place of its own. `Ok(None)` if no screen is bound. The
    /// error is the decision that takes the place of a routing, because a screen failed and its binding says so.
    ///
    /// # Errors
    /// See above; a message that is held by it is screened when it is routed again.
    pub fn screen(
        &self,
        message: &mut Message,
        now: Timestamp,
    ) -> Result<Option<Box<Screening>>, Box<RoutingDecision>> {
        if !self.screen.is_bound() {
            return Ok(None);
        }
        let message_id = LazyMessageId::resume(message.routed.fault_message_id.take());
        let mut call_log = self.new_call_log();
        let outcome = self.screen.ask(message, now, &mut call_log, &message_id);
        message.routed.fault_message_id = message_id.into_shared();
        self.conclude_screening(outcome, message, call_log, now)
    }

    fn conclude_screening(
        &self,
        outcome: ChainOutcome<Screen>,
        message: &mut Message,
        call_log: HostCallLog,
        now: Timestamp,
    ) -> Result<Option<Box<Screening>>, Box<RoutingDecision>> {
        let (decision, by) = match outcome {
            ChainOutcome::Decided(decision, generation) => (decision, generation.by.clone()),
            ChainOutcome::Undecided { last, fault, answer } => {
                let Some(last) = last else { return Ok(None) };
                let note = fault.map(|fault| describe_fault(&fault));
                let passed = ScreenDecision { verdict: ScreenVerdict::Pass, changes: None, text: None, note };
                (answer.unwrap_or(passed), last.by.clone())
            }
            ChainOutcome::Fault(fault, generation) => {
                let verdict = match &generation.binding.on_fault {
                    OnFault::Reject => Verdict::Reject(RejectReason::Fault),
                    OnFault::Hold | OnFault::Pass | OnFault::Peer(_) => {
                        Verdict::Hold(now + self.options.hold_for)
                    }
                };
                let by = generation.by.clone();
                return Err(Box::new(RoutingDecision::new(verdict, by).with_note(describe_fault(&fault))));
            }
        };
        let ScreenDecision { verdict, changes, text, note } = decision;
        Ok(Some(Box::new(Screening {
            verdict,
            by,
            note,
            changes,
            submitted_text: text.map(|text| std::mem::replace(&mut message.text, text)),
            host_calls: call_log.into_record(),
        })))
    }

    /// Explains the screening of a message, without effects: the result of each screen, up to the one that decides, and
    /// what would follow. See [`Hooks::screen`].
    ///
    /// # Errors
    /// As for [`Hooks::screen`].
    #[expect(clippy::type_complexity, reason = "the steps, and the answer of `screen`")]
    pub fn explain_screening(
        &self,
        message: &mut Message,
        now: Timestamp,
    ) -> (Vec<ScreeningStep>, Result<Option<Box<Screening>>, Box<RoutingDecision>>) {
        let mut steps = Vec::new();
        let outcome = self.screen.chain().explain(message, now, |by, outcome| {
            steps.push(ScreeningStep { by: by.clone(), outcome: outcome.clone() });
        });
        (steps, self.conclude_screening(outcome, message, HostCallLog::Preview, now))
    }

    /// Asks the lookups about a number, and tells how long their answer holds. May block. A fault of a plugin whose binding
    /// does not pass it on is a failed lookup. `None` if no lookup is bound.
    #[must_use]
    pub fn look_up(&self, number: &LookupNumber, now: Timestamp) -> Option<(Lookup, Duration)> {
        let outcome = self.lookup.ask(number, now, &mut HostCallLog::Off, &LazyMessageId::default());
        conclude_lookup(outcome)
    }

    /// Asks the lookups about a number, without effects: the result of each, up to the one that knows the number, and the
    /// result of all.
    #[must_use]
    pub fn explain_lookup(&self, number: &LookupNumber, now: Timestamp) -> (Vec<LookupStep>, Option<Lookup>) {
        let mut steps = Vec::new();
        let outcome = self.lookup.chain().explain(number, now, |by, outcome| {
            steps.push(LookupStep { by: by.clone(), outcome: outcome.clone() });
        });
        (steps, conclude_lookup(outcome).map(|(lookup, _)| lookup))
    }

    /// Routes a message. This never fails: on a fault, the binding's `on-fault` decides.
    #[must_use]
    pub fn route(&self, message: &Message, now: Timestamp) -> RoutingDecision {
        let message_id = LazyMessageId::resume(message.routed.fault_message_id.clone());
        let mut routed = self.ask_routers(message, now, &message_id);
        routed.fault_message_id = message_id.into_shared();
        routed
    }

    fn ask_routers(&self, message: &Message, now: Timestamp, message_id: &LazyMessageId) -> RoutingDecision {
        let mut call_log = self.new_call_log();
        let outcome = self.router.ask(message, now, &mut call_log, message_id);
        self.conclude(outcome, message, call_log, now)
    }

    /// Routes messages that wait together, in order: the decisions are those of [`Hooks::route`], at less cost.
    #[must_use]
    pub fn route_many(&self, messages: &[&Message], now: Timestamp) -> Vec<RoutingDecision> {
        let resume = |message: &&Message| LazyMessageId::resume(message.routed.fault_message_id.clone());
        let ids: Vec<LazyMessageId> = messages.iter().map(resume).collect();
        let mut asked: Vec<BatchQuestion<'_, Router>> = messages
            .iter()
            .zip(&ids)
            .map(|(question, message_id)| BatchQuestion {
                question: *question,
                message_id,
                call_log: self.new_call_log(),
            })
            .collect();
        let outcomes = self.router.ask_many(&mut asked, now);
        let logs: Vec<HostCallLog> = asked.into_iter().map(|one| one.call_log).collect();
        let each = outcomes.into_iter().zip(logs).zip(ids).zip(messages);
        let decisions = each.map(|(((outcome, call_log), message_id), message)| {
            let mut routed = self.conclude(outcome, message, call_log, now);
            routed.fault_message_id = message_id.into_shared();
            routed
        });
        decisions.collect()
    }

    /// Converts the outcome of the router chain into a routing decision.
    fn conclude(
        &self,
        outcome: ChainOutcome<Router>,
        message: &Message,
        call_log: HostCallLog,
        now: Timestamp,
    ) -> RoutingDecision {
        match outcome {
            ChainOutcome::Decided(Decision { verdict, sender, changes, note }, generation) => {
                let verdict = verdict.unwrap_or(Verdict::Reject(RejectReason::NoRoute));
                let changes = match verdict {
                    Verdict::Forward(_) => with_screened(changes, message),
                    _ => None,
                };
                let by = generation.by.clone();
                RoutingDecision {
                    note,
                    sender,
                    changes,
                    host_calls: call_log.into_record(),
                    ..RoutingDecision::new(verdict, by)
                }
            }
            ChainOutcome::Fault(fault, generation) => {
                let verdict = match &generation.binding.on_fault {
                    OnFault::Hold | OnFault::Pass => Verdict::Hold(now + self.options.hold_for),
                    OnFault::Reject => Verdict::Reject(RejectReason::Fault),
                    OnFault::Peer(peer) => match self.deps.environment.directory.load().id(peer) {
                        Some(peer) => Verdict::Forward(vec![Leg::to(peer)]),
                        None => Verdict::Hold(now + self.options.hold_for),
                    },
                };
                RoutingDecision::new(verdict, generation.by.clone()).with_note(describe_fault(&fault))
            }
            ChainOutcome::Undecided { last, fault, .. } => {
                let note = match (&last, &fault) {
                    (None, _) => "no router is bound".into(),
                    (_, None) => "no router decided".into(),
                    (_, Some(fault)) => {
                        format!("no router decided; {}", describe_fault(fault)).into_boxed_str()
                    }
                };
                let by = last.map_or_else(|| self.no_plugin.clone(), |last| last.by.clone());
                let routed = RoutingDecision::new(Verdict::Reject(RejectReason::NoRoute), by).with_note(note);
                RoutingDecision { host_calls: call_log.into_record(), ..routed }
            }
        }
    }

    /// Prices a message with a forward verdict. Sets the quote of `routed`, or replaces its verdict if the biller
    /// refuses the message or fails.
    pub fn price(&self, message: &Message, routed: &mut RoutingDecision, now: Timestamp) {
        let Verdict::Forward(legs) = &routed.verdict else { return };
        if !self.biller.is_bound() {
            return;
        }
        let message_id = LazyMessageId::resume(routed.fault_message_id.take());
        let question = PriceQuestion { message, leg: priced_leg(legs), changes: routed.changes.as_deref() };
        let outcome = self.biller.ask(question, now, &mut HostCallLog::Off, &message_id);
        routed.fault_message_id = message_id.into_shared();
        self.apply_quote(outcome, routed, now);
    }

    /// Prices messages that are routed together, in order: the prices are those of [`Hooks::price`], at less cost. Each
    /// message's own decision is changed.
    pub fn price_many(&self, messages: &mut [&mut Message], now: Timestamp) {
        if !self.biller.is_bound() {
            return;
        }
        let mut priced: Vec<&mut &mut Message> =
            messages.iter_mut().filter(|one| matches!(one.routed.verdict, Verdict::Forward(_))).collect();
        let ids: Vec<LazyMessageId> = priced
            .iter_mut()
            .map(|message| LazyMessageId::resume(message.routed.fault_message_id.take()))
            .collect();
        let mut asked: Vec<BatchQuestion<'_, Biller>> = priced
            .iter()
            .zip(&ids)
            .map(|(message, message_id)| {
                let leg = match &message.routed.verdict {
                    Verdict::Forward(legs) => priced_leg(legs),
                    _ => None,
                };
                let question = PriceQuestion { message, leg, changes: message.routed.changes.as_deref() };
                BatchQuestion { question, message_id, call_log: HostCallLog::Off }
            })
            .collect();
        let outcomes = self.biller.ask_many(&mut asked, now);
        drop(asked);
        for ((message, outcome), message_id) in priced.into_iter().zip(outcomes).zip(ids) {
            message.routed.fault_message_id = message_id.into_shared();
            self.apply_quote(outcome, &mut message.routed, now);
        }
    }

    fn apply_quote(&self, outcome: ChainOutcome<Biller>, routed: &mut RoutingDecision, now: Timestamp) {
        match outcome {
            ChainOutcome::Decided(price, generation) => match price.quote {
                Ok(quote) => routed.quote = Some(Box::new(quote)),
                Err(note) => {
                    routed.verdict = Verdict::Reject(RejectReason::NoCredit);
                    routed.by = generation.by.clone();
                    routed.note = note;
                }
            },
            ChainOutcome::Fault(fault, generation) => {
                routed.verdict = match &generation.binding.on_fault {
                    OnFault::Reject => Verdict::Reject(RejectReason::Fault),
                    OnFault::Pass => return,
                    OnFault::Hold | OnFault::Peer(_) => Verdict::Hold(now + self.options.hold_for),
                };
                routed.by = generation.by.clone();
                routed.note = Some(describe_fault(&fault));
            }
            // `on-fault = "pass"`: after a fault the message is free.
            ChainOutcome::Undecided { .. } => {}
        }
    }

    /// Resolves a number to a subscriber. May block. A fault gives "try later".
    #[must_use]
    pub fn resolve(&self, msisdn: &str, now: Timestamp) -> Resolution {
        match self.resolver.ask(msisdn, now, &mut HostCallLog::Off, &LazyMessageId::default()) {
            ChainOutcome::Decided(resolution, _) => resolution,
            ChainOutcome::Fault(fault, generation) => Resolution {
                subscriber: Subscriber::TryLater { after: None },
                by: generation.by.clone(),
                note: Some(describe_fault(&fault)),
            },
            ChainOutcome::Undecided { last, fault, .. } => Resolution {
                subscriber: Subscriber::TryLater { after: None },
                by: last.map_or_else(|| self.no_plugin.clone(), |last| last.by.clone()),
                note: Some(
                    fault.map_or_else(|| "no resolver is bound".into(), |fault| describe_fault(&fault)),
                ),
            },
        }
    }

    /// Asks the delivery policy for the step after a failed attempt. `None` if there is no policy or it failed; the
    /// built-in retry schedule then applies.
    #[must_use]
    pub fn next(&self, message: &Message, attempt: &Attempt, now: Timestamp) -> Option<DeliveryDecision> {
        match self.delivery.ask((message, attempt), now, &mut HostCallLog::Off, &LazyMessageId::default()) {
            ChainOutcome::Decided(next, _) => Some(next),
            ChainOutcome::Fault(..) | ChainOutcome::Undecided { .. } => None,
        }
    }

    /// Whether a live binding serves this peer.
    #[must_use]
    pub fn serves_peer(&self, peer: &Arc<str>) -> bool {
        let request = CallbackRequest { peer: peer.clone(), ..CallbackRequest::default() };
        self.peer.chain().serves(PeerQuestion::Callback(&request))
    }

    /// Submits a message to a peer that a plugin serves. May block. A fault is a temporary refusal if the plugin had sent no HTTP
    /// request yet; otherwise the peer may have the message.
    #[must_use]
    pub fn submit(&self, submission: &PeerSubmission, now: Timestamp) -> Submitted {
        let question = PeerQuestion::Submit(submission);
        let outcome = self.peer.ask(question, now, &mut HostCallLog::Off, &LazyMessageId::default());
        let fault = match outcome {
            ChainOutcome::Decided(PeerAnswer::Submitted(submitted), _) => return submitted,
            ChainOutcome::Fault(fault, _) | ChainOutcome::Undecided { fault: Some(fault), .. } => fault,
            ChainOutcome::Decided(PeerAnswer::Called(_), _) | ChainOutcome::Undecided { .. } => {
                let note = Some("no plugin serves the peer".into());
                return Submitted { outcome: Outcome::NotSent, pause: None, note };
            }
        };
        let outcome = if fault.sent_request {
            unsure()
        } else {
            Outcome::Refused { class: ErrorClass::Temporary, code: 0, taken: Vec::new() }
        };
        Submitted { outcome, pause: None, note: Some(describe_fault(&fault)) }
    }

    /// Has the plugin of a peer read a callback. May block.
    ///
    /// # Errors
    /// The plugin's fault, in words, or no plugin serves the peer.
    pub fn callback(&self, request: &CallbackRequest, now: Timestamp) -> Result<CallbackAnswer, String> {
        let question = PeerQuestion::Callback(request);
        match self.peer.ask(question, now, &mut HostCallLog::Off, &LazyMessageId::default()) {
            ChainOutcome::Decided(PeerAnswer::Called(answer), _) => Ok(*answer),
            ChainOutcome::Fault(fault, _) | ChainOutcome::Undecided { fault: Some(fault), .. } => {
                Err(describe_fault(&fault).into())
            }
            ChainOutcome::Decided(PeerAnswer::Submitted(_), _) | ChainOutcome::Undecided { .. } => {
                Err("no plugin serves the peer".to_owned())
            }
        }
    }

    /// Asks the receipt policies what follows from a DLR, or from its absence: the first that does anything else than accept
    /// decides, and the first wait that one names counts. `None` if there is no policy, or one failed and its binding does not
    /// pass the question on; then everything counts as accepted.
    #[must_use]
    pub fn decide_receipt(
        &self,
        message: &Message,
        submission: AcceptedSubmission,
        event: ReceiptEvent,
        now: Timestamp,
    ) -> Option<ReceiptDecision> {
        let question = ReceiptQuestion { message, submission, event };
        match self.receipt.ask(question, now, &mut HostCallLog::Off, &LazyMessageId::default()) {
            ChainOutcome::Decided(decision, _) => Some(decision),
            ChainOutcome::Undecided { answer, .. } => answer,
            ChainOutcome::Fault(..) => None,
        }
    }

    /// Has a front end read a request. Returns what it reads, and the call, for [`Hooks::reply`].
    ///
    /// # Errors
    /// The plugin's fault, in words, or no plugin of that name is bound.
    pub fn read_request(
        &self,
        request: &FrontEndRequest,
        now: Timestamp,
    ) -> Result<(FrontEndReading, FrontEndCall), String> {
        let question = FrontEndQuestion::Read(request);
        match self.front_end.ask(question, now, &mut HostCallLog::Off, &LazyMessageId::default()) {
            ChainOutcome::Decided(FrontEndAnswer::Read(reading), generation) => {
                Ok((*reading, FrontEndCall(generation)))
            }
            ChainOutcome::Fault(fault, _) | ChainOutcome::Undecided { fault: Some(fault), .. } => {
                Err(describe_fault(&fault).into())
            }
            ChainOutcome::Decided(FrontEndAnswer::Replied(_), _) | ChainOutcome::Undecided { .. } => {
                Err(format!("plugin {} is not bound to the hook front-end", request.plugin))
            }
        }
    }

    /// Has the version that read a request write its response.
    ///
    /// # Errors
    /// The plugin's fault, in words.
    pub fn reply(
        &self,
        call: &FrontEndCall,
        request: &FrontEndRequest,
        outcome: &FrontEndOutcome,
        now: Timestamp,
    ) -> Result<FrontEndResponse, String> {
        match self.front_end.ask_generation(&call.0, FrontEndQuestion::Reply(request, outcome), now) {
            ChainOutcome::Decided(FrontEndAnswer::Replied(response), _) => Ok(response),
            ChainOutcome::Fault(fault, _) | ChainOutcome::Undecided { fault: Some(fault), .. } => {
                Err(describe_fault(&fault).into())
            }
            ChainOutcome::Decided(FrontEndAnswer::Read(_), _) | ChainOutcome::Undecided { .. } => {
                Err("the plugin did not answer".to_owned())
            }
        }
    }

    /// Reports settlements to the biller. May block.
    ///
    /// # Errors
    /// The reason why the biller failed or refused; the caller reports the settlements again later.
    pub fn settle(&self, settlements: &[Settlement], now: Timestamp) -> Result<(), String> {
        let chain = self.biller.chain();
        let Some(biller) = chain.0.first() else { return Err("no biller is bound".to_owned()) };
        match biller.settle(settlements, now) {
            Ok(result) => result,
            Err(fault) => {
                let question = FailedQuestion::Settle(settlements.to_vec());
                let new = NewFault {
                    details: biller.fault_details(fault.clone(), now, question, Vec::new()),
                    description: format!("how charges ended: {}", settlements.len()),
                    shared_id: LazyMessageId::default()
                        .shared(settlements.first().map(|first| first.message)),
                };
                self.deps.reporter.examples.add(Hook::Biller, new);
                crate::chain::report_fault(biller, &fault, &self.deps.reporter);
                Err(describe_fault(&fault).into())
            }
        }
    }

    /// Explains the routing of a message: the result of each router of the live chain, up to the one that decides, and
    /// the final decision. Counts, records and samples nothing.
    #[must_use]
    pub fn explain(&self, message: &Message, now: Timestamp) -> (Vec<RoutingStep>, RoutingDecision) {
        let mut steps = Vec::new();
        let outcome = self.router.chain().explain(message, now, |by, outcome| {
            steps.push(RoutingStep { by: by.clone(), outcome: outcome.clone() });
        });
        (steps, self.conclude(outcome, message, HostCallLog::Preview, now))
    }

    /// Explains the price of a message with a forward verdict, without effects.
    pub fn explain_price(&self, message: &Message, routed: &mut RoutingDecision, now: Timestamp) {
        let Verdict::Forward(legs) = &routed.verdict else { return };
        let question = PriceQuestion { message, leg: priced_leg(legs), changes: routed.changes.as_deref() };
        let outcome = self.biller.chain().explain(question, now, |_, _| ());
        self.apply_quote(outcome, routed, now);
    }
}

/// The leg that determines the price: the first ranked leg that needs no resolver.
fn priced_leg(legs: &[Leg]) -> Option<&Leg> {
    legs.iter().filter(|leg| !leg.resolve).min_by_key(|leg| leg.rank)
}

/// The changes of the screens, and those of the routers on top of them.
pub(crate) fn with_screened(
    changes: Option<Box<MessageChanges>>,
    message: &Message,
) -> Option<Box<MessageChanges>> {
    let screened = message.routed.screening.as_ref().and_then(|screening| screening.changes.clone());
    match (screened, changes) {
        (Some(mut screened), Some(changes)) => {
            screened.extend(*changes);
            Some(screened)
        }
        (screened, changes) => screened.or(changes),
    }
}

/// The result of a chain of lookups, and how long it holds. `None` for an empty chain.
fn conclude_lookup(outcome: ChainOutcome<LookupWorld>) -> Option<(Lookup, Duration)> {
    let failed = |fault: Option<&Fault>, by: Arc<PluginVersion>| Lookup {
        result: LookupResult::Failed,
        attributes: Vec::new(),
        by,
        note: fault.map(describe_fault),
        cached: false,
    };
    let (answer, by) = match outcome {
        ChainOutcome::Decided(answer, generation) => (answer, generation.by.clone()),
        ChainOutcome::Fault(fault, generation) => {
            return Some((failed(Some(&fault), generation.by.clone()), Duration::ZERO));
        }
        ChainOutcome::Undecided { last, fault, answer } => {
            let by = last?.by.clone();
            match (answer, fault) {
                // A plugin that failed might have known the number.
                (_, Some(fault)) => return Some((failed(Some(&fault), by), Duration::ZERO)),
                (Some(answer), None) => (answer, by),
                (None, None) => return Some((failed(None, by), Duration::ZERO)),
            }
        }
    };
    let NumberAnswer { result, attributes, lifetime, note } = answer;
    Some((Lookup { result, attributes, by, note, cached: false }, lifetime))
}

fn describe_fault(fault: &Fault) -> Box<str> {
    format!("fault ({}): {}", fault.kind.name(), fault.summary()).into()
}
