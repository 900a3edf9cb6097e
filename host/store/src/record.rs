//! The encoding of records. All numbers are little-endian; every record begins with its format version.

use crate::cursor::{Cursor, put_address, put_long, put_short, put_text};
use bytes::Bytes;
use engine::{MessageProgress, SubmitAttempt, SubmittedSegment, WaitState};
use model::{
    Address, AddressBytes, AdminActionKind, Charge, DlrContent, DlrRequest, DlrState, FinalRecord,
    FinalState, Hook, Imsi, Leg, Message, MessageId, MessageKind, PeerId, PeerMessageId, PluginVersion,
    PoolName, PoolNumber, Priority, QueueActionId, Quote, RejectReason, RoutingDecision, SenderFallback,
    SenderRequest, Step, StepKind, Text, Timestamp, Verdict,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The record format that this version writes. It reads all formats up to it.
pub const FORMAT: u8 = 7;

/// Whether this version reads a format.
pub(crate) fn is_known(format: u8) -> bool {
    (1..=FORMAT).contains(&format)
}

/// A record that cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} at octet {offset}")]
pub struct RecordError {
    /// The cause.
    pub what: &'static str,
    /// The offset of the fault.
    pub offset: usize,
}

/// Decodes records; plugin versions shared by many messages are stored once.
#[derive(Debug, Default)]
pub struct RecordDecoder {
    deciders: HashMap<(Box<str>, Box<str>), Arc<PluginVersion>>,
    last: Option<Arc<PluginVersion>>,
}

/// On disk, table `messages`, value:
/// * 1: format (7; 1 to 6 are read too; 4 to 6 are the same, without a submission, and 3 without sender requests)
/// * 1: flags: bit 0 DLR, 1 UDHI, 2 payload, 3 replace_if_present, 4 scheduled, 5 TLVs, 6 service type, 7 note
/// * 4: origin; 1: protocol id; 1: esm_class; 1: priority; 1: DLR request; 1: data coding
/// * 8: accepted; 8: expires (ms since the epoch); 8: scheduled, if flagged
/// * source, destination: each 1 TON, 1 NPI, 1 length, value
/// * service type: 1 length, value, if flagged
/// * text: 4 length, octets; TLVs: 4 length, octets, if flagged
/// * verdict: 1 kind: 0 forward (1 count, legs), 1 hold (8 until), 2 reject (1 reason). Leg: 4 peer, 1 rank, 2
///   weight, 4 cost, 1 flags (bit 0 longest wait, 1 source, 2 destination, 3 to be resolved, 4 IMSI), then the
///   flagged fields: 8 ms, address, address, 1 length, IMSI
/// * plugin, version: each 2 length, UTF-8; note likewise, if flagged
/// * DLR, if flagged: 8 of, 1 state, 1 flags (bit 0 intermediate, 1 network error), 2 error, 3 network error if
///   flagged, 8 submitted, 8 done, 2 segments, 2 delivered, peer id: 1 length, octets, 2 segment number (from format
///   2 on)
/// * from format 3 on: 1 flags: bit 0 quote, 1 host calls, 2 sender request, 3 submission (from format 7 on). Quote:
///   1 flags (bit 0 charge, 1 kept on failure, 2 settle, 3 note), charge if flagged: account: 1 length, UTF-8; 8
///   amount; then plugin, version and note as above. Host calls: 4 length, octets. Sender request: 1 flags (bit 0
///   lease, 1 a number was given), 1 otherwise (0 reject, 1 keep the sender, 2 hold), pool, holder, user, reason:
///   each 2 length, UTF-8; then the flagged fields: 8 ms, address. Submission: 8 its id
pub fn encode_message(out: &mut Vec<u8>, message: &Message) {
    let flags = u8::from(matches!(message.kind, MessageKind::Dlr(_)))
        | u8::from(message.text.udhi) << 1
        | u8::from(message.text.payload) << 2
        | u8::from(message.replace_if_present) << 3
        | u8::from(message.scheduled.is_some()) << 4
        | u8::from(!message.tlvs.is_empty()) << 5
        | u8::from(!message.service_type.is_empty()) << 6
        | u8::from(message.routed.note.is_some()) << 7;
    out.extend_from_slice(&[FORMAT, flags]);
    out.extend_from_slice(&message.origin.0.to_le_bytes());
    out.extend_from_slice(&[
        message.protocol_id,
        message.esm_class,
        message.priority.level(),
        message.dlr_request.bits(),
        message.text.data_coding,
    ]);
    out.extend_from_slice(&message.accepted_at.0.to_le_bytes());
    out.extend_from_slice(&message.expires_at.0.to_le_bytes());
    if let Some(scheduled) = message.scheduled {
        out.extend_from_slice(&scheduled.0.to_le_bytes());
    }
    put_address(out, &message.source);
    put_address(out, &message.destination);
    if !message.service_type.is_empty() {
        put_short(out, &message.service_type);
    }
    put_long(out, &message.text.octets);
    if !message.tlvs.is_empty() {
        put_long(out, &message.tlvs);
    }
    match &message.routed.verdict {
        Verdict::Forward(legs) => {
            let legs = legs.get(..255).unwrap_or(legs);
            out.extend_from_slice(&[0, legs.len() as u8]);
            for leg in legs {
                encode_leg(out, leg);
            }
        }
        Verdict::Hold(until) => {
            out.push(1);
            out.extend_from_slice(&until.0.to_le_bytes());
        }
        Verdict::Reject(reason) => out.extend_from_slice(&[2, *reason as u8]),
    }
    put_text(out, &message.routed.by.plugin);
    put_text(out, &message.routed.by.version);
    if let Some(note) = &message.routed.note {
        put_text(out, note);
    }
    if let MessageKind::Dlr(dlr) = &message.kind {
        out.extend_from_slice(&dlr.of.0.to_le_bytes());
        let flags = u8::from(dlr.intermediate) | u8::from(dlr.network_error.is_some()) << 1;
        out.extend_from_slice(&[dlr.state as u8, flags]);
        out.extend_from_slice(&dlr.error.to_le_bytes());
        out.extend_from_slice(dlr.network_error.as_ref().map_or(&[][..], |code| code));
        out.extend_from_slice(&dlr.submitted_at.0.to_le_bytes());
        out.extend_from_slice(&dlr.done_at.0.to_le_bytes());
        out.extend_from_slice(&dlr.segments.0.to_le_bytes());
        out.extend_from_slice(&dlr.segments.1.to_le_bytes());
        put_short(out, &dlr.peer_id.0);
        out.extend_from_slice(&dlr.segment.to_le_bytes());
    }
    let RoutingDecision { quote, host_calls, sender, .. } = &message.routed;
    out.push(
        u8::from(quote.is_some())
            | u8::from(host_calls.is_some()) << 1
            | u8::from(sender.is_some()) << 2
            | u8::from(message.submission.is_some()) << 3,
    );
    if let Some(quote) = quote {
        encode_quote(out, quote);
    }
    if let Some(host_calls) = host_calls {
        put_long(out, host_calls);
    }
    if let Some(sender) = sender {
        encode_sender(out, sender);
    }
    if let Some(submission) = message.submission {
        out.extend_from_slice(&submission.0.to_le_bytes());
    }
}

fn encode_sender(out: &mut Vec<u8>, request: &SenderRequest) {
    out.push(u8::from(request.lease.is_some()) | u8::from(request.leased.is_some()) << 1);
    out.push(request.otherwise as u8);
    for text in [request.pool.as_str(), &request.holder, &request.user, &request.reason] {
        put_text(out, text);
    }
    if let Some(lease) = request.lease {
        out.extend_from_slice(&u64::try_from(lease.as_millis()).unwrap_or(u64::MAX).to_le_bytes());
    }
    if let Some(leased) = &request.leased {
        put_address(out, leased);
    }
}

fn decode_sender(cursor: &mut Cursor<'_>) -> Result<SenderRequest, RecordError> {
    let flags = cursor.u8()?;
    let otherwise = cursor.u8()?;
    let otherwise =
        SenderFallback::from_octet(otherwise).ok_or_else(|| cursor.damaged("unknown otherwise"))?;
    Ok(SenderRequest {
        pool: pool_name(cursor)?,
        holder: cursor.text()?.into(),
        user: cursor.text()?.into(),
        reason: cursor.text()?.into(),
        lease: if flags & 1 != 0 { Some(Duration::from_millis(cursor.u64()?)) } else { None },
        otherwise,
        leased: if flags & 2 != 0 { Some(cursor.address()?) } else { None },
    })
}

fn pool_name(cursor: &mut Cursor<'_>) -> Result<PoolName, RecordError> {
    cursor.text()?.parse().map_err(|_| cursor.damaged("no name of a pool"))
}

/// Source and destination of a message record, without decoding the rest; `None` for a DLR.
pub(crate) fn decode_parties(octets: &[u8]) -> Result<Option<(Address, Address)>, RecordError> {
    let mut cursor = Cursor::new(octets);
    if !is_known(cursor.u8()?) {
        return Err(cursor.damaged("an unknown format"));
    }
    let flags = cursor.u8()?;
    let scheduled = if flags & 1 << 4 != 0 { 8 } else { 0 };
    cursor.take(4 + 5 + 8 + 8 + scheduled)?;
    let (source, destination) = (cursor.address()?, cursor.address()?);
    Ok((flags & 1 == 0).then_some((source, destination)))
}

/// The fields of a message record that are decoded without its rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSummary {
    /// It is a DLR for a submitter.
    pub is_own_dlr: bool,
    /// The submitter.
    pub origin: PeerId,
    /// The time of acceptance.
    pub accepted_at: Timestamp,
    /// The source.
    pub source: Address,
    /// The destination.
    pub destination: Address,
}

