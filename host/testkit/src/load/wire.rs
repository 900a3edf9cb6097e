//! The subset of SMPP that the load generator needs, written independently of the appliance's codec (SMPP 3.4 §3.2, §4).

/// Command ids (SMPP 3.4 §5.1.2.1).
pub(crate) const GENERIC_NACK: u32 = 0x8000_0000;
pub(crate) const BIND_RECEIVER: u32 = 1;
pub(crate) const BIND_TRANSMITTER: u32 = 2;
pub(crate) const SUBMIT_SM: u32 = 4;
pub(crate) const DELIVER_SM: u32 = 5;
pub(crate) const UNBIND: u32 = 6;
pub(crate) const BIND_TRANSCEIVER: u32 = 9;
pub(crate) const ENQUIRE_LINK: u32 = 0x15;
/// The response bit of a command id.
pub(crate) const ANSWER: u32 = 0x8000_0000;

/// Length of a PDU header, in octets.
pub(crate) const HEADER: usize = 16;
/// Longest accepted PDU.
const MAX_PDU: usize = 70_000;

/// Number of digits of the message number in a text.
const DIGITS: usize = 10;

/// A PDU: header fields and body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pdu<'a> {
    pub(crate) id: u32,
    pub(crate) status: u32,
    pub(crate) sequence: u32,
    pub(crate) body: &'a [u8],
}

/// The input is not SMPP.
#[derive(Debug, thiserror::Error)]
#[error("a PDU of {0} octets")]
pub(crate) struct MalformedFrame(usize);

fn word(octets: &[u8], at: usize) -> u32 {
    octets.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_be_bytes)
}

/// Takes the first complete PDU off the front.
pub(crate) fn next<'a>(octets: &mut &'a [u8]) -> Result<Option<Pdu<'a>>, MalformedFrame> {
    if octets.len() < HEADER {
        return Ok(None);
    }
    let length = word(octets, 0) as usize;
    if !(HEADER..=MAX_PDU).contains(&length) {
        return Err(MalformedFrame(length));
    }
    if octets.len() < length {
        return Ok(None);
    }
    let (pdu, rest) = octets.split_at(length);
    *octets = rest;
    Ok(Some(Pdu { id: word(pdu, 4), status: word(pdu, 8), sequence: word(pdu, 12), body: &pdu[HEADER..] }))
}

/// Appends a PDU.
pub(crate) fn put(out: &mut Vec<u8>, id: u32, status: u32, sequence: u32, body: &[u8]) {
    out.extend_from_slice(&((HEADER + body.len()) as u32).to_be_bytes());
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&status.to_be_bytes());
    out.extend_from_slice(&sequence.to_be_bytes());
    out.extend_from_slice(body);
}

/// The body of a bind request.
pub(crate) fn bind(system_id: &str, password: &str) -> Vec<u8> {
    let mut body = Vec::new();
    for text in [system_id, password, ""] {
        body.extend_from_slice(text.as_bytes());
        body.push(0);
    }
    // interface_version, addr_ton, addr_npi, address_range
    body.extend_from_slice(&[0x34, 0, 0, 0]);
    body
}

/// Writes `number` into all of `digits`, with leading zeros.
fn write_digits(mut number: u64, digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// A submit_sm in which only the sequence number, the last digits of the destination and the message number change.
#[derive(Debug, Clone)]
pub(crate) struct SubmitTemplate {
    octets: Vec<u8>,
    destination: usize,
    number: usize,
    /// Number of different destinations.
    spread: u64,
}

impl SubmitTemplate {
    /// Destinations are `prefix` and ten digits; the text is `n=<10 digits> c=<3 digits> `, padded to `length`.
    pub(crate) fn new(source: &str, prefix: &str, lane: usize, length: usize, receipt: bool) -> Self {
        let mut body = vec![0, if source.bytes().all(|octet| octet.is_ascii_digit()) { 1 } else { 5 }, 1];
        body.extend_from_slice(source.as_bytes());
        body.extend_from_slice(&[0, 1, 1]);
        body.extend_from_slice(prefix.as_bytes());
        let destination = HEADER + body.len();
        body.extend_from_slice(&[b'0'; DIGITS]);
        // end of address, esm_class, protocol_id, priority_flag, schedule, validity
        body.extend_from_slice(&[0, 0, 0, 0, 0, 0]);
        // registered_delivery, replace_if_present, data_coding, sm_default_msg_id
        body.extend_from_slice(&[u8::from(receipt), 0, 0, 0]);
        let mut text = format!("n={:0DIGITS$} c={:03} ", 0, lane % 1000).into_bytes();
        let filling = b"The quick brown fox jumps over the lazy dog. ";
        let missing = length.min(254).saturating_sub(text.len());
        text.extend(filling.iter().cycle().take(missing));
        body.push(text.len() as u8);
        let number = HEADER + body.len() + 2;
        body.extend_from_slice(&text);
        let mut octets = Vec::new();
        put(&mut octets, SUBMIT_SM, 0, 0, &body);
        Self { octets, destination, number, spread: 1_000_003 }
    }

    /// Limits the number of different destinations.
    pub(crate) fn spread(mut self, destinations: u64) -> Self {
        self.spread = destinations.max(1);
        self
    }

    /// Appends the message with this number.
    pub(crate) fn write(&mut self, sequence: u32, number: u64, out: &mut Vec<u8>) {
        self.write_to(sequence, number % self.spread, number, out);
    }

    /// Appends the message with this number, to a destination that ends in these digits.
    pub(crate) fn write_to(&mut self, sequence: u32, digits: u64, number: u64, out: &mut Vec<u8>) {
        self.octets[12..16].copy_from_slice(&sequence.to_be_bytes());
        write_digits(digits, &mut self.octets[self.destination..self.destination + DIGITS]);
        write_digits(number, &mut self.octets[self.number..self.number + DIGITS]);
        out.extend_from_slice(&self.octets);
    }
}

/// The fields of a submit_sm that a sink uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SubmitFields<'a> {
    pub(crate) source: &'a [u8],
    pub(crate) destination: &'a [u8],
    pub(crate) receipt: bool,
    pub(crate) text: &'a [u8],
}

