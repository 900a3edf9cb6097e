//! Calls of plugins that are recorded with a message, for replays: the values of steps of the kinds `CallRecorded` and, encrypted,
//! `SealedCallRecorded`.

use crate::routing::{CompactLayout, Layout};
use crate::{ContentCipher, ContentPart, Cursor, RecordError, put_leb128};
use bytes::Bytes;
use model::{
    CallRecord, DlrFacts, DlrState, ErrorClass, Message, MessageId, PluginVersion, ReceiptEvent,
    ReceiptVerdict, RecordedReceiptCall, RecordedSubmitCall, SealedContent, Step, StepKind, SubmitResult,
    Timestamp,
};
use std::sync::Arc;
use std::time::Duration;

const FORMAT: u8 = 1;

const WAIT: u8 = 1;
const HOST_CALLS: u8 = 2;

const FINAL: u8 = 1;
const NETWORK_ERROR: u8 = 2;

fn put_duration(out: &mut Vec<u8>, time: Duration) {
    put_leb128(out, u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
}

fn duration(cursor: &mut Cursor<'_>) -> Result<Duration, RecordError> {
    Ok(Duration::from_millis(cursor.leb128()?))
}

fn begin(octets: &[u8]) -> Result<Cursor<'_>, RecordError> {
    let mut cursor = Cursor::new(octets);
    if cursor.u8()? != FORMAT {
        return Err(RecordError { what: "unknown format of a recorded call", offset: 0 });
    }
    Ok(cursor)
}

fn dlr_state(cursor: &mut Cursor<'_>) -> Result<DlrState, RecordError> {
    DlrState::from_octet(cursor.u8()?).ok_or_else(|| cursor.damaged("unknown state of a DLR"))
}

/// Encodes a call of the receipt policies. Numbers without a length are LEB128, durations are milliseconds.
///
/// * 1: format (1); 8: time of the call; 1: flags (bit 0 wait, 1 host calls)
/// * attempts; 1 leg, 1 legs; peer: length, octets; age; remaining validity
/// * 1: event (0 accepted, 1 timeout, 2 DLR); a DLR: 1 flags (bit 0 final, 1 network error), 1 state, 2 error, 3 network
///   error, if flagged, latency
/// * 1: verdict (0 accept, 1 next leg, 2 suspect, 3 remap: 1 state, 2 error)
/// * wait, if flagged
/// * host calls, if flagged: the rest
#[must_use]
pub fn encode_receipt_call(call: &RecordedReceiptCall) -> Box<[u8]> {
    let RecordedReceiptCall { at, attempts, leg, peer, age, left, event, verdict, wait, host_calls } = call;
    let flag = |bit: u8, set: bool| if set { bit } else { 0 };
    let mut out = Vec::with_capacity(48 + host_calls.as_ref().map_or(0, |calls| calls.len()));
    out.push(FORMAT);
    out.extend_from_slice(&at.0.to_le_bytes());
    out.push(flag(WAIT, wait.is_some()) | flag(HOST_CALLS, host_calls.is_some()));
    put_leb128(&mut out, u64::from(*attempts));
    out.extend_from_slice(&[leg.0, leg.1]);
    CompactLayout::put_text(&mut out, peer);
    put_duration(&mut out, *age);
    put_duration(&mut out, *left);
    match event {
        ReceiptEvent::Accepted => out.push(0),
        ReceiptEvent::Timeout => out.push(1),
        ReceiptEvent::Dlr(DlrFacts { is_final, state, error, network_error, latency }) => {
            let flags = flag(FINAL, *is_final) | flag(NETWORK_ERROR, network_error.is_some());
            out.extend_from_slice(&[2, flags, *state as u8]);
            out.extend_from_slice(&error.to_le_bytes());
            out.extend(network_error.iter().flatten());
            put_duration(&mut out, *latency);
        }
    }
    match verdict {
        ReceiptVerdict::Accept => out.push(0),
        ReceiptVerdict::NextLeg => out.push(1),
        ReceiptVerdict::Suspect => out.push(2),
        ReceiptVerdict::Remap { state, error } => {
            out.extend_from_slice(&[3, *state as u8]);
            out.extend_from_slice(&error.to_le_bytes());
        }
    }
    if let Some(wait) = wait {
        put_duration(&mut out, *wait);
    }
    out.extend_from_slice(host_calls.as_deref().unwrap_or_default());
    out.into()
}

