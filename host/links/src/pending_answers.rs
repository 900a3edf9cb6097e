//! Requests of a peer that wait for the engine's answer, for protocols whose Submit can name several subscribers.

use engine::{EngineAnswer, Event, ReplyTo};
use model::{FinalRecord, FinalState, LinkId, Message, PeerMessageId, Refusal, Timestamp};
use std::collections::HashMap;

/// Code of a success in all these protocols.
const OK: u32 = 0;

/// The event that must arrive before a request is answered.
#[derive(Debug)]
pub(crate) enum PendingAnswer {
    /// One answer of the engine.
    EngineAnswer,
    /// The engine's answer to a Submit of several messages. Each refused message then gets a Report.
    Submit(Vec<Message>),
}

/// Set in the tokens of the Reports of a Submit that is refused in part.
const REPORT: u64 = 1 << 48;

/// Requests that wait for the engine, by number.
#[derive(Debug, Default)]
pub(crate) struct PendingAnswers {
    waiting: HashMap<u64, PendingAnswer>,
    /// Number of Reports that must be durable before their Submit is answered.
    reports: HashMap<u64, usize>,
}

impl PendingAnswers {
    pub(crate) fn add(&mut self, number: u64, pending: PendingAnswer) {
        self.waiting.insert(number, pending);
    }

    /// Handles the engine's answer. Returns further events for the engine, and the request that can now be answered
    /// with its code: 0, or the code of the refusal.
    pub(crate) fn on_engine_answer(
        &mut self,
        link: LinkId,
        token: u64,
        answer: EngineAnswer,
        of: impl Fn(Refusal) -> u32,
    ) -> (Vec<Event>, Option<(u64, u32)>) {
        if token & REPORT != 0 {
            let number = token & !REPORT;
            return (Vec::new(), self.on_report_stored(number).then_some((number, OK)));
        }
        let Some(pending) = self.waiting.remove(&token) else { return (Vec::new(), None) };
        let results = match answer {
            EngineAnswer::AcceptedMany(results) => results,
            EngineAnswer::Refused(refusal) => return (Vec::new(), Some((token, of(refusal)))),
            _ => return (Vec::new(), Some((token, OK))),
        };
        let first_refusal = results.iter().find_map(|result| result.err());
        let all_refused = results.iter().all(Result::is_err);
        match (first_refusal, pending) {
            (None, _) => (Vec::new(), Some((token, OK))),
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

/// The final record of a message that was never accepted, for the Report about it.
fn rejected_final(code: u32, at: Timestamp) -> FinalRecord {
    FinalRecord {
        state: FinalState::Rejected,
        at,
        error: code,
        peer: None,
        peer_id: PeerMessageId::default(),
        steps: Vec::new(),
    }
}
