//! What became of a message: traces as the API shows them, of messages in memory, in the store and in the archive.

use crate::appliance::Switchyard;
use admin::{Kind, Problem, view};
use archive::{DecodedTrace, Direction};
use engine::{Before, Doing, MessageStatus, Progress};
use model::{
    Address, DecidedBy, Deed, Final, Leg, Message, MessageId, NoSender, Now, PeerId, PeerMessageId, Priority,
    ReceiptRequest, ReceiptState, Routed, SenderWish, StepKind, Text, Verdict,
};
use std::sync::Arc;

/// The names of peers and accounts.
pub(crate) type Names<'a> = &'a dyn Fn(PeerId) -> String;

/// A verdict in words.
pub(crate) fn verdict_words(verdict: &Verdict, sender: Option<&SenderWish>, name: Names<'_>) -> String {
    let mut words = match verdict {
        Verdict::Forward(legs) => {
            let legs: Vec<String> = legs.iter().map(|leg| leg_words(leg, name)).collect();
            format!("forward: {}", legs.join(", then "))
        }
        Verdict::Hold(until) => format!("hold until {}", until.0),
        Verdict::Reject(reason) => format!("reject: {reason}"),
    };
    if let Some(wish) = sender {
        let pool = &wish.pool;
        words.push_str(&match wish.otherwise {
            NoSender::Reject => format!("; as a number of pool {pool}, refused without one"),
            NoSender::KeepSender => format!("; as a number of pool {pool}, or as it came without one"),
            NoSender::Hold => format!("; as a number of pool {pool}, held until there is one"),
        });
    }
    words
}

fn leg_words(leg: &Leg, name: Names<'_>) -> String {
    let mut words = format!("{} (rank {}, weight {}", name(leg.peer), leg.rank, leg.weight);
    if let Some(wait) = leg.longest_wait {
        words.push_str(&format!(", at most {wait:?}"));
    }
    if leg.source.is_some() {
        words.push_str(", other source");
    }
    if leg.destination.is_some() {
        words.push_str(", rewritten destination");
    }
    words.push(')');
    words
}

/// A message as far as the archive and its trace tell of it.
pub(crate) fn archived_message(
    record: &archive::Record,
    origin: PeerId,
    told: &DecodedTrace,
) -> (Message, Final) {
    let address = |ton, npi, text: &str| {
        let octets = archive::Record::octets(text).unwrap_or_else(|| text.as_bytes().to_vec());
        Address::new(ton, npi, &octets)
    };
    let by = DecidedBy { plugin: record.router.clone(), version: record.router_version.clone() };
    let message = Message {
        id: record.id,
        kind: model::Kind::Text,
        origin,
        source: address(record.source_ton, record.source_npi, &record.source),
        destination: address(record.destination_ton, record.destination_npi, &record.destination),
        service_type: bytes::Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: Priority::new(record.priority),
        receipts: ReceiptRequest::NONE,
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
        expires_at: told.expires_at,
        routed: Routed {
            verdict: told.verdict.clone().unwrap_or(Verdict::Forward(Vec::new())),
            by: Arc::new(by),
            note: record.note.as_deref().map(Into::into),
            sender: told.sender.clone().map(Box::new),
            quote: None,
            seen: None,
            faulted: None,
        },
    };
    let ended = Final {
        state: record.state,
        at: record.ended_at,
        error: record.error,
        peer: None,
        peer_id: PeerMessageId::default(),
        steps: told.steps.clone(),
    };
    (message, ended)
}