/// Decodes the first fields of a message record.
///
/// # Errors
/// The octets are no such record.
pub fn read_summary(octets: &[u8]) -> Result<RecordSummary, RecordError> {
    let mut cursor = Cursor::new(octets);
    if !is_known(cursor.u8()?) {
        return Err(cursor.damaged("an unknown format"));
    }
    let flags = cursor.u8()?;
    let origin = PeerId(cursor.u32()?);
    cursor.take(5)?;
    let accepted_at = Timestamp(cursor.u64()?);
    cursor.take(if flags & 1 << 4 != 0 { 16 } else { 8 })?;
    let (source, destination) = (cursor.address()?, cursor.address()?);
    Ok(RecordSummary { is_own_dlr: flags & 1 != 0, origin, accepted_at, source, destination })
}

fn encode_quote(out: &mut Vec<u8>, quote: &Quote) {
    let charge = quote.charge.as_ref();
    out.push(
        u8::from(charge.is_some())
            | u8::from(charge.is_some_and(|charge| charge.keep_on_failure)) << 1
            | u8::from(charge.is_some_and(|charge| charge.settle)) << 2
            | u8::from(quote.note.is_some()) << 3,
    );
    if let Some(charge) = charge {
        put_short(out, charge.account.as_bytes());
        out.extend_from_slice(&charge.amount.to_le_bytes());
    }
    put_text(out, &quote.by.plugin);
    put_text(out, &quote.by.version);
    if let Some(note) = &quote.note {
        put_text(out, note);
    }
}

