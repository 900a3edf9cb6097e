//! Converts questions and answers between case types and host types.

use crate::case_details::CaseChanges;
use crate::case_peer::{CaseCalled, CaseOutcome};
use crate::case_receipt::step_and_wait;
use crate::local_host::HOME_PEER;
use crate::plugin_host::{
    CaseAddress, CaseAdvice, CaseAnswer, CaseAttempt, CaseCharge, CaseErrorClass, CaseLeg, CaseLookup,
    CaseMessage, CasePrice, CaseQuestion, CaseResolution, CaseScreenVerdict, CaseSender, CaseSenderFallback,
    CaseSettlement, CaseStep, CaseSubscriber, CaseVerdict,
};
use bytes::Bytes;
use hooks::{DryRun, DryRunOutcome, Fault, PeerSubmission, ScreenDecision};
use model::{
    Directory, DlrRequest, LookupNumber, MessageId, PeerAdvice, PeerId, PluginVersion, RoutingDecision,
    SubmitTicket, Timestamp,
};
use std::sync::Arc;
use std::time::Duration;

/// The names and the time of a conversion.
pub(crate) struct CaseConversion<'a> {
    pub(crate) directory: &'a Directory,
    pub(crate) now: Timestamp,
    /// The component with debug sections, for the stacks of faults.
    pub(crate) debug_info: Option<&'a [u8]>,
}

