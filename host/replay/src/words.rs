//! Verdicts in words, by which differences are grouped.
//!
//! Peers of one rank are joined by `|`, ranks by `,`: `forward north|south,reserve`. Shares appear where they are not equal:
//! `forward north*9|south*1`. A sender of a pool follows, and what is done without one: `forward north, sender of texts else
//! hold`. Rewritten addresses are named, never shown: numbers would make a group of every message.

use crate::candidate::{Judged, Judgement};
use crate::compare::is_home;
use crate::legs::{Leg, Legs, common_divisor};
use archive::{ArchivedMessage, ArchivedVerdict};
use model::{RejectReason, SenderWish};
use std::fmt::Write;

/// Stands between what was decided and what the candidate decides.
pub(crate) const BETWEEN: char = '\u{1f}';

/// What was decided, [`BETWEEN`], and what the candidate decides. They are never the same: this is for verdicts that
/// differ.
pub(crate) fn write(out: &mut String, message: &ArchivedMessage, judged: &Judged) {
    out.clear();
    match &message.verdict {
        ArchivedVerdict::Forward(legs) if is_home(legs) => out.push_str("home"),
        ArchivedVerdict::Forward(legs) => write_legs(out, &Legs::of(legs)),
        ArchivedVerdict::Hold(_) => out.push_str("hold"),
        ArchivedVerdict::Reject(reason) => write_reject(out, *reason),
    }
    write_sender(out, message.sender.as_deref());
    let middle = out.len();
    out.push(BETWEEN);
    match &judged.verdict {
        Judgement::Forward(legs) => write_legs(out, &Legs::of(legs)),
        Judgement::Home => out.push_str("home"),
        Judgement::Hold(_) if matches!(message.verdict, ArchivedVerdict::Hold(_)) => {
            out.push_str("hold until another time");
        }
        Judgement::Hold(_) => out.push_str("hold"),
        Judgement::Reject(reason) => write_reject(out, *reason),
        Judgement::Pass => out.push_str("pass"),
        Judgement::Fault(kind) => {
            out.push_str("fault ");
            out.push_str(kind);
        }
    }
    write_sender(out, judged.sender.as_deref());
    if out.get(..middle) == out.get(middle + BETWEEN.len_utf8()..) {
        out.push_str(" otherwise");
    }
}

fn write_sender(out: &mut String, wish: Option<&SenderWish>) {
    if let Some(wish) = wish {
        let _ = write!(out, ", sender of {} else {}", wish.pool, wish.otherwise.name());
    }
}

fn write_legs(out: &mut String, legs: &Legs<'_>) {
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
                // Writing into a string cannot fail.
                let _ = write!(out, "*{}", leg.weight / divisor);
            }
        }
    }
}

fn write_leg(out: &mut String, leg: &Leg<'_>) {
    out.push_str(leg.peer);
    out.push_str(match (leg.source.is_some(), leg.destination.is_some()) {
        (false, false) => "",
        (true, false) => "(source rewritten)",
        (false, true) => "(destination rewritten)",
        (true, true) => "(both rewritten)",
    });
}

fn write_reject(out: &mut String, reason: RejectReason) {
    out.push_str("reject ");
    out.push_str(reject_name(reason));
}

/// The word for a reason, as in policy documents.
pub(crate) fn reject_name(reason: RejectReason) -> &'static str {
    match reason {
        RejectReason::NoRoute => "no-route",
        RejectReason::InvalidDestination => "invalid-destination",
        RejectReason::InvalidSource => "invalid-source",
        RejectReason::Prohibited => "prohibited",
        RejectReason::NotAuthorised => "not-authorised",
        RejectReason::TryLater => "try-later",
        RejectReason::Fault => "fault",
        RejectReason::OptedOut => "opted-out",
        RejectReason::NoCredit => "no-credit",
    }
}
