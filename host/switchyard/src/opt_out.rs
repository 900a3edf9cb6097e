//! Opt-out keywords (STOP, START), recognised in MO messages before they reach the engine.

use crate::core_handle::CoreHandle;
use crate::peer_roles::PeerRoles;
use arc_swap::ArcSwap;
use configuration::{Keys, Section};
use engine::Event;
use model::{Message, MessageKind};
use ports::{EventSink, SourceRules};
use std::collections::HashSet;
use std::sync::Arc;

/// Opt-out keywords of some senders in one language.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(check = Self::check)]
pub(crate) struct OptOutKeywords {
    /// The language, as a comment.
    pub(crate) language: String,
    /// Patterns of the senders' numbers, with `*` as a wildcard.
    #[key(default_as = "all")]
    pub(crate) senders: Vec<String>,
    /// Keywords that opt out.
    #[key(required)]
    pub(crate) stop: Vec<String>,
    /// Keywords that opt in again.
    pub(crate) start: Vec<String>,
    /// Whether the keywords are active.
    #[key(default = true)]
    pub(crate) enabled: bool,
}

impl OptOutKeywords {
    fn check(&mut self, section: &Section<'_>) {
        if self.stop.is_empty() {
            section.error("stop", "is missing; write for example stop = [\"STOP\"]");
        }
    }
}

/// All opt-out keywords.
#[derive(Debug, Default)]
pub(crate) struct KeywordRules {
    rules: Vec<(SourceRules, HashSet<String>, HashSet<String>)>,
}

/// Texts longer than this are not keywords, in octets.
const MAX_OCTETS: usize = 160;

/// Removes surrounding punctuation and case.
fn normalize(text: &str) -> String {
    text.trim_matches(|c: char| c.is_whitespace() || c.is_ascii_punctuation() || "。，！？".contains(c))
        .to_lowercase()
}

fn text(message: &Message) -> String {
    let octets = sgip::text::header(&message.text.octets)
        .filter(|_| message.text.udhi)
        .map_or(&message.text.octets[..], |(_, body)| body);
    match message.text.data_coding {
        coding @ (8 | 15) => sgip::text::decode(coding, octets),
        coding => smpp::text::decode(coding, octets),
    }
}

impl KeywordRules {
    pub(crate) fn new(keywords: &[OptOutKeywords]) -> Self {
        let normalize_all = |list: &[String]| list.iter().map(|keyword| normalize(keyword)).collect();
        let rules = keywords.iter().filter(|keywords| keywords.enabled).map(|keywords| {
            let senders = SourceRules { allow: keywords.senders.clone(), default: None };
            (senders, normalize_all(&keywords.stop), normalize_all(&keywords.start))
        });
        Self { rules: rules.collect() }
    }

    /// The keyword in an MO message: opt-out (true), opt-in (false), or none.
    pub(crate) fn keyword(&self, message: &Message) -> Option<bool> {
        if self.rules.is_empty()
            || message.kind != MessageKind::Text
            || message.text.octets.len() > MAX_OCTETS
        {
            return None;
        }
        let text = normalize(&text(message));
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

/// An event sink for front ends: before each message that contains a keyword, it inserts an opt-out event into the same
/// transaction.
pub(crate) struct KeywordFilter {
    pub(crate) core: CoreHandle,
    pub(crate) keywords: Arc<ArcSwap<KeywordRules>>,
    /// Distinguishes accounts, which submit, from sources of MO messages.
    pub(crate) peer_roles: Arc<ArcSwap<PeerRoles>>,
}

impl KeywordFilter {
    fn opt_out_event(&self, message: &Message) -> Option<Event> {
        if self.peer_roles.load().is_submit_only(message.origin) {
            return None;
        }
        let stop = self.keywords.load().keyword(message)?;
        tracing::info!(sender = %message.destination.masked(), subscriber = %message.source.masked(), stop, "opt-out");
        Some(Event::OptOut {
            sender: message.destination.value.clone(),
            subscriber: message.source.value.clone(),
            stop,
            reply: None,
        })
    }
}

impl EventSink for KeywordFilter {
    fn push(&self, events: Vec<Event>) {
        if self.keywords.load().rules.is_empty() {
            self.core.push(events);
            return;
        }
        let mut all = Vec::with_capacity(events.len());
        for event in events {
            match &event {
                Event::Accept { message, .. } => all.extend(self.opt_out_event(message)),
                Event::AcceptMany { messages, .. } => {
                    all.extend(messages.iter().filter_map(|message| self.opt_out_event(message)));
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
    use model::{Address, PeerId, PluginVersion, RejectReason, RoutingDecision, Text, Timestamp, Verdict};

    fn message(to: &[u8], octets: &[u8], data_coding: u8) -> Message {
        let by = PluginVersion { plugin: String::new(), version: String::new() }.into();
        Message::new(
            PeerId(2),
            Address::international("8613012345678"),
            Address::new(0, 1, to),
            Text { octets: Bytes::copy_from_slice(octets), data_coding, udhi: false, payload: false },
            Timestamp(0),
            RoutingDecision::new(Verdict::Reject(RejectReason::NoRoute), by),
        )
    }

    #[test]
    fn keywords_match_by_sender_and_only_as_a_whole_text() {
        let keywords = |senders: &[&str], stop: &[&str], enabled| OptOutKeywords {
            language: String::new(),
            senders: senders.iter().map(ToString::to_string).collect(),
            stop: stop.iter().map(ToString::to_string).collect(),
            start: vec!["START".to_owned()],
            enabled,
        };
        let opt_out = KeywordRules::new(&[
            keywords(&["1065*"], &["STOP", "退订"], true),
            keywords(&[], &["ALTO"], true),
            keywords(&[], &["OFF"], false),
        ]);
        let chinese = sgip::text::encode_as("退订", sgip::text::Coding::GBK).unwrap();
        assert_eq!(opt_out.keyword(&message(b"10655", b" stop! ", 0)), Some(true));
        assert_eq!(opt_out.keyword(&message(b"10655", &chinese, 15)), Some(true));
        assert_eq!(opt_out.keyword(&message(b"10655", &sgip::text::utf16("退订。"), 8)), Some(true));
        assert_eq!(opt_out.keyword(&message(b"10655", b"Start", 1)), Some(false));
        assert_eq!(opt_out.keyword(&message(b"99", b"stop", 0)), None, "a keyword of another sender");
        assert_eq!(opt_out.keyword(&message(b"99", b"alto", 0)), Some(true));
        assert_eq!(opt_out.keyword(&message(b"10655", b"please stop", 0)), None);
        assert_eq!(opt_out.keyword(&message(b"10655", b"off", 0)), None, "switched off");
    }
}
