//! Incoming requests: Deliver from gateways, Submit from SPs.

use super::LinkedProtocol;
use super::mapping::{self, SubmitRules};
use super::options::SpGatewayOptions;
use super::outgoing::LinkPeer;
use super::state::SpLogin;
use crate::pending_answers::{PendingAnswer, PendingAnswers};
use crate::shared::Shared;
use bytes::Bytes;
use engine::{EngineAnswer, Event};
use model::{Address, IdempotencyKey, Message, Refusal, Timestamp};
use ports::link::{Link, PduKind};
use ports::{RefusalRecord, clock};
use rustc_hash::{FxHashMap, FxHasher};
use sp_session::{Delivery, Meaning, Session, Submission};
use std::hash::Hasher as _;
use std::time::Duration;

/// Time for which a gateway may repeat a Deliver, with the same id.
const DELIVER_MEMORY: Duration = Duration::from_secs(72 * 3600);

/// Requests of the peer that wait for the engine.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    pending: PendingAnswers,
    /// Message ids for the answers, by the sequence id of the request: the id of a Submit's first message, or of a
    /// Deliver.
    ids: FxHashMap<u32, Bytes>,
}

impl Incoming {
    /// Handles one request.
    pub(super) fn on_request<P: LinkedProtocol>(
        &mut self,
        session: &mut Session<P>,
        link_peer: &LinkPeer,
        shared: &Shared,
        link: &mut Link,
        sequence: u32,
        pdu: &P::Pdu,
    ) {
        let answer = match (link_peer, P::meaning(pdu)) {
            (LinkPeer::Gateway(options), Meaning::Deliver(delivery)) => {
                link.record.inbound.count(PduKind::Deliver);
                self.ids.insert(sequence, delivery.id.clone());
                deliver(link, options, &delivery, sequence);
                Ok(PendingAnswer::EngineAnswer)
            }
            (LinkPeer::Gateway(options), Meaning::Report(report)) => {
                link.record.inbound.count(PduKind::Report);
                self.ids.insert(sequence, report.id.clone());
                let reply = link.reply(u64::from(sequence));
                let dlr = mapping::dlr_from_report(&report);
                link.events.push(Event::Dlr { peer: options.peer, dlr, reply });
                Ok(PendingAnswer::EngineAnswer)
            }
            (LinkPeer::Sp(sp), Meaning::Submit(submission)) => {
                link.record.inbound.count(PduKind::Submit);
                submit::<P>(shared, sp, link, &submission, sequence)
                    .inspect_err(|status| record_refusal::<P>(link, sp, &submission, *status))
                    .map(|(first_id, messages)| {
                        self.ids.insert(sequence, first_id);
                        PendingAnswer::Submit(messages)
                    })
            }
            _ => {
                link.record.inbound.count(PduKind::Other);
                Err(P::STATUS.command)
            }
        };
        match answer {
            Ok(pending) => self.pending.add(u64::from(sequence), pending),
            Err(status) => {
                link.record.outbound.count_answer(status);
                session.refuse(sequence, status, status != P::STATUS.throttled);
            }
        }
    }

    /// Answers a request with the engine's answer.
    pub(super) fn on_engine_answer<P: LinkedProtocol>(
        &mut self,
        session: &mut Session<P>,
        link_peer: &LinkPeer,
        link: &mut Link,
        token: u64,
        answer: EngineAnswer,
    ) {
        let version = session.version();
        let code = |refusal: Refusal| P::status_of(refusal, version);
        let (events, answered) = self.pending.on_engine_answer(link.id(), token, answer, code);
        link.events.extend(events);
        let Some((number, status)) = answered else { return };
        let Ok(sequence) = u32::try_from(number) else { return };
        link.record.outbound.count_answer(status);
        let id = self.ids.remove(&sequence).unwrap_or_default();
        let pdu = match (link_peer, status) {
            (LinkPeer::Gateway(_), _) => P::deliver_answer(&id, status),
            (LinkPeer::Sp(_), 0) => P::submit_answer(&id, 0),
            (LinkPeer::Sp(_), _) => P::submit_answer(&[], status),
        };
        // A temporarily refused request may be sent again with the same sequence id.
        session.respond(sequence, &pdu, status != P::STATUS.throttled);
    }
}

/// Passes on a gateway's message. If the gateway repeats it, on this connection or another one, it is accepted only
/// once.
fn deliver(link: &mut Link, options: &SpGatewayOptions, delivery: &Delivery, sequence: u32) {
    let mut hasher = FxHasher::default();
    for part in [&delivery.source, &delivery.destination, &delivery.content.octets] {
        hasher.write(part);
        hasher.write_u8(0xFF);
    }
    let digest = hasher.finish();
    // Some gateways give all messages the same id, so the content is part of the key.
    let mut octets = delivery.id.to_vec();
    octets.extend_from_slice(&digest.to_be_bytes());
    let key = IdempotencyKey {
        octets: octets.as_slice().into(),
        digest,
        required: false,
        lifetime: Some(DELIVER_MEMORY),
    };
    let message = mapping::mo_from_delivery(delivery, options, link.wall);
    link.accept_many(vec![message], false, Some(key), u64::from(sequence));
}

/// Passes on an SP's message. Returns the id of the first message; and the messages if there are several. A single
/// message needs no Report, since the answer refuses it.
fn submit<P: LinkedProtocol>(
    shared: &Shared,
    sp: &SpLogin,
    link: &mut Link,
    submission: &Submission,
    sequence: u32,
) -> Result<(Bytes, Vec<Message>), u32> {
    let rules = sp.account.options();
    let source = match &rules.source.default {
        Some(default) if submission.source.is_empty() => default.clone(),
        _ => Address::new(0, 1, &submission.source),
    };
    if source.is_empty() || !rules.source.allows(&source.value) {
        return Err(P::STATUS.source);
    }
    let state = P::state(shared);
    let from = SubmitRules {
        origin: rules.peer,
        validity: rules.validity,
        node: &sp.options.node,
        status: &P::STATUS,
        references: &state.references,
        wall: Timestamp::now(),
        now: link.now,
    };
    let first_id = state.ids.first_of::<P>(submission.destinations.len(), sp.options.gateway_code, from.wall);
    let mut messages = from.messages::<P>(submission, &source, &first_id)?;
    if !sp.account.limits.take(u32::try_from(messages.len()).unwrap_or(u32::MAX), clock::now()) {
        return Err(P::STATUS.throttled);
    }
    if messages.len() == 1 {
        link.accept_many(messages, false, None, u64::from(sequence));
        return Ok((first_id, Vec::new()));
    }
    link.route(&mut messages);
    let reply = link.reply(u64::from(sequence));
    link.events.push(Event::AcceptMany { messages: messages.clone(), shared_id: false, key: None, reply });
    Ok((first_id, messages))
}

/// Counts a Submit that is refused before the engine sees it.
fn record_refusal<P: LinkedProtocol>(link: &Link, sp: &SpLogin, submission: &Submission, status: u32) {
    let word = if status == P::STATUS.throttled { Refusal::Throttled.name() } else { "invalid" };
    let destination =
        submission.destinations.first().map(|user| Address::new(0, 1, user)).unwrap_or_default();
    let refused = RefusalRecord {
        at: Timestamp::now(),
        protocol: P::PROTOCOL,
        source: Address::new(0, 1, &submission.source),
        destination,
        code: word,
        reason: format!("{status}: {}", P::status_text(status)).into(),
    };
    link.deps.registry.refusals().record(sp.account.options().peer, refused, 1);
}
