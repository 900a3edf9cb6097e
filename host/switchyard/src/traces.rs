//! Traces of messages in the API, from memory, store and archive.

use crate::api_backend::Switchyard;
use crate::messages::message_state;
use admin::{Problem, ProblemKind};
use api::MessageStateView;
use archive::{DecodedTrace, Direction};
use engine::{LockHolder, MessageProgress, MessageState, MessageStatus};
use model::{
    Address, AdminActionKind, DlrRequest, DlrState, FinalRecord, Leg, Message, MessageId, Now, PeerId,
    PeerMessageId, PluginVersion, Priority, RoutingDecision, SenderFallback, SenderRequest, StepKind, Text,
    Verdict,
};
use std::sync::Arc;

/// A function that returns peer names.
pub(crate) type Names<'a> = &'a dyn Fn(PeerId) -> String;

/// Describes a verdict.
pub(crate) fn describe_verdict(verdict: &Verdict, sender: Option<&SenderRequest>, name: Names<'_>) -> String {
    let mut text = match verdict {
        Verdict::Forward(legs) => {
            let legs: Vec<String> = legs.iter().map(|leg| describe_leg(leg, name)).collect();
            format!("forward: {}", legs.join(", then "))
        }
        Verdict::Hold(until) => format!("hold until {}", until.0),
        Verdict::Reject(reason) => format!("reject: {reason}"),
    };
    if let Some(request) = sender {
        let pool = &request.pool;
        text.push_str(&match request.otherwise {
            SenderFallback::Reject => format!("; sender from pool {pool}, otherwise reject"),
            SenderFallback::KeepSender => format!("; sender from pool {pool}, otherwise keep the sender"),
            SenderFallback::Hold => format!("; sender from pool {pool}, otherwise hold"),
        });
    }
    text
}

fn describe_leg(leg: &Leg, name: Names<'_>) -> String {
    let mut text = format!("{} (rank {}, weight {}", name(leg.peer), leg.rank, leg.weight);
    if let Some(wait) = leg.longest_wait {
        text.push_str(&format!(", max wait {wait:?}"));
    }
    if leg.source.is_some() {
        text.push_str(", source rewritten");
    }
    if leg.destination.is_some() {
        text.push_str(", destination rewritten");
    }
    text.push(')');
    text
}

/// Rebuilds a message from its archive record and trace.
pub(crate) fn archived_message(
    record: &archive::Record,
    origin: PeerId,
    decoded: &DecodedTrace,
) -> (Message, FinalRecord) {
    let address = |ton, npi, text: &str| {
        let octets = archive::Record::octets(text).unwrap_or_else(|| text.as_bytes().to_vec());
        Address::new(ton, npi, &octets)
    };
    let by = PluginVersion { plugin: record.router.clone(), version: record.router_version.clone() };
    let message = Message {
        id: record.id,
        kind: model::MessageKind::Text,
        origin,
        source: address(record.source_ton, record.source_npi, &record.source),
        destination: address(record.destination_ton, record.destination_npi, &record.destination),
        service_type: bytes::Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::new(record.priority),
        dlr_request: DlrRequest::NONE,
        replace_if_present: false,
        submission: record.submission(),
        text: Text {
            octets: record.body.clone().unwrap_or_default().into(),
            data_coding: record.data_coding,
            udhi: record.udhi,
            payload: false,
        },
        tlvs: bytes::Bytes::new(),
        accepted_at: record.accepted_at,
        scheduled: None,
        expires_at: decoded.expires_at,
        routed: RoutingDecision {
            verdict: decoded.verdict.clone().unwrap_or(Verdict::Forward(Vec::new())),
            by: Arc::new(by),
            note: record.note.as_deref().map(Into::into),
            sender: decoded.sender.clone().map(Box::new),
            quote: None,
            host_calls: None,
            fault_message_id: None,
        },
    };
    let ended = FinalRecord {
        state: record.state,
        at: record.ended_at,
        error: record.error,
        peer: None,
        peer_id: PeerMessageId::default(),
        steps: decoded.steps.clone(),
    };
    (message, ended)
}

