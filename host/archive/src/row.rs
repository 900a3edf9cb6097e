use crate::PeerDirectory;
use crate::decision;
use crate::erased_trace::trace_without_content;
use crate::measures::{Measure, MeasureCounts};
use crate::trace;
use bytes::Bytes;
use model::{
    ContentErasure, Direction, FinalRecord, Message, MessageId, PriceState, StepKind, Timestamp, Verdict,
    escape, replace_nul,
};
use std::sync::Arc;

/// A finished message as a row of table `messages`, with its statistics.
///
/// Texts are escaped so that every database stores them without loss: see [`crate::Record`].
#[derive(Clone, Debug)]
pub struct Row {
    pub(crate) id: i64,
    pub(crate) accepted_at: i64,
    pub(crate) ended_at: i64,
    pub(crate) direction: Direction,
    pub(crate) account: Arc<str>,
    pub(crate) peer: Arc<str>,
    pub(crate) source: String,
    pub(crate) source_ton: i64,
    pub(crate) source_npi: i64,
    pub(crate) destination: String,
    pub(crate) destination_ton: i64,
    pub(crate) destination_npi: i64,
    pub(crate) state: &'static str,
    pub(crate) error: i64,
    pub(crate) peer_message_id: Option<String>,
    pub(crate) attempts: i64,
    pub(crate) priority: i64,
    pub(crate) data_coding: i64,
    pub(crate) udhi: bool,
    pub(crate) body: Bytes,
    pub(crate) router: String,
    pub(crate) router_version: String,
    pub(crate) note: Option<String>,
    pub(crate) trace: String,
    pub(crate) price: Option<i64>,
    pub(crate) price_account: Option<String>,
    pub(crate) price_state: Option<&'static str>,
    /// Empty if the content was erased.
    pub(crate) decision: Vec<u8>,
    pub(crate) content_erased_at: Option<i64>,
    /// The number of the key that encrypts the content.
    pub(crate) text_key: Option<i64>,
    pub(crate) tally: MeasureCounts,
}

/// The message id does not fit the table, whose ids have 63 bits.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the id {0} has more than 63 bits")]
pub struct IdTooLarge(pub MessageId);

impl Row {
    /// Builds the row of a message.
    ///
    /// In both directions `account` is the account and `peer` the peer: the account is the origin of an MT message and
    /// the destination of an MO message.
    ///
    /// # Errors
    /// Fails if the id has more than 63 bits.
    pub fn new(
        message: &Message,
        ended: &FinalRecord,
        directory: &dyn PeerDirectory,
    ) -> Result<Self, IdTooLarge> {
        let id = i64::try_from(message.id.0).map_err(|_| IdTooLarge(message.id))?;
        let direction = if directory.is_account(message.origin) { Direction::Mt } else { Direction::Mo };
        let other = ended.peer.or_else(|| last_tried(ended)).or_else(|| first_leg(message));
        let none = || -> Arc<str> { "".into() };
        let (origin, other) =
            (directory.name(message.origin), other.map_or_else(none, |id| directory.name(id)));
        let (account, peer) = match direction {
            Direction::Mt => (origin, other),
            Direction::Mo => (other, origin),
        };
        let peer_message_id = &ended.peer_id.0;
        let attempts = ended.steps.iter().filter_map(|step| match step.kind {
            StepKind::Submitted { attempt, .. } => Some(attempt),
            _ => None,
        });
        let by = &message.routed.by;
        let quote = message.routed.quote.as_deref();
        let erased_at = ended.content_erased_at();
        let charge = quote.and_then(|quote| quote.charge.as_ref());
        Ok(Self {
            id,
            accepted_at: milliseconds(message.accepted_at),
            ended_at: milliseconds(ended.at),
            direction,
            account: clean(account),
            peer: clean(peer),
            source: escape(&message.source.value),
            source_ton: i64::from(message.source.ton),
            source_npi: i64::from(message.source.npi),
            destination: escape(&message.destination.value),
            destination_ton: i64::from(message.destination.ton),
            destination_npi: i64::from(message.destination.npi),
            state: ended.state.name(),
            error: i64::from(ended.error),
            peer_message_id: (!peer_message_id.is_empty()).then(|| escape(peer_message_id)),
            attempts: i64::from(attempts.max().unwrap_or(0)),
            priority: i64::from(message.priority.level()),
            data_coding: i64::from(message.text.data_coding),
            udhi: message.text.udhi,
            body: message.text.octets.clone(),
            router: replace_nul(&by.plugin),
            router_version: replace_nul(&by.version),
            note: message.routed.note.as_deref().map(replace_nul),
            trace: trace::encode(message, ended, directory),
            price: quote.map(|_| charge.map_or(0, |charge| i64::try_from(charge.amount).unwrap_or(i64::MAX))),
            price_account: charge.map(|charge| replace_nul(&charge.account)),
            price_state: quote.map(|quote| PriceState::of(quote, ended).name()),
            // Host calls and recorded calls can quote the text, and a replay without the text is useless.
            decision: match erased_at {
                Some(_) => Vec::new(),
                None => decision::encode(message, ended, directory),
            },
            content_erased_at: erased_at.map(milliseconds),
            text_key: None,
            tally: Measure::of(message.accepted_at, ended),
        })
    }

    /// Erases the content, as [`ContentErasure::apply`] does in the store.
    pub(crate) fn erase_content(&mut self, erasure: &ContentErasure) {
        if self.content_erased_at.is_none()
            && let Some(trace) = trace_without_content(&self.trace, erasure.at, &erasure.by)
        {
            self.trace = trace;
            self.body = Bytes::new();
            self.decision = Vec::new();
            self.content_erased_at = Some(milliseconds(erasure.at));
        }
    }

    /// The message id.
    #[must_use]
    pub fn id(&self) -> MessageId {
        MessageId(u64::try_from(self.id).unwrap_or(0))
    }

    /// The approximate size of the row in octets.
    pub(crate) fn weight(&self) -> usize {
        let texts = [&self.source, &self.destination, &self.router, &self.router_version, &self.trace];
        120 + self.body.len()
            + self.account.len()
            + self.peer.len()
            + texts.iter().map(|text| text.len()).sum::<usize>()
            + self.note.as_ref().map_or(0, String::len)
            + self.decision.len()
    }
}

pub(crate) fn milliseconds(at: Timestamp) -> i64 {
    i64::try_from(at.0).unwrap_or(i64::MAX)
}

fn clean(name: Arc<str>) -> Arc<str> {
    if name.contains('\0') { replace_nul(&name).into() } else { name }
}

fn last_tried(ended: &FinalRecord) -> Option<model::PeerId> {
    ended.steps.iter().rev().find_map(|step| match step.kind {
        StepKind::Submitted { peer, .. } => Some(peer),
        _ => None,
    })
}

fn first_leg(message: &Message) -> Option<model::PeerId> {
    match &message.routed.verdict {
        Verdict::Forward(legs) => legs.first().map(|leg| leg.peer),
        Verdict::Hold(_)
        | Verdict::Reject(_)
        | Verdict::Quarantine
        | Verdict::AwaitLookup
        | Verdict::Drop(_) => None,
    }
}
