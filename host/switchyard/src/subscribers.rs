//! GSM subscribers in the admin API: state from core network and engine, and admin actions to reach a subscriber.

use crate::core_handle::{self, CoreHandle};
use crate::drain::Drain;
use crate::message_state::message_state;
use crate::problems::shutting_down_problem;
use admin::{Problem, ProblemKind, SubscriberName};
use api::SubscriberStateView;
use engine::{
    AdminAction, EngineAnswer, Event, MessageState, MessageStatus, SubscriberIdentity, SubscriberLockStatus,
    SubscriberSurvey,
};
use gsm::{HlrUnreachable, SubscriberInfo, SubscriberKey};
use model::{
    Address, AddressBytes, Imsi, Leg, Message, Now, NumberDisplay, PluginVersion, Priority, Refusal,
    RoutingDecision, StepKind, Text, Timestamp, Verdict,
};
use ports::LinkRegistry;
use std::sync::Arc;
use std::time::Duration;

/// Messages scanned per engine query, so that the engine is never busy for long.
const SCAN_LIMIT: usize = 65_536;

/// The TP-PID of a type 0 short message, which a handset acknowledges and does not show (3GPP TS 23.040 §9.2.3.9).
const TYPE_0: u8 = 0x40;
/// The validity of a silent short message.
const SILENT_VALIDITY: Duration = Duration::from_secs(600);

/// A subscriber and its core network.
struct LocatedSubscriber {
    network: Arc<gsm::GsmNetwork>,
    info: SubscriberInfo,
}

impl LocatedSubscriber {
    fn names(&self) -> SubscriberIdentity {
        let bytes = |text: &str| AddressBytes::from_slice(text.as_bytes());
        SubscriberIdentity {
            imsi: Some(Imsi(bytes(self.info.imsi.as_str()))),
            msisdn: self.info.msisdn.as_deref().map(bytes),
        }
    }
}

fn key(name: &SubscriberName) -> Result<SubscriberKey, Problem> {
    match name {
        SubscriberName::Imsi(digits) => {
            let imsi = digits.parse().map_err(|_| {
                Problem::new(
                    ProblemKind::BadRequest,
                    format!("{digits:?} is not an IMSI, which has 6 to 15 digits"),
                )
            })?;
            Ok(SubscriberKey::Imsi(imsi))
        }
        SubscriberName::Msisdn(digits) => Ok(SubscriberKey::Msisdn(digits.clone())),
    }
}

/// The last failure of a message: an error code or no response.
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
    /// No response: MSCs before 1.14 send none when paging fails.
    Unanswered,
}

impl Failure {
    fn state(self) -> SubscriberStateView {
        match self {
            Self::Refused(code) if gsm::is_memory_full(code) => SubscriberStateView::Full,
            Self::Refused(code) if gsm::is_absent(code) => SubscriberStateView::Absent,
            Self::Unanswered => SubscriberStateView::Absent,
            Self::Refused(_) => SubscriberStateView::BackOff,
        }
    }

    fn description(self) -> String {
        match self {
            Self::Refused(code) => gsm::describe_refusal(code),
            Self::Unanswered => "no answer to the last attempt".to_owned(),
        }
    }
}

/// Subscribers of core networks.
pub(crate) struct SubscriberService {
    pub(crate) core: CoreHandle,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) networks: Vec<Arc<gsm::GsmNetwork>>,
    pub(crate) drain: Arc<Drain>,
}

impl SubscriberService {
    /// The first core network that knows a subscriber.
    fn locate(&self, name: &SubscriberName) -> Result<LocatedSubscriber, Problem> {
        let key = key(name)?;
        let mut silent = None;
        for network in &self.networks {
            match network.subscriber(&key) {
                Ok(Some(info)) => return Ok(LocatedSubscriber { network: network.clone(), info }),
                Ok(None) => {}
                Err(HlrUnreachable) => silent = Some(network.name()),
            }
        }
        Err(match (silent, self.networks.is_empty()) {
            (Some(network), _) => {
                let detail = format!(
                    "core network {network:?}: the subscriber is unknown, and the HLR does not answer; \
                     GET /v1/gsm shows its connections"
                );
                Problem::new(ProblemKind::Unavailable, detail)
            }
            (None, true) => Problem::new(ProblemKind::NotFound, "no core network is configured"),
            (None, false) => Problem::new(ProblemKind::NotFound, "no core network has this subscriber"),
        })
    }