impl CaseConversion<'_> {
    /// Asks a plugin a question.
    pub(crate) fn ask_or_fault(&self, dry_run: &DryRun, question: &CaseQuestion) -> CaseAnswer {
        self.ask(dry_run, question).unwrap_or_else(|fault| {
            let mut text = format!("{}: {}", fault.kind.name(), fault.summary());
            for line in fault.details(self.debug_info) {
                text.push('\n');
                text.push_str(&line);
            }
            CaseAnswer::Fault(text)
        })
    }

    fn ask(&self, dry_run: &DryRun, question: &CaseQuestion) -> Result<CaseAnswer, Fault> {
        let note = |note: Option<Box<str>>| note.map(String::from);
        Ok(match question {
            CaseQuestion::Configure => CaseAnswer::Configured,
            CaseQuestion::Screen(message) => {
                let outcome = dry_run.screen(&self.message(message), self.now, None);
                // A chain of one plugin that answered has a decision.
                outcome.decision?.map_or(CaseAnswer::Configured, screened)
            }
            CaseQuestion::Route(message) => {
                self.routed(dry_run.route(&self.message(message), self.now, None), &message.origin)?
            }
            CaseQuestion::LookUp(number) => {
                let Some(number) = LookupNumber::of(&address(number)) else {
                    return Ok(CaseAnswer::Fault("no number: the appliance does not look it up".to_owned()));
                };
                let answer = dry_run.look_up(&number, self.now)?;
                CaseAnswer::LookedUp { answer: CaseLookup::from(&answer), note: note(answer.note) }
            }
            CaseQuestion::Resolve(number) => {
                let found = dry_run.resolve(number, self.now)?;
                CaseAnswer::Resolved { answer: self.resolution(found.subscriber), note: note(found.note) }
            }
            CaseQuestion::Next(message, attempt) => {
                let next = dry_run.next(&self.message(message), &self.attempt(attempt), self.now)?;
                let advice = (next.advice != PeerAdvice::default()).then(|| advice(next.advice));
                CaseAnswer::Next { step: step(next.step), advice, note: note(next.note) }
            }
            CaseQuestion::Receipt(message, submission, event) => {
                let message = self.message(message);
                let submission = submission.to_model(self.id(&submission.peer));
                let decision = dry_run.decide_receipt(&message, submission, event.to_model(), self.now)?;
                let (step, wait) = step_and_wait(&decision);
                CaseAnswer::Receipt { step, wait, note: note(decision.note) }
            }
            CaseQuestion::Price(message, leg) => {
                let leg = leg
                    .as_ref()
                    .map(|leg| model::Leg { cost: leg.cost, ..model::Leg::to(self.id(&leg.peer)) });
                match dry_run.price(&self.message(message), leg.as_ref(), self.now)? {
                    Ok(quote) => CaseAnswer::Price { price: price(quote.charge), note: note(quote.note) },
                    Err(why) => CaseAnswer::Price { price: CasePrice::Refuse, note: note(why) },
                }
            }
            CaseQuestion::Submit(submission) => {
                let submission = PeerSubmission {
                    peer: submission.peer.as_str().into(),
                    message: Arc::new(self.message(&submission.message)),
                    leg: 0,
                    ticket: SubmitTicket { at: self.now, attempt: submission.number },
                    want_dlr: submission.wants_receipts,
                };
                let submitted = dry_run.submit(&submission, self.now)?;
                CaseAnswer::Submitted { outcome: CaseOutcome::of(&submitted), note: note(submitted.note) }
            }
            CaseQuestion::Callback(callback) => {
                let mut answer = dry_run.callback(&callback.request(), self.now)?;
                let why = answer.note.take();
                CaseAnswer::Called { called: CaseCalled::of(answer), note: note(why) }
            }
            CaseQuestion::Read(request) => {
                CaseAnswer::Read(dry_run.read_request(&request.request(), self.now)?.into())
            }
            CaseQuestion::Reply(reply) => {
                let response = dry_run.reply(&reply.request.request(), &reply.outcome, self.now)?;
                CaseAnswer::Replied(response.into())
            }
            CaseQuestion::Settle(settlements) => {
                let settlements: Vec<model::Settlement> = settlements.iter().map(settlement).collect();
                match dry_run.settle(&settlements, self.now)? {
                    Ok(()) => CaseAnswer::Settled,
                    Err(why) => CaseAnswer::Unsettled(why),
                }
            }
        })
    }

    /// The answer of routers about a message from `origin`.
    pub(crate) fn routed(&self, outcome: DryRunOutcome, origin: &str) -> Result<CaseAnswer, Fault> {
        Ok(CaseAnswer::Verdict {
            verdict: self.verdict(outcome.verdict?),
            sender: outcome.sender.map(|request| sender(&request, origin)),
            changes: outcome.changes.as_deref().map(CaseChanges::of).unwrap_or_default(),
            note: outcome.note.map(String::from),
        })
    }

    fn id(&self, name: &str) -> PeerId {
        // All names of a question are in the directory.
        self.directory.id(name).unwrap_or(PeerId(u32::MAX))
    }

    fn name(&self, id: PeerId) -> String {
        self.directory.name(id).to_string()
    }

    fn message(&self, message: &CaseMessage) -> model::Message {
        let nobody = Arc::new(PluginVersion { plugin: String::new(), version: String::new() });
        model::Message {
            service_type: Bytes::from(message.service_type.clone().unwrap_or_default()),
            protocol_id: message.protocol_id,
            esm_class: message.esm_class,
            priority: model::Priority::new(message.priority),
            dlr_request: if message.wants_receipt { DlrRequest::FINAL } else { DlrRequest::NONE },
            tlvs: message.tlvs.octets().into(),
            accepted_at: self.now,
            ..model::Message::new(
                self.id(&message.origin),
                address(&message.source),
                address(&message.destination),
                model::Text {
                    octets: Bytes::from(message.text.octets.clone()),
                    data_coding: message.data_coding,
                    udhi: message.text.udhi,
                    payload: message.text.octets.len() > 254,
                },
                self.now + Duration::from_secs(86_400),
                RoutingDecision::new(model::Verdict::Forward(Vec::new()), nobody),
            )
        }
    }

    fn verdict(&self, verdict: Option<model::Verdict>) -> CaseVerdict {
        match verdict {
            // No router returns the last three.
            None
            | Some(model::Verdict::Quarantine | model::Verdict::AwaitLookup | model::Verdict::Drop(_)) => {
                CaseVerdict::Pass
            }
            Some(model::Verdict::Hold(until)) => CaseVerdict::Hold(until.0),
            Some(model::Verdict::Reject(reason)) => CaseVerdict::Reject(reject_reason(reason)),
            Some(model::Verdict::Forward(legs)) => {
                let home = self.directory.id(HOME_PEER);
                if legs.iter().any(|leg| leg.resolve && Some(leg.peer) == home) {
                    return CaseVerdict::Home;
                }
                CaseVerdict::Forward(legs.into_iter().map(|leg| self.leg(leg)).collect())
            }
        }
    }

    fn leg(&self, leg: model::Leg) -> CaseLeg {
        let to_case_address = |address: model::Address| CaseAddress {
            ton: address.ton,
            npi: address.npi,
            value: address.text().into_owned(),
        };
        CaseLeg {
            peer: self.name(leg.peer),
            rank: leg.rank,
            weight: leg.weight,
            cost: leg.cost,
            longest_wait_ms: leg.longest_wait.map(milliseconds),
            source: leg.source.map(to_case_address),
            destination: leg.destination.map(to_case_address),
        }
    }

    fn resolution(&self, subscriber: model::Subscriber) -> CaseResolution {
        match subscriber {
            model::Subscriber::Found { imsi, peer, valid } => CaseResolution::Found(CaseSubscriber {
                imsi: String::from_utf8_lossy(&imsi.0).into_owned(),
                serving: peer.map(|peer| self.name(peer)),
                valid_ms: valid.map(milliseconds),
            }),
            model::Subscriber::Unknown { valid } => CaseResolution::Unknown(valid.map(milliseconds)),
            model::Subscriber::TryLater { after } => CaseResolution::TryLater(after.map(milliseconds)),
        }
    }

    fn attempt(&self, attempt: &CaseAttempt) -> model::Attempt {
        model::Attempt {
            number: attempt.number,
            leg: (attempt.leg, attempt.legs),
            peer: self.id(&attempt.peer),
            class: match attempt.class {
                CaseErrorClass::Temporary => model::ErrorClass::Temporary,
                CaseErrorClass::Permanent => model::ErrorClass::Permanent,
                CaseErrorClass::Absent => model::ErrorClass::Absent,
                CaseErrorClass::MemoryFull => model::ErrorClass::MemoryFull,
                CaseErrorClass::Throttled => model::ErrorClass::Throttled,
            },
            code: attempt.code,
            age: Duration::from_millis(attempt.age_ms),
            left: Duration::from_millis(attempt.left_ms),
        }
    }
}

