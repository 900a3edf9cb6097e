//! Dry runs: chains that serve no traffic, for replays and test harnesses.

mod repeated_calls;

pub use repeated_calls::{RepeatedReceiptCall, RepeatedSubmitCall};

use crate::chain::{Chain, ChainOutcome};
use crate::fault_examples::LazyMessageId;
use crate::fault_reporter::FaultReporter;
use crate::front_end_calls::{FrontEndOutcome, FrontEndReading, FrontEndRequest};
use crate::hooks::with_screened;
use crate::host_answer::HostAnswer;
use crate::host_call_log::HostCallLog;
use crate::peer_calls::{CallbackAnswer, CallbackRequest, PeerSubmission, Submitted};
use crate::worlds::{
    Biller, DeliveryPolicy, FrontEnd, FrontEndAnswer, FrontEndQuestion, Lookup, NumberAnswer, Peer,
    PeerAnswer, PeerQuestion, PluginResponse, PriceQuestion, Receipt, ReceiptQuestion, Resolver, Router,
    Screen, ScreenDecision,
};
use crate::{Fault, FaultKind};
use api::UnknownReference;
use model::{
    AcceptedSubmission, Attempt, DeliveryDecision, Leg, LookupNumber, Message, MessageChanges, PluginVersion,
    Quote, ReceiptDecision, ReceiptEvent, Resolution, SenderRequest, Settlement, Timestamp, Verdict,
};
use std::sync::Arc;

/// The started and configured plugins of one hook. Questions to them change nothing.
pub struct DryRun {
    chain: DryRunChain,
    reporter: FaultReporter,
}

enum DryRunChain {
    Screen(Chain<Screen>),
    Lookup(Chain<Lookup>),
    Router(Chain<Router>),
    Resolver(Chain<Resolver>),
    Delivery(Chain<DeliveryPolicy>),
    Receipt(Chain<Receipt>),
    Biller(Chain<Biller>),
    Peer(Chain<Peer>),
    FrontEnd(Chain<FrontEnd>),
}

/// The result of a router chain for one message.
#[derive(Debug, Clone)]
pub struct DryRunOutcome {
    /// The verdict; `None` if no router decided.
    pub verdict: Result<Option<Verdict>, Fault>,
    /// The requested sender of the message.
    pub sender: Option<Box<SenderRequest>>,
    /// The changes to the message, including the changes of the screens that have passed it.
    pub changes: Option<Box<MessageChanges>>,
    /// The router's note.
    pub note: Option<Box<str>>,
    /// The first kind of host call that the record did not answer, so that the verdict may differ from the original
    /// one.
    pub missing: Option<&'static str>,
    /// The record of host calls, as input for a replay.
    pub call_log: Option<Box<[u8]>>,
}

/// The result of a screen chain for one message.
#[derive(Debug, Clone)]
pub struct ScreenOutcome {
    /// The decision; `None` if no screen answered.
    pub decision: Result<Option<ScreenDecision>, Fault>,
    /// As in [`DryRunOutcome`].
    pub missing: Option<&'static str>,
    /// As in [`DryRunOutcome`].
    pub call_log: Option<Box<[u8]>>,
}

/// The result of a chain of lookups for one number.
#[derive(Debug, Clone)]
pub struct LookupOutcome {
    /// The answer.
    pub answer: Result<NumberAnswer, Fault>,
    /// As in [`DryRunOutcome`].
    pub missing: Option<&'static str>,
}

/// The result of a chain for one message, with the plugin and the host's answers.
#[derive(Debug, Clone)]
pub struct TracedDryRun<T = DryRunOutcome> {
    /// The result.
    pub outcome: T,
    /// The plugin that decided or failed; otherwise the last called plugin. `None` if the chain is empty.
    pub by: Option<Arc<PluginVersion>>,
    /// The host's answers to the plugins.
    pub host_answers: Vec<HostAnswer>,
}

impl DryRunOutcome {
    fn without_changes(verdict: Result<Option<Verdict>, Fault>) -> Self {
        Self { verdict, sender: None, changes: None, note: None, missing: None, call_log: None }
    }
}

fn wrong_hook_fault() -> Fault {
    Fault::new(FaultKind::Instance, "the plugin serves another hook")
}

impl DryRun {
    fn new(chain: DryRunChain) -> Self {
        // Nothing is rolled back: a fault is a result of the dry run.
        let (reporter, _) = FaultReporter::new(None);
        Self { chain, reporter }
    }

    pub(crate) fn screens(chain: Chain<Screen>) -> Self {
        Self::new(DryRunChain::Screen(chain))
    }

    pub(crate) fn lookups(chain: Chain<Lookup>) -> Self {
        Self::new(DryRunChain::Lookup(chain))
    }

