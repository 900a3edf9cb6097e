//! Traces of messages in the API, from memory, store and archive.

use crate::archived_message::archived_message;
use crate::arguments::parse_id;
use crate::blocked_by::describe_pace;
use crate::message_service::MessageService;
use crate::message_state::message_state;
use crate::problems::shutting_down_problem;
use admin::{Problem, ProblemKind};
use api::MessageStateView;
use archive::TraceScreening;
use engine::{LockHolder, MessageState, MessageStatus};
use model::{
    AccountScope, Direction, Directory, FinalRecord, HIDDEN_PEER, Lookup, Message, MessageChanges, MessageId,
    MessageProgress, Now, NumberDisplay, PeerId, PluginVersion, Screening, SenderRequest, Step, StepKind,
    Text, Verdict,
};
use std::sync::Arc;
use store::StoredMessage;

/// Describes a verdict and its sender request.
pub(crate) fn describe_verdict(
    verdict: &Verdict<Arc<str>>,
    sender: Option<&SenderRequest>,
    changes: Option<&MessageChanges>,
) -> String {
    let sender = sender.map_or(String::new(), |request| format!("; {request}"));
    let changes = changes.map_or(String::new(), |changes| format!("; {changes}"));
    format!("{verdict}{sender}{changes}")
}

/// Describes a verdict of live routing.
pub(crate) fn describe_routing(
    directory: &Directory,
    verdict: &Verdict,
    sender: Option<&SenderRequest>,
    changes: Option<&MessageChanges>,
) -> String {
    describe_verdict(&verdict.map_peers(|peer| directory.name(*peer)), sender, changes)
}

fn screening_view(
    by: &PluginVersion,
    note: Option<&str>,
    changes: Option<&MessageChanges>,
    submitted: Option<&Text>,
    with_body: bool,
) -> api::ScreeningView {
    api::ScreeningView {
        plugin: by.plugin.clone(),
        version: by.version.clone(),
        note: note.map(str::to_owned),
        changes: changes.map(ToString::to_string),
        text_replaced: submitted.is_some(),
        submitted_body: submitted.filter(|_| with_body).map(|text| ports::text::display(text).0),
    }
}

fn lookup_view(lookup: &Lookup) -> api::LookupView {
    let Lookup { result, attributes, by, note, cached, host_calls: _ } = lookup;
    api::LookupView {
        plugin: by.plugin.clone(),
        version: by.version.clone(),
        note: note.as_deref().map(str::to_owned),
        result: (*result).into(),
        attributes: attributes.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        cached: *cached,
    }
}

/// Adds a step of a submit attempt to the attempts; `what` describes the step.
fn note_attempt(attempts: &mut Vec<api::AttemptView>, step: &Step<Arc<str>>, what: &str) {
    let at = step.at.0;
    if let StepKind::Submitted { peer, attempt } = &step.kind {
        attempts.push(api::AttemptView {
            number: *attempt,
            peer: peer.to_string(),
            submitted_at: at,
            ended_at: None,
            outcome: None,
            detail: None,
            dlr_at: None,
            dlr: None,
        });
        return;
    }
    let from_earlier_leg = match &step.kind {
        StepKind::LateDlrReceived { peer, .. } => Some(peer),
        _ => None,
    };
    let mut newest_first = attempts.iter_mut().rev();
    let Some(attempt) = (match from_earlier_leg {
        Some(peer) => newest_first.find(|attempt| *attempt.peer == **peer),
        None => newest_first.next(),
    }) else {
        return;
    };
    let (outcome, detail) = match &step.kind {
        StepKind::Responded { id } => {
            (api::AttemptOutcome::Accepted, Some(String::from_utf8_lossy(&id.0).into_owned()))
        }
        StepKind::Refused { .. } => {
            let detail = what.split_once(": ").map_or(what, |(_, detail)| detail);
            (api::AttemptOutcome::Refused, Some(detail.to_owned()))
        }
        StepKind::Unanswered => (api::AttemptOutcome::Unanswered, None),
        StepKind::NotSent => (api::AttemptOutcome::NotSent, None),
        StepKind::DlrReceived { .. } | StepKind::LateDlrReceived { .. } | StepKind::DlrRemapped { .. } => {
            attempt.dlr_at = Some(at);
            attempt.dlr = Some(what.to_owned());
            return;
        }
        _ => return,
    };
    attempt.ended_at = Some(at);
    attempt.outcome = Some(outcome);
    attempt.detail = detail.filter(|detail| !detail.is_empty());
}