impl Switchyard {
    /// Describes a step; `peer` is the peer of the last submission.
    fn describe_step(&self, kind: &StepKind, peer: &str, name: Names<'_>) -> String {
        match kind {
            StepKind::Accepted => "accepted and written to disk".to_owned(),
            StepKind::Submitted { peer, attempt } => {
                format!("submitted to {}, attempt {attempt}", name(*peer))
            }
            StepKind::Responded { id } => {
                format!("accepted by the peer, id {:?}", String::from_utf8_lossy(&id.0))
            }
            StepKind::Refused { code } => {
                format!("refused by the peer: {}", self.causes.describe_code(peer, *code))
            }
            StepKind::NotSent => "not sent: the link closed before the write".to_owned(),
            StepKind::Unanswered => "unanswered: outcome unknown".to_owned(),
            StepKind::Deferred { until } => format!("deferred until {}", until.0),
            StepKind::NextLeg { peer } => format!("next leg: {}", name(*peer)),
            StepKind::SentAgain => "will be sent again because the outcome is unknown".to_owned(),
            StepKind::StatusQueried => "status queried at the peer".to_owned(),
            StepKind::DlrReceived { state, error } => {
                let state = DlrState::from_octet(*state);
                format!("DLR: {}, error {error}", state.map_or("?".to_owned(), |state| format!("{state:?}")))
            }
            StepKind::Replaced => "text replaced by the submitter".to_owned(),
            StepKind::Held { until } => format!("held until {}", until.0),
            StepKind::Rerouted { peer } => format!("rerouted to {}", name(*peer)),
            StepKind::Recovered => "recovered after a restart of the daemon".to_owned(),
            StepKind::Decided { hook, by, note } => {
                let note = note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
                format!("decided by {} {} ({}){note}", by.plugin, by.version, hook.name())
            }
            StepKind::Resolving => "waiting for number resolution".to_owned(),
            StepKind::Resolved { peer, cached } => {
                let how = if *cached { " (cached)" } else { "" };
                format!("subscriber found{how}: {}", name(*peer))
            }
            StepKind::UnknownSubscriber { cached } => {
                format!("no such subscriber{}", if *cached { " (cached)" } else { "" })
            }
            StepKind::SubscriberRequeried { .. } => {
                "the peer does not know the subscriber; the number is resolved again".to_owned()
            }
            StepKind::AwaitingAlert { until } => {
                format!("waiting for an alert for the subscriber, until {}", until.0)
            }
            StepKind::MovedBehindOthers { until } => {
                format!("deferred until {}; other messages to the subscriber go first", until.0)
            }
            StepKind::SenderLeased { pool, number } => {
                format!("sender: {number}, from pool {pool}")
            }
            StepKind::SenderUnavailable { pool } => format!("no sender available in pool {pool}"),
            StepKind::Charged { amount } => format!("charged {amount}"),
            StepKind::Refunded { amount } => format!("refunded {amount}"),
            StepKind::AdminAction { action, by, queue_action, peer } => {
                let mut text = match action {
                    AdminActionKind::Resumed => "resumed".to_owned(),
                    AdminActionKind::Rerouted => match peer {
                        Some(peer) => format!("rerouted to {}", name(*peer)),
                        None => "rerouted".to_owned(),
                    },
                    AdminActionKind::Cancelled => "cancelled".to_owned(),
                    AdminActionKind::SentAgain => "settled: will be sent again".to_owned(),
                    AdminActionKind::GivenUp => "settled: given up".to_owned(),
                    AdminActionKind::Retried => "retried immediately".to_owned(),
                };
                text.push_str(&format!(", by {by}"));
                if let Some(queue_action) = queue_action {
                    text.push_str(&format!(" (queue action {queue_action})"));
                }
                text
            }
        }
    }

