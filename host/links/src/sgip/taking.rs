//! Commands that far ends send us: Deliver and Report from gateways, Submit from SPs.

use super::mapping::{self, FromSp};
use super::options::{GatewayOptions, SpOptions};
use crate::accounts::Account;
use crate::clock;
use crate::shared::Shared;
use crate::state::LinkRecord;
use doors::{Protocol, Refused};
use engine::{Answer, Event, ReplyTo};
use model::{Address, Final, FinalState, LinkId, Message, PeerMessageId, Refusal, SubmissionKey, Timestamp};
use sgip::{Command, Dialect, Pdu, ResultCode, Sequence, Submit};
use smpp::BindMode;
use std::collections::HashMap;
use std::sync::Arc;

/// Who sends commands on a connection that came in.
#[derive(Debug)]
pub(super) enum Source {
    /// An operator's gateway.
    Gateway { options: Arc<GatewayOptions>, _seat: super::listen::Seat },
    /// An SP with an account of ours.
    Sp { account: Arc<Account>, options: Arc<SpOptions>, _seat: super::listen::Seat },
}

/// What a command waits for before it is answered.
#[derive(Debug)]
pub(super) enum Waits {
    /// One answer of the engine's.
    Answer,
    /// The answer to a Submit, whose refused messages then get a Report each.
    Messages(Vec<Message>),
}

type Taken = Result<(Vec<Event>, Waits), ResultCode>;

impl Source {
    pub(super) fn accepts(&self) -> Vec<Command> {
        match self {
            Self::Gateway { .. } => vec![Command::Deliver, Command::Report, Command::UserReport],
            Self::Sp { .. } => vec![Command::Submit],
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
            Self::Gateway { options, .. } => options.habits.dialect,
            Self::Sp { options, .. } => options.habits.dialect,
        }
    }

    pub(super) fn version(&self) -> u8 {
        super::version(self.dialect())
    }

    /// Takes one command: what the engine is to know, and what the answer waits for. The number is its mark.
    pub(super) fn take(
        &self,
        shared: &Shared,
        record: &LinkRecord,
        link: LinkId,
        number: u64,
        sequence: Sequence,
        pdu: Pdu,
    ) -> Taken {
        record.inbound.named(super::kind(&pdu));
        let reply = ReplyTo { link, token: number };
        let digest = mapping::digest(&pdu);
        let key = SubmissionKey {
            octets: sequence.octets().as_slice().into(),
            digest,
            required: false,
            lifetime: None,
        };
        let routed = |mut message: Message| {
            message.routed = shared.routing.route(&message);
            message
        };
        match (self, pdu) {
            (Self::Gateway { options, .. }, Pdu::Deliver(deliver)) => {
                let message = routed(mapping::reply(&deliver, options, clock::wall()));
                let accept =
                    Event::AcceptMany { messages: vec![message], shared_id: false, key: Some(key), reply };
                Ok((vec![accept], Waits::Answer))
            }
            (Self::Gateway { options, .. }, Pdu::Report(report)) => {
                // About a forwarded Deliver: we forward none.
                if report.report_type != 0 {
                    return Err(ResultCode::OK);
                }
                let receipt = mapping::receipt(&report);
                Ok((vec![Event::Receipt { peer: options.peer, receipt, reply }], Waits::Answer))
            }
            (Self::Gateway { options, .. }, Pdu::UserReport(report)) => {
                let user = Address::new(0, 1, &report.user);
                tracing::info!(
                    gateway = %options.name, user = %user.masked(), condition = report.condition,
                    "a subscriber's state has changed"
                );
                Err(ResultCode::OK)
            }
            (Self::Sp { account, options, .. }, Pdu::Submit(submit)) => {
                let messages = submitted(account, options, &submit, sequence);
                let messages = messages.inspect_err(|code| refused_here(shared, account, &submit, *code))?;
                let messages: Vec<Message> = messages.into_iter().map(routed).collect();
                let accept =
                    Event::AcceptMany { messages: messages.clone(), shared_id: false, key: Some(key), reply };
                Ok((vec![accept], Waits::Messages(messages)))
            }
            _ => Err(ResultCode::MESSAGE_ID),
        }
    }
}