/// Visibility of the parts of a trace.
#[derive(Clone, Copy)]
struct TraceDisplay<'a> {
    /// Whether the text is shown.
    body: bool,
    numbers: NumberDisplay,
    /// Scope of the visible names.
    scope: &'a AccountScope,
}

impl TraceDisplay<'_> {
    fn peer(&self, name: &Arc<str>) -> Arc<str> {
        if self.scope.has_peer(name) { name.clone() } else { HIDDEN_PEER.into() }
    }

    fn verdict(&self, verdict: &Verdict<Arc<str>>) -> Verdict<Arc<str>> {
        verdict.map_peers(|peer| self.peer(peer))
    }

    /// The steps, without foreign names, and without notes of plugins, which may contain any name.
    fn steps(&self, steps: &[Step<Arc<str>>]) -> Vec<Step<Arc<str>>> {
        let mut shown: Vec<_> = steps.iter().map(|step| step.map_peers(|peer| self.peer(peer))).collect();
        if *self.scope != AccountScope::Everything {
            for step in &mut shown {
                if let StepKind::Decided { note, .. } = &mut step.kind {
                    *note = None;
                }
            }
        }
        shown
    }

    /// The trace, without notes of plugins, without foreign ledger accounts, and without details of what the message
    /// waits for, since these may concern foreign messages.
    fn trace(&self, mut trace: api::TraceView) -> api::TraceView {
        if *self.scope == AccountScope::Everything {
            return trace;
        }
        trace.routing.note = None;
        if let Some(screening) = &mut trace.screening {
            screening.note = None;
        }
        if let Some(lookup) = &mut trace.lookup {
            lookup.note = None;
        }
        if let Some(price) = &mut trace.price {
            price.note = None;
            price.account = price.account.take().filter(|name| self.scope.has_ledger_account(name));
        }
        trace.waiting_for = trace.waiting_for.map(|_| trace.state.name().to_owned());
        trace
    }
}

/// Placeholder for a peer of which only the name is known.
const UNKNOWN_PEER: PeerId = PeerId(u32::MAX);

impl MessageService {
    /// Describes a step; `peer` is the peer of the last submission.
    fn describe_step(&self, kind: &StepKind<Arc<str>>, peer: &str, numbers: NumberDisplay) -> String {
        match kind {
            StepKind::SenderLeased { pool, number } => {
                format!("sender: {}, from pool {pool}", numbers.text(number.to_string()))
            }
            StepKind::Refused { code } => {
                format!("refused by the peer: {}", self.causes.describe_code(peer, *code))
            }
            kind => kind.to_string(),
        }
    }

    fn named_steps(&self, steps: &[Step]) -> Vec<Step<Arc<str>>> {
        let directory = self.directory.load();
        let shown = steps.iter().filter(|step| !step.kind.is_record());
        shown.map(|step| step.map_peers(|peer| directory.name(*peer))).collect()
    }

    fn trace(
        &self,
        message: &Message,
        origin: String,
        verdict: String,
        TraceDisplay { body, numbers, .. }: TraceDisplay<'_>,
    ) -> api::TraceView {
        let routed = &message.routed;
        let text = || smpp::text::decode(message.text.data_coding, &message.text.octets);
        api::TraceView {
            id: message.id.to_string(),
            submission: message.submission.map(|id| id.to_string()),
            state: MessageStateView::Ending,
            finished: false,
            origin,
            source: numbers.address(&message.source),
            destination: numbers.address(&message.destination),
            accepted_at: message.accepted_at.0,
            expires_at: message.expires_at.0,
            screening: None,
            lookup: None,
            routing: api::RoutingView {
                plugin: routed.by.plugin.clone(),
                version: routed.by.version.clone(),
                note: routed.note.as_deref().map(str::to_owned),
                verdict,
                leg: None,
            },
            price: routed.quote.as_ref().map(|quote| api::PriceView {
                plugin: quote.by.plugin.clone(),
                version: quote.by.version.clone(),
                note: quote.note.as_deref().map(str::to_owned),
                account: quote.charge.as_ref().map(|charge| charge.account.to_string()),
                amount: quote.charge.as_ref().map_or(0, |charge| charge.amount),
            }),
            waiting_for: None,
            steps: vec![api::StepView {
                at: message.accepted_at.0,
                what: self.describe_step(&StepKind::Accepted, "", numbers),
            }],
            attempts: Vec::new(),
            segments: message.text.segment_count(),
            peer_ids: Vec::new(),
            length: message.text.octets.len(),
            body: body.then(text),
            content_erased_at: None,
        }
    }

