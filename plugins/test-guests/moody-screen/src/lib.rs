//! A test guest: a screen whose document sets its behaviour on bad messages (the first line) and its decision about others.
//!
//! | line | action |
//! |---|---|
//! | `MOOD` | the misbehaviour |
//! | `note text`, `note length`, `note attribute NAME`, `note count`, `note time` | adds a detail to the note |
//! | `tag NAME VALUE` | sets an attribute |
//! | `set-tlv TAG VALUE`, `remove-tlv TAG` | changes a TLV; the tag is in hexadecimal |
//! | `bucket NAME [AMOUNT ZONE]`, `window NAME` | names a pace bucket of a day, or a send window |
//! | `text WORDS...` | replaces the text |
//! | `reject`, `quarantine`, `drop delivered`, `drop undeliverable`, `drop rejected` | the decision; default: pass |

use switchyard_sdk::screen::{Decision, drop_as, pass, quarantine, reject};
use switchyard_sdk::{
    Attribute, Change, DroppedAs, Message, RejectReason, Screen, clock, counters, details, pace,
};
use test_mood::{Document, Mood, bad_utf8, is_bad};

/// The window of its counter, in milliseconds.
const WINDOW: u64 = 60_000;

struct Guest {
    mood: Mood,
    lines: Vec<Vec<String>>,
}

fn tag(word: &str) -> u16 {
    u16::from_str_radix(word, 16).unwrap_or_default()
}

fn detail(message: &Message, words: &[&str]) -> String {
    match words {
        ["text"] => details::text().unwrap_or_else(|| "none".to_owned()),
        ["length"] => format!("{} octets", message.length),
        ["attribute", name] => details::attribute(name).unwrap_or_else(|| "none".to_owned()),
        ["count"] => counters::add("seen", &message.destination.value, 1, WINDOW).to_string(),
        ["time"] => clock::now().to_string(),
        other => format!("no detail {other:?}"),
    }
}

fn verdict(words: &[&str]) -> Decision {
    match words {
        ["reject"] => reject(RejectReason::Prohibited),
        ["quarantine"] => quarantine(),
        ["drop", "delivered"] => drop_as(DroppedAs::Delivered),
        ["drop", "rejected"] => drop_as(DroppedAs::Rejected),
        ["drop", ..] => drop_as(DroppedAs::Undeliverable),
        _ => pass(),
    }
}

impl Guest {
    fn follow_lines(&self, message: &Message) -> Decision {
        let (mut decision, mut notes) = (pass(), Vec::new());
        for line in &self.lines {
            let words: Vec<&str> = line.iter().map(String::as_str).collect();
            decision = match words[..] {
                ["note", ref what @ ..] => {
                    notes.push(detail(message, what));
                    decision
                }
                ["tag", name, value] => decision.tag(name, value),
                ["set-tlv", number, value] => decision.set_tlv(tag(number), value.as_bytes()),
                ["remove-tlv", number] => decision.remove_tlv(tag(number)),
                ["bucket", name] => decision.use_pace_bucket(pace::configured(name)),
                ["bucket", name, amount, zone] => {
                    decision.use_pace_bucket(pace::per_day(name, amount.parse().unwrap_or_default(), zone))
                }
                ["window", name] => decision.use_send_window(pace::configured_window(name)),
                ["text", ref words @ ..] => decision.with_text(words.join(" ")),
                ref words => Decision { verdict: verdict(words).verdict, ..decision },
            };
        }
        if notes.is_empty() { decision } else { decision.because(notes.join("|")) }
    }
}

impl Screen for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        let lines = document.lines().skip(1).map(words).collect();
        Ok(Self { mood: Document::read(document)?.mood, lines })
    }

    fn screen(&self, message: &Message) -> Decision {
        let mood = self.mood;
        if mood == Mood::Ok || !is_bad(&message.source.value, &message.destination.value) {
            return self.follow_lines(message);
        }
        mood.act(|| {
            clock::now();
        });
        let attribute =
            |name: &str, value: String| Change::SetAttribute(Attribute { name: name.to_owned(), value });
        let mut decision = match mood {
            Mood::ManyLegs => Decision { changes: vec![attribute("n", "v".to_owned()); 100_000], ..pass() },
            Mood::BadUtf8Peer => Decision { changes: vec![attribute("n", bad_utf8())], ..pass() },
            Mood::TryLater => reject(RejectReason::TryLater),
            Mood::Absurd => pass().with_text("x".repeat(200_000)),
            Mood::UnknownPeer => pass().tag("Not a name", "v"),
            _ => pass(),
        };
        decision.note = mood.note();
        decision
    }
}

switchyard_sdk::export_screen!(Guest);
