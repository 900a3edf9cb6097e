//! Messages from a peer.
use hooks::IncomingMessage;
use model::{
    Address, Message, PeerId, PluginVersion, RejectReason, RoutingDecision, Text, Timestamp, Verdict,
};
use ports::text::{self, TextCoding};
use std::sync::{Arc, LazyLock};

/// The author of the verdict of a message that is not routed yet.
static UNROUTED: LazyLock<Arc<PluginVersion>> =
    LazyLock::new(|| Arc::new(PluginVersion { plugin: String::new(), version: String::new() }));

/// Maximum number of segments of a text.
const MAX_SEGMENTS: usize = 255;
/// Maximum length of a number or a name.
const MAX_ADDRESS: usize = 20;

/// Converts a peer's message.
///
/// # Errors
/// The reason why it is not a valid message.
pub(crate) fn message(
    incoming: &IncomingMessage,
    origin: PeerId,
    expires_at: Timestamp,
) -> Result<Message, String> {
    let source = address(&incoming.source).ok_or("the source is neither a number nor a name")?;
    let destination =
        address(&incoming.destination).ok_or("the destination is neither a number nor a name")?;
    let (octets, data_coding) = text::encode(&incoming.text, TextCoding::Auto)?;
    let segments = text::segment_count(&octets, data_coding, false);
    if segments > MAX_SEGMENTS {
        return Err(format!("the text would need {segments} segments; at most {MAX_SEGMENTS} are allowed"));
    }
    Ok(Message::new(
        origin,
        source,
        destination,
        Text { payload: octets.len() > 140, octets, data_coding, udhi: false },
        expires_at,
        RoutingDecision::new(Verdict::Reject(RejectReason::NoRoute), UNROUTED.clone()),
    ))
}

/// Digits, with or without a plus sign, or a name of ASCII characters.
fn address(text: &str) -> Option<Address> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if text.is_empty() || digits.len() > MAX_ADDRESS {
        return None;
    }
    if !digits.is_empty() && digits.bytes().all(|octet| octet.is_ascii_digit()) {
        return Some(Address::new(u8::from(text.starts_with('+')), 1, digits.as_bytes()));
    }
    text.bytes()
        .all(|octet| octet.is_ascii_graphic() || octet == b' ')
        .then(|| Address::new(5, 0, text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn incoming(source: &str, destination: &str, text: &str) -> Result<Message, String> {
        let [source, destination, text] = [source, destination, text].map(str::to_owned);
        message(&IncomingMessage { source, destination, text }, PeerId(3), Timestamp(5))
    }

    #[test]
    fn numbers_and_names_are_addresses() {
        let made = incoming("+491701", "SHOP", "Grüße €").unwrap();
        assert_eq!((made.source.ton, made.source.npi, made.source.text()), (1, 1, "491701".into()));
        assert_eq!((made.destination.ton, made.destination.text()), (5, "SHOP".into()));
        assert_eq!((made.origin, made.expires_at), (PeerId(3), Timestamp(5)));
        assert_eq!(text::characters(&made.text).as_deref(), Some("Grüße €"));
        assert_eq!(incoming("10655", "1", "").unwrap().source.ton, 0);
    }

    #[test]
    fn invalid_messages_are_refused() {
        assert!(incoming("", "1", "x").unwrap_err().contains("source"));
        assert!(incoming("+", "1", "x").is_ok_and(|made| made.source.ton == 5));
        assert!(incoming("1", &"1".repeat(21), "x").unwrap_err().contains("destination"));
        assert!(incoming("1", "ö", "x").unwrap_err().contains("destination"));
        assert!(incoming("1", "2", &"x".repeat(40_000)).unwrap_err().contains("segments"));
    }
}
