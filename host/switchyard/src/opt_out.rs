//! STOP and START: subscribers' words to senders, taken out of their messages on the way into the core.

use crate::core_loop::CoreHandle;
use crate::routing::Parties;
use arc_swap::ArcSwap;
use doors::{Core, SourceRules};
use engine::Event;
use model::{Kind, Message};
use std::collections::HashSet;
use std::sync::Arc;

/// The keywords of some senders, in one language.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Keywords {
    /// For people only.
    pub(crate) language: String,
    /// Patterns of the senders' numbers, `*` standing for any characters; empty: all.
    pub(crate) senders: Vec<String>,
    /// Words that tell a sender to stop.
    pub(crate) stop: Vec<String>,
    /// Words that let it go on.
    pub(crate) start: Vec<String>,
    /// Switched off, they are words like any others.
    pub(crate) enabled: bool,
}

/// All keywords.
#[derive(Debug, Default)]
pub(crate) struct OptOut {
    rules: Vec<(SourceRules, HashSet<String>, HashSet<String>)>,
}

/// Texts longer than this are no keywords.
const LONGEST: usize = 160;

/// Capital letters do not matter, nor does what stands around a word.
fn normal(text: &str) -> String {
    text.trim_matches(|c: char| c.is_whitespace() || c.is_ascii_punctuation() || "。，！？".contains(c))
        .to_lowercase()
}

fn text(message: &Message) -> String {
    let octets = sgip::text::header(&message.text.octets)
        .filter(|_| message.text.udhi)
        .map_or(&message.text.octets[..], |(_, words)| words);
    match message.text.data_coding {
        coding @ (8 | 15) => sgip::text::decode(coding, octets),
        coding => smpp::text::decode(coding, octets),
    }
}

impl OptOut {
    pub(crate) fn new(keywords: &[Keywords]) -> Self {
        let words = |list: &[String]| list.iter().map(|word| normal(word)).collect();
        let rules = keywords.iter().filter(|keywords| keywords.enabled).map(|keywords| {
            let senders = SourceRules { allow: keywords.senders.clone(), default: None };
            (senders, words(&keywords.stop), words(&keywords.start))
        });
        Self { rules: rules.collect() }
    }

    /// What a message from a subscriber says to its addressee: stop (true), go on (false), or something else.
    pub(crate) fn word(&self, message: &Message) -> Option<bool> {
        if self.rules.is_empty() || message.kind != Kind::Text || message.text.octets.len() > LONGEST {
            return None;
        }
        let text = normal(&text(message));
        self.rules.iter().filter(|(senders, ..)| senders.allows(&message.destination.value)).find_map(
            |(_, stop, start)| {
                if stop.contains(&text) {
                    Some(true)
                } else if start.contains(&text) {
                    Some(false)
                } else {
                    None
                }
            },
        )
    }
}

/// The way into the core for the doors: keywords become events of their own, just before the message that holds them and
/// in the same transaction.
pub(crate) struct Listening {
    pub(crate) core: CoreHandle,
    pub(crate) keywords: Arc<ArcSwap<OptOut>>,
    /// Accounts submit; what comes from anybody else comes from a subscriber.
    pub(crate) parties: Arc<ArcSwap<Parties>>,
}

impl Listening {
    fn consent(&self, message: &Message) -> Option<Event> {
        if self.parties.load().is_submitter(message.origin) {
            return None;
        }
        let stop = self.keywords.load().word(message)?;
        tracing::info!(sender = %message.destination.masked(), subscriber = %message.source.masked(), stop, "opt-out");
        Some(Event::Consent {
            sender: message.destination.value.clone(),
            subscriber: message.source.value.clone(),
            stop,
            reply: None,
        })
    }
}

impl Core for Listening {
    fn push(&self, events: Vec<Event>) {
        if self.keywords.load().rules.is_empty() {
            self.core.push(events);
            return;
        }
        let mut all = Vec::with_capacity(events.len());
        for event in events {
            match &event {
                Event::Accept { message, .. } => all.extend(self.consent(message)),
                Event::AcceptMany { messages, .. } => {
                    all.extend(messages.iter().filter_map(|message| self.consent(message)));
                }
                _ => {}
            }
            all.push(event);
        }
        self.core.push(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use model::{
        Address, DecidedBy, MessageId, PeerId, Priority, ReceiptRequest, RejectReason, Routed, Text,
        Timestamp, Verdict,
    };

    fn message(to: &[u8], octets: &[u8], data_coding: u8) -> Message {
        let by = DecidedBy { plugin: String::new(), version: String::new() }.into();
        Message {
            id: MessageId(0),
            kind: Kind::Text,
            origin: PeerId(2),
            source: Address::international("8613012345678"),
            destination: Address::new(0, 1, to),
            service_type: Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::default(),
            receipts: ReceiptRequest::NONE,
            replace_if_present: false,
            submission: None,
            text: Text { octets: Bytes::copy_from_slice(octets), data_coding, udhi: false, payload: false },
            tlvs: Bytes::new(),
            accepted_at: Timestamp(0),
            scheduled: None,
            expires_at: Timestamp(0),
            routed: Routed::new(Verdict::Reject(RejectReason::NoRoute), by),
        }
    }

    #[test]
    fn words_count_by_sender_and_language_and_not_inside_a_text() {
        let keywords = |senders: &[&str], stop: &[&str], enabled| Keywords {
            language: String::new(),
            senders: senders.iter().map(ToString::to_string).collect(),
            stop: stop.iter().map(ToString::to_string).collect(),
            start: vec!["START".to_owned()],
            enabled,
        };
        let opt_out = OptOut::new(&[
            keywords(&["1065*"], &["STOP", "退订"], true),
            keywords(&[], &["ALTO"], true),
            keywords(&[], &["OFF"], false),
        ]);
        let chinese = sgip::text::encode_as("退订", sgip::text::Coding::GBK).unwrap();
        assert_eq!(opt_out.word(&message(b"10655", b" stop! ", 0)), Some(true));
        assert_eq!(opt_out.word(&message(b"10655", &chinese, 15)), Some(true));
        assert_eq!(opt_out.word(&message(b"10655", &sgip::text::utf16("退订。"), 8)), Some(true));
        assert_eq!(opt_out.word(&message(b"10655", b"Start", 1)), Some(false));
        assert_eq!(opt_out.word(&message(b"99", b"stop", 0)), None, "another sender's word");
        assert_eq!(opt_out.word(&message(b"99", b"alto", 0)), Some(true));
        assert_eq!(opt_out.word(&message(b"10655", b"please stop", 0)), None);
        assert_eq!(opt_out.word(&message(b"10655", b"off", 0)), None, "switched off");
    }
}