fn encode_leg(out: &mut Vec<u8>, leg: &Leg) {
    out.extend_from_slice(&leg.peer.0.to_le_bytes());
    out.push(leg.rank);
    out.extend_from_slice(&leg.weight.to_le_bytes());
    out.extend_from_slice(&leg.cost.to_le_bytes());
    out.push(
        u8::from(leg.longest_wait.is_some())
            | u8::from(leg.source.is_some()) << 1
            | u8::from(leg.destination.is_some()) << 2
            | u8::from(leg.resolve) << 3
            | u8::from(leg.imsi.is_some()) << 4,
    );
    if let Some(wait) = leg.longest_wait {
        out.extend_from_slice(&u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).to_le_bytes());
    }
    for address in [&leg.source, &leg.destination].into_iter().flatten() {
        put_address(out, address);
    }
    if let Some(imsi) = &leg.imsi {
        put_short(out, &imsi.0);
    }
}

fn decode_leg(cursor: &mut Cursor<'_>) -> Result<Leg, RecordError> {
    let (peer, rank, weight, cost) = (PeerId(cursor.u32()?), cursor.u8()?, cursor.u16()?, cursor.u32()?);
    let flags = cursor.u8()?;
    let longest_wait = if flags & 1 != 0 { Some(Duration::from_millis(cursor.u64()?)) } else { None };
    let source = if flags & 2 != 0 { Some(cursor.address()?) } else { None };
    let destination = if flags & 4 != 0 { Some(cursor.address()?) } else { None };
    let resolve = flags & 8 != 0;
    let imsi = if flags & 16 != 0 { Some(Imsi(AddressBytes::from_slice(cursor.short()?))) } else { None };
    Ok(Leg { peer, rank, weight, cost, longest_wait, source, destination, resolve, imsi })
}

