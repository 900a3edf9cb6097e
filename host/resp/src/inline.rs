use crate::ProtocolError;

/// Splits an inline request, as typed into a raw connection: words, with single and double quotes.
///
/// Within double quotes, `\n`, `\r` and `\t` are escapes, and a backslash before any other character yields that
/// character.
pub(crate) fn split(line: &[u8]) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let mut words = Vec::new();
    let mut octets = line.iter().copied().peekable();
    while let Some(&first) = octets.peek() {
        if first.is_ascii_whitespace() {
            octets.next();
            continue;
        }
        let mut word = Vec::new();
        while let Some(octet) = octets.next_if(|octet| !octet.is_ascii_whitespace()) {
            if octet != b'"' && octet != b'\'' {
                word.push(octet);
                continue;
            }
            loop {
                match octets.next() {
                    None => return Err(ProtocolError::Quotes),
                    Some(end) if end == octet => break,
                    Some(b'\\') if octet == b'"' => word.push(match octets.next() {
                        None => return Err(ProtocolError::Quotes),
                        Some(b'n') => b'\n',
                        Some(b'r') => b'\r',
                        Some(b't') => b'\t',
                        Some(other) => other,
                    }),
                    Some(other) => word.push(other),
                }
            }
            // As in Redis, a closing quote must be followed by a space.
            if octets.peek().is_some_and(|next| !next.is_ascii_whitespace()) {
                return Err(ProtocolError::Quotes);
            }
        }
        words.push(word);
    }
    Ok(words)
}