    fn add_steps(&self, trace: &mut api::TraceView, steps: &[Step<Arc<str>>], numbers: NumberDisplay) {
        let mut peer = "";
        for step in steps {
            let what = self.describe_step(&step.kind, peer, numbers);
            if let StepKind::Submitted { peer: to, .. } = &step.kind {
                peer = to;
            }
            note_attempt(&mut trace.attempts, step, &what);
            trace.steps.push(api::StepView { at: step.at.0, what });
        }
        trace.peer_ids = steps
            .iter()
            .filter_map(|step| match &step.kind {
                StepKind::Responded { id } => Some(String::from_utf8_lossy(&id.0).into_owned()),
                _ => None,
            })
            .collect();
    }

    fn add_end(
        &self,
        trace: &mut api::TraceView,
        ended: &FinalRecord,
        steps: &[Step<Arc<str>>],
        numbers: NumberDisplay,
    ) {
        trace.state = ended.state.into();
        trace.finished = true;
        trace.content_erased_at = model::content_erased_at(steps).map(|at| at.0);
        if trace.content_erased_at.is_some() {
            trace.body = None;
        }
        self.add_steps(trace, steps, numbers);
        let error = match (ended.error, self.causes.of_steps(ended.error, steps)) {
            (0, _) => String::new(),
            (code, Some(cause)) => format!(", error {code}: {cause}"),
            (code, None) => format!(", error {code}"),
        };
        trace
            .steps
            .push(api::StepView { at: ended.at.0, what: format!("ended: {}{error}", ended.state.name()) });
    }

    fn live_trace(&self, message: &Message, shown: TraceDisplay<'_>) -> api::TraceView {
        let routed = &message.routed;
        let directory = self.directory.load();
        let verdict = describe_verdict(
            &shown.verdict(&routed.verdict.map_peers(|peer| directory.name(*peer))),
            routed.sender.as_deref(),
            routed.changes.as_deref(),
        );
        let mut trace = self.trace(message, self.name_of(message.origin), verdict, shown);
        trace.screening = routed.screening.as_deref().map(|screening| {
            let Screening { by, note, changes, submitted_text, .. } = screening;
            screening_view(by, note.as_deref(), changes.as_deref(), submitted_text.as_ref(), shown.body)
        });
        trace.lookup = routed.lookup.as_deref().map(lookup_view);
        trace
    }

    /// The trace of a finished message in the store.
    fn finished(&self, message: &Message, ended: &FinalRecord, shown: TraceDisplay<'_>) -> api::TraceView {
        let mut trace = self.live_trace(message, shown);
        self.add_end(&mut trace, ended, &shown.steps(&self.named_steps(&ended.steps)), shown.numbers);
        trace
    }

