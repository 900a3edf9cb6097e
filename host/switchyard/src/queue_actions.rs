//! Queue actions and uncertain messages in the admin API.

use crate::arguments::{parse_id, parse_peer};
use crate::blocked_by::{describe_blocked_by, describe_pace};
use crate::core_handle;
use crate::message_service::MessageService;
use crate::message_state::message_state;
use crate::problems::{field_problem, shutting_down_problem};
use admin::metrics::{self, MetricsPage};
use admin::{Problem, ProblemKind};
use api::MessageStateView;
use engine::{
    AdminAction, BlockedBy, EngineAnswer, Event, MessageStatus, NewQueueAction, PeerStatus,
    QueueActionRefusal, QueueActionSurvey,
};
use model::{
    AddressBytes, Message, MessageId, Now, NumberDisplay, PeerId, QueueAction, QueueActionId,
    QueueActionKind, QueueActionScope, QueueActionState, StepKind, parse_duration,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Messages scanned per engine query of a preview, during which the core does nothing else.
const SCAN_LIMIT: usize = 65_536;
/// Maximum number of texts that a preview reads.
const MAX_TEXTS_READ: usize = 100_000;
/// Number of messages settled per request to the engine.
const SETTLE_BATCH: usize = 500;
/// Maximum length of a reason, in characters.
const MAX_REASON_CHARS: usize = 256;
/// Default time within which an action can be undone.
const DEFAULT_UNDO: Duration = Duration::from_secs(60);

/// A duration in the largest unit that represents it exactly.
fn format_duration(time: Duration) -> String {
    let ms = time.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let unit = units.into_iter().find(|(unit, _)| ms > 0 && ms.is_multiple_of(*unit));
    let (unit, suffix) = unit.unwrap_or((1, "ms"));
    format!("{}{suffix}", ms / unit)
}

fn refusal_problem(refusal: QueueActionRefusal) -> Problem {
    let kind = match refusal {
        QueueActionRefusal::Unknown => ProblemKind::NotFound,
        QueueActionRefusal::TooLate | QueueActionRefusal::Cycle | QueueActionRefusal::TooMany { .. } => {
            ProblemKind::Conflict
        }
        QueueActionRefusal::NoScope
        | QueueActionRefusal::NeedsWholePeer
        | QueueActionRefusal::BadTarget
        | QueueActionRefusal::UnknownPeer
        | QueueActionRefusal::DifferentKinds => ProblemKind::Unprocessable,
    };
    Problem::new(kind, refusal.to_string())
}

fn parse_kind(what: api::QueueActionKindView) -> QueueActionKind {
    match what {
        api::QueueActionKindView::Suspend => QueueActionKind::Suspend,
        api::QueueActionKindView::Drain => QueueActionKind::Drain,
        api::QueueActionKindView::Reroute => QueueActionKind::Reroute,
        api::QueueActionKindView::Cancel => QueueActionKind::Cancel,
        api::QueueActionKindView::Purge => QueueActionKind::Purge,
    }
}

fn kind_view(kind: QueueActionKind) -> api::QueueActionKindView {
    match kind {
        QueueActionKind::Suspend => api::QueueActionKindView::Suspend,
        QueueActionKind::Drain => api::QueueActionKindView::Drain,
        QueueActionKind::Reroute => api::QueueActionKindView::Reroute,
        QueueActionKind::Cancel => api::QueueActionKindView::Cancel,
        QueueActionKind::Purge => api::QueueActionKindView::Purge,
    }
}

fn state_view(state: QueueActionState) -> api::QueueActionStateView {
    match state {
        QueueActionState::Standing => api::QueueActionStateView::Active,
        QueueActionState::UndoWindow => api::QueueActionStateView::UndoWindow,
        QueueActionState::Running => api::QueueActionStateView::Running,
        QueueActionState::Done => api::QueueActionStateView::Done,
        QueueActionState::Undone => api::QueueActionStateView::Undone,
    }
}

fn past_participle(kind: QueueActionKind) -> &'static str {
    match kind {
        QueueActionKind::Suspend => "suspended",
        QueueActionKind::Drain => "drained",
        QueueActionKind::Reroute => "rerouted",
        QueueActionKind::Cancel | QueueActionKind::Purge => "suspended until cancelled",
    }
}

