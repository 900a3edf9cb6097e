//! Text forms of verdicts; differences are grouped by them.
//!
//! Peers of one rank are joined by `|`, ranks by `,`: `forward north|south,reserve`. Shares are shown if they differ:
//! `forward north*9|south*1`. A sender request follows, with its fallback: `forward north, sender of texts else hold`.
//! The changes of the message come last. Rewritten addresses are mentioned without their values, since numbers would
//! put every message into a group of its own.

use crate::candidate::{CandidateDecision, CandidateVerdict};
use crate::compared_legs::{ComparedLeg, ComparedLegs, common_divisor};
use archive::ArchivedMessage;
use model::{MessageChanges, SenderRequest, Verdict};
use std::fmt::Write;
use std::sync::Arc;

/// Separates the archived verdict from the candidate's.
pub(crate) const SEPARATOR: char = '\u{1f}';

/// Writes the archived verdict, [`SEPARATOR`], and the candidate's verdict. For verdicts that differ, the two texts
/// differ.
pub(crate) fn write(out: &mut String, message: &ArchivedMessage, decision: &CandidateDecision) {
    out.clear();
    write_verdict(out, &message.verdict);
    write_sender(out, message.sender.as_deref());
    write_changes(out, message.changes.as_deref());
    let middle = out.len();
    out.push(SEPARATOR);
    match &decision.verdict {
        CandidateVerdict::Decided(Verdict::Hold(_)) if matches!(message.verdict, Verdict::Hold(_)) => {
            out.push_str("hold until a different time");
        }
        CandidateVerdict::Decided(verdict) => write_verdict(out, verdict),
        CandidateVerdict::Pass => out.push_str("pass"),
        CandidateVerdict::Fault(kind) => {
            out.push_str("fault ");
            out.push_str(kind);
        }
    }
    write_sender(out, decision.sender.as_deref());
    write_changes(out, decision.changes.as_deref());
    if out.get(..middle) == out.get(middle + SEPARATOR.len_utf8()..) {
        out.push_str(" otherwise");
    }
}

fn write_verdict(out: &mut String, verdict: &Verdict<Arc<str>>) {
    match verdict {
        // In a replay of screens or lookups, a message that passes has no legs.
        Verdict::Forward(legs) if legs.is_empty() => out.push_str("pass"),
        Verdict::Forward(_) if verdict.is_home() => out.push_str("home"),
        Verdict::Forward(legs) => write_legs(out, &ComparedLegs::of(legs)),
        Verdict::Hold(_) => out.push_str("hold"),
        Verdict::Quarantine => out.push_str("quarantine"),
        Verdict::AwaitLookup => out.push_str("await lookup"),
        Verdict::Drop(shown) => {
            out.push_str("drop, reported as ");
            out.push_str(shown.name());
        }
        Verdict::Reject(reason) => {
            out.push_str("reject ");
            out.push_str(reason.name());
        }
    }
}

fn write_sender(out: &mut String, request: Option<&SenderRequest>) {
    if let Some(request) = request {
        let _ = write!(out, ", sender of {} else {}", request.pool, request.otherwise.name());
    }
}

fn write_changes(out: &mut String, changes: Option<&MessageChanges>) {
    if let Some(changes) = changes {
        let _ = write!(out, ", {changes}");
    }
}

fn write_legs(out: &mut String, legs: &ComparedLegs<'_>) {
    out.push_str("forward ");
    for (index, rank) in legs.ranks().enumerate() {
        if index > 0 {
            out.push(',');
        }
        let divisor = common_divisor(rank).max(1);
        let equal = rank.iter().all(|leg| leg.weight == divisor);
        for (index, leg) in rank.iter().enumerate() {
            if index > 0 {
                out.push('|');
            }
            write_leg(out, leg);
            if !equal && rank.len() > 1 {
                // Writing to a string cannot fail.
                let _ = write!(out, "*{}", leg.weight / divisor);
            }
        }
    }
}

fn write_leg(out: &mut String, leg: &ComparedLeg<'_>) {
    out.push_str(leg.peer);
    out.push_str(match (leg.source.is_some(), leg.destination.is_some()) {
        (false, false) => "",
        (true, false) => "(source rewritten)",
        (false, true) => "(destination rewritten)",
        (true, true) => "(both rewritten)",
    });
}
