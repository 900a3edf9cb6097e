//! Dry runs: chains that serve no traffic, for replays and test harnesses.

use crate::chain::{Chain, ChainOutcome};
use crate::fault_examples::LazyMessageId;
use crate::fault_reporter::FaultReporter;
use crate::host_call_log::HostCallLog;
use crate::worlds::{Biller, DeliveryPolicy, Resolver, Router};
use crate::{Fault, FaultKind};
use model::{
    Attempt, DeliveryDecision, Leg, Message, Quote, Resolution, SenderRequest, Settlement, Timestamp, Verdict,
};

/// The started and configured plugins of one hook. Questions to them change nothing.
pub struct DryRun {
    chain: DryRunChain,
    reporter: FaultReporter,
}

enum DryRunChain {
    Router(Chain<Router>),
    Resolver(Chain<Resolver>),
    Delivery(Chain<DeliveryPolicy>),
    Biller(Chain<Biller>),
}

/// The result of a router chain for one message.
#[derive(Debug, Clone)]
pub struct DryRunOutcome {
    /// The verdict; `None` if no router decided.
    pub verdict: Result<Option<Verdict>, Fault>,
    /// The requested sender of the message.
    pub sender: Option<Box<SenderRequest>>,
    /// The router's note.
    pub note: Option<Box<str>>,
    /// The first kind of host call that the record did not answer, so that the verdict may differ from the original
    /// one.
    pub missing: Option<&'static str>,
    /// The record of host calls, as input for a replay.
    pub call_log: Option<Box<[u8]>>,
}

fn wrong_hook_fault() -> Fault {
    Fault { kind: FaultKind::Instance, what: "the plugin serves another hook".to_owned() }
}

impl DryRun {
    fn new(chain: DryRunChain) -> Self {
        // Nothing is rolled back: a fault is a result of the dry run.
        let (reporter, _) = FaultReporter::new();
        Self { chain, reporter }
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

    pub(crate) fn biller(chain: Chain<Biller>) -> Self {
        Self::new(DryRunChain::Biller(chain))
    }

    /// Asks the routers. With `call_log`, host calls are answered from that record.
    #[must_use]
    pub fn route(&self, message: &Message, now: Timestamp, call_log: Option<&[u8]>) -> DryRunOutcome {
        let DryRunChain::Router(chain) = &self.chain else {
            return DryRunOutcome {
                verdict: Err(wrong_hook_fault()),
                sender: None,
                note: None,
                missing: None,
                call_log: None,
            };
        };
        let mut call_log = call_log.map_or_else(HostCallLog::recording, HostCallLog::replaying);
        let (verdict, sender, note) =
            match chain.ask(message, now, &mut call_log, &self.reporter, &LazyMessageId::default()) {
                ChainOutcome::Decided(decision, _) => (Ok(decision.verdict), decision.sender, decision.note),
                ChainOutcome::Fault(fault, _) => (Err(fault), None, None),
                ChainOutcome::Undecided { .. } => (Ok(None), None, None),
            };
        DryRunOutcome { verdict, sender, note, missing: call_log.missing(), call_log: call_log.into_record() }
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
            (message, leg),
            now,
            &mut HostCallLog::Off,
            &self.reporter,
            &LazyMessageId::default(),
        ))
        .map(|price| price.quote)
    }

    /// Reports settlements to the biller; the inner error is the biller's own.
    ///
    /// # Errors
    /// The plugin's fault.
    pub fn settle(&self, settlements: &[Settlement], now: Timestamp) -> Result<Result<(), String>, Fault> {
        match &self.chain {
            DryRunChain::Biller(chain) => match chain.0.first() {
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
        ChainOutcome::Undecided { .. } => {
            Err(Fault { kind: FaultKind::Verdict, what: "it did not decide".to_owned() })
        }
    }
}
