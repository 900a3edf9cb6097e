//! The requests of a bound ESME, and the engine's answers to them.

use crate::accounts::Account;
use crate::pdu_to_message::{self, SubmissionContext};
use crate::refusal_status;
use crate::request_context::RequestContext;
use crate::request_token::{RequestKind, pack};
use bytes::Bytes;
use engine::{EngineAnswer, Event};
use model::{Address, MessageId, Refusal, Text};
use ports::{Protocol, RefusalRecord};
use rustc_hash::FxHashMap;
use smpp::{
    CancelSm, CommandStatus, DataSm, Destination, InterfaceVersion, QuerySm, QuerySmResp, ReplaceSm, Request,
    Response, Sm, SubmitMulti, SubmitMultiResp, Unsuccess, tag, time,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A submit_multi that waits for the engine.
#[derive(Debug)]
struct PendingSubmitMulti {
    /// The destinations that were passed to the engine, in order.
    destinations: Vec<Address>,
    /// The destinations refused before that.
    unsuccess: Vec<Unsuccess>,
}

/// One bound session of an account.
#[derive(Debug)]
pub(crate) struct EsmeRequests {
    account: Arc<Account>,
    version: InterfaceVersion,
    pending_multi: FxHashMap<u32, PendingSubmitMulti>,
    next_slot: u32,
    rate_limited_at: Option<Instant>,
}

/// Source and destination of a submission; with several destinations, the first one. `None` for other requests.
fn source_and_destination(request: &Request) -> Option<(Address, Address)> {
    match request {
        Request::SubmitSm(sm) => Some((sm.source.clone(), sm.destination.clone())),
        Request::DataSm(data) => Some((data.source.clone(), data.destination.clone())),
        Request::SubmitMulti(multi) => {
            let first = multi.destinations.iter().find_map(|destination| match destination {
                Destination::Address(address) => Some(address.clone()),
                Destination::List(_) => None,
            });
            Some((multi.sm.source.clone(), first.unwrap_or_default()))
        }
        _ => None,
    }
}

/// Time for which the rate limit is reported as the link's blocker after it took effect.
const RATE_REPORT_PERIOD: Duration = Duration::from_secs(1);

impl EsmeRequests {
    pub(crate) fn new(account: Arc<Account>, version: InterfaceVersion) -> Self {
        Self { account, version, pending_multi: FxHashMap::default(), next_slot: 0, rate_limited_at: None }
    }

    pub(crate) fn is_rate_limited(&self, now: Instant) -> bool {
        self.rate_limited_at.is_some_and(|at| now.saturating_duration_since(at) < RATE_REPORT_PERIOD)
    }

    /// Handles a request: passes it to the engine, or refuses it at once.
    pub(crate) fn request(&mut self, context: &mut RequestContext<'_>, sequence: u32, request: Request) {
        let command = request.command();
        let submitted = source_and_destination(&request);
        let result = match request {
            Request::SubmitSm(sm) => self.submit(context, sequence, sm),
            Request::DataSm(data) => self.submit_data(context, sequence, data),
            Request::SubmitMulti(multi) => self.submit_multi(context, sequence, multi),
            Request::QuerySm(query) => self.query(context, sequence, query),
            Request::CancelSm(cancel) => self.cancel(context, sequence, cancel),
            Request::ReplaceSm(replace) => self.replace(context, sequence, replace),
            // Broadcast is not supported. SMPP 3.4 requires its own response for that, not a generic_nack.
            _ => Err(CommandStatus::RINVCMDID),
        };
        if let Err(status) = result {
            if let Some((source, destination)) = submitted {
                let (code, reason) = (refusal_status::refusal_code(status), status.to_string().into());
                let (at, protocol) = (context.link.wall, Protocol::Smpp);
                let refused = RefusalRecord { at, protocol, source, destination, code, reason };
                context.link.deps.registry.refusals().record(self.account.options().peer, refused, 1);
            }
            context.respond(command, sequence, status, &Response::Empty);
        }
    }

    fn check_rate(&mut self, now: Instant, segments: u32) -> Result<(), CommandStatus> {
        if self.account.limits.take(segments, now) {
            return Ok(());
        }
        self.rate_limited_at = Some(now);
        Err(CommandStatus::RTHROTTLED)
    }

    fn submit(
        &mut self,
        context: &mut RequestContext<'_>,
        sequence: u32,
        sm: Sm,
    ) -> Result<(), CommandStatus> {
        if sm.destination.is_empty() {
            return Err(CommandStatus::RINVDSTADR);
        }
        let options = self.account.options();
        let submission =
            SubmissionContext { options: &options, version: self.version, wall: context.link.wall };
        let message = submission.message_from_submit(sm)?;
        self.check_rate(
            context.link.now,
            pdu_to_message::segment_count(&message.text.octets, message.text.data_coding),
        )?;
        context.link.accept(message, pack(RequestKind::SubmitSm, 0, sequence));
        Ok(())
    }

    fn submit_data(
        &mut self,
        context: &mut RequestContext<'_>,
        sequence: u32,
        data: DataSm,
    ) -> Result<(), CommandStatus> {
        if data.destination.is_empty() {
            return Err(CommandStatus::RINVDSTADR);
        }
        let options = self.account.options();
        let submission =
            SubmissionContext { options: &options, version: self.version, wall: context.link.wall };
        let message = submission.message_from_data(data)?;
        self.check_rate(
            context.link.now,
            pdu_to_message::segment_count(&message.text.octets, message.text.data_coding),
        )?;
        context.link.accept(message, pack(RequestKind::DataSm, 0, sequence));
        Ok(())
    }

    fn submit_multi(
        &mut self,
        context: &mut RequestContext<'_>,
        sequence: u32,
        multi: SubmitMulti,
    ) -> Result<(), CommandStatus> {
        let options = self.account.options();
        let submission =
            SubmissionContext { options: &options, version: self.version, wall: context.link.wall };
        if multi.sm.replace_if_present != 0 {
            return Err(CommandStatus::RINVREPFLAG);
        }
        let template = submission.message_from_submit(multi.sm)?;
        let segments = pdu_to_message::segment_count(&template.text.octets, template.text.data_coding);
        let mut pending_multi = PendingSubmitMulti { destinations: Vec::new(), unsuccess: Vec::new() };
        for destination in multi.destinations {
            match destination {
                Destination::Address(address) if address.is_empty() => {
                    pending_multi.unsuccess.push(Unsuccess { address, status: CommandStatus::RINVDSTADR });
                }
                Destination::Address(address) => pending_multi.destinations.push(address),
                // There are no distribution lists, so every list name is unknown.
                Destination::List(name) => pending_multi.unsuccess.push(Unsuccess {
                    address: Address::new(0, 0, &name),
                    status: CommandStatus::RINVDLNAME,
                }),
            }
        }
        let count = u32::try_from(pending_multi.destinations.len()).unwrap_or(u32::MAX);
        self.check_rate(context.link.now, segments.saturating_mul(count))?;
        if pending_multi.destinations.is_empty() {
            return Err(pending_multi
                .unsuccess
                .first()
                .map_or(CommandStatus::RINVNUMDESTS, |first| first.status));
        }
        let messages = pending_multi
            .destinations
            .iter()
            .map(|destination| model::Message { destination: destination.clone(), ..template.clone() })
            .collect();
        let slot = self.next_slot;
        self.next_slot = (slot + 1) & 0xFF_FFFF;
        self.pending_multi.insert(slot, pending_multi);
        context.link.accept_many(messages, true, None, pack(RequestKind::SubmitMulti, slot, sequence));
        Ok(())
    }

    /// Reads a message id from an ESME: eight characters on links older than 3.4, decimal digits on all others.
    fn message_id(&self, raw: &[u8], partition: u8) -> Result<MessageId, CommandStatus> {
        let text = std::str::from_utf8(raw).map_err(|_| CommandStatus::RINVMSGID)?;
        let id = match self.version.takes_tlvs() {
            true => text.parse().ok(),
            false => MessageId::from_short(text, partition),
        };
        id.ok_or(CommandStatus::RINVMSGID)
    }

    fn query(
        &self,
        context: &mut RequestContext<'_>,
        sequence: u32,
        query: QuerySm,
    ) -> Result<(), CommandStatus> {
        let options = self.account.options();
        let submission =
            SubmissionContext { options: &options, version: self.version, wall: context.link.wall };
        context.link.events.push(Event::Query {
            origin: options.peer,
            id: self.message_id(&query.message_id, context.link.deps.registry.partition())?,
            source: Some(submission.source_or_default(query.source)),
            reply: context.link.reply(pack(RequestKind::QuerySm, 0, sequence)),
        });
        Ok(())
    }

    fn cancel(
        &self,
        context: &mut RequestContext<'_>,
        sequence: u32,
        cancel: CancelSm,
    ) -> Result<(), CommandStatus> {
        let options = self.account.options();
        let submission =
            SubmissionContext { options: &options, version: self.version, wall: context.link.wall };
        let source = submission.source_or_default(cancel.source);
        let reply = context.link.reply(pack(RequestKind::CancelSm, 0, sequence));
        let event = if cancel.message_id.is_empty() {
            Event::CancelMatching {
                origin: options.peer,
                source,
                destination: cancel.destination,
                service_type: Bytes::copy_from_slice(&cancel.service_type),
                reply,
            }
        } else {
            let id = self.message_id(&cancel.message_id, context.link.deps.registry.partition())?;
            let destination = Some(cancel.destination).filter(|destination| !destination.is_empty());
            Event::Cancel { origin: options.peer, id, source: Some(source), destination, reply }
        };
        context.link.events.push(event);
        Ok(())
    }

    fn replace(
        &self,
        context: &mut RequestContext<'_>,
        sequence: u32,
        replace: ReplaceSm,
    ) -> Result<(), CommandStatus> {
        if replace.sm_default_msg_id != 0 {
            return Err(CommandStatus::RINVDFTMSGID);
        }
        let options = self.account.options();
        let submission =
            SubmissionContext { options: &options, version: self.version, wall: context.link.wall };
        let payload = replace.tlvs.get(tag::MESSAGE_PAYLOAD);
        let octets = match (&payload, replace.short_message.is_empty()) {
            (Some(_), false) => return Err(CommandStatus::RINVMSGLEN),
            (Some(payload), true) => payload,
            (None, _) => &replace.short_message,
        };
        context.link.events.push(Event::Replace {
            origin: options.peer,
            id: self.message_id(&replace.message_id, context.link.deps.registry.partition())?,
            source: submission.source_or_default(replace.source),
            text: Text {
                octets: Bytes::copy_from_slice(octets),
                data_coding: 0,
                udhi: false,
                payload: payload.is_some(),
            },
            scheduled: submission.scheduled(&replace.schedule_delivery_time)?,
            expires_at: submission.expires(&replace.validity_period)?,
            dlr_request: pdu_to_message::requested_dlrs(replace.registered_delivery, self.version),
            reply: context.link.reply(pack(RequestKind::ReplaceSm, 0, sequence)),
        });
        Ok(())
    }

    fn message_id_text(&self, id: MessageId) -> Bytes {
        if self.version.takes_tlvs() { Bytes::from(id.to_string()) } else { Bytes::from(id.short()) }
    }

    /// Sends the engine's answer to the ESME.
    pub(crate) fn answer(
        &mut self,
        context: &mut RequestContext<'_>,
        kind: RequestKind,
        slot: u32,
        sequence: u32,
        answer: EngineAnswer,
    ) {
        let (status, response) = match answer {
            EngineAnswer::Accepted(id) => (CommandStatus::ROK, Response::id(self.message_id_text(id))),
            EngineAnswer::Done | EngineAnswer::DlrRecorded => (CommandStatus::ROK, Response::Empty),
            EngineAnswer::Refused(refusal) => (refusal_status_of(kind, refusal), Response::Empty),
            EngineAnswer::State(state) => {
                let final_date = state.final_at.map_or_else(Bytes::new, |at| Bytes::from(time::format(at)));
                let query = QuerySmResp {
                    message_id: self.message_id_text(state.id),
                    final_date,
                    message_state: state.state as u8,
                    error_code: state.error,
                };
                (CommandStatus::ROK, Response::Query(query))
            }
            EngineAnswer::AcceptedMany(results) => match self.pending_multi.remove(&slot) {
                Some(pending_multi) => self.multi_response(pending_multi, results),
                None => (CommandStatus::RSYSERR, Response::Empty),
            },
            // Answers to requests that an ESME cannot send.
            EngineAnswer::Ledger(_)
            | EngineAnswer::Pool(_)
            | EngineAnswer::Pools(_)
            | EngineAnswer::QueueAction(_)
            | EngineAnswer::QueueActionRefused(_) => (CommandStatus::RSYSERR, Response::Empty),
        };
        context.respond(kind.command(), sequence, status, &response);
    }

    /// Makes a submit_multi_resp: status 0 if at least one destination was accepted. The message id is the id of the
    /// first accepted message; it applies to all of them (34 §4.5.2).
    fn multi_response(
        &self,
        pending_multi: PendingSubmitMulti,
        results: Vec<Result<MessageId, Refusal>>,
    ) -> (CommandStatus, Response) {
        let mut unsuccess = pending_multi.unsuccess;
        let mut first = None;
        for (address, result) in pending_multi.destinations.into_iter().zip(results) {
            match result {
                Ok(id) => {
                    first.get_or_insert(id);
                }
                Err(refusal) => {
                    unsuccess.push(Unsuccess { address, status: refusal_status::submit_status(refusal) });
                }
            }
        }
        match first {
            Some(id) => {
                let multi =
                    SubmitMultiResp { message_id: self.message_id_text(id), unsuccess, ..Default::default() };
                (CommandStatus::ROK, Response::SubmitMulti(multi))
            }
            None => {
                let status = unsuccess.first().map_or(CommandStatus::RSYSERR, |entry| entry.status);
                (status, Response::Empty)
            }
        }
    }
}

fn refusal_status_of(kind: RequestKind, refusal: Refusal) -> CommandStatus {
    match (kind, refusal) {
        (RequestKind::CancelSm, Refusal::WrongState) => CommandStatus::RCANCELFAIL,
        (RequestKind::ReplaceSm, Refusal::WrongState) => CommandStatus::RREPLACEFAIL,
        (RequestKind::QuerySm, Refusal::WrongState) => CommandStatus::RQUERYFAIL,
        _ => refusal_status::submit_status(refusal),
    }
}
