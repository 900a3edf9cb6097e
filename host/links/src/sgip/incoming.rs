//! Incoming commands: Deliver and Report from gateways, Submit from SPs.

use super::mapping::{self, SubmitContext};
use super::options::{GatewayOptions, SpOptions};
use crate::accounts::Account;
use engine::{EngineAnswer, Event, ReplyTo};
use model::{
    Address, FinalRecord, FinalState, IdempotencyKey, LinkId, Message, PeerId, PeerMessageId, Refusal,
    Timestamp,
};
use ports::link::{Link, LinkDeps};
use ports::{Protocol, RefusalRecord, clock};
use sgip::{Dialect, Pdu, ResultCode, Sequence, SgipCommand, Submit};
use smpp::BindMode;
use std::collections::HashMap;
use std::sync::Arc;

/// The sender of the commands on an incoming connection.
#[derive(Debug)]
pub(crate) enum IncomingSource {
    /// A gateway of an operator.
    Gateway { options: Arc<GatewayOptions> },
    /// An SP with an account.
    Sp { account: Arc<Account>, options: Arc<SpOptions> },
}

/// What must arrive before a command is answered.
#[derive(Debug)]
pub(super) enum PendingAnswer {
    /// One answer of the engine.
    EngineAnswer,
    /// The engine's answer to a Submit. Each refused message of it then gets a Report.
    Submit(Vec<Message>),
}

impl IncomingSource {
    pub(super) fn peer(&self) -> PeerId {
        match self {
            Self::Gateway { options } => options.peer,
            Self::Sp { account, .. } => account.limits.peer(),
        }
    }

    pub(super) fn accepts(&self) -> Vec<SgipCommand> {
        match self {
            Self::Gateway { .. } => vec![SgipCommand::Deliver, SgipCommand::Report, SgipCommand::UserReport],
            Self::Sp { .. } => vec![SgipCommand::Submit],
        }
    }

    pub(super) fn mode(&self) -> BindMode {
        match self {
            Self::Gateway { .. } => BindMode::Receiver,
            Self::Sp { .. } => BindMode::Transmitter,
        }
    }

    fn dialect(&self) -> Dialect {
        match self {
            Self::Gateway { options, .. } => options.node.quirks.dialect,
            Self::Sp { options, .. } => options.node.quirks.dialect,
        }
    }

    pub(super) fn version(&self) -> u8 {
        super::version(self.dialect())
    }

    /// Handles one command. Returns what must arrive before the command is answered. `number` is its token.
    pub(super) fn on_command(
        &self,
        link: &mut Link,
        number: u64,
        sequence: Sequence,
        pdu: Pdu,
    ) -> Result<PendingAnswer, ResultCode> {
        link.record.inbound.count(super::kind(&pdu));
        let reply = link.reply(number);
        let digest = mapping::digest(&pdu);
        let key = IdempotencyKey {
            octets: sequence.octets().as_slice().into(),
            digest,
            required: false,
            lifetime: None,
        };
        match (self, pdu) {
            (Self::Gateway { options, .. }, Pdu::Deliver(deliver)) => {
                let messages = vec![link.routed(mapping::mo_from_deliver(&deliver, options, link.wall))];
                link.events.push(Event::AcceptMany { messages, shared_id: false, key: Some(key), reply });
                Ok(PendingAnswer::EngineAnswer)
            }
            (Self::Gateway { options, .. }, Pdu::Report(report)) => {
                // A Report about a forwarded Deliver; we forward none.
                if report.report_type != 0 {
                    return Err(ResultCode::OK);
                }
                let dlr = super::dlr::dlr_from_report(&report);
                link.events.push(Event::Dlr { peer: options.peer, dlr, reply });
                Ok(PendingAnswer::EngineAnswer)
            }
            (Self::Gateway { options, .. }, Pdu::UserReport(report)) => {
                let user = Address::new(0, 1, &report.user);
                tracing::info!(
                    gateway = %options.name, user = %user.masked(), condition = report.condition,
                    "subscriber state changed"
                );
                Err(ResultCode::OK)
            }
            (Self::Sp { account, options, .. }, Pdu::Submit(submit)) => {
                let messages = messages_from_submit(account, options, &submit, sequence);
                let messages =
                    messages.inspect_err(|code| record_refusal(&link.deps, account, &submit, *code))?;
                let messages: Vec<Message> =
                    messages.into_iter().map(|message| link.routed(message)).collect();
                let accepted = messages.clone();
                link.events.push(Event::AcceptMany {
                    messages: accepted,
                    shared_id: false,
                    key: Some(key),
                    reply,
                });
                Ok(PendingAnswer::Submit(messages))
            }
            _ => Err(ResultCode::MESSAGE_ID),
        }
    }
}