/// Decodes the output of [`encode_receipt_call`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_receipt_call(octets: &[u8]) -> Result<RecordedReceiptCall, RecordError> {
    let mut cursor = begin(octets)?;
    let (at, flags) = (Timestamp(cursor.u64()?), cursor.u8()?);
    let attempts = u16::try_from(cursor.leb128()?).map_err(|_| cursor.damaged("too many attempts"))?;
    let leg = (cursor.u8()?, cursor.u8()?);
    let peer = CompactLayout::text(&mut cursor)?.into();
    let (age, left) = (duration(&mut cursor)?, duration(&mut cursor)?);
    let event = match cursor.u8()? {
        0 => ReceiptEvent::Accepted,
        1 => ReceiptEvent::Timeout,
        2 => {
            let flags = cursor.u8()?;
            let (state, error) = (dlr_state(&mut cursor)?, cursor.u16()?);
            let network_error = if flags & NETWORK_ERROR == 0 { None } else { Some(cursor.array()?) };
            let latency = duration(&mut cursor)?;
            ReceiptEvent::Dlr(DlrFacts { is_final: flags & FINAL != 0, state, error, network_error, latency })
        }
        _ => return Err(cursor.damaged("unknown event of a receipt policy")),
    };
    let verdict = match cursor.u8()? {
        0 => ReceiptVerdict::Accept,
        1 => ReceiptVerdict::NextLeg,
        2 => ReceiptVerdict::Suspect,
        3 => ReceiptVerdict::Remap { state: dlr_state(&mut cursor)?, error: cursor.u16()? },
        _ => return Err(cursor.damaged("unknown verdict of a receipt policy")),
    };
    let wait = if flags & WAIT == 0 { None } else { Some(duration(&mut cursor)?) };
    let host_calls = (flags & HOST_CALLS != 0).then(|| octets.get(cursor.at()..).unwrap_or_default().into());
    Ok(RecordedReceiptCall { at, attempts, leg, peer, age, left, event, verdict, wait, host_calls })
}

/// Encodes a submission by a plugin.
///
/// * 1: format (1); 8: time of the call; peer: length, octets; 1 leg; 2 attempt; 1 whether a DLR was requested
/// * texts plugin and version; 8: digest of the policy document
/// * 1: result (0 accepted, 1 unsure, 2 refused: 1 index of the class, 4 code)
/// * host calls: the rest
#[must_use]
pub fn encode_submit_call(call: &RecordedSubmitCall) -> Box<[u8]> {
    let RecordedSubmitCall { at, peer, leg, attempt, want_dlr, by, policy, result, host_calls } = call;
    let mut out = Vec::with_capacity(64 + host_calls.len());
    out.push(FORMAT);
    out.extend_from_slice(&at.0.to_le_bytes());
    CompactLayout::put_text(&mut out, peer);
    out.push(*leg);
    out.extend_from_slice(&attempt.to_le_bytes());
    out.push(u8::from(*want_dlr));
    CompactLayout::put_text(&mut out, &by.plugin);
    CompactLayout::put_text(&mut out, &by.version);
    out.extend_from_slice(policy);
    match result {
        SubmitResult::Accepted => out.push(0),
        SubmitResult::Unsure => out.push(1),
        SubmitResult::Refused { class, code } => {
            let index = ErrorClass::ALL.iter().position(|one| one == class);
            out.extend_from_slice(&[2, index.and_then(|index| u8::try_from(index).ok()).unwrap_or(0)]);
            out.extend_from_slice(&code.to_le_bytes());
        }
    }
    out.extend_from_slice(host_calls);
    out.into()
}

/// Decodes the output of [`encode_submit_call`].
///
/// # Errors
/// The octets are no such record.
pub fn decode_submit_call(octets: &[u8]) -> Result<RecordedSubmitCall, RecordError> {
    let mut cursor = begin(octets)?;
    let at = Timestamp(cursor.u64()?);
    let peer = CompactLayout::text(&mut cursor)?.into();
    let (leg, attempt, want_dlr) = (cursor.u8()?, cursor.u16()?, cursor.u8()? != 0);
    let plugin = CompactLayout::text(&mut cursor)?.to_owned();
    let version = CompactLayout::text(&mut cursor)?.to_owned();
    let policy = cursor.array()?;
    let result = match cursor.u8()? {
        0 => SubmitResult::Accepted,
        1 => SubmitResult::Unsure,
        2 => {
            let class = ErrorClass::ALL.get(usize::from(cursor.u8()?));
            let class = *class.ok_or_else(|| cursor.damaged("unknown class of an error"))?;
            SubmitResult::Refused { class, code: cursor.u32()? }
        }
        _ => return Err(cursor.damaged("unknown result of a submission")),
    };
    let host_calls = octets.get(cursor.at()..).unwrap_or_default().into();
    let by = Arc::new(PluginVersion { plugin, version });
    Ok(RecordedSubmitCall { at, peer, leg, attempt, want_dlr, by, policy, result, host_calls })
}

