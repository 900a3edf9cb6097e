//! IPA framing of GSUP and CTRL: length (two octets), stream (one octet), payload.
//!
//! The length excludes the stream octet. Streams are [`IpaFrame::Ccm`] (0xFE) and Osmocom (0xEE), whose payload begins
//! with an extension octet.

use bytes::{Buf, Bytes, BytesMut};

/// Octets of the frame header.
pub const HEADER_LEN: usize = 3;
/// The stream of CCM.
pub const STREAM_CCM: u8 = 0xfe;
/// The stream of Osmocom's protocols.
pub const STREAM_OSMOCOM: u8 = 0xee;
/// Extension octet of GSUP.
pub const EXTENSION_GSUP: u8 = 0x05;
/// Extension octet of CTRL.
pub const EXTENSION_CTRL: u8 = 0x00;
/// Payload limit for GSUP. OsmoHLR's own buffer has about 1,500 octets.
pub const DEFAULT_MAX_PAYLOAD: usize = 4_096;
/// Maximum payload of a frame.
pub const MAX_PAYLOAD: usize = u16::MAX as usize;

/// A frame without its header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IpaFrame {
    /// CCM.
    Ccm(Bytes),
    /// A GSUP message.
    Gsup(Bytes),
    /// A line of the CTRL interface.
    Ctrl(Bytes),
    /// Any other stream, with the complete payload.
    Other {
        /// The stream.
        stream: u8,
        /// The payload.
        payload: Bytes,
    },
}

/// Invalid framing. The connection cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A frame without payload.
    #[error("an IPA frame of length 0 on stream {stream:#04x}; is this the right port?")]
    Empty {
        /// The stream.
        stream: u8,
    },
    /// A frame above the limit.
    #[error(
        "an IPA frame of {octets} octets on stream {stream:#04x}, the limit is {limit}; is this the right port?"
    )]
    Long {
        /// The stream.
        stream: u8,
        /// The declared length.
        octets: usize,
        /// The limit.
        limit: usize,
    },
}

/// A frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) octets: usize,
    pub(crate) stream: u8,
}

impl Header {
    /// Decodes a header; `None` if it is incomplete.
    pub(crate) fn peek(octets: &[u8]) -> Option<Self> {
        match octets {
            [high, low, stream, ..] => {
                Some(Self { octets: usize::from(u16::from_be_bytes([*high, *low])), stream: *stream })
            }
            _ => None,
        }
    }
}

impl IpaFrame {
    /// Takes the next frame from the input; `None` if it is incomplete.
    ///
    /// # Errors
    /// If a frame is empty or longer than `limit`; the rest of the stream is unusable.
    pub fn take(input: &mut BytesMut, limit: usize) -> Result<Option<Self>, FrameError> {
        let Some(Header { octets, stream }) = Header::peek(input) else { return Ok(None) };
        if octets == 0 {
            return Err(FrameError::Empty { stream });
        }
        if octets > limit {
            return Err(FrameError::Long { stream, octets, limit });
        }
        if input.len() < HEADER_LEN + octets {
            return Ok(None);
        }
        input.advance(HEADER_LEN);
        Ok(Some(Self::of(stream, input.split_to(octets).freeze())))
    }

    /// Decodes a payload.
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

    /// Encodes the frame. A payload above the maximum is truncated; own payloads never are.
    pub fn put(&self, output: &mut BytesMut) {
        match self {
            Self::Ccm(payload) => put(output, STREAM_CCM, &[], payload),
            Self::Gsup(payload) => put(output, STREAM_OSMOCOM, &[EXTENSION_GSUP], payload),
            Self::Ctrl(payload) => put(output, STREAM_OSMOCOM, &[EXTENSION_CTRL], payload),
            Self::Other { stream, payload } => put(output, *stream, &[], payload),
        }
    }
}

/// Encodes a frame with an optional extension octet.
pub(crate) fn put(output: &mut BytesMut, stream: u8, extension: &[u8], payload: &[u8]) {
    let most = MAX_PAYLOAD - extension.len();
    let payload = payload.get(..most).unwrap_or(payload);
    let octets = u16::try_from(extension.len() + payload.len()).unwrap_or(u16::MAX);
    output.reserve(HEADER_LEN + usize::from(octets));
    output.extend_from_slice(&octets.to_be_bytes());
    output.extend_from_slice(&[stream]);
    output.extend_from_slice(extension);
    output.extend_from_slice(payload);
}
