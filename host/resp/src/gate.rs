use crate::{Limits, ProtocolError};

/// The longest line that holds a count or a length; Redis allows 64 KiB, but no count needs them.
const LINE: usize = 32;
/// What Redis allows before a connection has said who it is.
const STRANGER_ELEMENTS: usize = 10;
const STRANGER_OCTETS: usize = 16_384;

/// Finds the end of a request before the parser sees it.
///
/// The parser takes any frame, nested to any depth, and starts anew at each call. A client may only send flat arrays of bulk
/// strings or a plain line; the gate holds to that, says what is wrong in Redis's words, and remembers how far it has looked, so
/// that a request in many small pieces costs no more than in one.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// Octets of the request that have been looked at.
    at: usize,
    /// Elements still to come, once their number is known.
    left: Option<usize>,
    /// Where a plain line has been searched for its end.
    searched: usize,
}

/// A whole request at the head of the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Whole {
    /// An array of this many octets.
    Array(usize),
    /// A plain line of this many octets, its end included.
    Line(usize),
    /// Octets that ask for nothing: an empty or an absent array.
    Nothing(usize),
}

impl Gate {
    /// `None` while the request is not whole.
    pub(crate) fn look(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
        stranger: bool,
    ) -> Result<Option<Whole>, ProtocolError> {
        match buffer.first() {
            None => Ok(None),
            Some(b'*') => self.array(buffer, limits, stranger),
            Some(_) => self.line(buffer, limits),
        }
    }

    fn array(
        &mut self,
        buffer: &[u8],
        limits: &Limits,
        stranger: bool,
    ) -> Result<Option<Whole>, ProtocolError> {
        let mut left = match self.left {
            Some(left) => left,
            None => {
                let Some((count, end)) =
                    number(buffer, 1, ProtocolError::LongCount, ProtocolError::Elements)?
                else {
                    return Ok(None);
                };
                // Redis takes any count that is not positive as a request for nothing.
                let Ok(count) = usize::try_from(count) else {
                    return Ok(Some(self.done(Whole::Nothing(end))));
                };
                if count == 0 {
                    return Ok(Some(self.done(Whole::Nothing(end))));
                }
                if count > limits.elements {
                    return Err(ProtocolError::Elements);
                }
                if stranger && count > STRANGER_ELEMENTS {
                    return Err(ProtocolError::StrangerElements);
                }
                self.at = end;
                self.left = Some(count);
                count
            }
        };
        while left > 0 {
            match buffer.get(self.at) {
                None => return Ok(None),
                Some(b'$') => {}
                Some(&other) => return Err(ProtocolError::NoBulk(char::from(other))),
            }
            let Some((length, start)) =
                number(buffer, self.at + 1, ProtocolError::LongLength, ProtocolError::Length)?
            else {
                return Ok(None);
            };
            let length = usize::try_from(length).map_err(|_| ProtocolError::Length)?;
            if stranger && length > STRANGER_OCTETS {
                return Err(ProtocolError::StrangerLength);
            }
            if length > limits.octets || start + length + 2 > limits.octets {
                return Err(ProtocolError::Length);
            }
            let end = start + length + 2;
            match buffer.get(start + length..end) {
                None => return Ok(None),
                Some(b"\r\n") => {}
                Some(_) => return Err(ProtocolError::NoEnd),
            }
            self.at = end;
            left -= 1;
            self.left = Some(left);
        }
        let end = self.at;
        Ok(Some(self.done(Whole::Array(end))))
    }

    fn line(&mut self, buffer: &[u8], limits: &Limits) -> Result<Option<Whole>, ProtocolError> {
        let unseen = buffer.get(self.searched..).unwrap_or_default();
        let longest = limits.octets.min(STRANGER_OCTETS * 4);
        match unseen.iter().position(|&octet| octet == b'\n') {
            Some(end) if self.searched + end < longest => {
                let end = self.searched + end + 1;
                Ok(Some(self.done(Whole::Line(end))))
            }
            None if buffer.len() < longest => {
                self.searched = buffer.len();
                Ok(None)
            }
            _ => Err(ProtocolError::LongLine),
        }
    }

    /// The next request begins with nothing looked at.
    fn done(&mut self, whole: Whole) -> Whole {
        *self = Self::default();
        whole
    }
}

/// A number up to CRLF and where the octets after it begin; `None` while the line is not whole.
fn number(
    buffer: &[u8],
    from: usize,
    long: ProtocolError,
    bad: ProtocolError,
) -> Result<Option<(i64, usize)>, ProtocolError> {
    let rest = buffer.get(from..).unwrap_or_default();
    let window = rest.get(..LINE).unwrap_or(rest);
    let Some(end) = window.iter().position(|&octet| octet == b'\r') else {
        return if rest.len() >= LINE { Err(long) } else { Ok(None) };
    };
    match window.get(end + 1) {
        None if rest.len() >= LINE => return Err(long),
        None => return Ok(None),
        Some(b'\n') => {}
        Some(_) => return Err(bad),
    }
    let text = window.get(..end).and_then(|digits| std::str::from_utf8(digits).ok()).ok_or(bad)?;
    // What Rust reads and Redis does not.
    if text.starts_with('+') {
        return Err(bad);
    }
    Ok(Some((text.parse().map_err(|_| bad)?, from + end + 2)))
}