fn describe_author(action: &QueueAction) -> String {
    let why = if action.reason.is_empty() { String::new() } else { format!(": {}", action.reason) };
    format!("by {}{why} (queue action {})", action.by, action.id)
}

/// See [`MessageService::message_page`].
pub(crate) struct MessagePage {
    pub(crate) messages: Vec<(MessageStatus, Arc<Message>)>,
    /// The `after` of the next page.
    pub(crate) next: Option<String>,
    /// The time of the list.
    pub(crate) now: Now,
}

impl MessageService {
    pub(crate) fn parse_peer(&self, pointer: &str, name: Option<&str>) -> Result<Option<PeerId>, Problem> {
        parse_peer(&self.directory.load(), pointer, name)
    }

    fn new_queue_action(
        &self,
        request: &api::QueueActionRequest,
        by: &str,
    ) -> Result<NewQueueAction, Problem> {
        let scope = &request.scope;
        let time = |pointer: &str, text: &str| {
            let allowed = "a duration such as 30s, 5m, 1h or 2d";
            parse_duration(text)
                .ok_or_else(|| field_problem(pointer, format!("{text:?} is not a duration"), Some(allowed)))
        };
        let prefix = scope.prefix.as_deref().map(|prefix| prefix.trim_start_matches('+'));
        if prefix.is_some_and(|prefix| prefix.is_empty() || prefix.len() > 20) {
            return Err(field_problem("/scope/prefix", "is not a prefix", Some("1 to 20 characters")));
        }
        let reason = request.why.as_deref().unwrap_or_default();
        if reason.chars().count() > MAX_REASON_CHARS {
            return Err(field_problem("/why", "is too long", Some("at most 256 characters")));
        }
        let older_than =
            scope.older_than.as_deref().map(|text| time("/scope/older-than", text)).transpose()?;
        let undo = request.undo_within.as_deref().map(|text| time("/undo-within", text)).transpose()?;
        if undo.is_some_and(|undo| undo > Duration::from_secs(86_400)) {
            return Err(field_problem("/undo-within", "is too long", Some("at most 1d")));
        }
        let kind = parse_kind(request.action);
        if undo.is_some() && !kind.cancels() {
            return Err(field_problem(
                "/undo-within",
                "applies to cancel and purge only; other actions last until they are withdrawn",
                None,
            ));
        }
        Ok(NewQueueAction {
            kind,
            scope: QueueActionScope {
                peer: self.parse_peer("/scope/peer", scope.peer.as_deref())?,
                account: self.parse_peer("/scope/account", scope.account.as_deref())?,
                prefix: prefix.map(|prefix| AddressBytes::from_slice(prefix.as_bytes())),
                older_than,
            },
            to: self.parse_peer("/to", request.to.as_deref())?,
            by: by.into(),
            reason: reason.into(),
            undo_within: undo.unwrap_or(DEFAULT_UNDO),
        })
    }

    fn queue_action_view(&self, action: &QueueAction, held: u64) -> api::QueueActionView {
        let scope = &action.scope;
        api::QueueActionView {
            id: action.id.0,
            action: kind_view(action.kind),
            scope: api::QueueActionScopeView {
                peer: scope.peer.map(|peer| self.name_of(peer)),
                account: scope.account.map(|account| self.name_of(account)),
                prefix: scope.prefix.as_ref().map(|prefix| String::from_utf8_lossy(prefix).into_owned()),
                older_than: scope.older_than.map(format_duration),
            },
            to: action.to.map(|to| self.name_of(to)),
            by: action.by.to_string(),
            why: action.reason.to_string(),
            at: action.at.0,
            state: state_view(action.state),
            undo_until: action.undo_until.map(|until| until.0),
            affected: action.affected,
            held,
        }
    }

    fn queue_action_answered(&self, answer: Option<EngineAnswer>) -> Result<api::QueueActionView, Problem> {
        match answer {
            Some(EngineAnswer::QueueAction(action)) => {
                let id = action.id;
                let query = move |engine: &engine::Engine, _| {
                    engine
                        .queue_actions()
                        .into_iter()
                        .find(|(one, _)| one.id == id)
                        .map_or(0, |(_, held)| held)
                };
                let held = self.core.query(query).unwrap_or(0);
                Ok(self.queue_action_view(&action, held))
            }
            Some(EngineAnswer::QueueActionRefused(why)) => Err(refusal_problem(why)),
            Some(_) => Err(Problem::new(ProblemKind::Internal, "unexpected answer of the engine")),
            None => Err(shutting_down_problem()),
        }
    }

