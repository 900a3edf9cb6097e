//! `POST /v1/explain`: a simulated decision about a message, with its reasons.

use crate::blocked_by::describe_blocked_by;
use crate::message_service::MessageService;
use crate::problems::shutting_down_problem;
use crate::traces::describe_routing;
use admin::{Problem, ProblemKind};
use engine::Engine;
use hooks::Decision;
use model::{Address, Directory, Message, Refusal, RoutingDecision, Timestamp, Verdict};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A message as its account or peer would submit it now.
pub(crate) fn hypothetical_message(
    directory: &Directory,
    asked: &api::ExplainRequest,
) -> Result<Message, Problem> {
    let origin = directory.id(&asked.origin).ok_or_else(|| {
        Problem::new(ProblemKind::NotFound, format!("{:?} is not an account or peer", asked.origin))
    })?;
    let now = Timestamp::now();
    let address = |value: &str| {
        let digits = value.trim_start_matches('+');
        if digits.bytes().all(|c| c.is_ascii_digit()) {
            Address::new(1, 1, digits.as_bytes())
        } else {
            Address::new(5, 0, value.as_bytes())
        }
    };
    Ok(Message {
        accepted_at: now,
        ..Message::new(
            origin,
            address(&asked.source),
            address(&asked.destination),
            crate::testing::encode_hypothetical(&asked.text),
            Timestamp(now.0 + 86_400_000),
            RoutingDecision::new(
                Verdict::Reject(model::RejectReason::NoRoute),
                Arc::new(model::PluginVersion { plugin: String::new(), version: String::new() }),
            ),
        )
    })
}

impl MessageService {
    /// Explains how a message would be screened, routed and priced, and whether it would be accepted.
    pub(crate) fn explain_message(
        &self,
        asked: &api::ExplainRequest,
    ) -> Result<api::ExplanationView, Problem> {
        let mut message = hypothetical_message(&self.directory.load(), asked)?;
        let directory = self.directory.load();
        let mut steps = vec![format!("origin: {}", asked.origin)];
        let explanation = self.routing.explain(&mut message);
        for screen in explanation.screens {
            let by = format!("screen {} {}", screen.by.plugin, screen.by.version);
            steps.push(match screen.outcome {
                Ok(decision) => {
                    let note = decision.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
                    format!("{by}: {decision}{note}")
                }
                Err(fault) => format!("{by}: fault: {}; its binding's on-fault decides", fault.summary()),
            });
        }
        for asked in explanation.lookups {
            let by = format!("lookup {} {}", asked.by.plugin, asked.by.version);
            steps.push(match asked.outcome {
                Ok(answer) => {
                    let note = answer.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
                    format!("{by}: {answer}{note}")
                }
                Err(fault) => format!("{by}: fault: {}; its binding's on-fault decides", fault.summary()),
            });
        }
        if let Some(lookup) = message.routed.lookup.as_deref().filter(|lookup| lookup.cached) {
            steps.push(format!("lookup {} {}: {lookup} (cached)", lookup.by.plugin, lookup.by.version));
        }
        for considered in explanation.routers {
            let by = format!("router {} {}", considered.by.plugin, considered.by.version);
            steps.push(match considered.outcome {
                Ok(Decision { verdict: None, .. }) => format!("{by}: pass"),
                Ok(Decision { verdict: Some(verdict), sender, changes, note }) => {
                    let note = note.map(|note| format!(" ({note})")).unwrap_or_default();
                    format!(
                        "{by}: {}{note}",
                        describe_routing(&directory, &verdict, sender.as_deref(), changes.as_deref())
                    )
                }
                Err(fault) => format!("{by}: fault: {}; its binding's on-fault decides", fault.summary()),
            });
        }
        let note = message.routed.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
        steps.push(format!(
            "after the built-in rules: {}{note}",
            describe_routing(
                &directory,
                &message.routed.verdict,
                message.routed.sender.as_deref(),
                message.routed.changes.as_deref()
            )
        ));
        if let Some(quote) = &message.routed.quote {
            let by = format!("biller {} {}", quote.by.plugin, quote.by.version);
            let price = match &quote.charge {
                Some(charge) => {
                    format!("{} millionths from ledger account {}", charge.amount, charge.account)
                }
                None => "free".to_owned(),
            };
            let note = quote.note.as_deref().map(|note| format!(" ({note})")).unwrap_or_default();
            steps.push(format!("{by}: {price}{note}"));
        }
        let routed = message.routed.clone();
        let query = move |engine: &Engine, now| (engine.would_accept(now, &message), engine.peers(), now);
        let (accepted, peers, now) = self.core.query(query).ok_or_else(shutting_down_problem)?;
        if let Verdict::Forward(legs) = &routed.verdict {
            for leg in legs {
                let name = self.name_of(leg.peer);
                steps.push(match peers.iter().find(|peer| peer.peer == leg.peer && peer.configured) {
                    Some(peer) => {
                        let (blocked_by, links) =
                            (describe_blocked_by(peer.blocked_by, now), peer.links.len());
                        format!("leg {name}: {} queued, {links} links; {blocked_by}", peer.queued)
                    }
                    None => format!("leg {name}: skipped, the peer is not in the configuration"),
                });
            }
        }
        let answer = match accepted {
            Ok(()) => "accepted".to_owned(),
            Err(Refusal::Rejected(reason)) => format!("refused: {reason}"),
            Err(refusal) => format!("refused: {refusal}"),
        };
        if self.core.counts.disk_low.load(Relaxed) {
            steps.push("the disk is nearly full".to_owned());
        }
        if let Some(by) = self.drain.by() {
            steps.push(format!("the appliance is drained by {by}"));
        }
        Ok(api::ExplanationView { steps, answer })
    }
}