/// Counts a Submit that is refused before the engine sees it.
fn record_refusal(deps: &LinkDeps, account: &Account, submit: &Submit, code: ResultCode) {
    let word = match code {
        ResultCode::FLOW | ResultCode(33) => Refusal::Throttled.name(),
        _ => "invalid",
    };
    let destination = submit.users.first().map(|user| Address::new(0, 1, user)).unwrap_or_default();
    let refused = RefusalRecord {
        at: Timestamp::now(),
        protocol: Protocol::Sgip,
        source: Address::new(0, 1, &submit.sp_number),
        destination,
        code: word,
        reason: format!("SGIP result {code}").into(),
    };
    deps.registry.refusals().record(account.options().peer, refused, 1);
}

/// Makes the messages of an SP's Submit, according to the rules of its account.
fn messages_from_submit(
    account: &Account,
    options: &SpOptions,
    submit: &Submit,
    sequence: Sequence,
) -> Result<Vec<Message>, ResultCode> {
    let rules = account.options();
    let source = match &rules.source.default {
        Some(default) if submit.sp_number.is_empty() => default.clone(),
        _ => Address::new(0, 1, &submit.sp_number),
    };
    if source.is_empty() || !rules.source.allows(&source.value) {
        return Err(ResultCode::PARAMETER);
    }
    let from = SubmitContext {
        origin: rules.peer,
        validity: rules.validity,
        quirks: &options.node.quirks,
        wall: Timestamp::now(),
    };
    let messages = from.messages(submit, sequence, &source)?;
    if !account.limits.take(u32::try_from(messages.len()).unwrap_or(u32::MAX), clock::now()) {
        return Err(match options.node.quirks.dialect {
            Dialect::V12 => ResultCode::FLOW,
            Dialect::V13 => ResultCode(33),
        });
    }
    Ok(messages)
}

/// Set in the tokens of the Reports of a Submit that is refused in part.
const REPORT: u64 = 1 << 48;

/// Commands that wait for the engine, by number.
#[derive(Debug, Default)]
pub(super) struct PendingAnswers {
    waiting: HashMap<u64, PendingAnswer>,
    /// The number of Reports that must be durable before their Submit is answered.
    reports: HashMap<u64, usize>,
}

impl PendingAnswers {
    pub(super) fn add(&mut self, number: u64, pending: PendingAnswer) {
        self.waiting.insert(number, pending);
    }

    /// Handles the engine's answer. Returns further events for the engine, and the command that can now be answered,
    /// with its code.
    pub(super) fn on_engine_answer(
        &mut self,
        source: &IncomingSource,
        link: LinkId,
        token: u64,
        answer: EngineAnswer,
    ) -> (Vec<Event>, Option<(u64, ResultCode)>) {
        if token & REPORT != 0 {
            let number = token & !REPORT;
            return (Vec::new(), self.on_report_stored(number).then_some((number, ResultCode::OK)));
        }
        let Some(pending) = self.waiting.remove(&token) else { return (Vec::new(), None) };
        let of = |refusal: Refusal| refusal_code(refusal, source.dialect());
        let results = match answer {
            EngineAnswer::AcceptedMany(results) => results,
            EngineAnswer::Refused(refusal) => return (Vec::new(), Some((token, of(refusal)))),
            _ => return (Vec::new(), Some((token, ResultCode::OK))),
        };
        let first_refusal = results.iter().find_map(|result| result.err());
        let all_refused = results.iter().all(Result::is_err);
        match (first_refusal, pending) {
            (None, _) => (Vec::new(), Some((token, ResultCode::OK))),
            (Some(refusal), _) if all_refused => (Vec::new(), Some((token, of(refusal)))),
            (Some(refusal), PendingAnswer::EngineAnswer) => (Vec::new(), Some((token, of(refusal)))),
            (Some(_), PendingAnswer::Submit(messages)) => {
                let reply = ReplyTo { link, token: token | REPORT };
                let refused = messages.into_iter().zip(&results).filter_map(|(message, result)| {
                    let code = of((*result).err()?);
                    let ended = Box::new(rejected_final(code, Timestamp::now()));
                    Some(Event::ResendDlr { message: Box::new(message), ended, reply })
                });
                let events: Vec<Event> = refused.collect();
                self.reports.insert(token, events.len());
                (events, None)
            }
        }
    }

    fn on_report_stored(&mut self, number: u64) -> bool {
        match self.reports.get_mut(&number) {
            Some(left) if *left > 1 => {
                *left -= 1;
                false
            }
            Some(_) => self.reports.remove(&number).is_some(),
            None => false,
        }
    }
}

fn refusal_code(refusal: Refusal, dialect: Dialect) -> ResultCode {
    match (ResultCode::of(refusal), dialect) {
        (ResultCode::FLOW, Dialect::V13) => ResultCode(33),
        (code, _) => code,
    }
}

/// The final record of a message that was never accepted, for the Report to its user.
fn rejected_final(code: ResultCode, at: Timestamp) -> FinalRecord {
    FinalRecord {
        state: FinalState::Rejected,
        at,
        error: u32::from(code.0),
        peer: None,
        peer_id: PeerMessageId::default(),
        steps: Vec::new(),
    }
}