    /// All messages of a subscriber in the engine, read in several queries.
    fn survey_subscriber(&self, names: &SubscriberIdentity) -> Result<SubscriberSurvey, Problem> {
        let mut all = SubscriberSurvey::default();
        let mut at = 0;
        loop {
            let identity = names.clone();
            let query = move |engine: &engine::Engine, _| engine.survey_subscriber(&identity, at, SCAN_LIMIT);
            let survey = self.core.query(query).ok_or_else(shutting_down_problem)?;
            for (state, count) in survey.messages {
                *all.messages.entry(state).or_default() += count;
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

    fn lock_status(
        &self,
        names: &SubscriberIdentity,
    ) -> Result<(Option<SubscriberLockStatus>, Now), Problem> {
        let identity = names.clone();
        let query = move |engine: &engine::Engine, now| (engine.subscriber_locks_of(&identity), now);
        let (mut locks, now) = self.core.query(query).ok_or_else(shutting_down_problem)?;
        // With several networks, prefer one where the subscriber is blocked.
        locks.sort_by_key(|lock| !lock.backing_off);
        Ok((locks.into_iter().next(), now))
    }

    fn silent_message(&self, located: &LocatedSubscriber) -> Result<Message, Problem> {
        let Some(msisdn) = &located.info.msisdn else {
            let detail = "the core network knows no number of the subscriber, which a message needs";
            return Err(Problem::new(ProblemKind::Conflict, detail));
        };
        let leg = Leg { imsi: located.names().imsi, ..Leg::to(located.network.peer()) };
        let by = Arc::new(PluginVersion { plugin: "built-in".to_owned(), version: String::new() });
        Ok(Message {
            protocol_id: TYPE_0,
            priority: Priority::new(3),
            ..Message::new(
                located.network.peer(),
                located.network.service_centre().clone(),
                Address::international(msisdn),
                Text::default(),
                Timestamp::now() + SILENT_VALIDITY,
                RoutingDecision {
                    note: Some("silent SMS to test whether the handset is reachable".into()),
                    ..RoutingDecision::new(Verdict::Forward(vec![leg]), by)
                },
            )
        })
    }
}

impl admin::GsmSubscribers for SubscriberService {
    fn subscriber(
        &self,
        name: &SubscriberName,
        numbers: NumberDisplay,
    ) -> Result<api::SubscriberView, Problem> {
        let located = self.locate(name)?;
        let names = located.names();
        let survey = self.survey_subscriber(&names)?;
        let (lock, now) = self.lock_status(&names)?;
        let count = survey.messages.values().sum();
        let failure =
            lock.as_ref().filter(|lock| lock.backing_off).and_then(|lock| last_failure(&lock.holder));
        let state = match (&lock, failure) {
            (Some(lock), Some(failure)) if lock.backing_off => failure.state(),
            (Some(lock), None) if lock.backing_off => SubscriberStateView::BackOff,
            (Some(lock), _) if lock.holder.state == MessageState::Submitted => SubscriberStateView::Sending,
            _ if count > 0 => SubscriberStateView::Waiting,
            _ => SubscriberStateView::Idle,
        };
        let next_try = lock.as_ref().filter(|lock| lock.backing_off).and_then(|lock| lock.holder.until);
        let mut states = std::collections::BTreeMap::new();
        for (state, count) in &survey.messages {
            *states.entry(message_state(*state).name().to_owned()).or_default() += count;
        }
        let LocatedSubscriber { network, info } = located;
        Ok(api::SubscriberView {
            imsi: numbers.text(info.imsi.as_str()),
            msisdn: info.msisdn.as_deref().map(|digits| numbers.text(digits)),
            network: network.name().to_owned(),
            msc: info.msc,
            connected: info.connected,
            present_at: info.presence.map(|presence| presence.at.0),
            present_by: info.presence.map(|presence| presence.sign),
            state,
            reason: failure.map(Failure::description),
            next_try: next_try.map(|until| now.wall_of(until).0),
            message: lock.map(|lock| lock.holder.id.to_string()),
            waiting: api::SubscriberQueueView {
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
            let event = |reply| Event::AdminAction { id, action: AdminAction::Retry, by: who, reply };
            match core_handle::request(&self.core, &self.registry, event) {
                Some(EngineAnswer::Done) => woken += 1,
                // It has finished in the meantime, or is in flight.
                Some(_) => {}
                None => return Err(shutting_down_problem()),
            }
        }
        tracing::info!(%by, woken, network = located.network.name(), "subscriber woken by admin");
        Ok(woken)
    }

    fn send_silent_sms(&self, name: &SubscriberName, by: &str) -> Result<String, Problem> {
        let message = Box::new(self.silent_message(&self.locate(name)?)?);
        let answer =
            core_handle::request(&self.core, &self.registry, |reply| Event::Accept { message, reply });
        match answer {
            Some(EngineAnswer::Accepted(id)) => {
                tracing::info!(by, id = id.0, "silent SMS accepted");
                Ok(id.to_string())
            }
            Some(EngineAnswer::Refused(Refusal::ShuttingDown)) | None => Err(shutting_down_problem()),
            Some(EngineAnswer::Refused(refusal)) => {
                let why =
                    if self.drain.by().is_some() { "the appliance is draining" } else { "try again later" };
                Err(Problem::new(ProblemKind::Conflict, format!("refused: {refusal}; {why}")))
            }
            Some(_) => Err(Problem::new(ProblemKind::Internal, "unexpected answer of the engine")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_distinguish_full_memory_and_absence() {
        let of = |failure: Failure| (failure.state(), failure.description());
        assert_eq!(of(Failure::Refused(22)).0, SubscriberStateView::Full);
        assert_eq!(
            of(Failure::Refused(17 << 8)),
            (SubscriberStateView::Absent, "network: network failure (17)".to_owned())
        );
        assert_eq!(of(Failure::Refused(95)).0, SubscriberStateView::BackOff);
        assert_eq!(
            of(Failure::Unanswered),
            (SubscriberStateView::Absent, "no answer to the last attempt".to_owned())
        );
    }
}