    /// Describes why a queue does not move, including its queue actions.
    pub(crate) fn describe_queue_block(
        &self,
        peer: &PeerStatus,
        actions: &[(QueueAction, u64)],
        now: Now,
    ) -> String {
        let active = || actions.iter().map(|(action, _)| action).filter(|action| action.state.is_active());
        let mut text = match peer.blocked_by {
            BlockedBy::Suspended { queue_action } => match active().find(|one| one.id == queue_action) {
                Some(action) => format!("suspended {}", describe_author(action)),
                None => describe_blocked_by(peer.blocked_by, now),
            },
            BlockedBy::Paced if let Some(by) = &peer.paced_by => {
                format!("all queued messages wait{}", describe_pace(by, now))
            }
            blocked_by => describe_blocked_by(blocked_by, now),
        };
        if let Some(by) = peer.paced_by.as_ref().filter(|_| peer.blocked_by != BlockedBy::Paced) {
            text.push_str(&format!("; {} messages wait{}", peer.paced, describe_pace(by, now)));
        }
        let not_blocking = |action: &&QueueAction| !matches!(peer.blocked_by, BlockedBy::Suspended { queue_action: by } if by == action.id);
        for action in active().filter(|action| action.scope.peer == Some(peer.peer)).filter(not_blocking) {
            let what = match action.kind {
                QueueActionKind::Drain => "accepts no new messages".to_owned(),
                QueueActionKind::Reroute => match action.to {
                    Some(to) if action.scope.is_whole_peer() => {
                        format!("messages are rerouted to {}", self.name_of(to))
                    }
                    Some(to) => format!("some messages are rerouted to {}", self.name_of(to)),
                    None => continue,
                },
                kind => format!("some messages are {}", past_participle(kind)),
            };
            text.push_str(&format!("; {what} {}", describe_author(action)));
        }
        text
    }

    /// Describes why a message's queue does not move.
    pub(crate) fn describe_message_block(&self, status: &MessageStatus, now: Now) -> String {
        match status.blocked_by {
            BlockedBy::Suspended { queue_action } => {
                format!("the peer is suspended{}", self.describe_action(queue_action))
            }
            blocked_by => describe_blocked_by(blocked_by, now),
        }
    }

    /// Author and reason of an action, for the end of a sentence.
    pub(crate) fn describe_action(&self, id: QueueActionId) -> String {
        let action = self.core.query(move |engine, _| engine.queue_action(id)).flatten();
        action.map_or(String::new(), |action| format!(" {}", describe_author(&action)))
    }

    pub(crate) fn write_queue_action_metrics(&self, page: &mut MetricsPage) {
        let Some(actions) = self.core.query(|engine, _| engine.queue_actions()) else { return };
        for kind in QueueActionKind::ALL {
            let of = |action: &&(QueueAction, u64)| action.0.kind == kind && action.0.state.is_active();
            let count = actions.iter().filter(of).count();
            page.put(&metrics::QUEUE_ACTIONS, &[kind_view(kind).name()], count as f64);
        }
    }

    fn sample(
        &self,
        message: &Message,
        state: MessageStateView,
        numbers: NumberDisplay,
    ) -> api::QueueActionSample {
        api::QueueActionSample {
            id: message.id.to_string(),
            from: numbers.address(&message.source),
            to: numbers.address(&message.destination),
            state,
        }
    }

    fn load(&self, ids: &[MessageId]) -> Result<Vec<Arc<Message>>, Problem> {
        let loaded =
            self.store.load(ids).map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
        Ok(loaded.into_iter().flatten().collect())
    }

