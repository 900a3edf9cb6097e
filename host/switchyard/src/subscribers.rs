//! One GSM subscriber, as its core network and the engine know it; and what an admin does to reach it.

use crate::appliance::{Switchyard, gone};
use crate::core_loop::{self, wall};
use crate::messages::doing_word;
use admin::{Kind, Problem, SubscriberName, view};
use engine::{Answer, Doing, Event, Hand, MessageStatus, SubscriberNames, SubscriberSurvey, SubscriberTurn};
use gsm::{HlrSilent, SubscriberInfo, SubscriberKey};
use model::{
    Address, AddressBytes, DecidedBy, Imsi, Leg, Message, MessageId, Now, Priority, ReceiptRequest, Refusal,
    Routed, StepKind, Text, Timestamp, Verdict,
};
use std::sync::Arc;
use std::time::Duration;

/// Places in memory that one look of the engine's goes over, so that nothing waits for it for long.
const LOOKS: usize = 65_536;

/// TP-PID of a short message of type 0, which a handset acknowledges and shows nobody (3GPP TS 23.040 §9.2.3.9).
const TYPE_0: u8 = 0x40;
/// How long a silent short message is tried. What it is to find out holds for no longer.
const SILENT_VALIDITY: Duration = Duration::from_secs(600);

/// A subscriber, and the network that has it.
struct Located {
    network: Arc<gsm::Network>,
    info: SubscriberInfo,
}

impl Located {
    fn names(&self) -> SubscriberNames {
        let bytes = |text: &str| AddressBytes::from_slice(text.as_bytes());
        SubscriberNames {
            imsi: Some(Imsi(bytes(self.info.imsi.as_str()))),
            msisdn: self.info.msisdn.as_deref().map(bytes),
        }
    }
}

fn key(name: &SubscriberName) -> Result<SubscriberKey, Problem> {
    match name {
        SubscriberName::Imsi(digits) => {
            let imsi = digits.parse().map_err(|_| {
                Problem::new(Kind::BadRequest, format!("{digits:?} is no IMSI: it has 6 to 15 digits"))
            })?;
            Ok(SubscriberKey::Imsi(imsi))
        }
        SubscriberName::Msisdn(digits) => Ok(SubscriberKey::Msisdn(digits.clone())),
    }
}

/// Digits as a caller may see them.
fn shown(digits: &str, open: bool) -> String {
    crate::orders::shown_address(&Address::new(0, 0, digits.as_bytes()), open)
}

