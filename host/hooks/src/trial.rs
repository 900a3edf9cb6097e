//! Plugins that serve nobody: asked by replays, and by the harness of who writes them.

use crate::chain::{Chain, Ended};
use crate::examples::Met;
use crate::seen::Seen;
use crate::steward::Alarm;
use crate::worlds::{Biller, DeliveryPolicy, Resolver, Router};
use crate::{Fault, FaultKind};
use model::{Attempt, Leg, Message, Next, Quote, Resolution, SenderWish, Settlement, Timestamp, Verdict};

/// Plugins of one hook, started and configured, for questions that change nothing.
pub struct Trial {
    chain: Chains,
    alarm: Alarm,
}

enum Chains {
    Router(Chain<Router>),
    Resolver(Chain<Resolver>),
    Delivery(Chain<DeliveryPolicy>),
    Biller(Chain<Biller>),
}

/// What a router made of a message.
#[derive(Debug, Clone)]
pub struct Tried {
    /// Its verdict; `None`: no router decided.
    pub verdict: Result<Option<Verdict>, Fault>,
    /// The number that it wants for the message's sender.
    pub sender: Option<Box<SenderWish>>,
    /// Its note.
    pub note: Option<Box<str>>,
    /// What it asked the host that is not on record, so that the verdict need not be what it would have been.
    pub missing: Option<&'static str>,
    /// What it saw, as a replay wants it.
    pub seen: Option<Box<[u8]>>,
}

fn other_world() -> Fault {
    Fault { kind: FaultKind::Instance, what: "the plugin serves another hook".to_owned() }
}

impl Trial {
    fn new(chain: Chains) -> Self {
        // Nobody watches: what fails in a trial is the trial's result.
        let (alarm, _) = Alarm::new();
        Self { chain, alarm }
    }

    pub(crate) fn router(chain: Chain<Router>) -> Self {
        Self::new(Chains::Router(chain))
    }

    pub(crate) fn resolver(chain: Chain<Resolver>) -> Self {
        Self::new(Chains::Resolver(chain))
    }

    pub(crate) fn delivery(chain: Chain<DeliveryPolicy>) -> Self {
        Self::new(Chains::Delivery(chain))
    }

    pub(crate) fn biller(chain: Chain<Biller>) -> Self {
        Self::new(Chains::Biller(chain))
    }

    /// Asks routers. With `seen`, host calls are answered from that record.
    #[must_use]
    pub fn route(&self, message: &Message, now: Timestamp, seen: Option<&[u8]>) -> Tried {
        let Chains::Router(chain) = &self.chain else {
            return Tried {
                verdict: Err(other_world()),
                sender: None,
                note: None,
                missing: None,
                seen: None,
            };
        };
        let mut seen = seen.map_or_else(Seen::recording, Seen::replaying);
        let (verdict, sender, note) = match chain.ask(message, now, &mut seen, &self.alarm, &Met::default()) {
            Ended::Decided(decision, _) => (Ok(decision.verdict), decision.sender, decision.note),
            Ended::Fault(fault, _) => (Err(fault), None, None),
            Ended::Nobody { .. } => (Ok(None), None, None),
        };
        Tried { verdict, sender, note, missing: seen.missing(), seen: seen.record() }
    }

    /// Asks a resolver.
    ///
    /// # Errors
    /// Its fault.
    pub fn resolve(&self, msisdn: &str, now: Timestamp) -> Result<Resolution, Fault> {
        let Chains::Resolver(chain) = &self.chain else { return Err(other_world()) };
        decided(chain.ask(msisdn, now, &mut Seen::Off, &self.alarm, &Met::default()))
    }

    /// Asks a delivery policy.
    ///
    /// # Errors
    /// Its fault.
    pub fn next(&self, message: &Message, attempt: &Attempt, now: Timestamp) -> Result<Next, Fault> {
        let Chains::Delivery(chain) = &self.chain else { return Err(other_world()) };
        decided(chain.ask((message, attempt), now, &mut Seen::Off, &self.alarm, &Met::default()))
    }

    /// Asks a biller for a price; the inner error is a refusal with its note.
    ///
    /// # Errors
    /// Its fault.
    pub fn price(
        &self,
        message: &Message,
        leg: Option<&Leg>,
        now: Timestamp,
    ) -> Result<Result<Quote, Option<Box<str>>>, Fault> {
        let Chains::Biller(chain) = &self.chain else { return Err(other_world()) };
        decided(chain.ask((message, leg), now, &mut Seen::Off, &self.alarm, &Met::default()))
            .map(|price| price.quote)
    }

    /// Tells a biller how charges ended; the inner error is its own.
    ///
    /// # Errors
    /// Its fault.
    pub fn settle(&self, settlements: &[Settlement], now: Timestamp) -> Result<Result<(), String>, Fault> {
        match &self.chain {
            Chains::Biller(chain) => match chain.0.first() {
                Some(biller) => biller.settle(settlements, now),
                None => Err(other_world()),
            },
            _ => Err(other_world()),
        }
    }
}

fn decided<W: crate::worlds::World>(ended: Ended<W>) -> Result<W::Answer, Fault> {
    match ended {
        Ended::Decided(answer, _) => Ok(answer),
        Ended::Fault(fault, _) | Ended::Nobody { fault: Some(fault), .. } => Err(fault),
        Ended::Nobody { .. } => Err(Fault { kind: FaultKind::Verdict, what: "it did not decide".to_owned() }),
    }
}
