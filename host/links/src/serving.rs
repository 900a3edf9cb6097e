//! An ESME's requests, and the engine's answers to them.

use crate::accounts::{Account, Seat};
use crate::refusal;
use crate::reply::{Asked, pack};
use crate::scope::Scope;
use crate::submission::{self, Submitter};
use bytes::Bytes;
use doors::{Protocol, Refused};
use engine::{Answer, Event};
use model::{Address, MessageId, Refusal, Text};
use rustc_hash::FxHashMap;
use smpp::{
    CancelSm, DataSm, Destination, QuerySm, QuerySmResp, ReplaceSm, Request, Response, Sm, Status,
    SubmitMulti, SubmitMultiResp, Unsuccess, Version, tag, time,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A submit_multi that waits for the engine.
#[derive(Debug)]
struct Many {
    /// The destinations that went to the engine, in order.
    destinations: Vec<Address>,
    /// Those that did not.
    unsuccess: Vec<Unsuccess>,
}

/// One bound session of an account.
#[derive(Debug)]
pub(crate) struct Serving {
    account: Arc<Account>,
    _seat: Seat,
    version: Version,
    many: FxHashMap<u32, Many>,
    next_slot: u32,
    rate_hit: Option<Instant>,
}

/// Sender and addressee of a submission, of several addressees the first; nothing of other requests.
fn addresses(request: &Request) -> Option<(Address, Address)> {
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

/// How long running into the account's rate counts as what brakes the link.
const RATE_SHOWN: Duration = Duration::from_secs(1);

impl Serving {
    pub(crate) fn new(account: Arc<Account>, seat: Seat, version: Version) -> Self {
        Self { account, _seat: seat, version, many: FxHashMap::default(), next_slot: 0, rate_hit: None }
    }

    /// The ESME has shown the sign of life that it was asked for.
    pub(crate) fn lives(&self) {
        self.account.lives();
    }

    pub(crate) fn hit_its_rate(&self, now: Instant) -> bool {
        self.rate_hit.is_some_and(|at| now.saturating_duration_since(at) < RATE_SHOWN)
    }

    /// Takes a request: to the engine, or answered at once where it is refused here.
    pub(crate) fn request(&mut self, scope: &mut Scope<'_>, sequence: u32, request: Request) {
        let command = request.command();
        let submitted = addresses(&request);
        let taken = match request {
            Request::SubmitSm(sm) => self.submit(scope, sequence, sm),
            Request::DataSm(data) => self.data(scope, sequence, data),
            Request::SubmitMulti(multi) => self.submit_multi(scope, sequence, multi),
            Request::QuerySm(query) => self.query(scope, sequence, query),
            Request::CancelSm(cancel) => self.cancel(scope, sequence, cancel),
            Request::ReplaceSm(replace) => self.replace(scope, sequence, replace),
            // Broadcast is not offered; by the letter of 3.4 its own answer says so, and no generic_nack.
            _ => Err(Status::RINVCMDID),
        };
        if let Err(status) = taken {
            if let Some((source, destination)) = submitted {
                let (code, reason) = (refusal::code_of(status), status.to_string().into());
                let (at, protocol) = (scope.wall, Protocol::Smpp);
                let refused = Refused { at, protocol, source, destination, code, reason };
                scope.shared.hub.refusals().record(self.account.options().peer, refused, 1);
            }
            scope.respond(command, sequence, status, &Response::Empty);
        }
    }

    fn paid(&mut self, now: Instant, parts: u32) -> Result<(), Status> {
        if self.account.take(parts, now) {
            return Ok(());
        }
        self.rate_hit = Some(now);
        Err(Status::RTHROTTLED)
    }

    fn submit(&mut self, scope: &mut Scope<'_>, sequence: u32, sm: Sm) -> Result<(), Status> {
        if sm.destination.is_empty() {
            return Err(Status::RINVDSTADR);
        }
        let options = self.account.options();
        let submitter = Submitter { options: &options, version: self.version, wall: scope.wall };
        let message = submitter.submit(sm)?;
        self.paid(scope.now, submission::parts(&message.text.octets, message.text.data_coding))?;
        scope.accept(message, pack(Asked::SubmitSm, 0, sequence));
        Ok(())
    }

    fn data(&mut self, scope: &mut Scope<'_>, sequence: u32, data: DataSm) -> Result<(), Status> {
        if data.destination.is_empty() {
            return Err(Status::RINVDSTADR);
        }
        let options = self.account.options();
        let submitter = Submitter { options: &options, version: self.version, wall: scope.wall };
        let message = submitter.data(data)?;
        self.paid(scope.now, submission::parts(&message.text.octets, message.text.data_coding))?;
        scope.accept(message, pack(Asked::DataSm, 0, sequence));
        Ok(())
    }

    fn submit_multi(
        &mut self,
        scope: &mut Scope<'_>,
        sequence: u32,
        multi: SubmitMulti,
    ) -> Result<(), Status> {
        let options = self.account.options();
        let submitter = Submitter { options: &options, version: self.version, wall: scope.wall };
        if multi.sm.replace_if_present != 0 {
            return Err(Status::RINVREPFLAG);
        }
        let template = submitter.submit(multi.sm)?;
        let parts = submission::parts(&template.text.octets, template.text.data_coding);
        let mut many = Many { destinations: Vec::new(), unsuccess: Vec::new() };
        for destination in multi.destinations {
            match destination {
                Destination::Address(address) if address.is_empty() => {
                    many.unsuccess.push(Unsuccess { address, status: Status::RINVDSTADR });
                }
                Destination::Address(address) => many.destinations.push(address),
                // We keep no distribution lists, so none is known.
                Destination::List(name) => many
                    .unsuccess
                    .push(Unsuccess { address: Address::new(0, 0, &name), status: Status::RINVDLNAME }),
            }
        }
        let count = u32::try_from(many.destinations.len()).unwrap_or(u32::MAX);
        self.paid(scope.now, parts.saturating_mul(count))?;
        if many.destinations.is_empty() {
            return Err(many.unsuccess.first().map_or(Status::RINVNUMDESTS, |first| first.status));
        }
        let messages = many
            .destinations
            .iter()
            .map(|destination| {
                let message = model::Message { destination: destination.clone(), ..template.clone() };
                scope.routed(message)
            })
            .collect();
        let slot = self.next_slot;
        self.next_slot = (slot + 1) & 0xFF_FFFF;
        self.many.insert(slot, many);
        let reply = scope.reply(pack(Asked::SubmitMulti, slot, sequence));
        scope.events.push(Event::AcceptMany { messages, shared_id: true, key: None, reply });
        Ok(())
    }

    /// The id that an ESME shows us: eight characters on links older than 3.4, decimal digits on all others.
    fn message_id(&self, raw: &[u8]) -> Result<MessageId, Status> {
        let text = std::str::from_utf8(raw).map_err(|_| Status::RINVMSGID)?;
        let id = if self.version.takes_tlvs() { text.parse().ok() } else { MessageId::from_short(text) };
        id.ok_or(Status::RINVMSGID)
    }

    fn query(&self, scope: &mut Scope<'_>, sequence: u32, query: QuerySm) -> Result<(), Status> {
        let options = self.account.options();
        let submitter = Submitter { options: &options, version: self.version, wall: scope.wall };
        scope.events.push(Event::Query {
            origin: options.peer,
            id: self.message_id(&query.message_id)?,
            source: Some(submitter.or_default(query.source)),
            reply: scope.reply(pack(Asked::QuerySm, 0, sequence)),
        });
        Ok(())
    }

    fn cancel(&self, scope: &mut Scope<'_>, sequence: u32, cancel: CancelSm) -> Result<(), Status> {
        let options = self.account.options();
        let submitter = Submitter { options: &options, version: self.version, wall: scope.wall };
        let source = submitter.or_default(cancel.source);
        let reply = scope.reply(pack(Asked::CancelSm, 0, sequence));
        let event = if cancel.message_id.is_empty() {
            Event::CancelMatching {
                origin: options.peer,
                source,
                destination: cancel.destination,
                service_type: Bytes::copy_from_slice(&cancel.service_type),
                reply,
            }
        } else {
            let id = self.message_id(&cancel.message_id)?;
            let destination = Some(cancel.destination).filter(|destination| !destination.is_empty());
            Event::Cancel { origin: options.peer, id, source: Some(source), destination, reply }
        };
        scope.events.push(event);
        Ok(())
    }

    fn replace(&self, scope: &mut Scope<'_>, sequence: u32, replace: ReplaceSm) -> Result<(), Status> {
        if replace.sm_default_msg_id != 0 {
            return Err(Status::RINVDFTMSGID);
        }
        let options = self.account.options();
        let submitter = Submitter { options: &options, version: self.version, wall: scope.wall };
        let payload = replace.tlvs.get(tag::MESSAGE_PAYLOAD);
        let octets = match (&payload, replace.short_message.is_empty()) {
            (Some(_), false) => return Err(Status::RINVMSGLEN),
            (Some(payload), true) => payload,
            (None, _) => &replace.short_message,
        };
        scope.events.push(Event::Replace {
            origin: options.peer,
            id: self.message_id(&replace.message_id)?,
            source: submitter.or_default(replace.source),
            text: Text {
                octets: Bytes::copy_from_slice(octets),
                data_coding: 0,
                udhi: false,
                payload: payload.is_some(),
            },
            scheduled: submitter.scheduled(&replace.schedule_delivery_time)?,
            expires_at: submitter.expires(&replace.validity_period)?,
            receipts: submission::receipts(replace.registered_delivery, self.version),
            reply: scope.reply(pack(Asked::ReplaceSm, 0, sequence)),
        });
        Ok(())
    }

    fn shown(&self, id: MessageId) -> Bytes {
        if self.version.takes_tlvs() { Bytes::from(id.to_string()) } else { Bytes::from(id.short()) }
    }

    /// Brings the engine's answer to the ESME.
    pub(crate) fn answer(
        &mut self,
        scope: &mut Scope<'_>,
        asked: Asked,
        slot: u32,
        sequence: u32,
        answer: Answer,
    ) {
        let (status, response) = match answer {
            Answer::Accepted(id) => (Status::ROK, Response::id(self.shown(id))),
            Answer::Done | Answer::ReceiptTaken => (Status::ROK, Response::Empty),
            Answer::Refused(refusal) => (refused(asked, refusal), Response::Empty),
            Answer::State(state) => {
                let final_date = state.final_at.map_or_else(Bytes::new, |at| Bytes::from(time::format(at)));
                let query = QuerySmResp {
                    message_id: self.shown(state.id),
                    final_date,
                    message_state: state.state as u8,
                    error_code: state.error,
                };
                (Status::ROK, Response::Query(query))
            }
            Answer::AcceptedMany(results) => match self.many.remove(&slot) {
                Some(many) => self.summed_up(many, results),
                None => (Status::RSYSERR, Response::Empty),
            },
            // No ESME asks for it.
            Answer::Ledger(_)
            | Answer::Pool(_)
            | Answer::Pools(_)
            | Answer::Order(_)
            | Answer::OrderRefused(_) => (Status::RSYSERR, Response::Empty),
        };
        scope.respond(asked.command(), sequence, status, &response);
    }

    /// submit_multi_resp: status 0 when at least one destination was taken. The id is that of the first message that was accepted,
    /// and stands for all of them (34 §4.5.2).
    fn summed_up(&self, many: Many, results: Vec<Result<MessageId, Refusal>>) -> (Status, Response) {
        let mut unsuccess = many.unsuccess;
        let mut first = None;
        for (address, result) in many.destinations.into_iter().zip(results) {
            match result {
                Ok(id) => {
                    first.get_or_insert(id);
                }
                Err(refusal) => {
                    unsuccess.push(Unsuccess { address, status: refusal::of_submission(refusal) });
                }
            }
        }
        match first {
            Some(id) => {
                let multi = SubmitMultiResp { message_id: self.shown(id), unsuccess, ..Default::default() };
                (Status::ROK, Response::SubmitMulti(multi))
            }
            None => {
                let status = unsuccess.first().map_or(Status::RSYSERR, |entry| entry.status);
                (status, Response::Empty)
            }
        }
    }
}

fn refused(asked: Asked, refusal: Refusal) -> Status {
    match (asked, refusal) {
        (Asked::CancelSm, Refusal::WrongState) => Status::RCANCELFAIL,
        (Asked::ReplaceSm, Refusal::WrongState) => Status::RREPLACEFAIL,
        (Asked::QuerySm, Refusal::WrongState) => Status::RQUERYFAIL,
        _ => refusal::of_submission(refusal),
    }
}