/// Counts a Submit that is refused before the engine sees it.
fn refused_here(shared: &Shared, account: &Account, submit: &Submit, code: ResultCode) {
    let word = match code {
        ResultCode::FLOW | ResultCode(33) => Refusal::Throttled.name(),
        _ => "invalid",
    };
    let destination = submit.users.first().map(|user| Address::new(0, 1, user)).unwrap_or_default();
    let refused = Refused {
        at: clock::wall(),
        protocol: Protocol::Sgip,
        source: Address::new(0, 1, &submit.sp_number),
        destination,
        code: word,
        reason: format!("SGIP result {code}").into(),
    };
    shared.hub.refusals().record(account.options().peer, refused, 1);
}

/// The messages of an SP's Submit, within its account's rules.
fn submitted(
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
    let from =
        FromSp { origin: rules.peer, validity: rules.validity, habits: &options.habits, wall: clock::wall() };
    let messages = from.messages(submit, sequence, &source)?;
    if !account.take(u32::try_from(messages.len()).unwrap_or(u32::MAX), clock::now()) {
        return Err(match options.habits.dialect {
            Dialect::V12 => ResultCode::FLOW,
            Dialect::V13 => ResultCode(33),
        });
    }
    Ok(messages)
}

/// Set in the marks of the Reports that a half-refused Submit brings about.
const REPORT: u64 = 1 << 48;

/// Commands that wait for the engine, by number.
#[derive(Debug, Default)]
pub(super) struct Owed {
    waiting: HashMap<u64, Waits>,
    /// Reports that must be durable before their Submit is answered.
    reports: HashMap<u64, usize>,
}

impl Owed {
    pub(super) fn add(&mut self, number: u64, waits: Waits) {
        self.waiting.insert(number, waits);
    }

    /// The engine has answered: what it is to know further, and the command that can now be answered, with its code.
    pub(super) fn answered(
        &mut self,
        source: &Source,
        link: LinkId,
        token: u64,
        answer: Answer,
    ) -> (Vec<Event>, Option<(u64, ResultCode)>) {
        if token & REPORT != 0 {
            let number = token & !REPORT;
            return (Vec::new(), self.report_is_durable(number).then_some((number, ResultCode::OK)));
        }
        let Some(waits) = self.waiting.remove(&token) else { return (Vec::new(), None) };
        let of = |refusal: Refusal| code_of(refusal, source.dialect());
        let results = match answer {
            Answer::AcceptedMany(results) => results,
            Answer::Refused(refusal) => return (Vec::new(), Some((token, of(refusal)))),
            _ => return (Vec::new(), Some((token, ResultCode::OK))),
        };
        let first_refusal = results.iter().find_map(|result| result.err());
        let all_refused = results.iter().all(Result::is_err);
        match (first_refusal, waits) {
            (None, _) => (Vec::new(), Some((token, ResultCode::OK))),
            (Some(refusal), _) if all_refused => (Vec::new(), Some((token, of(refusal)))),
            (Some(refusal), Waits::Answer) => (Vec::new(), Some((token, of(refusal)))),
            (Some(_), Waits::Messages(messages)) => {
                let reply = ReplyTo { link, token: token | REPORT };
                let refused = messages.into_iter().zip(&results).filter_map(|(message, result)| {
                    let code = of((*result).err()?);
                    let ended = Box::new(refused(code, clock::wall()));
                    Some(Event::ReportAgain { message: Box::new(message), ended, reply })
                });
                let events: Vec<Event> = refused.collect();
                self.reports.insert(token, events.len());
                (events, None)
            }
        }
    }

    fn report_is_durable(&mut self, number: u64) -> bool {
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

fn code_of(refusal: Refusal, dialect: Dialect) -> ResultCode {
    match (ResultCode::of(refusal), dialect) {
        (ResultCode::FLOW, Dialect::V13) => ResultCode(33),
        (code, _) => code,
    }
}

/// The end of a message that was never accepted, as its user's Report has it.
fn refused(code: ResultCode, at: Timestamp) -> Final {
    Final {
        state: FinalState::Rejected,
        at,
        error: u32::from(code.0),
        peer: None,
        peer_id: PeerMessageId::default(),
        steps: Vec::new(),
    }
}
