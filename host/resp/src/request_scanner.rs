use crate::{ProtocolError, RespLimits};

/// Maximum length of a line with a count or a length; Redis allows 64 KiB.
const MAX_COUNT_LINE: usize = 32;
/// The limits of Redis for unauthenticated clients.
const MAX_UNAUTHENTICATED_ELEMENTS: usize = 10;
const MAX_UNAUTHENTICATED_OCTETS: usize = 16_384;

/// Finds the end of a request before it is parsed.
///
/// The parser accepts any frame, nested to any depth, and restarts with each call. A client may send only flat arrays
/// of bulk strings or inline requests. The scanner enforces this with Redis's error texts, and keeps its position, so
/// that a request in many small pieces costs no more than in one.
#[derive(Debug, Default)]
pub(crate) struct RequestScanner {
    /// Scanned octets of the request.
    position: usize,
    /// Remaining elements, once their number is known.
    remaining: Option<usize>,
    /// How far an inline request was searched for its end.
    searched_to: usize,
}

/// A complete request at the start of the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CompleteRequest {
    /// An array of this many octets.
    Array(usize),
    /// An inline request of this many octets, including its line end.
    Line(usize),
    /// An empty or null array, which requests nothing.
    Nothing(usize),
}

impl RequestScanner {
    /// Continues to scan the request at the start of the buffer. Returns `None` while it is incomplete.
    pub(crate) fn scan(
        &mut self,
        buffer: &[u8],
        limits: &RespLimits,
        unauthenticated: bool,
    ) -> Result<Option<CompleteRequest>, ProtocolError> {
        match buffer.first() {
            None => Ok(None),
            Some(b'*') => self.array(buffer, limits, unauthenticated),
            Some(_) => self.line(buffer, limits),
        }
    }

    fn array(
        &mut self,
        buffer: &[u8],
        limits: &RespLimits,
        unauthenticated: bool,
    ) -> Result<Option<CompleteRequest>, ProtocolError> {
        let mut remaining = match self.remaining {
            Some(remaining) => remaining,
            None => {
                let Some((count, end)) =
                    parse_count_line(buffer, 1, ProtocolError::LongCount, ProtocolError::Elements)?
                else {
                    return Ok(None);
                };
                // As in Redis, a count below 1 requests nothing.
                let Ok(count) = usize::try_from(count) else {
                    return Ok(Some(self.finish(CompleteRequest::Nothing(end))));
                };
                if count == 0 {
                    return Ok(Some(self.finish(CompleteRequest::Nothing(end))));
                }
                if count > limits.elements {
                    return Err(ProtocolError::Elements);
                }
                if unauthenticated && count > MAX_UNAUTHENTICATED_ELEMENTS {
                    return Err(ProtocolError::UnauthenticatedElements);
                }
                self.position = end;
                self.remaining = Some(count);
                count
            }
        };
        while remaining > 0 {
            match buffer.get(self.position) {
                None => return Ok(None),
                Some(b'$') => {}
                Some(&other) => return Err(ProtocolError::NotABulkString(char::from(other))),
            }
            let Some((length, start)) = parse_count_line(
                buffer,
                self.position + 1,
                ProtocolError::LongLength,
                ProtocolError::Length,
            )?
            else {
                return Ok(None);
            };
            let length = usize::try_from(length).map_err(|_| ProtocolError::Length)?;
            if unauthenticated && length > MAX_UNAUTHENTICATED_OCTETS {
                return Err(ProtocolError::UnauthenticatedLength);
            }
            if length > limits.octets || start + length + 2 > limits.octets {
                return Err(ProtocolError::Length);
            }
            let end = start + length + 2;
            match buffer.get(start + length..end) {
                None => return Ok(None),
                Some(b"\r\n") => {}
                Some(_) => return Err(ProtocolError::MissingTerminator),
            }
            self.position = end;
            remaining -= 1;
            self.remaining = Some(remaining);
        }
        let end = self.position;
        Ok(Some(self.finish(CompleteRequest::Array(end))))
    }

    fn line(&mut self, buffer: &[u8], limits: &RespLimits) -> Result<Option<CompleteRequest>, ProtocolError> {
        let unseen = buffer.get(self.searched_to..).unwrap_or_default();
        let longest = limits.octets.min(MAX_UNAUTHENTICATED_OCTETS * 4);
        match unseen.iter().position(|&octet| octet == b'\n') {
            Some(end) if self.searched_to + end < longest => {
                let end = self.searched_to + end + 1;
                Ok(Some(self.finish(CompleteRequest::Line(end))))
            }
            None if buffer.len() < longest => {
                self.searched_to = buffer.len();
                Ok(None)
            }
            _ => Err(ProtocolError::LongLine),
        }
    }

    /// Resets the scanner for the next request.
    fn finish(&mut self, request: CompleteRequest) -> CompleteRequest {
        *self = Self::default();
        request
    }
}

/// Parses a number up to CRLF; returns it with the offset after it, or `None` while the line is incomplete.
fn parse_count_line(
    buffer: &[u8],
    from: usize,
    long: ProtocolError,
    bad: ProtocolError,
) -> Result<Option<(i64, usize)>, ProtocolError> {
    let rest = buffer.get(from..).unwrap_or_default();
    let window = rest.get(..MAX_COUNT_LINE).unwrap_or(rest);
    let Some(end) = window.iter().position(|&octet| octet == b'\r') else {
        return if rest.len() >= MAX_COUNT_LINE { Err(long) } else { Ok(None) };
    };
    match window.get(end + 1) {
        None if rest.len() >= MAX_COUNT_LINE => return Err(long),
        None => return Ok(None),
        Some(b'\n') => {}
        Some(_) => return Err(bad),
    }
    let text = window.get(..end).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or(bad)?;
    // Rust accepts a plus sign, Redis does not.
    if text.starts_with('+') {
        return Err(bad);
    }
    Ok(Some((text.parse().map_err(|_| bad)?, from + end + 2)))
}
