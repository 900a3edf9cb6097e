//! Wait states, ends and submit attempts of messages.

use crate::format::begin;
use crate::steps::{put_steps, steps};
use crate::{Cursor, FORMAT, RecordError, put_short};
use model::{
    AddressBytes, DlrState, EarlierLeg, FinalRecord, FinalState, MessageId, MessageProgress, PeerId,
    PeerMessageId, SubmitAttempt, SubmittedSegment, Timestamp, WaitState,
};

/// On disk, table `progress`, value:
/// * 1: format (7; 1 to 6 are read too, and 3 to 6 are the same without the later steps)
/// * 1: waiting: 0 queued, 1 deferred (8 until), 2 held (8 until), 3 uncertain (8 since), 4 DLR (4 peer, 8 since), 5
///   quarantined
/// * 2: attempts; 1: leg
/// * segments: 1 count, each 1 length, id, 1 state (255: none yet)
/// * steps
/// * earlier legs, if there are any, from format 8 on: 1 count, each 4 peer, segments
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
        WaitState::Quarantined => out.push(5),
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
    put_segments(out, &progress.segments);
    put_steps(out, &progress.steps);
    if !progress.earlier.is_empty() {
        let earlier = progress.earlier.get(..255).unwrap_or(&progress.earlier);
        out.push(earlier.len() as u8);
        for leg in earlier {
            out.extend_from_slice(&leg.peer.0.to_le_bytes());
            put_segments(out, &leg.segments);
        }
    }
}

fn put_segments(out: &mut Vec<u8>, segments: &[SubmittedSegment]) {
    let segments = segments.get(..255).unwrap_or(segments);
    out.push(segments.len() as u8);
    for segment in segments {
        put_short(out, &segment.id.0);
        out.push(segment.state.map_or(255, |state| state as u8));
    }
}

fn read_segments(cursor: &mut Cursor<'_>) -> Result<Vec<SubmittedSegment>, RecordError> {
    let mut segments = Vec::new();
    for _ in 0..cursor.u8()? {
        let id = PeerMessageId(AddressBytes::from_slice(cursor.short()?));
        segments.push(SubmittedSegment { id, state: DlrState::from_octet(cursor.u8()?) });
    }
    Ok(segments)
}

/// Decodes the output of [`encode_progress`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_progress(octets: &[u8]) -> Result<MessageProgress, RecordError> {
    let (mut cursor, _) = begin(octets)?;
    let waiting = match cursor.u8()? {
        0 => WaitState::Queued,
        1 => WaitState::Deferred { until: Timestamp(cursor.u64()?) },
        2 => WaitState::Held { until: Timestamp(cursor.u64()?) },
        3 => WaitState::Uncertain { since: Timestamp(cursor.u64()?) },
        4 => WaitState::Dlr { peer: PeerId(cursor.u32()?), since: Timestamp(cursor.u64()?) },
        5 => WaitState::Quarantined,
        _ => return Err(cursor.damaged("unknown waiting state")),
    };
    let (attempts, leg) = (cursor.u16()?, cursor.u8()?);
    let segments = read_segments(&mut cursor)?;
    let steps = steps(&mut cursor)?;
    let mut earlier = Vec::new();
    if !cursor.is_at_end() {
        let count = cursor.u8()?;
        if count == 0 {
            return Err(cursor.damaged("a list of earlier legs without any"));
        }
        for _ in 0..count {
            let peer = PeerId(cursor.u32()?);
            earlier.push(EarlierLeg { peer, segments: read_segments(&mut cursor)? });
        }
    }
    Ok(MessageProgress { waiting, attempts, leg, segments, earlier, steps })
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
    put_steps(out, &ended.steps);
}

/// Decodes the output of [`encode_final`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_final(octets: &[u8]) -> Result<FinalRecord, RecordError> {
    let (mut cursor, _) = begin(octets)?;
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
        steps: steps(&mut cursor)?,
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
    let (mut cursor, _) = begin(octets)?;
    let mut attempts = Vec::with_capacity(octets.len() / 19);
    while !cursor.is_at_end() {
        let (id, attempt) = (MessageId(cursor.u64()?), cursor.u16()?);
        attempts.push(SubmitAttempt { id, attempt, leg: cursor.u8()?, at: Timestamp(cursor.u64()?) });
    }
    Ok(attempts)
}
