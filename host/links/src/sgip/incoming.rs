//! Incoming commands: Deliver and Report from gateways, Submit from SPs.

use super::mapping::{self, SubmitContext};
use super::options::{GatewayOptions, SpOptions};
use crate::accounts::Account;
use crate::pending_answers::PendingAnswer;
use engine::Event;
use model::{Address, IdempotencyKey, Message, PeerId, Refusal, Timestamp};
use ports::link::{Link, LinkDeps};
use ports::{Protocol, RefusalRecord, clock};
use sgip::{Dialect, Pdu, ResultCode, Sequence, SgipCommand, Submit};
use smpp::BindMode;
use std::sync::Arc;

/// The sender of the commands on an incoming connection.
#[derive(Debug)]
pub(crate) enum IncomingSource {
    /// A gateway of an operator.
    Gateway { options: Arc<GatewayOptions> },
    /// An SP with an account.
    Sp { account: Arc<Account>, options: Arc<SpOptions> },
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

    /// The result code of a refusal.
    pub(super) fn code(&self, refusal: Refusal) -> u32 {
        u32::from(refusal_code(refusal, self.dialect()).0)
    }

    /// Handles one command. `number` is its token.
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
                let messages = vec![mapping::mo_from_deliver(&deliver, options, link.wall)];
                link.accept_many(messages, false, Some(key), number);
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
                let mut messages =
                    messages.inspect_err(|code| record_refusal(&link.deps, account, &submit, *code))?;
                if messages.len() == 1 {
                    // It is accepted or refused as a whole, so no message is needed for a Report.
                    link.accept_many(messages, false, Some(key), number);
                    return Ok(PendingAnswer::EngineAnswer);
                }
                link.route(&mut messages);
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

fn refusal_code(refusal: Refusal, dialect: Dialect) -> ResultCode {
    match (ResultCode::of(refusal), dialect) {
        (ResultCode::FLOW, Dialect::V13) => ResultCode(33),
        (code, _) => code,
    }
}