impl RecordDecoder {
    /// A new decoder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn decider(&mut self, plugin: &str, version: &str) -> Arc<PluginVersion> {
        if let Some(last) = &self.last
            && last.plugin == plugin
            && last.version == version
        {
            return last.clone();
        }
        let by = self
            .deciders
            .entry((plugin.into(), version.into()))
            .or_insert_with(|| {
                Arc::new(PluginVersion { plugin: plugin.to_owned(), version: version.to_owned() })
            })
            .clone();
        self.last = Some(by.clone());
        by
    }

    fn quote(&mut self, cursor: &mut Cursor<'_>) -> Result<Quote, RecordError> {
        let flags = cursor.u8()?;
        let charge = if flags & 1 != 0 {
            let account = std::str::from_utf8(cursor.short()?).map_err(|_| cursor.damaged("no UTF-8"))?;
            Some(Charge {
                account: account.into(),
                amount: cursor.u64()?,
                keep_on_failure: flags & 2 != 0,
                settle: flags & 4 != 0,
            })
        } else {
            None
        };
        let (plugin, version) = (cursor.text()?, cursor.text()?);
        let by = self.decider(plugin, version);
        let note = if flags & 8 != 0 { Some(cursor.text()?.into()) } else { None };
        Ok(Quote { charge, by, note })
    }

    /// Decodes the output of [`encode_message`]; also returns its length.
    ///
    /// # Errors
    /// The octets are no such record.
    pub fn message(&mut self, id: MessageId, octets: &[u8]) -> Result<(Message, usize), RecordError> {
        let mut cursor = Cursor::new(octets);
        let format = cursor.u8()?;
        if !is_known(format) {
            return Err(RecordError { what: "unknown record format", offset: 0 });
        }
        let flags = cursor.u8()?;
        let flagged = |bit: u8| flags & (1 << bit) != 0;
        let origin = PeerId(cursor.u32()?);
        let (protocol_id, esm_class) = (cursor.u8()?, cursor.u8()?);
        let priority = Priority::new(cursor.u8()?);
        let dlr_request = DlrRequest::from_bits(cursor.u8()?);
        let data_coding = cursor.u8()?;
        let accepted_at = Timestamp(cursor.u64()?);
        let expires_at = Timestamp(cursor.u64()?);
        let scheduled = if flagged(4) { Some(Timestamp(cursor.u64()?)) } else { None };
        let source = cursor.address()?;
        let destination = cursor.address()?;
        let service_type = if flagged(6) { Bytes::copy_from_slice(cursor.short()?) } else { Bytes::new() };
        let octets = Bytes::copy_from_slice(cursor.long()?);
        let tlvs = if flagged(5) { Bytes::copy_from_slice(cursor.long()?) } else { Bytes::new() };
        let verdict = match cursor.u8()? {
            0 => {
                let count = cursor.u8()?;
                let mut legs = Vec::with_capacity(usize::from(count.min(16)));
                for _ in 0..count {
                    legs.push(decode_leg(&mut cursor)?);
                }
                Verdict::Forward(legs)
            }
            1 => Verdict::Hold(Timestamp(cursor.u64()?)),
            2 => {
                let reason = cursor.u8()?;
                Verdict::Reject(
                    RejectReason::from_octet(reason).ok_or_else(|| cursor.damaged("unknown reason"))?,
                )
            }
            _ => return Err(cursor.damaged("unknown verdict")),
        };
        let (plugin, version) = (cursor.text()?, cursor.text()?);
        let by = self.decider(plugin, version);
        let note = if flagged(7) { Some(cursor.text()?.into()) } else { None };
        let kind = if flagged(0) {
            MessageKind::Dlr(Box::new(decode_dlr_content(&mut cursor, format)?))
        } else {
            MessageKind::Text
        };
        let extras = if format >= 3 { cursor.u8()? } else { 0 };
        let quote = if extras & 1 != 0 { Some(Box::new(self.quote(&mut cursor)?)) } else { None };
        let host_calls = if extras & 2 != 0 { Some(cursor.long()?.into()) } else { None };
        let sender = if extras & 4 != 0 { Some(Box::new(decode_sender(&mut cursor)?)) } else { None };
        let submission = if format >= 7 && extras & 8 != 0 { Some(MessageId(cursor.u64()?)) } else { None };
        let message = Message {
            id,
            kind,
            origin,
            source,
            destination,
            service_type,
            protocol_id,
            esm_class,
            priority,
            dlr_request,
            replace_if_present: flagged(3),
            submission,
            text: Text { octets, data_coding, udhi: flagged(1), payload: flagged(2) },
            tlvs,
            accepted_at,
            scheduled,
            expires_at,
            routed: RoutingDecision { verdict, by, note, sender, quote, host_calls, fault_message_id: None },
        };
        Ok((message, cursor.at()))
    }
}

