//! The framing under GSUP and CTRL: length (two octets), stream (one octet), payload.
//!
//! The length counts what follows the stream's octet. Streams are [`Frame::Ccm`] (0xFE) and Osmocom's (0xEE), whose payload
//! begins with an octet more that says what it is.

use bytes::{Buf, Bytes, BytesMut};

/// Octets before the payload.
pub const HEADER: usize = 3;
/// The stream of identity and keep-alive.
pub const STREAM_CCM: u8 = 0xfe;
/// The stream of Osmocom's own protocols.
pub const STREAM_OSMOCOM: u8 = 0xee;
/// GSUP, on Osmocom's stream.
pub const EXTENSION_GSUP: u8 = 0x05;
/// CTRL, on Osmocom's stream.
pub const EXTENSION_CTRL: u8 = 0x00;
/// The longest payload that is believed where messages are short. OsmoHLR's own buffer has some 1,500 octets.
pub const LIMIT: usize = 4_096;
/// The longest payload that there can be.
pub const MOST: usize = u16::MAX as usize;

/// One frame, without its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Identity and keep-alive.
    Ccm(Bytes),
    /// A GSUP message.
    Gsup(Bytes),
    /// A line of the control interface.
    Ctrl(Bytes),
    /// Anything else: the stream and its whole payload.
    Other {
        /// The stream.
        stream: u8,
        /// What it carries.
        payload: Bytes,
    },
}

/// Octets that are no frame. The connection cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame with nothing in it.
    #[error("an IPA frame of length 0 on stream {stream:#04x}; is this the right port?")]
    Empty {
        /// The stream.
        stream: u8,
    },
    /// A frame longer than agreed.
    #[error(
        "an IPA frame of {octets} octets on stream {stream:#04x}, where {limit} are the most; is this the right port?"
    )]
    Long {
        /// The stream.
        stream: u8,
        /// What it claims.
        octets: usize,
        /// The limit.
        limit: usize,
    },
}

/// A frame's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) octets: usize,
    pub(crate) stream: u8,
}

impl Header {
    /// Reads a header; `None` while it is not all there.
    pub(crate) fn peek(octets: &[u8]) -> Option<Self> {
        match octets {
            [high, low, stream, ..] => {
                Some(Self { octets: usize::from(u16::from_be_bytes([*high, *low])), stream: *stream })
            }
            _ => None,
        }
    }
}

impl Frame {
    /// Takes the next frame from what was read; `None` while it is not all there.
    ///
    /// # Errors
    /// When a frame is empty or longer than `limit`; what follows cannot be read then.
    pub fn take(input: &mut BytesMut, limit: usize) -> Result<Option<Self>, FrameError> {
        let Some(Header { octets, stream }) = Header::peek(input) else { return Ok(None) };
        if octets == 0 {
            return Err(FrameError::Empty { stream });
        }
        if octets > limit {
            return Err(FrameError::Long { stream, octets, limit });
        }
        if input.len() < HEADER + octets {
            return Ok(None);
        }
        input.advance(HEADER);
        Ok(Some(Self::of(stream, input.split_to(octets).freeze())))
    }

    /// What a payload is.
    pub(crate) fn of(stream: u8, mut payload: Bytes) -> Self {
        match (stream, payload.first().copied()) {
            (STREAM_CCM, _) => Self::Ccm(payload),
            (STREAM_OSMOCOM, Some(EXTENSION_GSUP)) => {
                payload.advance(1);
                Self::Gsup(payload)
            }
            (STREAM_OSMOCOM, Some(EXTENSION_CTRL)) => {
                payload.advance(1);
                Self::Ctrl(payload)
            }
            _ => Self::Other { stream, payload },
        }
    }

    /// Writes a frame. What is longer than a frame can be is cut; nothing of ours is.
    pub fn put(&self, output: &mut BytesMut) {
        match self {
            Self::Ccm(payload) => put(output, STREAM_CCM, &[], payload),
            Self::Gsup(payload) => put(output, STREAM_OSMOCOM, &[EXTENSION_GSUP], payload),
            Self::Ctrl(payload) => put(output, STREAM_OSMOCOM, &[EXTENSION_CTRL], payload),
            Self::Other { stream, payload } => put(output, *stream, &[], payload),
        }
    }
}

/// Writes a frame of two pieces.
pub(crate) fn put(output: &mut BytesMut, stream: u8, extension: &[u8], payload: &[u8]) {
    let most = MOST - extension.len();
    let payload = payload.get(..most).unwrap_or(payload);
    let octets = u16::try_from(extension.len() + payload.len()).unwrap_or(u16::MAX);
    output.reserve(HEADER + usize::from(octets));
    output.extend_from_slice(&octets.to_be_bytes());
    output.extend_from_slice(&[stream]);
    output.extend_from_slice(extension);
    output.extend_from_slice(payload);
}