impl Switchyard {
    /// A step in words; `peer` is the one to which the message was last submitted.
    fn step_words(&self, kind: &StepKind, peer: &str, name: Names<'_>) -> String {
        match kind {
            StepKind::Accepted => "accepted, and on disk".to_owned(),
            StepKind::Submitted { peer, attempt } => {
                format!("submitted to {}, attempt {attempt}", name(*peer))
            }
            StepKind::Responded { id } => {
                format!("taken by the peer, as {:?}", String::from_utf8_lossy(&id.0))
            }
            StepKind::Refused { code } => {
                format!("refused by the peer: {}", self.causes.words(peer, *code))
            }
            StepKind::NotSent => "not sent: the link closed before it was written".to_owned(),
            StepKind::Unanswered => "unanswered: whether the peer has it is not known".to_owned(),
            StepKind::Deferred { until } => format!("deferred until {}", until.0),
            StepKind::NextLeg { peer } => format!("next leg: {}", name(*peer)),
            StepKind::SentAgain => "to be sent again, to settle the doubt".to_owned(),
            StepKind::Asked => "the peer was asked".to_owned(),
            StepKind::Reported { state, error } => {
                let state = ReceiptState::from_octet(*state);
                format!(
                    "receipt: {}, error {error}",
                    state.map_or("?".to_owned(), |state| format!("{state:?}"))
                )
            }
            StepKind::Replaced => "text replaced by the submitter".to_owned(),
            StepKind::Held { until } => format!("held until {}", until.0),
            StepKind::Rerouted { peer } => format!("routed anew, to {}", name(*peer)),
            StepKind::Recovered => "found on its way when the daemon was started again".to_owned(),
            StepKind::Decided { hook, by, note } => {
                let note = note.as_deref().map(|note| format!(": {note}")).unwrap_or_default();
                format!("decided by {} {} ({}){note}", by.plugin, by.version, hook.name())
            }
            StepKind::Resolving => "waiting for the subscriber behind the number to be found".to_owned(),
            StepKind::Resolved { peer, cached } => {
                let how = if *cached { ", as remembered" } else { "" };
                format!("subscriber found{how}, at {}", name(*peer))
            }
            StepKind::UnknownSubscriber { cached } => {
                format!("no such subscriber{}", if *cached { ", as remembered" } else { "" })
            }
            StepKind::AskedAnew { .. } => {
                "the peer does not know the subscriber; the number is asked about once more".to_owned()
            }
            StepKind::AwaitingAlert { until } => {
                format!("waiting for the subscriber to be heard of, until {}", until.0)
            }
            StepKind::OthersFirst { until } => {
                format!("deferred until {}; other messages to the subscriber go first", until.0)
            }
            StepKind::SenderTaken { pool, number } => {
                format!("its sender is {number}, a number of pool {pool}")
            }
            StepKind::NoSender { pool } => format!("no number of pool {pool} was to be had for its sender"),
            StepKind::Charged { amount } => format!("charged {amount}"),
            StepKind::Refunded { amount } => format!("given back {amount}"),
            StepKind::ByHand { deed, by, order, peer } => {
                let mut words = match deed {
                    Deed::Resumed => "held back until now, and let go".to_owned(),
                    Deed::Rebound => match peer {
                        Some(peer) => format!("sent another way, to {}", name(*peer)),
                        None => "sent another way".to_owned(),
                    },
                    Deed::Cancelled => "cancelled".to_owned(),
                    Deed::SentAgain => "its doubt settled: to be sent again".to_owned(),
                    Deed::GivenUp => "its doubt settled: given up".to_owned(),
                    Deed::Retried => "to be tried at once".to_owned(),
                };
                words.push_str(&format!(", by {by}"));
                if let Some(order) = order {
                    words.push_str(&format!(" (order {order})"));
                }
                words
            }
        }
    }

    fn trace(&self, message: &Message, body: bool, name: Names<'_>) -> view::Trace {
        let routed = &message.routed;
        let text = || smpp::text::decode(message.text.data_coding, &message.text.octets);
        view::Trace {
            id: message.id.to_string(),
            submission: message.submission.map(|id| id.to_string()),
            state: String::new(),
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
            why_here: view::WhyHere {
                plugin: routed.by.plugin.clone(),
                version: routed.by.version.clone(),
                note: routed.note.as_deref().map(str::to_owned),
                verdict: verdict_words(&routed.verdict, routed.sender.as_deref(), name),
                leg: None,
            },
            price: routed.quote.as_ref().map(|quote| view::Price {
                plugin: quote.by.plugin.clone(),
                version: quote.by.version.clone(),
                note: quote.note.as_deref().map(str::to_owned),
                account: quote.charge.as_ref().map(|charge| charge.account.to_string()),
                amount: quote.charge.as_ref().map_or(0, |charge| charge.amount),
            }),
            why_late: None,
            steps: vec![view::Step {
                at: message.accepted_at.0,
                what: self.step_words(&StepKind::Accepted, "", name),
            }],
            peer_ids: Vec::new(),
            length: message.text.octets.len(),
            body: body.then(text),
        }
    }

    fn add_steps(&self, trace: &mut view::Trace, steps: &[model::Step], name: Names<'_>) {
        let mut peer = String::new();
        for step in steps {
            let what = self.step_words(&step.kind, &peer, name);
            if let StepKind::Submitted { peer: to, .. } = &step.kind {
                peer = name(*to);
            }
            trace.steps.push(view::Step { at: step.at.0, what });
        }
        trace.peer_ids = steps
            .iter()
            .filter_map(|step| match &step.kind {
                StepKind::Responded { id } => Some(String::from_utf8_lossy(&id.0).into_owned()),
                _ => None,
            })
            .collect();
    }

    /// The trace of a finished message, in the store or in the archive.
    pub(crate) fn finished(
        &self,
        message: &Message,
        ended: &Final,
        body: bool,
        name: Names<'_>,
    ) -> view::Trace {
        let mut trace = self.trace(message, body, name);
        trace.state = ended.state.name().to_owned();
        trace.finished = true;
        self.add_steps(&mut trace, &ended.steps, name);
        let error = match (ended.error, self.causes.of_named(ended, name)) {
            (0, _) => String::new(),
            (code, Some(cause)) => format!(", error {code}: {cause}"),
            (code, None) => format!(", error {code}"),
        };
        trace
            .steps
            .push(view::Step { at: ended.at.0, what: format!("ended: {}{error}", ended.state.name()) });
        trace
    }