    pub(crate) fn router(chain: Chain<Router>) -> Self {
        Self::new(DryRunChain::Router(chain))
    }

    pub(crate) fn resolver(chain: Chain<Resolver>) -> Self {
        Self::new(DryRunChain::Resolver(chain))
    }

    pub(crate) fn delivery(chain: Chain<DeliveryPolicy>) -> Self {
        Self::new(DryRunChain::Delivery(chain))
    }

    pub(crate) fn receipts(chain: Chain<Receipt>) -> Self {
        Self::new(DryRunChain::Receipt(chain))
    }

    pub(crate) fn biller(chain: Chain<Biller>) -> Self {
        Self::new(DryRunChain::Biller(chain))
    }

    pub(crate) fn peer(chain: Chain<Peer>) -> Self {
        Self::new(DryRunChain::Peer(chain))
    }

    pub(crate) fn front_end(chain: Chain<FrontEnd>) -> Self {
        Self::new(DryRunChain::FrontEnd(chain))
    }

    /// Asks the screens. With `call_log`, host calls are answered from that record.
    #[must_use]
    pub fn screen(&self, message: &Message, now: Timestamp, call_log: Option<&[u8]>) -> ScreenOutcome {
        let DryRunChain::Screen(chain) = &self.chain else {
            return ScreenOutcome { decision: Err(wrong_hook_fault()), missing: None, call_log: None };
        };
        let mut call_log = call_log.map_or_else(HostCallLog::recording, HostCallLog::replaying);
        let (decision, _) = self.ask_screens(chain, message, now, &mut call_log);
        ScreenOutcome { decision, missing: call_log.missing(), call_log: call_log.into_record() }
    }

    /// Asks the routers. With `call_log`, host calls are answered from that record.
    #[must_use]
    pub fn route(&self, message: &Message, now: Timestamp, call_log: Option<&[u8]>) -> DryRunOutcome {
        let DryRunChain::Router(chain) = &self.chain else {
            return DryRunOutcome::without_changes(Err(wrong_hook_fault()));
        };
        let mut call_log = call_log.map_or_else(HostCallLog::recording, HostCallLog::replaying);
        let (outcome, _) = self.ask_routers(chain, message, now, &mut call_log);
        DryRunOutcome { missing: call_log.missing(), call_log: call_log.into_record(), ..outcome }
    }

    /// Asks the routers as [`DryRun::route`] does, and traces the call.
    #[must_use]
    pub fn trace_route(&self, message: &Message, now: Timestamp, call_log: Option<&[u8]>) -> TracedDryRun {
        let DryRunChain::Router(chain) = &self.chain else {
            let outcome = DryRunOutcome::without_changes(Err(wrong_hook_fault()));
            return TracedDryRun { outcome, by: None, host_answers: Vec::new() };
        };
        let mut call_log = call_log.map_or_else(HostCallLog::recording, HostCallLog::replaying_traced);
        let (outcome, by) = self.ask_routers(chain, message, now, &mut call_log);
        let outcome = DryRunOutcome { missing: call_log.missing(), ..outcome };
        TracedDryRun { outcome, by, host_answers: HostAnswer::all(&call_log) }
    }

    /// Asks the screens as [`DryRun::screen`] does, and traces the call.
    #[must_use]
    pub fn trace_screen(
        &self,
        message: &Message,
        now: Timestamp,
        call_log: Option<&[u8]>,
    ) -> TracedDryRun<ScreenOutcome> {
        let DryRunChain::Screen(chain) = &self.chain else {
            let outcome = ScreenOutcome { decision: Err(wrong_hook_fault()), missing: None, call_log: None };
            return TracedDryRun { outcome, by: None, host_answers: Vec::new() };
        };
        let mut call_log = call_log.map_or_else(HostCallLog::recording, HostCallLog::replaying_traced);
        let (decision, by) = self.ask_screens(chain, message, now, &mut call_log);
        let outcome = ScreenOutcome { decision, missing: call_log.missing(), call_log: None };
        TracedDryRun { outcome, by, host_answers: HostAnswer::all(&call_log) }
    }

    fn ask_screens(
        &self,
        chain: &Chain<Screen>,
        message: &Message,
        now: Timestamp,
        call_log: &mut HostCallLog,
    ) -> (Result<Option<ScreenDecision>, Fault>, Option<Arc<PluginVersion>>) {
        match chain.ask(message, now, call_log, &self.reporter, &LazyMessageId::default()) {
            ChainOutcome::Decided(decision, by) => (Ok(Some(decision)), Some(by.by.clone())),
            ChainOutcome::Fault(fault, by) => (Err(fault), Some(by.by.clone())),
            ChainOutcome::Undecided { answer, last, .. } => (Ok(answer), last.map(|last| last.by.clone())),
        }
    }