    fn trace(&self, message: &Message, body: bool, name: Names<'_>) -> api::TraceView {
        let routed = &message.routed;
        let text = || smpp::text::decode(message.text.data_coding, &message.text.octets);
        api::TraceView {
            id: message.id.to_string(),
            submission: message.submission.map(|id| id.to_string()),
            state: MessageStateView::Ending,
            finished: false,
            origin: name(message.origin),
            source: message.source.text().into_owned(),
            destination: if body {
                message.destination.text().into_owned()
            } else {
                message.destination.masked()
            },
            accepted_at: message.accepted_at.0,
            expires_at: message.expires_at.0,
            routing: api::RoutingView {
                plugin: routed.by.plugin.clone(),
                version: routed.by.version.clone(),
                note: routed.note.as_deref().map(str::to_owned),
                verdict: describe_verdict(&routed.verdict, routed.sender.as_deref(), name),
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
                what: self.describe_step(&StepKind::Accepted, "", name),
            }],
            peer_ids: Vec::new(),
            length: message.text.octets.len(),
            body: body.then(text),
        }
    }

    fn add_steps(&self, trace: &mut api::TraceView, steps: &[model::Step], name: Names<'_>) {
        let mut peer = String::new();
        for step in steps {
            let what = self.describe_step(&step.kind, &peer, name);
            if let StepKind::Submitted { peer: to, .. } = &step.kind {
                peer = name(*to);
            }
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

    /// The trace of a finished message, from store or archive.
    pub(crate) fn finished(
        &self,
        message: &Message,
        ended: &FinalRecord,
        body: bool,
        name: Names<'_>,
    ) -> api::TraceView {
        let mut trace = self.trace(message, body, name);
        trace.state = ended.state.into();
        trace.finished = true;
        self.add_steps(&mut trace, &ended.steps, name);
        let error = match (ended.error, self.causes.of_final_with_names(ended, name)) {
            (0, _) => String::new(),
            (code, Some(cause)) => format!(", error {code}: {cause}"),
            (code, None) => format!(", error {code}"),
        };
        trace
            .steps
            .push(api::StepView { at: ended.at.0, what: format!("ended: {}{error}", ended.state.name()) });
        trace
    }

    /// The trace of an unfinished message.
    pub(crate) fn waiting(
        &self,
        message: &Message,
        live: Option<(MessageStatus, Now)>,
        progress: Option<&MessageProgress>,
        body: bool,
    ) -> api::TraceView {
        let name: Names<'_> = &|peer| self.name_of(peer);
        let mut trace = self.trace(message, body, name);
        let Some((status, now)) = live else {
            if let Some(progress) = progress {
                self.add_steps(&mut trace, &progress.steps, name);
            }
            return trace;
        };
        let until = status.until.map(|at| now.wall_of(at).0);
        let peer = self.name_of(status.peer);
        trace.routing.leg = Some(usize::from(status.leg));
        self.add_steps(&mut trace, &status.steps, name);
        if let Some(at) = status.submitted_at
            && !status.steps.iter().rev().any(
                |step| matches!(step.kind, StepKind::Submitted { attempt, .. } if attempt == status.attempts),
            )
        {
            let kind = StepKind::Submitted { peer: status.peer, attempt: status.attempts };
            trace.steps.push(api::StepView { at: at.0, what: self.describe_step(&kind, "", name) });
        }
        let last = status.steps.last();
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
            MessageState::Submitted => format!("written to a link of {peer}; awaits the response"),
            MessageState::Deferred if awaits_alert => format!(
                "subscriber not reachable: next attempt at {}, or when an alert for the subscriber arrives",
                until.unwrap_or(0)
            ),
            MessageState::Deferred => format!("next attempt at {}", until.unwrap_or(0)),
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
    pub(crate) fn archived_trace(&self, id: MessageId, body: bool) -> Result<api::TraceView, Problem> {
        let nowhere = || {
            let detail = format!("message {id} was never accepted, or was deleted after its retention");
            Problem::new(ProblemKind::NotFound, detail)
        };
        let history = self.history.as_ref().ok_or_else(nowhere)?;
        let record =
            history.get(id).map_err(|error| Problem::new(ProblemKind::Unavailable, error.to_string()))?;
        let record = record.ok_or_else(nowhere)?;
        // Names from the archive; such a peer may have been removed from the configuration.
        let mut names: Vec<String> = Vec::new();
        let mut number = |name: &str| {
            let known = names.iter().position(|known| known == name).unwrap_or_else(|| {
                names.push(name.to_owned());
                names.len() - 1
            });
            PeerId(u32::try_from(known).unwrap_or(u32::MAX))
        };
        let origin = number(match record.direction {
            Direction::Mt => &record.account,
            Direction::Mo => &record.peer,
        });
        let text = record.trace.as_ref().map(|trace| trace.get());
        let decoded = text.and_then(|text| archive::decode_trace(text, &mut number)).unwrap_or_default();
        let (message, ended) = archived_message(&record, origin, &decoded);
        let mut trace = self.finished(&message, &ended, body, &|peer| {
            names.get(peer.0 as usize).cloned().unwrap_or_default()
        });
        trace.price = decoded.price.map(|price| api::PriceView {
            plugin: price.plugin,
            version: price.version,
            note: price.note,
            account: price.account,
            amount: price.amount,
        });
        if decoded.verdict.is_none() {
            trace.routing.verdict = format!("archived without a route; sent to {}", record.peer);
        }
        Ok(trace)
    }
}