fn decode_dlr_content(cursor: &mut Cursor<'_>, format: u8) -> Result<DlrContent, RecordError> {
    let of = MessageId(cursor.u64()?);
    let state = cursor.u8()?;
    let state = DlrState::from_octet(state).ok_or_else(|| cursor.damaged("unknown DLR state"))?;
    let flags = cursor.u8()?;
    let error = cursor.u16()?;
    let network_error = if flags & 2 != 0 { Some([cursor.u8()?, cursor.u8()?, cursor.u8()?]) } else { None };
    Ok(DlrContent {
        of,
        state,
        intermediate: flags & 1 != 0,
        error,
        network_error,
        submitted_at: Timestamp(cursor.u64()?),
        done_at: Timestamp(cursor.u64()?),
        segments: (cursor.u16()?, cursor.u16()?),
        peer_id: PeerMessageId(AddressBytes::from_slice(cursor.short()?)),
        segment: if format >= 2 { cursor.u16()? } else { 0 },
    })
}

/// One step: 8 at, 1 kind, then by kind: 1 submitted (4 peer, 2 attempt), 2 responded (1 length, id), 3 refused (4
/// code), 4 not sent, 5 unanswered, 6 deferred (8 until), 7 next leg (4 peer), 8 sent again, 9 status queried, 10 DLR
/// received (1 state, 2 error), 11 replaced, 12 held (8 until), 13 rerouted (4 peer), 14 recovered, 15 decided (1
/// hook, plugin, version, 1 whether noted, note), 16 resolving, 17 resolved (4 peer, 1 cached), 18 unknown subscriber
/// (1 cached), 19 awaiting alert (8 until), 20 charged (8 amount), 21 refunded (8 amount), 22 requeried (1 length,
/// IMSI), 23 sender leased (pool: 2 length, UTF-8; 8 number), 24 no sender available (pool), 25 admin action (1 kind,
/// 4 queue action or 0, 4 peer or `u32::MAX`, admin: 2 length, UTF-8; from format 5 on), 26 moved behind others (8
/// until; from format 6 on); 0 is accepted.
fn encode_steps(out: &mut Vec<u8>, steps: &[Step]) {
    let steps = steps.get(..255).unwrap_or(steps);
    out.push(steps.len() as u8);
    for step in steps {
        out.extend_from_slice(&step.at.0.to_le_bytes());
        match &step.kind {
            StepKind::Accepted => out.push(0),
            StepKind::Submitted { peer, attempt } => {
                out.push(1);
                out.extend_from_slice(&peer.0.to_le_bytes());
                out.extend_from_slice(&attempt.to_le_bytes());
            }
            StepKind::Responded { id } => {
                out.push(2);
                put_short(out, &id.0);
            }
            StepKind::Refused { code } => {
                out.push(3);
                out.extend_from_slice(&code.to_le_bytes());
            }
            StepKind::NotSent => out.push(4),
            StepKind::Unanswered => out.push(5),
            StepKind::Deferred { until } => {
                out.push(6);
                out.extend_from_slice(&until.0.to_le_bytes());
            }
            StepKind::NextLeg { peer } => {
                out.push(7);
                out.extend_from_slice(&peer.0.to_le_bytes());
            }
            StepKind::SentAgain => out.push(8),
            StepKind::StatusQueried => out.push(9),
            StepKind::DlrReceived { state, error } => {
                out.extend_from_slice(&[10, *state]);
                out.extend_from_slice(&error.to_le_bytes());
            }
            StepKind::Replaced => out.push(11),
            StepKind::Held { until } => {
                out.push(12);
                out.extend_from_slice(&until.0.to_le_bytes());
            }
            StepKind::Rerouted { peer } => {
                out.push(13);
                out.extend_from_slice(&peer.0.to_le_bytes());
            }
            StepKind::Recovered => out.push(14),
            StepKind::Decided { hook, by, note } => {
                out.extend_from_slice(&[15, *hook as u8]);
                put_text(out, &by.plugin);
                put_text(out, &by.version);
                out.push(u8::from(note.is_some()));
                if let Some(note) = note {
                    put_text(out, note);
                }
            }
            StepKind::Resolving => out.push(16),
            StepKind::Resolved { peer, cached } => {
                out.push(17);
                out.extend_from_slice(&peer.0.to_le_bytes());
                out.push(u8::from(*cached));
            }
            StepKind::UnknownSubscriber { cached } => out.extend_from_slice(&[18, u8::from(*cached)]),
            StepKind::AwaitingAlert { until } => {
                out.push(19);
                out.extend_from_slice(&until.0.to_le_bytes());
            }
            StepKind::MovedBehindOthers { until } => {
                out.push(26);
                out.extend_from_slice(&until.0.to_le_bytes());
            }
            StepKind::Charged { amount } => {
                out.push(20);
                out.extend_from_slice(&amount.to_le_bytes());
            }
            StepKind::Refunded { amount } => {
                out.push(21);
                out.extend_from_slice(&amount.to_le_bytes());
            }
            StepKind::SubscriberRequeried { imsi } => {
                out.push(22);
                put_short(out, &imsi.0);
            }
            StepKind::SenderLeased { pool, number } => {
                out.push(23);
                put_text(out, pool.as_str());
                out.extend_from_slice(&number.octets());
            }
            StepKind::SenderUnavailable { pool } => {
                out.push(24);
                put_text(out, pool.as_str());
            }
            StepKind::AdminAction { action, by, queue_action, peer } => {
                out.extend_from_slice(&[25, *action as u8]);
                out.extend_from_slice(&queue_action.map_or(0, |id| id.0).to_le_bytes());
                out.extend_from_slice(&peer.map_or(u32::MAX, |peer| peer.0).to_le_bytes());
                put_text(out, by);
            }
        }
    }
}