    /// The trace of an unfinished message.
    fn waiting(
        &self,
        message: &Message,
        live: Option<(MessageStatus, Now)>,
        progress: Option<&MessageProgress>,
        shown: TraceDisplay<'_>,
    ) -> api::TraceView {
        let mut trace = self.live_trace(message, shown);
        let Some((status, now)) = live else {
            if let Some(progress) = progress {
                self.add_steps(&mut trace, &shown.steps(&self.named_steps(&progress.steps)), shown.numbers);
            }
            return trace;
        };
        let until = status.until.map(|at| now.wall_of(at).0);
        let peer = shown.scope.shown_peer(&self.name_of(status.peer)).to_owned();
        trace.routing.leg = Some(usize::from(status.leg));
        self.add_steps(&mut trace, &shown.steps(&self.named_steps(&status.steps)), shown.numbers);
        if let Some(at) = status.submitted_at
            && !status.steps.iter().rev().any(
                |step| matches!(step.kind, StepKind::Submitted { attempt, .. } if attempt == status.attempts),
            )
        {
            let kind = StepKind::Submitted { peer: peer.as_str(), attempt: status.attempts };
            let what = kind.to_string();
            let kind = StepKind::Submitted { peer: peer.as_str().into(), attempt: status.attempts };
            note_attempt(&mut trace.attempts, &Step { at, kind }, &what);
            trace.steps.push(api::StepView { at: at.0, what });
        }
        let last = status.steps.iter().rfind(|step| !step.kind.is_record());
        let awaits_alert = last.is_some_and(|step| matches!(step.kind, StepKind::AwaitingAlert { .. }));
        trace.state = message_state(status.state);
        let why = match status.state {
            MessageState::Queued => format!(
                "queued for {peer}, queue length {}; {}",
                status.queue_length,
                self.describe_message_block(&status, now)
            ),
            MessageState::SubscriberLocked => {
                let why = match status.lock_holder {
                    None => "behind another message to the same subscriber".to_owned(),
                    Some(LockHolder { id, .. }) if id == status.id => {
                        "the content is being read from disk".to_owned()
                    }
                    Some(LockHolder { id, retry_at: None }) => {
                        format!("behind message {id} to the same subscriber")
                    }
                    Some(LockHolder { id, retry_at: Some(at) }) => format!(
                        "subscriber not reachable: message {id}, which is first, is retried at {}, or \
                         when an alert for the subscriber arrives",
                        now.wall_of(at).0
                    ),
                };
                format!("queued for {peer}, {why}")
            }
            MessageState::Suspended => {
                let action = status.held_by.map_or(String::new(), |action| self.describe_action(action));
                format!("first in the queue of {peer}, but suspended{action}")
            }
            MessageState::Paced => {
                let limit = status.paced_by.as_ref().map_or(String::new(), |by| describe_pace(by, now));
                format!("first in the queue of {peer}, but waits{limit}")
            }
            MessageState::Submitted => format!("written to a link of {peer}; awaits the response"),
            MessageState::Deferred if awaits_alert => format!(
                "subscriber not reachable: next attempt at {}, or when an alert for the subscriber arrives",
                until.unwrap_or(0)
            ),
            MessageState::Deferred => format!("next attempt at {}", until.unwrap_or(0)),
            MessageState::Quarantined => "in quarantine until an admin releases or purges it".to_owned(),
            MessageState::AwaitingLookup => {
                format!("awaits the lookup of its number; routed without it at {}", until.unwrap_or(0))
            }
            MessageState::Held => format!("held by routing; routed again at {}", until.unwrap_or(0)),
            MessageState::Resolving => {
                let deferral = status.resolver_deferral.map_or(String::new(), |(by, note)| {
                    let note = note.map_or(String::new(), |note| format!(": {note}"));
                    format!("; {} {} deferred{note}", by.plugin, by.version)
                });
                let until = until.map_or(String::new(), |at| format!("; next attempt at {at}"));
                format!("awaits number resolution{deferral}{until}")
            }
            MessageState::Deciding => format!("refused by {peer}; the delivery policy decides"),
            MessageState::Uncertain => format!(
                "written to {peer}, no response; awaits a DLR or an admin until {}",
                until.unwrap_or(0)
            ),
            MessageState::AwaitingDlr => {
                format!("accepted by {peer}; awaits the DLR until {}", until.unwrap_or(0))
            }
            MessageState::Ending => "the final record is being written".to_owned(),
        };
        trace.waiting_for = Some(why);
        trace
    }

