//! The subset of RESP2 that a client needs (Redis serialization protocol specification).

use anyhow::{Context, Result, bail};

/// A reply of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisReply {
    /// `+OK` and similar.
    Status(String),
    /// `-ERR …`
    Error(String),
    /// A number.
    Integer(i64),
    /// A text; invalid UTF-8 is replaced.
    Text(String),
    /// Null.
    Nil,
    /// Several replies.
    Array(Vec<RedisReply>),
}

/// Encodes a request.
pub fn encode_request(words: &[&str]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out
}

/// The longest accepted text, and the maximum number of elements of an array.
const MAX_TEXT: i64 = 1 << 28;

/// Takes one reply off the front of `rest`; `None` if it is incomplete.
pub(crate) fn decode_reply(rest: &mut &[u8]) -> Result<Option<RedisReply>> {
    let mut input = *rest;
    let Some(line) = line(&mut input) else { return Ok(None) };
    let (kind, text) = line.split_first().context("empty line instead of a reply")?;
    let text = String::from_utf8_lossy(text);
    let number = || text.parse::<i64>().with_context(|| format!("{text:?} is not a number"));
    let found = match kind {
        b'+' => RedisReply::Status(text.into_owned()),
        b'-' => RedisReply::Error(text.into_owned()),
        b':' => RedisReply::Integer(number()?),
        b'$' => match number()? {
            -1 => RedisReply::Nil,
            length @ 0..=MAX_TEXT => {
                let length = length as usize;
                let Some(octets) = input.get(..length + 2) else { return Ok(None) };
                input = &input[length + 2..];
                RedisReply::Text(String::from_utf8_lossy(&octets[..length]).into_owned())
            }
            length => bail!("a text of {length} octets"),
        },
        b'*' => match number()? {
            -1 => RedisReply::Nil,
            count @ 0..=MAX_TEXT => {
                let mut all = Vec::new();
                for _ in 0..count {
                    match decode_reply(&mut input)? {
                        Some(one) => all.push(one),
                        None => return Ok(None),
                    }
                }
                RedisReply::Array(all)
            }
            count => bail!("an array of {count} elements"),
        },
        _ => bail!("unknown reply type {:?}", char::from(*kind)),
    };
    *rest = input;
    Ok(Some(found))
}

/// Takes a line off the front, without its end.
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
    fn replies_are_parsed_in_any_split() {
        let bytes = b"+OK\r\n-ERR no\r\n:-7\r\n$3\r\na\r\n\r\n$-1\r\n*2\r\n:1\r\n*0\r\n";
        let all = [
            RedisReply::Status("OK".to_owned()),
            RedisReply::Error("ERR no".to_owned()),
            RedisReply::Integer(-7),
            RedisReply::Text("a\r\n".to_owned()),
            RedisReply::Nil,
            RedisReply::Array(vec![RedisReply::Integer(1), RedisReply::Array(Vec::new())]),
        ];
        for end in 0..=bytes.len() {
            let mut rest = &bytes[..end];
            let mut found = Vec::new();
            while let Some(one) = decode_reply(&mut rest).unwrap() {
                found.push(one);
            }
            assert_eq!(found, all[..found.len()]);
            assert_eq!(end == bytes.len(), found.len() == all.len());
        }
        assert!(decode_reply(&mut &b"what\r\n"[..]).is_err());
        assert!(decode_reply(&mut &b"$-2\r\n"[..]).is_err());
    }

    #[test]
    fn requests_are_encoded() {
        assert_eq!(encode_request(&["GET", "ä"]), "*2\r\n$3\r\nGET\r\n$2\r\nä\r\n".as_bytes());
    }
}