    /// The trace of a message that has not ended.
    pub(crate) fn waiting(
        &self,
        message: &Message,
        live: Option<(MessageStatus, Now)>,
        progress: Option<&Progress>,
        body: bool,
    ) -> view::Trace {
        let name: Names<'_> = &|peer| self.name_of(peer);
        let mut trace = self.trace(message, body, name);
        let Some((status, now)) = live else {
            trace.state = "ending".to_owned();
            if let Some(progress) = progress {
                self.add_steps(&mut trace, &progress.steps, name);
            }
            return trace;
        };
        let until = status.until.map(|at| now.wall_of(at).0);
        let peer = self.name_of(status.peer);
        trace.why_here.leg = Some(usize::from(status.leg));
        self.add_steps(&mut trace, &status.steps, name);
        if let Some(at) = status.submitted_at
            && !status.steps.iter().rev().any(
                |step| matches!(step.kind, StepKind::Submitted { attempt, .. } if attempt == status.attempts),
            )
        {
            let kind = StepKind::Submitted { peer: status.peer, attempt: status.attempts };
            trace.steps.push(view::Step { at: at.0, what: self.step_words(&kind, "", name) });
        }
        let last = status.steps.last();
        let awaits_alert = last.is_some_and(|step| matches!(step.kind, StepKind::AwaitingAlert { .. }));
        let (state, why) = match status.doing {
            Doing::Queued => (
                "queued",
                format!(
                    "waits its turn for {peer}, in a queue of {}; {}",
                    status.queue_length,
                    self.brake_of_message(&status, now)
                ),
            ),
            Doing::Aside => {
                let why = match status.before {
                    None => "behind another message to the same subscriber".to_owned(),
                    Some(Before { id, .. }) if id == status.id => {
                        "its content is being read from disk".to_owned()
                    }
                    Some(Before { id, parked_until: None }) => {
                        format!("behind message {id} to the same subscriber")
                    }
                    Some(Before { id, parked_until: Some(at) }) => format!(
                        "subscriber not reachable: message {id}, which goes first, is tried again at {}, or as soon \
                         as the subscriber is heard of",
                        now.wall_of(at).0
                    ),
                };
                ("queued", format!("waits its turn for {peer}, {why}"))
            }
            Doing::Suspended => {
                let order = status.order.map_or(String::new(), |order| self.order_words(order));
                ("suspended", format!("its turn for {peer} came, and it is held back{order}"))
            }
            Doing::Submitted => {
                ("submitted", format!("on a link to {peer}; its answer is due within the response time"))
            }
            Doing::Deferred if awaits_alert => (
                "deferred",
                format!(
                    "subscriber not reachable: tried again at {}, or as soon as the subscriber is heard of",
                    until.unwrap_or(0)
                ),
            ),
            Doing::Deferred => {
                ("deferred", format!("the next attempt, or its schedule, is at {}", until.unwrap_or(0)))
            }
            Doing::Held => {
                ("held", format!("held by its routing; it is routed again at {}", until.unwrap_or(0)))
            }
            Doing::Resolving => {
                let said = status.said.map_or(String::new(), |(by, note)| {
                    let note = note.map_or(String::new(), |note| format!(": {note}"));
                    format!("; {} {} could not tell{note}", by.plugin, by.version)
                });
                let until = until.map_or(String::new(), |at| format!("; the next try is at {at}"));
                ("resolving", format!("waits for the subscriber behind its number to be found{said}{until}"))
            }
            Doing::Deciding => {
                ("deciding", format!("refused by {peer}; the delivery policy is asked what follows"))
            }
            Doing::Uncertain => (
                "uncertain",
                format!(
                    "written to {peer} and never answered; waits for a receipt or an admin until {}",
                    until.unwrap_or(0)
                ),
            ),
            Doing::AwaitingReceipt => {
                ("responded", format!("{peer} has it; its receipt is awaited until {}", until.unwrap_or(0)))
            }
            Doing::Ending => ("ending", "its final record is being written".to_owned()),
        };
        trace.state = state.to_owned();
        trace.why_late = Some(why);
        trace
    }

    /// The trace of a message that is in the archive alone: told as while it was in the store.
    pub(crate) fn archived_trace(&self, id: MessageId, body: bool) -> Result<view::Trace, Problem> {
        let nowhere = || {
            let detail = format!("message {id} was never accepted here, or is no longer kept");
            Problem::new(Kind::NotFound, detail)
        };
        let history = self.history.as_ref().ok_or_else(nowhere)?;
        let record = history.get(id).map_err(|error| Problem::new(Kind::Unavailable, error.to_string()))?;
        let record = record.ok_or_else(nowhere)?;
        // Names of the archive, which may be of peers that are in the configuration no more.
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
        let told = text.and_then(|text| archive::decode_trace(text, &mut number)).unwrap_or_default();
        let (message, ended) = archived_message(&record, origin, &told);
        let mut trace = self.finished(&message, &ended, body, &|peer| {
            names.get(peer.0 as usize).cloned().unwrap_or_default()
        });
        trace.price = told.price.map(|price| view::Price {
            plugin: price.plugin,
            version: price.version,
            note: price.note,
            account: price.account,
            amount: price.amount,
        });
        if told.verdict.is_none() {
            trace.why_here.verdict = format!("archived without its route; went by {}", record.peer);
        }
        Ok(trace)
    }
}