fn decode_steps(cursor: &mut Cursor<'_>) -> Result<Vec<Step>, RecordError> {
    let count = cursor.u8()?;
    let mut steps = Vec::with_capacity(usize::from(count.min(16)));
    for _ in 0..count {
        let at = Timestamp(cursor.u64()?);
        let kind = match cursor.u8()? {
            0 => StepKind::Accepted,
            1 => StepKind::Submitted { peer: PeerId(cursor.u32()?), attempt: cursor.u16()? },
            2 => StepKind::Responded { id: PeerMessageId(AddressBytes::from_slice(cursor.short()?)) },
            3 => StepKind::Refused { code: cursor.u32()? },
            4 => StepKind::NotSent,
            5 => StepKind::Unanswered,
            6 => StepKind::Deferred { until: Timestamp(cursor.u64()?) },
            7 => StepKind::NextLeg { peer: PeerId(cursor.u32()?) },
            8 => StepKind::SentAgain,
            9 => StepKind::StatusQueried,
            10 => StepKind::DlrReceived { state: cursor.u8()?, error: cursor.u16()? },
            11 => StepKind::Replaced,
            12 => StepKind::Held { until: Timestamp(cursor.u64()?) },
            13 => StepKind::Rerouted { peer: PeerId(cursor.u32()?) },
            14 => StepKind::Recovered,
            15 => {
                let hook = cursor.u8()?;
                let hook = Hook::from_octet(hook).ok_or_else(|| cursor.damaged("unknown hook"))?;
                let (plugin, version) = (cursor.text()?.to_owned(), cursor.text()?.to_owned());
                let note = if cursor.u8()? != 0 { Some(cursor.text()?.into()) } else { None };
                StepKind::Decided { hook, by: Arc::new(PluginVersion { plugin, version }), note }
            }
            16 => StepKind::Resolving,
            17 => StepKind::Resolved { peer: PeerId(cursor.u32()?), cached: cursor.u8()? != 0 },
            18 => StepKind::UnknownSubscriber { cached: cursor.u8()? != 0 },
            19 => StepKind::AwaitingAlert { until: Timestamp(cursor.u64()?) },
            20 => StepKind::Charged { amount: cursor.u64()? },
            21 => StepKind::Refunded { amount: cursor.u64()? },
            22 => StepKind::SubscriberRequeried { imsi: Imsi(AddressBytes::from_slice(cursor.short()?)) },
            23 => {
                let pool = pool_name(cursor)?;
                let number = PoolNumber::from_octets(cursor.array()?);
                let number = number.ok_or_else(|| cursor.damaged("no number of a pool"))?;
                StepKind::SenderLeased { pool, number }
            }
            24 => StepKind::SenderUnavailable { pool: pool_name(cursor)? },
            25 => {
                let action = cursor.u8()?;
                let action =
                    AdminActionKind::from_octet(action).ok_or_else(|| cursor.damaged("unknown action"))?;
                let (queue_action, peer) = (cursor.u32()?, cursor.u32()?);
                StepKind::AdminAction {
                    action,
                    queue_action: (queue_action != 0).then_some(QueueActionId(queue_action)),
                    peer: (peer != u32::MAX).then_some(PeerId(peer)),
                    by: cursor.text()?.into(),
                }
            }
            26 => StepKind::MovedBehindOthers { until: Timestamp(cursor.u64()?) },
            _ => return Err(cursor.damaged("unknown step")),
        };
        steps.push(Step { at, kind });
    }
    Ok(steps)
}

