//! The wording of traces, shared by live and archived messages.

use crate::{
    AdminActionKind, DlrState, Leg, Lookup, ScreenVerdict, SenderFallback, SenderRequest, StepKind, Verdict,
};
use std::fmt::{self, Display, Formatter};

impl<P: Display> Display for Verdict<P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forward(legs) => {
                f.write_str("forward: ")?;
                for (index, leg) in legs.iter().enumerate() {
                    write!(f, "{}{leg}", if index > 0 { ", then " } else { "" })?;
                }
                Ok(())
            }
            Self::Hold(until) => write!(f, "hold until {}", until.0),
            Self::Reject(reason) => write!(f, "reject: {reason}"),
            Self::Quarantine => write!(f, "{}", ScreenVerdict::Quarantine),
            Self::AwaitLookup => f.write_str("look up the number first"),
            Self::Drop(shown) => write!(f, "{}", ScreenVerdict::Drop(*shown)),
        }
    }
}

impl Display for ScreenVerdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => f.write_str("pass"),
            Self::Reject(reason) => write!(f, "reject: {reason}"),
            Self::Quarantine => f.write_str("quarantine"),
            Self::Drop(shown) => write!(f, "drop, reported as {}", shown.name()),
        }
    }
}

impl Display for Lookup {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.result.name())?;
        for (index, (name, value)) in self.attributes.iter().enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { ": " } else { ", " })?;
        }
        Ok(())
    }
}

impl<P: Display> Display for Leg<P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} (rank {}, weight {}", self.peer, self.rank, self.weight)?;
        if let Some(wait) = self.longest_wait {
            write!(f, ", max wait {wait:?}")?;
        }
        if self.source.is_some() {
            f.write_str(", source rewritten")?;
        }
        if self.destination.is_some() {
            f.write_str(", destination rewritten")?;
        }
        f.write_str(")")
    }
}

impl Display for SenderRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let otherwise = match self.otherwise {
            SenderFallback::Reject => "reject",
            SenderFallback::KeepSender => "keep the sender",
            SenderFallback::Hold => "hold",
        };
        write!(f, "sender from pool {}, otherwise {otherwise}", self.pool)
    }
}

/// The code of a refusal is a code of the peer's protocol; the caller may have a better text for it.
impl<P: Display> Display for StepKind<P> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let cached = |cached: bool| if cached { " (cached)" } else { "" };
        match self {
            Self::Accepted => f.write_str("accepted and written to disk"),
            Self::Submitted { peer, attempt } => write!(f, "submitted to {peer}, attempt {attempt}"),
            Self::Responded { id } => write!(f, "accepted by the peer, id {id:?}"),
            Self::Refused { code } => write!(f, "refused by the peer: code {code}"),
            Self::NotSent => f.write_str("not sent: the link closed before the write"),
            Self::Unanswered => f.write_str("unanswered: outcome unknown"),
            Self::Deferred { until } => write!(f, "deferred until {}", until.0),
            Self::NextLeg { peer } => write!(f, "next leg: {peer}"),
            Self::SentAgain => f.write_str("will be sent again because the outcome is unknown"),
            Self::StatusQueried => f.write_str("status queried at the peer"),
            Self::DlrReceived { state, error } => match DlrState::from_octet(*state) {
                Some(state) => write!(f, "DLR: {state:?}, error {error}"),
                None => write!(f, "DLR: ?, error {error}"),
            },
            Self::Replaced => f.write_str("text replaced by the submitter"),
            Self::Held { until } => write!(f, "held until {}", until.0),
            Self::AwaitingDlr { until } => {
                write!(f, "waiting for a DLR until {}, then the receipt policy is asked", until.0)
            }
            Self::DlrOverdue => f.write_str("no final DLR in time"),
            Self::DlrSuspected => f.write_str("DLR not believed"),
            Self::DlrRemapped { state, error } => match DlrState::from_octet(*state) {
                Some(state) => write!(f, "DLR changed to: {state:?}, error {error}"),
                None => write!(f, "DLR changed to: state {state}, error {error}"),
            },
            Self::LateDlrReceived { peer, state, error } => match DlrState::from_octet(*state) {
                Some(state) => write!(f, "late DLR from {peer}: {state:?}, error {error}"),
                None => write!(f, "late DLR from {peer}: state {state}, error {error}"),
            },
            Self::Quarantined => f.write_str("in quarantine until an admin releases or purges it"),
            Self::Rerouted { peer } => write!(f, "rerouted to {peer}"),
            Self::Recovered => f.write_str("recovered after a restart of the daemon"),
            Self::Decided { hook, by, note } => {
                write!(f, "decided by {} {} ({})", by.plugin, by.version, hook.name())?;
                note.as_deref().map_or(Ok(()), |note| write!(f, ": {note}"))
            }
            Self::CallRecorded { hook, .. } | Self::SealedCallRecorded { hook, .. } => {
                write!(f, "call recorded ({})", hook.name())
            }
            Self::Resolving => f.write_str("waiting for number resolution"),
            Self::Resolved { peer, cached: was } => write!(f, "subscriber found{}: {peer}", cached(*was)),
            Self::UnknownSubscriber { cached: was } => write!(f, "no such subscriber{}", cached(*was)),
            Self::SubscriberRequeried { .. } => {
                f.write_str("the peer does not know the subscriber; the number is resolved again")
            }
            Self::AwaitingAlert { until } => {
                write!(f, "waiting for an alert for the subscriber, until {}", until.0)
            }
            Self::MovedBehindOthers { until } => {
                write!(f, "deferred until {}; other messages to the subscriber go first", until.0)
            }
            Self::SenderLeased { pool, number } => write!(f, "sender: {number}, from pool {pool}"),
            Self::SenderUnavailable { pool } => write!(f, "no sender available in pool {pool}"),
            Self::Charged { amount } => write!(f, "charged {amount}"),
            Self::Refunded { amount } => write!(f, "refunded {amount}"),
            Self::ContentErased { by } => write!(f, "content erased, by {by}"),
            Self::AdminAction { action, by, queue_action, peer } => {
                match (action, peer) {
                    (AdminActionKind::Resumed, _) => f.write_str("resumed")?,
                    (AdminActionKind::Rerouted, Some(peer)) => write!(f, "rerouted to {peer}")?,
                    (AdminActionKind::Rerouted, None) => f.write_str("rerouted")?,
                    (AdminActionKind::Cancelled, _) => f.write_str("cancelled")?,
                    (AdminActionKind::SentAgain, _) => f.write_str("settled: will be sent again")?,
                    (AdminActionKind::GivenUp, _) => f.write_str("settled: given up")?,
                    (AdminActionKind::Retried, _) => f.write_str("retried immediately")?,
                    (AdminActionKind::Released, _) => f.write_str("released from quarantine")?,
                    (AdminActionKind::Purged, _) => f.write_str("purged from quarantine")?,
                }
                write!(f, ", by {by}")?;
                queue_action.map_or(Ok(()), |action| write!(f, " (queue action {action})"))
            }
        }
    }
}