fn text<'a>(body: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = body.iter().position(|octet| *octet == 0)?;
    let (text, rest) = (&body[..end], &body[end + 1..]);
    *body = rest;
    Some(text)
}

fn skip(body: &mut &[u8], count: usize) -> Option<()> {
    *body = body.get(count..)?;
    Some(())
}

/// Parses the body of a submit_sm or deliver_sm (SMPP 3.4 §4.4.1).
pub(crate) fn parse_submit(mut body: &[u8]) -> Option<SubmitFields<'_>> {
    let body = &mut body;
    text(body)?;
    skip(body, 2)?;
    let source = text(body)?;
    skip(body, 2)?;
    let destination = text(body)?;
    skip(body, 3)?;
    text(body)?;
    text(body)?;
    let receipt = *body.first()? & 1 != 0;
    skip(body, 4)?;
    let length = usize::from(*body.first()?);
    skip(body, 1)?;
    let short = body.get(..length)?;
    skip(body, length)?;
    let mut found = SubmitFields { source, destination, receipt, text: short };
    while length == 0 && body.len() >= 4 {
        let (tag, size) =
            (u16::from_be_bytes([body[0], body[1]]), usize::from(u16::from_be_bytes([body[2], body[3]])));
        if tag == 0x0424 {
            found.text = body.get(4..4 + size)?;
            break;
        }
        skip(body, 4 + size)?;
    }
    Some(found)
}

/// The message number and the connection number in a text of the load generator.
pub(crate) fn parse_number(text: &[u8]) -> Option<(u64, usize)> {
    let digits = |from: usize, count: usize| -> Option<u64> {
        text.get(from..from + count)?
            .iter()
            .try_fold(0u64, |sum, octet| octet.is_ascii_digit().then(|| sum * 10 + u64::from(octet - b'0')))
    };
    if !text.starts_with(b"n=") {
        return None;
    }
    Some((digits(2, DIGITS)?, digits(2 + DIGITS + 3, 3)? as usize))
}

/// The number of the message that a delivery receipt is for: the last digits of the destination, where every message has
/// its own.
pub(crate) fn message_of(receipt: &SubmitFields<'_>) -> Option<u64> {
    let digits = receipt.source.get(receipt.source.len().checked_sub(DIGITS)?..)?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The body of a deliver_sm with a message of a subscriber (SMPP 3.4, 4.6.1).
pub(crate) fn mo_message(source: &str, destination: &str, text: &str) -> Vec<u8> {
    let mut body = vec![0, 1, 1];
    body.extend_from_slice(source.as_bytes());
    body.extend_from_slice(&[0, 1, 1]);
    body.extend_from_slice(destination.as_bytes());
    body.extend_from_slice(&[0; 10]);
    body.push(text.len() as u8);
    body.extend_from_slice(text.as_bytes());
    body
}

/// The body of a deliver_sm with a delivery receipt that reports this state (SMPP 3.4 Appendix B).
pub(crate) fn delivery_receipt(message: &SubmitFields<'_>, id: &str, state: &str) -> Vec<u8> {
    let mut body = vec![0, 1, 1];
    body.extend_from_slice(message.destination);
    body.extend_from_slice(&[0, 1, 1]);
    body.extend_from_slice(message.source);
    body.extend_from_slice(&[0, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
    let text = format!(
        "id:{id} sub:001 dlvrd:001 submit date:2601010000 done date:2601010000 stat:{state} err:000 text:"
    );
    body.push(text.len() as u8);
    body.extend_from_slice(text.as_bytes());
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_messages_can_be_parsed() {
        let mut out = Vec::new();
        SubmitTemplate::new("10655", "861", 7, 100, true).write(9, 1_234_567, &mut out);
        let mut octets = out.as_slice();
        let pdu = next(&mut octets).expect("whole").expect("there");
        assert!(octets.is_empty());
        assert_eq!((pdu.id, pdu.sequence), (SUBMIT_SM, 9));
        let found = parse_submit(pdu.body).expect("readable");
        assert_eq!(found.source, b"10655");
        assert_eq!(found.destination, b"8610000234564");
        assert!(found.receipt);
        assert_eq!(found.text.len(), 100);
        assert_eq!(parse_number(found.text), Some((1_234_567, 7)));
        let receipt = delivery_receipt(&found, "1", "DELIVRD");
        assert_eq!(parse_submit(&receipt).and_then(|receipt| message_of(&receipt)), Some(234_564));
    }

    #[test]
    fn incomplete_pdus_wait_and_malformed_ones_are_refused() {
        let mut out = Vec::new();
        put(&mut out, ENQUIRE_LINK, 0, 1, &[]);
        assert!(next(&mut &out[..15]).expect("no error").is_none());
        assert!(next(&mut &b"HTTP/1.1 200 OK\r\n"[..]).is_err());
    }
}