/// The answer of a screen.
pub(crate) fn screened(decision: ScreenDecision) -> CaseAnswer {
    CaseAnswer::Screened {
        verdict: screen_verdict(decision.verdict),
        text: decision.text.as_ref().and_then(ports::text::characters),
        changes: decision.changes.as_deref().map(CaseChanges::of).unwrap_or_default(),
        note: decision.note.map(String::from),
    }
}

fn screen_verdict(verdict: model::ScreenVerdict) -> CaseScreenVerdict {
    match verdict {
        model::ScreenVerdict::Pass => CaseScreenVerdict::Pass,
        model::ScreenVerdict::Reject(reason) => CaseScreenVerdict::Reject(reject_reason(reason)),
        model::ScreenVerdict::Quarantine => CaseScreenVerdict::Quarantine,
        model::ScreenVerdict::Drop(shown) => CaseScreenVerdict::Drop(shown.name().to_owned()),
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn address(address: &CaseAddress) -> model::Address {
    model::Address::new(address.ton, address.npi, address.value.as_bytes())
}

fn reject_reason(reason: model::RejectReason) -> String {
    // The WIT names are the serde names.
    match serde_json::to_value(reason) {
        Ok(serde_json::Value::String(word)) => word,
        _ => reason.to_string(),
    }
}

fn sender(request: &model::SenderRequest, origin: &str) -> CaseSender {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    CaseSender {
        pool: request.pool.to_string(),
        otherwise: match request.otherwise {
            model::SenderFallback::Reject => CaseSenderFallback::Reject,
            model::SenderFallback::KeepSender => CaseSenderFallback::KeepSender,
            model::SenderFallback::Hold => CaseSenderFallback::Hold,
        },
        user: text(&request.user),
        // The host inserts the origin if the plugin names no holder.
        holder: text(&request.holder).filter(|holder| holder != origin),
        reason: text(&request.reason),
        lease_ms: request.lease.map(milliseconds),
    }
}

fn advice(advice: PeerAdvice) -> CaseAdvice {
    CaseAdvice { pause_ms: advice.pause.map(milliseconds), rate: advice.rate, window: advice.window }
}

fn step(step: model::NextStep) -> CaseStep {
    match step {
        model::NextStep::RetryAfter(after) => CaseStep::RetryAfter(milliseconds(after)),
        model::NextStep::NextLeg => CaseStep::NextLeg,
        model::NextStep::AwaitAlert(most) => CaseStep::AwaitAlert(milliseconds(most)),
        model::NextStep::Fail => CaseStep::Fail,
    }
}

fn price(charge: Option<model::Charge>) -> CasePrice {
    match charge {
        None => CasePrice::Free,
        Some(charge) => CasePrice::Charge(CaseCharge {
            account: charge.account.to_string(),
            amount: charge.amount,
            keep_on_failure: charge.keep_on_failure,
            settle: charge.settle,
        }),
    }
}

fn settlement(settlement: &CaseSettlement) -> model::Settlement {
    model::Settlement {
        serial: settlement.serial,
        message: MessageId(settlement.message),
        account: settlement.account.as_str().into(),
        amount: settlement.amount,
        captured: settlement.captured,
        at: Timestamp(settlement.at),
    }
}