/// What the last failure of a message was: its code, or that there was no answer.
fn last_failure(status: &MessageStatus) -> Option<Failure> {
    status.steps.iter().rev().find_map(|step| match step.kind {
        StepKind::Refused { code } => Some(Failure::Refused(code)),
        StepKind::Unanswered => Some(Failure::Unanswered),
        _ => None,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Failure {
    Refused(u32),
    /// MSCs before 1.14 say nothing when paging fails.
    Unanswered,
}

impl Failure {
    fn state(self) -> &'static str {
        match self {
            Self::Refused(code) if gsm::is_memory_full(code) => "full",
            Self::Refused(code) if gsm::is_absence(code) => "absent",
            Self::Unanswered => "absent",
            Self::Refused(_) => "parked",
        }
    }

    fn words(self) -> String {
        match self {
            Self::Refused(code) => gsm::refusal_words(code),
            Self::Unanswered => "no answer to the last attempt".to_owned(),
        }
    }
}

impl Switchyard {
    /// The first core network that has a subscriber.
    fn locate(&self, name: &SubscriberName) -> Result<Located, Problem> {
        let key = key(name)?;
        let mut silent = None;
        for network in &self.networks {
            match network.subscriber(&key) {
                Ok(Some(info)) => return Ok(Located { network: network.clone(), info }),
                Ok(None) => {}
                Err(HlrSilent) => silent = Some(network.name()),
            }
        }
        Err(match (silent, self.networks.is_empty()) {
            (Some(network), _) => {
                let detail = format!(
                    "core network {network:?}: nothing was learnt of this subscriber, and the HLR does not answer; \
                     GET /v1/gsm shows its connections"
                );
                Problem::new(Kind::Unavailable, detail)
            }
            (None, true) => Problem::new(Kind::NotFound, "there is no core network in the configuration"),
            (None, false) => Problem::new(Kind::NotFound, "no core network has this subscriber"),
        })
    }

    /// All that the engine has for a subscriber, some of its memory at a time.
    fn survey_subscriber(&self, names: &SubscriberNames) -> Result<SubscriberSurvey, Problem> {
        let mut all = SubscriberSurvey::default();
        let mut at = 0;
        loop {
            let asked = names.clone();
            let look = move |engine: &engine::Engine, _| engine.survey_subscriber(&asked, at, LOOKS);
            let survey = self.core.look(look).ok_or_else(gone)?;
            for (doing, count) in survey.messages {
                *all.messages.entry(doing).or_default() += count;
            }
            all.oldest = match (all.oldest, survey.oldest) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            all.failed.extend(survey.failed);
            match survey.next {
                Some(next) => at = next,
                None => return Ok(all),
            }
        }
    }

    fn turn_of(&self, names: &SubscriberNames) -> Result<(Option<SubscriberTurn>, Now), Problem> {
        let asked = names.clone();
        let look = move |engine: &engine::Engine, now| (engine.turns_of(&asked), now);
        let (mut turns, now) = self.core.look(look).ok_or_else(gone)?;
        // Of several networks, one where the subscriber is parked says most.
        turns.sort_by_key(|turn| !turn.parked);
        Ok((turns.into_iter().next(), now))
    }

    fn silent_message(&self, located: &Located) -> Result<Message, Problem> {
        let Some(msisdn) = &located.info.msisdn else {
            let detail = "the subscriber has no number that its core network tells, and a message needs one";
            return Err(Problem::new(Kind::Conflict, detail));
        };
        let leg = Leg { imsi: located.names().imsi, ..Leg::to(located.network.peer()) };
        let by = Arc::new(DecidedBy { plugin: "house".to_owned(), version: String::new() });
        Ok(Message {
            id: MessageId::default(),
            kind: model::Kind::Text,
            origin: located.network.peer(),
            source: located.network.service_centre().clone(),
            destination: Address::international(msisdn),
            service_type: bytes::Bytes::new(),
            protocol_id: TYPE_0,
            esm_class: 0,
            priority: Priority::new(3),
            receipts: ReceiptRequest::NONE,
            replace_if_present: false,
            submission: None,
            text: Text::default(),
            tlvs: bytes::Bytes::new(),
            accepted_at: Timestamp::default(),
            scheduled: None,
            expires_at: wall() + SILENT_VALIDITY,
            routed: Routed {
                note: Some("a silent short message, to find whether the handset is there".into()),
                ..Routed::new(Verdict::Forward(vec![leg]), by)
            },
        })
    }
}

impl admin::Subscribers for Switchyard {
    fn subscriber(&self, name: &SubscriberName, open: bool) -> Result<view::Subscriber, Problem> {
        let located = self.locate(name)?;
        let names = located.names();
        let survey = self.survey_subscriber(&names)?;
        let (turn, now) = self.turn_of(&names)?;
        let count = survey.messages.values().sum();
        let failure = turn.as_ref().filter(|turn| turn.parked).and_then(|turn| last_failure(&turn.holder));
        let state = match (&turn, failure) {
            (Some(turn), Some(failure)) if turn.parked => failure.state(),
            (Some(turn), None) if turn.parked => "parked",
            (Some(turn), _) if turn.holder.doing == Doing::Submitted => "sending",
            _ if count > 0 => "waiting",
            _ => "idle",
        };
        let next_try = turn.as_ref().filter(|turn| turn.parked).and_then(|turn| turn.holder.until);
        let mut states = std::collections::BTreeMap::new();
        for (doing, count) in &survey.messages {
            *states.entry(doing_word(*doing)).or_default() += count;
        }
        let Located { network, info } = located;
        Ok(view::Subscriber {
            imsi: shown(info.imsi.as_str(), open),
            msisdn: info.msisdn.as_deref().map(|digits| shown(digits, open)),
            network: network.name().to_owned(),
            msc: info.msc,
            connected: info.connected,
            present_at: info.presence.map(|presence| presence.at.0),
            present_by: info.presence.map(|presence| presence.sign),
            state,
            reason: failure.map(Failure::words),
            next_try: next_try.map(|until| now.wall_of(until).0),
            message: turn.map(|turn| turn.holder.id.to_string()),
            waiting: view::SubscriberQueue {
                count,
                oldest_at: survey.oldest.map(|(_, at)| at.0),
                oldest: survey.oldest.map(|(id, _)| id.to_string()),
                states,
            },
        })
    }

    fn wake_subscriber(&self, name: &SubscriberName, by: &Arc<str>) -> Result<u64, Problem> {
        let located = self.locate(name)?;
        let failed = self.survey_subscriber(&located.names())?.failed;
        let mut woken = 0;
        for id in failed {
            let who = by.clone();
            let event = |reply| Event::ByHand { id, hand: Hand::Retry, by: who, reply };
            match core_loop::ask(&self.core, &self.links.hub(), event) {
                Some(Answer::Done) => woken += 1,
                // It has ended meanwhile, or is on its way.
                Some(_) => {}
                None => return Err(gone()),
            }
        }
        tracing::info!(%by, woken, network = located.network.name(), "messages to a subscriber are tried by hand");
        Ok(woken)
    }

    fn send_silent_sms(&self, name: &SubscriberName, by: &str) -> Result<String, Problem> {
        let message = Box::new(self.silent_message(&self.locate(name)?)?);
        let answer = core_loop::ask(&self.core, &self.links.hub(), |reply| Event::Accept { message, reply });
        match answer {
            Some(Answer::Accepted(id)) => {
                tracing::info!(by, id = id.0, "a silent short message was accepted");
                Ok(id.to_string())
            }
            Some(Answer::Refused(Refusal::ShuttingDown)) | None => Err(gone()),
            Some(Answer::Refused(refusal)) => {
                let why =
                    if self.draining.lock().is_some() { "the appliance drains" } else { "try again later" };
                Err(Problem::new(Kind::Conflict, format!("refused: {refusal}; {why}")))
            }
            Some(_) => Err(Problem::new(Kind::Internal, "the engine gave another answer than it should")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_whether_the_handset_is_full_or_away() {
        let of = |failure: Failure| (failure.state(), failure.words());
        assert_eq!(of(Failure::Refused(22)).0, "full");
        assert_eq!(of(Failure::Refused(17 << 8)), ("absent", "network: network failure (17)".to_owned()));
        assert_eq!(of(Failure::Refused(95)).0, "parked");
        assert_eq!(of(Failure::Unanswered), ("absent", "no answer to the last attempt".to_owned()));
    }
}
