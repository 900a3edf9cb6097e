//! The little of RESP2 that a client needs (Redis serialization protocol specification).

use anyhow::{Context, Result, bail};

/// What a server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// `+OK` and the like.
    Status(String),
    /// `-ERR …`
    Error(String),
    /// A number.
    Integer(i64),
    /// A text; octets that are no UTF-8 are replaced.
    Text(String),
    /// Nothing.
    Nil,
    /// Several.
    Array(Vec<Answer>),
}

/// A request, as it goes over the wire.
pub fn request(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// The longest text, and the most elements, that are taken from a server.
const MOST: i64 = 1 << 28;

/// Reads one answer from the front of `rest`, and takes it off; `None` while it is not there as a whole.
pub(crate) fn answer(rest: &mut &[u8]) -> Result<Option<Answer>> {
    let mut input = *rest;
    let Some(line) = line(&mut input) else { return Ok(None) };
    let (kind, text) = line.split_first().context("an empty line where an answer is to begin")?;
    let text = String::from_utf8_lossy(text);
    let number = || text.parse::<i64>().with_context(|| format!("{text:?} is no number"));
    let found = match kind {
        b'+' => Answer::Status(text.into_owned()),
        b'-' => Answer::Error(text.into_owned()),
        b':' => Answer::Integer(number()?),
        b'$' => match number()? {
            -1 => Answer::Nil,
            length @ 0..=MOST => {
                let length = length as usize;
                let Some(octets) = input.get(..length + 2) else { return Ok(None) };
                input = &input[length + 2..];
                Answer::Text(String::from_utf8_lossy(&octets[..length]).into_owned())
            }
            length => bail!("a text of {length} octets"),
        },
        b'*' => match number()? {
            -1 => Answer::Nil,
            count @ 0..=MOST => {
                let mut all = Vec::new();
                for _ in 0..count {
                    match answer(&mut input)? {
                        Some(one) => all.push(one),
                        None => return Ok(None),
                    }
                }
                Answer::Array(all)
            }
            count => bail!("an array of {count} elements"),
        },
        _ => bail!("an answer that begins with {:?}", char::from(*kind)),
    };
    *rest = input;
    Ok(Some(found))
}

/// Up to the end of a line, which is taken off too.
pub(super) fn line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|octet| *octet == b'\n')?;
    let line = &rest[..end];
    *rest = &rest[end + 1..];
    Some(line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_in_any_split() {
        let bytes = b"+OK\r\n-ERR no\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*2\r\n:1\r\n*0\r\n";
        let all = [
            Answer::Status("OK".to_owned()),
            Answer::Error("ERR no".to_owned()),
            Answer::Integer(-7),
            Answer::Text("a\r\n".to_owned()),
            Answer::Nil,
            Answer::Array(vec![Answer::Integer(1), Answer::Array(Vec::new())]),
        ];
        for end in 0..=bytes.len() {
            let mut rest = &bytes[..end];
            let mut found = Vec::new();
            while let Some(one) = answer(&mut rest).unwrap() {
                found.push(one);
            }
            assert_eq!(found, all[..found.len()]);
            assert_eq!(end == bytes.len(), found.len() == all.len());
        }
        assert!(answer(&mut &b"what\r\n"[..]).is_err());
        assert!(answer(&mut &b"$-2\r\n"[..]).is_err());
    }

    #[test]
    fn a_request_on_the_wire() {
        assert_eq!(request(&["GET", "ä"]), "*2\r\n$3\r\nGET\r\n$2\r\nä\r\n".as_bytes());
    }
}
