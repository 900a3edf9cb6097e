//! Frames between two partitions of a cluster.
//!
//! A frame: 4 length of the rest (big-endian), 1 kind, content (little-endian, as in the records of `codec`). The partition
//! of the messages is the client.
//!
//! | kind | from | content |
//! |---|---|---|
//! | 1 open | client | 1 version, 1 partition, name of the peer: 2 length, UTF-8 |
//! | 2 opened | server | nothing |
//! | 3 refusal | server | reason: 2 length, UTF-8 |
//! | 4 submit | client | a record of a message, with the attempt among its protocol fields |
//! | 5 not accepted | server | 8 id, 2 attempt, outcome: nothing is stored of the attempt |
//! | 6 outcome | server | 8 number, 8 id, 2 attempt, outcome |
//! | 7 DLR | server | 8 number, record of a DLR |
//! | 8 recorded | client | 8 number: the outcome or DLR is stored |
//! | 9 ping, 10 pong | client, server | nothing |
//! | 11 subscriber reachable | server | the IMSI: digits |

use bytes::{Buf, BytesMut};
use codec::{
    Cursor, RecordDecoder, RecordError, decode_orphan_dlr, encode_message, encode_orphan_dlr, put_text,
};
use model::{AddressBytes, Dlr, Imsi, Message, MessageId, OrphanDlrRecord, Outcome, PeerId, Timestamp};

/// The version of these frames.
pub(crate) const VERSION: u8 = 1;

/// The longest frame, in octets: a message has at most 64 KiB of text and as much of TLVs.
const MAX_FRAME: usize = 1 << 20;

/// A frame.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    /// The first frame of a connection. Messages of this partition for this peer follow.
    Open {
        version: u8,
        partition: u8,
        peer: String,
    },
    Opened,
    Refusal {
        reason: String,
    },
    Submit(Box<Message>),
    NotAccepted {
        id: MessageId,
        attempt: u16,
        outcome: Outcome,
    },
    Outcome {
        number: MessageId,
        id: MessageId,
        attempt: u16,
        outcome: Outcome,
    },
    Dlr {
        number: MessageId,
        dlr: Dlr,
    },
    Recorded {
        number: MessageId,
    },
    Ping,
    Pong,
    /// A subscriber of the core network is reachable again.
    SubscriberReachable {
        imsi: Imsi,
    },
}

/// Invalid octets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame of {0} octets")]
    TooLong(usize),
    #[error("a frame of the unknown kind {0}")]
    UnknownKind(u8),
    #[error("an outcome cannot be read")]
    Outcome,
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl Frame {
    /// Appends the frame to a connection's output.
    pub(crate) fn encode(&self, output: &mut BytesMut) {
        let mut out = Vec::with_capacity(64);
        match self {
            Self::Open { version, partition, peer } => {
                out.extend_from_slice(&[1, *version, *partition]);
                put_text(&mut out, peer);
            }
            Self::Opened => out.push(2),
            Self::Refusal { reason } => {
                out.push(3);
                put_text(&mut out, reason);
            }
            Self::Submit(message) => {
                out.push(4);
                encode_message(&mut out, message);
            }
            Self::NotAccepted { id, attempt, outcome } => {
                out.push(5);
                put_attempt(&mut out, *id, *attempt, outcome);
            }
            Self::Outcome { number, id, attempt, outcome } => {
                out.push(6);
                out.extend_from_slice(&number.0.to_le_bytes());
                put_attempt(&mut out, *id, *attempt, outcome);
            }
            Self::Dlr { number, dlr } => {
                out.push(7);
                out.extend_from_slice(&number.0.to_le_bytes());
                let (peer, at) = (PeerId(0), Timestamp(0));
                let record = OrphanDlrRecord { number: number.0, peer, at, dlr: dlr.clone() };
                encode_orphan_dlr(&mut out, &record);
            }
            Self::Recorded { number } => {
                out.push(8);
                out.extend_from_slice(&number.0.to_le_bytes());
            }
            Self::Ping => out.push(9),
            Self::Pong => out.push(10),
            Self::SubscriberReachable { imsi } => {
                out.push(11);
                out.extend_from_slice(&imsi.0);
            }
        }
        output.extend_from_slice(&u32::try_from(out.len()).unwrap_or(u32::MAX).to_be_bytes());
        output.extend_from_slice(&out);
    }

    /// Takes the first frame of a connection's input, if it is there as a whole.
    pub(crate) fn decode(
        input: &mut BytesMut,
        decoder: &mut RecordDecoder,
    ) -> Result<Option<Self>, FrameError> {
        let Some((length, rest)) = input.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(FrameError::TooLong(length));
        }
        let Some(octets) = rest.get(..length) else { return Ok(None) };
        let mut cursor = Cursor::new(octets);
        let frame = match cursor.u8()? {
            1 => {
                Self::Open { version: cursor.u8()?, partition: cursor.u8()?, peer: cursor.text()?.to_owned() }
            }
            2 => Self::Opened,
            3 => Self::Refusal { reason: cursor.text()?.to_owned() },
            4 => {
                let record = octets.get(cursor.at()..).unwrap_or_default();
                Self::Submit(Box::new(decoder.message(MessageId(0), record)?.0))
            }
            5 => {
                let (id, attempt, outcome) = take_attempt(&mut cursor, octets)?;
                Self::NotAccepted { id, attempt, outcome }
            }
            6 => {
                let number = MessageId(cursor.u64()?);
                let (id, attempt, outcome) = take_attempt(&mut cursor, octets)?;
                Self::Outcome { number, id, attempt, outcome }
            }
            7 => {
                let number = MessageId(cursor.u64()?);
                let record = octets.get(cursor.at()..).unwrap_or_default();
                Self::Dlr { number, dlr: decode_orphan_dlr(number.0, record)?.dlr }
            }
            8 => Self::Recorded { number: MessageId(cursor.u64()?) },
            9 => Self::Ping,
            10 => Self::Pong,
            11 => {
                let digits = octets.get(cursor.at()..).unwrap_or_default();
                Self::SubscriberReachable { imsi: Imsi(AddressBytes::from_slice(digits)) }
            }
            kind => return Err(FrameError::UnknownKind(kind)),
        };
        input.advance(4 + length);
        Ok(Some(frame))
    }
}