    /// The trace of an archived message, in the same form as from the store.
    fn archived_trace(&self, id: MessageId, shown: TraceDisplay<'_>) -> Result<api::TraceView, Problem> {
        let nowhere = || {
            let detail = format!("message {id} was never accepted, or was deleted after its retention");
            Problem::new(ProblemKind::NotFound, detail)
        };
        let history = self.history.as_ref().ok_or_else(nowhere)?;
        let record =
            history.get(id).map_err(|error| Problem::new(ProblemKind::Unavailable, error.to_string()))?;
        let record = record.ok_or_else(nowhere)?;
        if !shown.scope.has_account(&record.account)
            || record.direction != Direction::Mt && *shown.scope != AccountScope::Everything
        {
            return Err(nowhere());
        }
        let origin = match record.direction {
            Direction::Mt => &record.account,
            Direction::Mo => &record.peer,
        };
        let decoded = record.decoded_trace().unwrap_or_default();
        // The names come from the archive: such a peer may no longer be in the configuration.
        let (mut message, ended) = archived_message(&record, UNKNOWN_PEER);
        message.expires_at = decoded.expires_at;
        let verdict = match &decoded.verdict {
            Some(verdict) => {
                describe_verdict(&shown.verdict(verdict), decoded.sender.as_ref(), decoded.changes.as_ref())
            }
            None => format!("archived without a route; sent to {}", shown.scope.shown_peer(&record.peer)),
        };
        let mut trace = self.trace(&message, origin.clone(), verdict, shown);
        self.add_end(&mut trace, &ended, &shown.steps(&decoded.steps), shown.numbers);
        trace.screening = decoded.screening.map(|screening| {
            let TraceScreening { by, note, changes, submitted_text } = &screening;
            screening_view(by, note.as_deref(), changes.as_ref(), submitted_text.as_ref(), shown.body)
        });
        trace.lookup = decoded.lookup.as_ref().map(lookup_view);
        trace.price = decoded.price.map(|price| api::PriceView {
            plugin: price.plugin,
            version: price.version,
            note: price.note,
            account: price.account,
            amount: price.amount,
        });
        Ok(trace)
    }
}

impl admin::Traces for MessageService {
    fn message(
        &self,
        id: &str,
        body: bool,
        numbers: NumberDisplay,
        scope: &AccountScope,
    ) -> Result<api::TraceView, Problem> {
        let id = parse_id(id)?;
        // Memory first, for the current state. The content is always in the store.
        let live = self
            .core
            .query(move |engine, now| engine.message(id).map(|status| (status, now)))
            .ok_or_else(shutting_down_problem)?;
        let found =
            self.store.find(id).map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
        if body {
            tracing::info!(id = id.0, "message text read by admin");
        }
        let shown = TraceDisplay { body, numbers, scope };
        let has = |message: &Message| scope.has_account(&self.name_of(message.origin));
        let trace = match found {
            Some(StoredMessage::Waiting(message, progress)) if has(&message) => {
                self.waiting(&message, live, progress.as_ref(), shown)
            }
            Some(StoredMessage::Finished(message, ended)) if has(&message) => {
                self.finished(&message, &ended, shown)
            }
            // A foreign message: it is not in the archive yet, or hidden there, too.
            _ => self.archived_trace(id, shown)?,
        };
        Ok(shown.trace(trace))
    }

    fn explain(&self, asked: api::ExplainRequest) -> Result<api::ExplanationView, Problem> {
        self.explain_message(&asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::AttemptOutcome;
    use model::{PeerMessageId, Timestamp};

    fn attempts(steps: &[(u64, StepKind<Arc<str>>)]) -> Vec<api::AttemptView> {
        let mut attempts = Vec::new();
        for (at, kind) in steps {
            let what = kind.to_string();
            note_attempt(&mut attempts, &Step { at: Timestamp(*at), kind: kind.clone() }, &what);
        }
        attempts
    }

    #[test]
    fn attempts_have_their_outcome_and_their_dlr() {
        let submitted = |peer: &str, attempt| StepKind::Submitted { peer: peer.into(), attempt };
        let found = attempts(&[
            (1, StepKind::Accepted),
            (2, submitted("north", 1)),
            (3, StepKind::Refused { code: 0x58 }),
            (3, StepKind::Deferred { until: Timestamp(9) }),
            (9, submitted("north", 2)),
            (10, StepKind::Responded { id: PeerMessageId::new(b"a1") }),
            (20, submitted("harbour", 3)),
            (25, StepKind::LateDlrReceived { peer: "north".into(), state: 2, error: 0 }),
        ]);
        let outcomes: Vec<_> = found.iter().map(|one| (one.number, one.outcome, one.ended_at)).collect();
        assert_eq!(
            outcomes,
            [
                (1, Some(AttemptOutcome::Refused), Some(3)),
                (2, Some(AttemptOutcome::Accepted), Some(10)),
                (3, None, None)
            ]
        );
        assert_eq!(
            (found[1].detail.as_deref(), found[1].dlr_at, found[2].dlr_at),
            (Some("a1"), Some(25), None)
        );
        assert!(attempts(&[(1, StepKind::NotSent)]).is_empty());
    }
}