    fn ask_routers(
        &self,
        chain: &Chain<Router>,
        message: &Message,
        now: Timestamp,
        call_log: &mut HostCallLog,
    ) -> (DryRunOutcome, Option<Arc<PluginVersion>>) {
        match chain.ask(message, now, call_log, &self.reporter, &LazyMessageId::default()) {
            ChainOutcome::Decided(decision, generation) => {
                let outcome = DryRunOutcome {
                    verdict: Ok(decision.verdict),
                    sender: decision.sender,
                    changes: with_screened(decision.changes, message),
                    note: decision.note,
                    missing: None,
                    call_log: None,
                };
                (outcome, Some(generation.by.clone()))
            }
            ChainOutcome::Fault(fault, generation) => {
                (DryRunOutcome::without_changes(Err(fault)), Some(generation.by.clone()))
            }
            ChainOutcome::Undecided { last, .. } => {
                (DryRunOutcome::without_changes(Ok(None)), last.map(|last| last.by.clone()))
            }
        }
    }

    /// References of its policies to names that do not exist at present.
    #[must_use]
    pub fn unknown(&self) -> Vec<UnknownReference> {
        match &self.chain {
            DryRunChain::Screen(chain) => chain.unknown(),
            DryRunChain::Lookup(chain) => chain.unknown(),
            DryRunChain::Router(chain) => chain.unknown(),
            DryRunChain::Resolver(chain) => chain.unknown(),
            DryRunChain::Delivery(chain) => chain.unknown(),
            DryRunChain::Receipt(chain) => chain.unknown(),
            DryRunChain::Biller(chain) => chain.unknown(),
            DryRunChain::Peer(chain) => chain.unknown(),
            DryRunChain::FrontEnd(chain) => chain.unknown(),
        }
    }

    /// Asks the lookups. Returns the answer of the whole chain.
    ///
    /// # Errors
    /// The fault of a plugin.
    pub fn look_up(&self, number: &LookupNumber, now: Timestamp) -> Result<NumberAnswer, Fault> {
        let DryRunChain::Lookup(chain) = &self.chain else { return Err(wrong_hook_fault()) };
        match chain.ask(number, now, &mut HostCallLog::Off, &self.reporter, &LazyMessageId::default()) {
            ChainOutcome::Undecided { answer: Some(answer), fault: None, .. } => Ok(answer),
            outcome => into_answer(outcome),
        }
    }

    /// Asks the lookups as [`DryRun::look_up`] does; host calls are answered from this record.
    #[must_use]
    pub fn look_up_again(&self, number: &LookupNumber, now: Timestamp, call_log: &[u8]) -> LookupOutcome {
        let DryRunChain::Lookup(chain) = &self.chain else {
            return LookupOutcome { answer: Err(wrong_hook_fault()), missing: None };
        };
        let mut call_log = HostCallLog::replaying(call_log);
        let outcome = chain.ask(number, now, &mut call_log, &self.reporter, &LazyMessageId::default());
        let answer = match outcome {
            ChainOutcome::Undecided { answer: Some(answer), fault: None, .. } => Ok(answer),
            outcome => into_answer(outcome),
        };
        LookupOutcome { answer, missing: call_log.missing() }
    }

    /// Asks the resolver.
    ///
    /// # Errors
    /// The plugin's fault.
    pub fn resolve(&self, msisdn: &str, now: Timestamp) -> Result<Resolution, Fault> {
        let DryRunChain::Resolver(chain) = &self.chain else { return Err(wrong_hook_fault()) };
        into_answer(chain.ask(msisdn, now, &mut HostCallLog::Off, &self.reporter, &LazyMessageId::default()))
    }

    /// Asks the delivery policy.
    ///
    /// # Errors
    /// The plugin's fault.
    pub fn next(
        &self,
        message: &Message,
        attempt: &Attempt,
        now: Timestamp,
    ) -> Result<DeliveryDecision, Fault> {
        let DryRunChain::Delivery(chain) = &self.chain else { return Err(wrong_hook_fault()) };
        into_answer(chain.ask(
            (message, attempt),
            now,
            &mut HostCallLog::Off,
            &self.reporter,
            &LazyMessageId::default(),
        ))
    }

    /// Asks the receipt policies.
    ///
    /// # Errors
    /// The plugin's fault.
    pub fn decide_receipt(
        &self,
        message: &Message,
        submission: AcceptedSubmission,
        event: ReceiptEvent,
        now: Timestamp,
    ) -> Result<ReceiptDecision, Fault> {
        let DryRunChain::Receipt(chain) = &self.chain else { return Err(wrong_hook_fault()) };
        let question = ReceiptQuestion { message, submission, event };
        let outcome =
            chain.ask(question, now, &mut HostCallLog::Off, &self.reporter, &LazyMessageId::default());
        match outcome {
            ChainOutcome::Undecided { answer: Some(answer), .. } => Ok(answer),
            other => into_answer(other),
        }
    }