fn put_attempt(out: &mut Vec<u8>, id: MessageId, attempt: u16, outcome: &Outcome) {
    out.extend_from_slice(&id.0.to_le_bytes());
    out.extend_from_slice(&attempt.to_le_bytes());
    outcome.encode(out);
}

fn take_attempt(cursor: &mut Cursor<'_>, octets: &[u8]) -> Result<(MessageId, u16, Outcome), FrameError> {
    let (id, attempt) = (MessageId(cursor.u64()?), cursor.u16()?);
    let outcome = octets.get(cursor.at()..).and_then(Outcome::decode).ok_or(FrameError::Outcome)?;
    Ok((id, attempt, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use model::{
        Address, DlrState, ErrorClass, Leg, PeerMessageId, PluginVersion, RemoteAttempt, RoutingDecision,
        Text, Verdict,
    };

    fn frames() -> Vec<Frame> {
        let by = PluginVersion { plugin: "partition".to_owned(), version: String::new() };
        let text = Text { octets: Bytes::from(vec![7; 60_000]), payload: true, ..Text::default() };
        let mut message = Message::new(
            PeerId(4),
            Address::new(5, 0, b"BANK"),
            Address::international("8613012345678"),
            text,
            Timestamp(99),
            RoutingDecision::new(Verdict::Forward(vec![Leg::to(PeerId(9))]), by.into()),
        );
        let (id, attempt) = (MessageId::first_of(1), 3);
        let mut fields = Vec::new();
        RemoteAttempt { id, attempt, taken: 1, accepted_at: Timestamp(98) }.append_to(&mut fields);
        (message.protocol_fields, message.tlvs) = (fields.into(), vec![0x14, 1, 0, 1, 9].into());
        let dlr = Dlr {
            id: PeerMessageId::new(b"17"),
            state: DlrState::Delivered,
            intermediate: false,
            error: 3,
            network_error: Some([3, 0, 1]),
            done_at: Some(Timestamp(5)),
            from: AddressBytes::from_slice(b"8613"),
            to: AddressBytes::from_slice(b"BANK"),
        };
        let number = MessageId(1_000_000_007);
        let refused = Outcome::Refused { class: ErrorClass::Throttled, code: 0x58, taken: Vec::new() };
        vec![
            Frame::Open { version: VERSION, partition: 1, peer: "upstream".to_owned() },
            Frame::Opened,
            Frame::Refusal { reason: "no".to_owned() },
            Frame::Submit(Box::new(message)),
            Frame::NotAccepted { id, attempt, outcome: refused },
            Frame::Outcome { number, id, attempt, outcome: Outcome::NotSent },
            Frame::Dlr { number, dlr },
            Frame::Recorded { number },
            Frame::Ping,
            Frame::Pong,
            Frame::SubscriberReachable { imsi: Imsi(AddressBytes::from_slice(b"001010000000001")) },
        ]
    }

    #[test]
    fn frames_come_in_any_pieces_and_whole_messages_with_them() {
        let mut output = BytesMut::new();
        frames().iter().for_each(|frame| frame.encode(&mut output));
        let (mut input, mut decoder, mut got) = (BytesMut::new(), RecordDecoder::new(), Vec::new());
        for piece in output.chunks(1000) {
            input.extend_from_slice(piece);
            while let Some(frame) = Frame::decode(&mut input, &mut decoder).unwrap() {
                got.push(frame);
            }
        }
        assert_eq!(got, frames());
        assert!(input.is_empty());
    }

    #[test]
    fn other_octets_are_refused() {
        let mut decoder = RecordDecoder::new();
        let mut decode = |octets: &[u8]| Frame::decode(&mut BytesMut::from(octets), &mut decoder);
        assert_eq!(decode(b"GET / HTTP"), Err(FrameError::TooLong(0x4745_5420)));
        assert_eq!(decode(&[0, 0, 0, 1, 77]), Err(FrameError::UnknownKind(77)));
        for frame in frames() {
            let mut whole = BytesMut::new();
            frame.encode(&mut whole);
            // The length says that the frame ends early.
            for cut in (5..whole.len()).step_by(1 + whole.len() / 100) {
                let mut short = BytesMut::from(&whole[..cut]);
                short[..4].copy_from_slice(&u32::try_from(cut - 4).unwrap().to_be_bytes());
                let got = Frame::decode(&mut short, &mut RecordDecoder::new());
                assert_ne!(got, Ok(Some(frame.clone())), "{cut}");
            }
        }
    }
}