/// On disk, table `progress`, value:
/// * 1: format (7; 1 to 6 are read too, and 3 to 6 are the same without the later steps)
/// * 1: waiting: 0 queued, 1 deferred (8 until), 2 held (8 until), 3 uncertain (8 since), 4 DLR (4 peer, 8 since)
/// * 2: attempts; 1: leg
/// * segments: 1 count, each 1 length, id, 1 state (255: none yet)
/// * steps
pub fn encode_progress(out: &mut Vec<u8>, progress: &MessageProgress) {
    out.push(FORMAT);
    match progress.waiting {
        WaitState::Queued => out.push(0),
        WaitState::Deferred { until } => {
            out.push(1);
            out.extend_from_slice(&until.0.to_le_bytes());
        }
        WaitState::Held { until } => {
            out.push(2);
            out.extend_from_slice(&until.0.to_le_bytes());
        }
        WaitState::Uncertain { since } => {
            out.push(3);
            out.extend_from_slice(&since.0.to_le_bytes());
        }
        WaitState::Dlr { peer, since } => {
            out.push(4);
            out.extend_from_slice(&peer.0.to_le_bytes());
            out.extend_from_slice(&since.0.to_le_bytes());
        }
    }
    out.extend_from_slice(&progress.attempts.to_le_bytes());
    out.push(progress.leg);
    let segments = progress.segments.get(..255).unwrap_or(&progress.segments);
    out.push(segments.len() as u8);
    for segment in segments {
        put_short(out, &segment.id.0);
        out.push(segment.state.map_or(255, |state| state as u8));
    }
    encode_steps(out, &progress.steps);
}