    /// Asks the biller for a price; the inner error is a refusal with its note.
    ///
    /// # Errors
    /// The plugin's fault.
    pub fn price(
        &self,
        message: &Message,
        leg: Option<&Leg>,
        now: Timestamp,
    ) -> Result<Result<Quote, Option<Box<str>>>, Fault> {
        let DryRunChain::Biller(chain) = &self.chain else { return Err(wrong_hook_fault()) };
        into_answer(chain.ask(
            PriceQuestion { message, leg, changes: None },
            now,
            &mut HostCallLog::Off,
            &self.reporter,
            &LazyMessageId::default(),
        ))
        .map(|price| price.quote)
    }

    /// Submits a message to a peer. HTTP requests go to the services that the plugin host was opened with.
    ///
    /// # Errors
    /// The plugin's fault.
    pub fn submit(&self, submission: &PeerSubmission, now: Timestamp) -> Result<Submitted, Fault> {
        match self.ask_peer(PeerQuestion::Submit(submission), now)? {
            PeerAnswer::Submitted(submitted) => Ok(submitted),
            PeerAnswer::Called(_) => Err(wrong_hook_fault()),
        }
    }

    /// Has the plugin of a peer read a callback.
    ///
    /// # Errors
    /// The plugin's fault.
    pub fn callback(&self, request: &CallbackRequest, now: Timestamp) -> Result<CallbackAnswer, Fault> {
        match self.ask_peer(PeerQuestion::Callback(request), now)? {
            PeerAnswer::Called(answer) => Ok(*answer),
            PeerAnswer::Submitted(_) => Err(wrong_hook_fault()),
        }
    }

    fn ask_peer(&self, question: PeerQuestion<'_>, now: Timestamp) -> Result<PeerAnswer, Fault> {
        let DryRunChain::Peer(chain) = &self.chain else { return Err(wrong_hook_fault()) };
        into_answer(chain.ask(
            question,
            now,
            &mut HostCallLog::Off,
            &self.reporter,
            &LazyMessageId::default(),
        ))
    }

    /// Has the front end read a request.
    ///
    /// # Errors
    /// The plugin's fault.
    pub fn read_request(&self, request: &FrontEndRequest, now: Timestamp) -> Result<FrontEndReading, Fault> {
        match self.ask_front_end(FrontEndQuestion::Read(request), now)? {
            FrontEndAnswer::Read(reading) => Ok(*reading),
            FrontEndAnswer::Replied(_) => Err(wrong_hook_fault()),
        }
    }

    /// Has the front end write the response to a request.
    ///
    /// # Errors
    /// The plugin's fault.
    pub fn reply(
        &self,
        request: &FrontEndRequest,
        outcome: &FrontEndOutcome,
        now: Timestamp,
    ) -> Result<PluginResponse, Fault> {
        match self.ask_front_end(FrontEndQuestion::Reply(request, outcome), now)? {
            FrontEndAnswer::Replied(response) => Ok(response),
            FrontEndAnswer::Read(_) => Err(wrong_hook_fault()),
        }
    }

    fn ask_front_end(&self, question: FrontEndQuestion<'_>, now: Timestamp) -> Result<FrontEndAnswer, Fault> {
        let DryRunChain::FrontEnd(chain) = &self.chain else { return Err(wrong_hook_fault()) };
        into_answer(chain.ask(
            question,
            now,
            &mut HostCallLog::Off,
            &self.reporter,
            &LazyMessageId::default(),
        ))
    }

    /// Reports settlements to the biller; the inner error is the biller's own.
    ///
    /// # Errors
    /// The plugin's fault.
    pub fn settle(&self, settlements: &[Settlement], now: Timestamp) -> Result<Result<(), String>, Fault> {
        match &self.chain {
            DryRunChain::Biller(chain) => match chain.generations.first() {
                Some(biller) => biller.settle(settlements, now),
                None => Err(wrong_hook_fault()),
            },
            _ => Err(wrong_hook_fault()),
        }
    }
}

fn into_answer<W: crate::worlds::World>(outcome: ChainOutcome<W>) -> Result<W::Answer, Fault> {
    match outcome {
        ChainOutcome::Decided(answer, _) => Ok(answer),
        ChainOutcome::Fault(fault, _) | ChainOutcome::Undecided { fault: Some(fault), .. } => Err(fault),
        ChainOutcome::Undecided { .. } => Err(Fault::new(FaultKind::Verdict, "it did not decide")),
    }
}
