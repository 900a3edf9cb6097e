//! Questions and answers, from the words of cases into those of the host and back.

use crate::bench::{
    Address, Advice, Answer, Attempt, Charge, ErrorClass, Leg, Message, Price, Question, Resolution, Sender,
    Settlement, Step, Subscriber, Verdict, WithoutNumber,
};
use crate::harness::HOME;
use bytes::Bytes;
use hooks::{Fault, Trial};
use model::{DecidedBy, Directory, MessageId, PeerAdvice, PeerId, ReceiptRequest, Routed, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// Who is called what, and when it is.
pub(crate) struct Words<'a> {
    pub(crate) directory: &'a Directory,
    pub(crate) now: Timestamp,
}

impl Words<'_> {
    /// Puts a question to a plugin.
    pub(crate) fn put(&self, trial: &Trial, question: &Question) -> Answer {
        self.ask(trial, question)
            .unwrap_or_else(|fault| Answer::Fault(format!("{}: {}", fault.kind.name(), fault.what)))
    }

    fn ask(&self, trial: &Trial, question: &Question) -> Result<Answer, Fault> {
        let note = |note: Option<Box<str>>| note.map(String::from);
        Ok(match question {
            Question::Configure => Answer::Configured,
            Question::Route(message) => {
                let tried = trial.route(&self.message(message), self.now, None);
                let sender = tried.sender.map(|wish| sender(&wish, &message.origin));
                Answer::Verdict { verdict: self.verdict(tried.verdict?), sender, note: note(tried.note) }
            }
            Question::Resolve(number) => {
                let found = trial.resolve(number, self.now)?;
                Answer::Resolved { answer: self.resolution(found.subscriber), note: note(found.note) }
            }
            Question::Next(message, attempt) => {
                let next = trial.next(&self.message(message), &self.attempt(attempt), self.now)?;
                let advice = (next.advice != PeerAdvice::default()).then(|| advice(next.advice));
                Answer::Next { step: step(next.step), advice, note: note(next.note) }
            }
            Question::Price(message, leg) => {
                let leg = leg
                    .as_ref()
                    .map(|leg| model::Leg { cost: leg.cost, ..model::Leg::to(self.id(&leg.peer)) });
                match trial.price(&self.message(message), leg.as_ref(), self.now)? {
                    Ok(quote) => Answer::Price { price: price(quote.charge), note: note(quote.note) },
                    Err(why) => Answer::Price { price: Price::Refuse, note: note(why) },
                }
            }
            Question::Settle(settlements) => {
                let settlements: Vec<model::Settlement> = settlements.iter().map(settlement).collect();
                match trial.settle(&settlements, self.now)? {
                    Ok(()) => Answer::Settled,
                    Err(why) => Answer::Unsettled(why),
                }
            }
        })
    }

    fn id(&self, name: &str) -> PeerId {
        // Whatever a question names was put into the directory.
        self.directory.id(name).unwrap_or(PeerId(u32::MAX))
    }

    fn name(&self, id: PeerId) -> String {
        self.directory.name(id).to_string()
    }

    fn message(&self, message: &Message) -> model::Message {
        let nobody = Arc::new(DecidedBy { plugin: String::new(), version: String::new() });
        model::Message {
            id: MessageId(0),
            kind: model::Kind::Text,
            origin: self.id(&message.origin),
            source: address(&message.source),
            destination: address(&message.destination),
            service_type: Bytes::from(message.service_type.clone().unwrap_or_default()),
            protocol_id: 0,
            esm_class: 0,
            priority: model::Priority::new(message.priority),
            receipts: if message.wants_receipt { ReceiptRequest::FINAL } else { ReceiptRequest::NONE },
            replace_if_present: false,
            submission: None,
            text: model::Text {
                octets: Bytes::from(message.text.clone()),
                data_coding: message.data_coding,
                udhi: false,
                payload: message.text.len() > 254,
            },
            tlvs: Bytes::new(),
            accepted_at: self.now,
            scheduled: None,
            expires_at: self.now + Duration::from_secs(86_400),
            routed: Routed::new(model::Verdict::Forward(Vec::new()), nobody),
        }
    }

    fn verdict(&self, verdict: Option<model::Verdict>) -> Verdict {
        match verdict {
            None => Verdict::Pass,
            Some(model::Verdict::Hold(until)) => Verdict::Hold(until.0),
            Some(model::Verdict::Reject(reason)) => Verdict::Reject(reject(reason)),
            Some(model::Verdict::Forward(legs)) => {
                let home = self.directory.id(HOME);
                if legs.iter().any(|leg| leg.resolve && Some(leg.peer) == home) {
                    return Verdict::Home;
                }
                Verdict::Forward(legs.into_iter().map(|leg| self.leg(leg)).collect())
            }
        }
    }

    fn leg(&self, leg: model::Leg) -> Leg {
        let back = |address: model::Address| Address {
            ton: address.ton,
            npi: address.npi,
            value: address.text().into_owned(),
        };
        Leg {
            peer: self.name(leg.peer),
            rank: leg.rank,
            weight: leg.weight,
            cost: leg.cost,
            longest_wait_ms: leg.longest_wait.map(milliseconds),
            source: leg.source.map(back),
            destination: leg.destination.map(back),
        }
    }

    fn resolution(&self, subscriber: model::Subscriber) -> Resolution {
        match subscriber {
            model::Subscriber::Found { imsi, peer, valid } => Resolution::Found(Subscriber {
                imsi: String::from_utf8_lossy(&imsi.0).into_owned(),
                serving: peer.map(|peer| self.name(peer)),
                valid_ms: valid.map(milliseconds),
            }),
            model::Subscriber::Unknown { valid } => Resolution::Unknown(valid.map(milliseconds)),
            model::Subscriber::TryLater { after } => Resolution::TryLater(after.map(milliseconds)),
        }
    }

    fn attempt(&self, attempt: &Attempt) -> model::Attempt {
        model::Attempt {
            number: attempt.number,
            leg: (attempt.leg, attempt.legs),
            peer: self.id(&attempt.peer),
            class: match attempt.class {
                ErrorClass::Temporary => model::ErrorClass::Temporary,
                ErrorClass::Permanent => model::ErrorClass::Permanent,
                ErrorClass::Absent => model::ErrorClass::Absent,
                ErrorClass::MemoryFull => model::ErrorClass::MemoryFull,
                ErrorClass::Throttled => model::ErrorClass::Throttled,
            },
            code: attempt.code,
            age: Duration::from_millis(attempt.age_ms),
            left: Duration::from_millis(attempt.left_ms),
        }
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn address(address: &Address) -> model::Address {
    model::Address::new(address.ton, address.npi, address.value.as_bytes())
}

fn reject(reason: model::RejectReason) -> String {
    // The words of the contract are those of serde.
    match serde_json::to_value(reason) {
        Ok(serde_json::Value::String(word)) => word,
        _ => reason.to_string(),
    }
}

fn sender(wish: &model::SenderWish, origin: &str) -> Sender {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Sender {
        pool: wish.pool.to_string(),
        otherwise: match wish.otherwise {
            model::NoSender::Reject => WithoutNumber::Reject,
            model::NoSender::KeepSender => WithoutNumber::KeepSender,
            model::NoSender::Hold => WithoutNumber::Hold,
        },
        user: text(&wish.user),
        // The host names the origin where the plugin names nobody.
        holder: text(&wish.holder).filter(|holder| holder != origin),
        reason: text(&wish.reason),
        lease_ms: wish.lease.map(milliseconds),
    }
}

fn advice(advice: PeerAdvice) -> Advice {
    Advice { pause_ms: advice.pause.map(milliseconds), rate: advice.rate, window: advice.window }
}

fn step(step: model::NextStep) -> Step {
    match step {
        model::NextStep::RetryAfter(after) => Step::RetryAfter(milliseconds(after)),
        model::NextStep::NextLeg => Step::NextLeg,
        model::NextStep::AwaitAlert(most) => Step::AwaitAlert(milliseconds(most)),
        model::NextStep::Fail => Step::Fail,
    }
}

fn price(charge: Option<model::Charge>) -> Price {
    match charge {
        None => Price::Free,
        Some(charge) => Price::Charge(Charge {
            account: charge.account.to_string(),
            amount: charge.amount,
            keep_on_failure: charge.keep_on_failure,
            settle: charge.settle,
        }),
    }
}

fn settlement(settlement: &Settlement) -> model::Settlement {
    model::Settlement {
        serial: settlement.serial,
        message: MessageId(settlement.message),
        account: settlement.account.as_str().into(),
        amount: settlement.amount,
        captured: settlement.captured,
        at: Timestamp(settlement.at),
    }
}