/// Decodes the output of [`encode_progress`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_progress(octets: &[u8]) -> Result<MessageProgress, RecordError> {
    let mut cursor = Cursor::new(octets);
    if !is_known(cursor.u8()?) {
        return Err(RecordError { what: "unknown record format", offset: 0 });
    }
    let waiting = match cursor.u8()? {
        0 => WaitState::Queued,
        1 => WaitState::Deferred { until: Timestamp(cursor.u64()?) },
        2 => WaitState::Held { until: Timestamp(cursor.u64()?) },
        3 => WaitState::Uncertain { since: Timestamp(cursor.u64()?) },
        4 => WaitState::Dlr { peer: PeerId(cursor.u32()?), since: Timestamp(cursor.u64()?) },
        _ => return Err(cursor.damaged("unknown waiting state")),
    };
    let (attempts, leg) = (cursor.u16()?, cursor.u8()?);
    let mut segments = Vec::new();
    for _ in 0..cursor.u8()? {
        let id = PeerMessageId(AddressBytes::from_slice(cursor.short()?));
        segments.push(SubmittedSegment { id, state: DlrState::from_octet(cursor.u8()?) });
    }
    Ok(MessageProgress { waiting, attempts, leg, segments, steps: decode_steps(&mut cursor)? })
}

/// On disk, table `finished`, value: the message record as in `messages`, then
/// * 1: format (7; 1 to 6 are read too, and 3 to 6 are the same without the later steps); 1: state; 8: at; 4: error;
///   4: peer (u32::MAX: none)
/// * peer's id: 1 length, octets
/// * steps
pub fn encode_final(out: &mut Vec<u8>, ended: &FinalRecord) {
    out.extend_from_slice(&[FORMAT, ended.state as u8]);
    out.extend_from_slice(&ended.at.0.to_le_bytes());
    out.extend_from_slice(&ended.error.to_le_bytes());
    out.extend_from_slice(&ended.peer.map_or(u32::MAX, |peer| peer.0).to_le_bytes());
    put_short(out, &ended.peer_id.0);
    encode_steps(out, &ended.steps);
}

/// Decodes the output of [`encode_final`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_final(octets: &[u8]) -> Result<FinalRecord, RecordError> {
    let mut cursor = Cursor::new(octets);
    if !is_known(cursor.u8()?) {
        return Err(RecordError { what: "unknown record format", offset: 0 });
    }
    let state = cursor.u8()?;
    let state = FinalState::from_octet(state).ok_or_else(|| cursor.damaged("unknown final state"))?;
    let (at, error, peer) = (Timestamp(cursor.u64()?), cursor.u32()?, cursor.u32()?);
    let peer_id = PeerMessageId(AddressBytes::from_slice(cursor.short()?));
    Ok(FinalRecord {
        state,
        at,
        error,
        peer: (peer != u32::MAX).then_some(PeerId(peer)),
        peer_id,
        steps: decode_steps(&mut cursor)?,
    })
}

/// On disk, table `handed`, value: 1 format (1), then per submit attempt: 8 id, 2 attempt, 1 leg, 8 at.
pub fn encode_submit_attempts(out: &mut Vec<u8>, submit_attempts: &[SubmitAttempt]) {
    out.push(FORMAT);
    for one in submit_attempts {
        out.extend_from_slice(&one.id.0.to_le_bytes());
        out.extend_from_slice(&one.attempt.to_le_bytes());
        out.push(one.leg);
        out.extend_from_slice(&one.at.0.to_le_bytes());
    }
}

/// Decodes the output of [`encode_submit_attempts`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_submit_attempts(octets: &[u8]) -> Result<Vec<SubmitAttempt>, RecordError> {
    let mut cursor = Cursor::new(octets);
    if !is_known(cursor.u8()?) {
        return Err(RecordError { what: "unknown record format", offset: 0 });
    }
    let mut attempts = Vec::with_capacity(octets.len() / 19);
    while cursor.at() < octets.len() {
        attempts.push(SubmitAttempt {
            id: MessageId(cursor.u64()?),
            attempt: cursor.u16()?,
            leg: cursor.u8()?,
            at: Timestamp(cursor.u64()?),
        });
    }
    Ok(attempts)
}
