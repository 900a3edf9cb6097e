use crate::ProtocolError;

/// Takes a plain line apart, as people type it into a raw connection: words, with single and double quotes.
///
/// In double quotes a backslash takes the next character as it is, `\n`, `\r`, `\t` as what they stand for.
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
            // Something right behind a closing quote is a mistake to Redis too.
            if octets.peek().is_some_and(|next| !next.is_ascii_whitespace()) {
                return Err(ProtocolError::Quotes);
            }
        }
        words.push(word);
    }
    Ok(words)
}