    fn preview_action(
        &self,
        request: &NewQueueAction,
        numbers: NumberDisplay,
    ) -> Result<api::QueueActionPreview, Problem> {
        let mut preview = api::QueueActionPreview { complete: true, ..api::QueueActionPreview::default() };
        let mut oldest: BTreeMap<MessageId, MessageStateView> = BTreeMap::new();
        let (mut at, mut reads) = (0, 0);
        loop {
            let copy = request.clone();
            let query = move |engine: &engine::Engine, now| {
                let survey = engine.survey(now, &copy, at, SCAN_LIMIT);
                let state = |id: &MessageId| {
                    engine.message(*id).map_or(MessageStateView::Ending, |status| message_state(status.state))
                };
                let states: Vec<_> = survey.oldest.iter().map(|id| (*id, state(id))).collect();
                (survey, states)
            };
            let (survey, states) = self.core.query(query).ok_or_else(shutting_down_problem)?;
            for (state, count) in survey.concerned {
                *preview.by_state.entry(message_state(state).name().to_owned()).or_default() += count;
                preview.messages += count;
            }
            oldest.extend(states);
            for part in survey.unknown.chunks(1000) {
                if reads >= MAX_TEXTS_READ {
                    preview.complete = false;
                    break;
                }
                reads += part.len();
                let ids: Vec<MessageId> = part.iter().map(|(id, _)| *id).collect();
                let states: BTreeMap<MessageId, _> = part.iter().copied().collect();
                for message in self.load(&ids)? {
                    if request.scope.matches_destination(&message)
                        && let Some(state) = states.get(&message.id)
                    {
                        let state = message_state(*state);
                        *preview.by_state.entry(state.name().to_owned()).or_default() += 1;
                        preview.messages += 1;
                        oldest.insert(message.id, state);
                    }
                }
            }
            while oldest.len() > QueueActionSurvey::SAMPLE {
                oldest.pop_last();
            }
            match survey.next {
                Some(next) => at = next,
                None => break,
            }
        }
        let ids: Vec<MessageId> = oldest.keys().copied().collect();
        let sample = self.load(&ids)?;
        preview.sample = sample
            .iter()
            .filter_map(|message| Some(self.sample(message, *oldest.get(&message.id)?, numbers)))
            .collect();
        Ok(preview)
    }

    /// A page of messages in memory, by ascending id, with their contents. `list(after, most)` returns at most `most`
    /// ids above `after`.
    pub(crate) fn message_page(
        &self,
        after: Option<&str>,
        limit: usize,
        list: impl FnOnce(&engine::Engine, MessageId, usize) -> Vec<MessageId> + Send + 'static,
    ) -> Result<MessagePage, Problem> {
        let after = after.map(parse_id).transpose()?.unwrap_or(MessageId(0));
        let query = move |engine: &engine::Engine, now| {
            let ids = list(engine, after, limit + 1);
            (ids.iter().filter_map(|id| engine.message(*id)).collect::<Vec<_>>(), now)
        };
        let (mut found, now): (Vec<MessageStatus>, Now) =
            self.core.query(query).ok_or_else(shutting_down_problem)?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(|last| last.id.to_string());
        let ids: Vec<MessageId> = found.iter().map(|status| status.id).collect();
        let contents: BTreeMap<MessageId, Arc<Message>> =
            self.load(&ids)?.into_iter().map(|message| (message.id, message)).collect();
        let with_content = found.into_iter().filter_map(|status| {
            let content = contents.get(&status.id)?.clone();
            Some((status, content))
        });
        Ok(MessagePage { messages: with_content.collect(), next, now })
    }

    /// Applies an action to messages. Returns how many it was applied to, and how many it did not fit.
    pub(crate) fn act_on_all(
        &self,
        ids: &[MessageId],
        hand: AdminAction,
        by: &Arc<str>,
    ) -> Result<(u64, u64), Problem> {
        let (mut done, mut skipped) = (0, 0);
        for part in ids.chunks(SETTLE_BATCH) {
            let events = part.iter().map(|id| {
                let (id, by) = (*id, by.clone());
                move |reply| Event::AdminAction { id, action: hand, by, reply }
            });
            let answers = core_handle::request_all(&self.core, &self.links.registry(), events)
                .ok_or_else(shutting_down_problem)?;
            let fitted = answers.iter().filter(|answer| **answer == EngineAnswer::Done).count() as u64;
            done += fitted;
            skipped += answers.len() as u64 - fitted;
        }
        Ok((done, skipped))
    }
}

impl admin::QueueActions for MessageService {
    fn queue_actions(&self) -> Result<Vec<api::QueueActionView>, Problem> {
        let actions =
            self.core.query(|engine, _| engine.queue_actions()).ok_or_else(shutting_down_problem)?;
        Ok(actions.iter().map(|(action, held)| self.queue_action_view(action, *held)).collect())
    }