/// Encrypts a recorded call if the content of its message must be encrypted. `None` if there is no key: then the call must
/// not be recorded.
#[must_use]
pub fn seal_recorded_call(
    cipher: Option<&dyn ContentCipher>,
    message: &Message,
    record: Box<[u8]>,
) -> Option<CallRecord> {
    let Some(cipher) = cipher else { return Some(CallRecord::Plain(record)) };
    let sealed = cipher.seal(message, ContentPart::RecordedCall, &record).ok()?;
    Some(sealed.map_or(CallRecord::Plain(record), CallRecord::Sealed))
}

/// Decrypts the calls in a message's steps that [`seal_recorded_call`] encrypted. Calls whose key is missing are removed.
pub fn open_recorded_calls(cipher: Option<&dyn ContentCipher>, id: MessageId, steps: &mut Vec<Step>) {
    steps.retain_mut(|step| {
        let StepKind::SealedCallRecorded { hook, key, record } = &step.kind else { return true };
        let sealed = SealedContent { key: *key, octets: Bytes::copy_from_slice(record) };
        let plain = cipher.and_then(|cipher| cipher.open(id, ContentPart::RecordedCall, &sealed));
        let Some(plain) = plain else { return false };
        step.kind = StepKind::CallRecorded { hook: *hook, record: plain.into() };
        true
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn milliseconds() -> impl Strategy<Value = Duration> {
        any::<u64>().prop_map(Duration::from_millis)
    }

    fn state() -> impl Strategy<Value = DlrState> {
        (0_u8..10).prop_filter_map("a state", DlrState::from_octet)
    }

    fn octets() -> impl Strategy<Value = Box<[u8]>> {
        vec(any::<u8>(), 0..60).prop_map(Vec::into_boxed_slice)
    }

    fn receipt_call() -> impl Strategy<Value = RecordedReceiptCall> {
        let facts = (any::<bool>(), state(), any::<u16>(), any::<Option<[u8; 3]>>(), milliseconds());
        let dlr = facts.prop_map(|(is_final, state, error, network_error, latency)| {
            ReceiptEvent::Dlr(DlrFacts { is_final, state, error, network_error, latency })
        });
        let event = prop_oneof![Just(ReceiptEvent::Accepted), Just(ReceiptEvent::Timeout), dlr];
        let remap = (state(), any::<u16>()).prop_map(|(state, error)| ReceiptVerdict::Remap { state, error });
        let verdict = prop_oneof![
            Just(ReceiptVerdict::Accept),
            Just(ReceiptVerdict::NextLeg),
            Just(ReceiptVerdict::Suspect),
            remap
        ];
        let submission =
            (any::<u64>(), any::<u16>(), any::<(u8, u8)>(), "\\PC{0,9}", milliseconds(), milliseconds());
        let answer = (verdict, proptest::option::of(milliseconds()), proptest::option::of(octets()));
        (submission, event, answer).prop_map(
            |((at, attempts, leg, peer, age, left), event, (verdict, wait, host_calls))| {
                let (at, peer) = (Timestamp(at), peer.into());
                RecordedReceiptCall { at, attempts, leg, peer, age, left, event, verdict, wait, host_calls }
            },
        )
    }

    fn submit_call() -> impl Strategy<Value = RecordedSubmitCall> {
        let refused = (select(&ErrorClass::ALL[..]), any::<u32>())
            .prop_map(|(class, code)| SubmitResult::Refused { class, code });
        let result = prop_oneof![Just(SubmitResult::Accepted), Just(SubmitResult::Unsure), refused];
        let attempt = (any::<u64>(), "\\PC{0,9}", any::<u8>(), any::<u16>(), any::<bool>());
        (attempt, "\\PC{0,9}", "[0-9a-f]{12}", any::<[u8; 8]>(), result, octets()).prop_map(
            |((at, peer, leg, attempt, want_dlr), plugin, version, policy, result, host_calls)| {
                let by = Arc::new(PluginVersion { plugin, version });
                let (at, peer) = (Timestamp(at), peer.into());
                RecordedSubmitCall { at, peer, leg, attempt, want_dlr, by, policy, result, host_calls }
            },
        )
    }

    proptest! {
        #[test]
        fn receipt_calls_survive_a_round_trip(call in receipt_call()) {
            prop_assert_eq!(decode_receipt_call(&encode_receipt_call(&call)), Ok(call));
        }

        #[test]
        fn submit_calls_survive_a_round_trip(call in submit_call()) {
            prop_assert_eq!(decode_submit_call(&encode_submit_call(&call)), Ok(call));
        }

        #[test]
        fn any_octets_are_read_or_refused(octets in vec(any::<u8>(), 0..120)) {
            let octets = [&[FORMAT][..], &octets].concat();
            if let Ok(call) = decode_receipt_call(&octets) {
                prop_assert_eq!(decode_receipt_call(&encode_receipt_call(&call)), Ok(call));
            }
            if let Ok(call) = decode_submit_call(&octets) {
                prop_assert_eq!(decode_submit_call(&encode_submit_call(&call)), Ok(call));
            }
        }
    }
}
