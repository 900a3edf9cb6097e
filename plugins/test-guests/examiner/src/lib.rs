//! A test guest: a router that notes the details of a message that its document names, and makes the document's changes.
//! Lines: `note DETAIL [ARGUMENT]`, `set-tlv TAG TEXT`, `remove-tlv TAG`, `attribute NAME VALUE`, `bucket NAME [AMOUNT
//! ZONE]`, `segments NAME AMOUNT ZONE`, `window NAME [ZONE OPENS CLOSES]` (in minutes of the day), `panic WORDS`, `when NAME
//! VALUE PEER` (forward if the attribute has the value), and last `pass` or `forward PEER`. Tags are in hexadecimal.

use switchyard_sdk::{Decision, Message, Router, details, forward, leg, pace, pass, quality};

struct Examiner {
    lines: Vec<Vec<String>>,
}

fn tag(word: &str) -> u16 {
    u16::from_str_radix(word, 16).unwrap_or_default()
}

fn text(octets: &[u8]) -> String {
    octets.iter().map(|octet| char::from(*octet)).collect()
}

fn detail(name: &str, argument: &str) -> String {
    match name {
        "tlv" => details::tlv_value(tag(argument)).map_or_else(|| "none".to_owned(), |value| text(&value)),
        "tlvs" => details::tlvs().iter().map(|tlv| format!("{:04x}={}", tlv.tag, text(&tlv.value))).collect(),
        "header" => details::header().iter().map(|octet| format!("{octet:02x}")).collect(),
        "text" => details::text().unwrap_or_else(|| "none".to_owned()),
        "urls" => details::urls().join(" "),
        "near-duplicate" => format!("{:?}", details::near_duplicate()),
        "esm-class" => details::esm_class().to_string(),
        "protocol-id" => details::protocol_id().to_string(),
        "receipts" => format!("{:?}", details::wanted_receipts()),
        "scheduled" => format!("{:?}", details::scheduled()),
        "valid-until" => details::valid_until().to_string(),
        "quality" => observed(argument, &quality::Scope::Peer),
        "quality-by-digits" => observed(argument, &quality::Scope::Digits(4)),
        "quality-by-brand" => observed(argument, &quality::Scope::Attribute("brand".to_owned())),
        "attribute" => details::attribute(argument).unwrap_or_else(|| "none".to_owned()),
        other => format!("no detail {other}"),
    }
}

fn observed(peer: &str, scope: &quality::Scope) -> String {
    match quality::observed(peer, scope) {
        Ok(quality::Figures { accepted, refused, delivered, median, .. }) => {
            let refused = refused.permanent;
            format!("accepted {accepted}, refused {refused}, delivered {delivered}, median {median:?}")
        }
        Err(reason) => format!("{reason:?}"),
    }
}

/// Fails in a separate function, so that the call stack has a frame for it.
#[inline(never)]
fn fail(words: &str) -> Decision {
    panic!("{words}")
}

impl Router for Examiner {
    fn configure(document: &str) -> Result<Self, String> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        Ok(Self { lines: document.lines().map(words).collect() })
    }

    fn route(&self, message: &Message) -> Decision {
        let (mut decision, mut notes) = (pass(), Vec::new());
        for line in &self.lines {
            let words: Vec<&str> = line.iter().map(String::as_str).collect();
            decision = match words[..] {
                ["note", name] => {
                    notes.push(detail(name, ""));
                    decision
                }
                ["note", name, argument] => {
                    notes.push(detail(name, argument));
                    decision
                }
                ["set-tlv", number, value] => decision.set_tlv(tag(number), value.as_bytes()),
                ["remove-tlv", number] => decision.remove_tlv(tag(number)),
                ["attribute", name, value] => decision.set_attribute(name, value),
                ["bucket", name] => decision.use_pace_bucket(pace::configured(name)),
                ["bucket", name, amount, zone] => {
                    let amount = amount.parse().unwrap_or_default();
                    decision.use_pace_bucket(pace::per_day(name, amount, zone))
                }
                ["segments", name, amount, zone] => {
                    let amount = amount.parse().unwrap_or_default();
                    decision.use_pace_bucket(pace::per_day(name, amount, zone).counting_segments())
                }
                ["window", name] => decision.use_send_window(pace::configured_window(name)),
                ["window", name, zone, opens, closes] => {
                    let minute = |text: &str| text.parse().unwrap_or_default();
                    let hours = vec![pace::hours(minute(opens), minute(closes))];
                    decision.use_send_window(pace::window(name, zone, hours))
                }
                // The self-check has this origin.
                ["panic", ..] if message.origin == "self-check" => decision,
                ["panic", ref words @ ..] => return fail(&words.join(" ")),
                ["when", name, value, peer] if details::attribute(name).as_deref() == Some(value) => {
                    return Decision { changes: decision.changes, ..forward(vec![leg(peer)]) };
                }
                ["forward", peer] => Decision { changes: decision.changes, ..forward(vec![leg(peer)]) },
                _ => decision,
            };
        }
        decision.because(notes.join("|"))
    }
}

switchyard_sdk::export_router!(Examiner);