    fn preview_queue_action(
        &self,
        request: api::QueueActionRequest,
        numbers: NumberDisplay,
    ) -> Result<api::QueueActionPreview, Problem> {
        let action = self.new_queue_action(&request, "")?;
        let copy = action.clone();
        let verdict = self
            .core
            .query(move |engine, _| engine.validate_queue_action(&copy))
            .ok_or_else(shutting_down_problem)?;
        verdict.map_err(refusal_problem)?;
        self.preview_action(&action, numbers)
    }

    fn create_queue_action(
        &self,
        request: api::QueueActionRequest,
        by: &str,
    ) -> Result<api::QueueActionView, Problem> {
        let action = Box::new(self.new_queue_action(&request, by)?);
        let answer = core_handle::request(&self.core, &self.links.registry(), |reply| Event::QueueAction {
            request: action,
            reply,
        });
        let action = self.queue_action_answered(answer)?;
        tracing::info!(action = action.id, by, what = ?request.action, "queue action created");
        Ok(action)
    }

    fn undo_queue_action(&self, id: u32, by: &str) -> Result<api::QueueActionView, Problem> {
        let who = by.into();
        let event = |reply| Event::UndoQueueAction { id: QueueActionId(id), by: who, reply };
        let action =
            self.queue_action_answered(core_handle::request(&self.core, &self.links.registry(), event))?;
        tracing::info!(action = id, by, "queue action withdrawn");
        Ok(action)
    }

    fn list_uncertain(
        &self,
        peer: Option<&str>,
        after: Option<&str>,
        limit: usize,
        numbers: NumberDisplay,
    ) -> Result<api::UncertainPageView, Problem> {
        let of = match peer {
            Some(name) => match self.directory.load().id(name) {
                Some(peer) => Some(peer),
                None => {
                    return Err(Problem::new(
                        ProblemKind::NotFound,
                        format!("{name:?} is not an account or peer"),
                    ));
                }
            },
            None => None,
        };
        let MessagePage { messages, next, now } =
            self.message_page(after, limit, move |engine, after, most| engine.uncertain(of, after, most))?;
        let shown = messages.into_iter().map(|(status, message)| {
            let written =
                status.steps.iter().rev().find(|step| matches!(step.kind, StepKind::Submitted { .. }));
            api::UncertainView {
                id: status.id.to_string(),
                peer: self.name_of(status.peer),
                account: self.name_of(status.origin),
                source: numbers.address(&message.source),
                destination: numbers.address(&message.destination),
                at: message.accepted_at.0,
                since: written.map(|step| step.at.0),
                until: status.until.map(|at| now.wall_of(at).0),
                state: MessageStateView::Uncertain,
                attempts: status.attempts,
                length: message.text.octets.len(),
            }
        });
        Ok(api::UncertainPageView { messages: shown.collect(), next })
    }

    fn settle_uncertain(
        &self,
        request: api::SettleUncertainRequest,
        by: &str,
    ) -> Result<api::SettleUncertainResult, Problem> {
        let action = match request.remedy {
            api::UncertainRemedy::SendAgain => AdminAction::SendAgain,
            api::UncertainRemedy::GiveUp => AdminAction::GiveUp,
        };
        let who: Arc<str> = by.into();
        let (settled, skipped) = match (request.peer, request.ids) {
            (None, Some(ids)) if ids.len() <= 1000 => {
                let ids = ids.iter().map(|id| parse_id(id)).collect::<Result<Vec<_>, _>>()?;
                self.act_on_all(&ids, action, &who)?
            }
            (None, Some(_)) => return Err(field_problem("/ids", "are too many", Some("at most 1000"))),
            (Some(name), None) => {
                let Some(peer) = self.parse_peer("/peer", Some(&name))? else {
                    return Err(shutting_down_problem());
                };
                // The ids are listed first: a message that is sent again may become uncertain again, and must not be
                // settled twice.
                let all =
                    self.core.query(move |engine, _| engine.uncertain(Some(peer), MessageId(0), usize::MAX));
                self.act_on_all(&all.ok_or_else(shutting_down_problem)?, action, &who)?
            }
            _ => return Err(field_problem("", "selects no messages", Some("either `peer` or `ids`"))),
        };
        tracing::info!(by, settled, ?action, "uncertain messages settled by admin");
        Ok(api::SettleUncertainResult { settled, skipped })
    }
}
