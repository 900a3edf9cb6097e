//! The common misbehaviour of the test guests.

use std::hint::black_box;

/// A misbehaviour, or none; the first word of a moody guest's document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Behaves well.
    Ok,
    /// Panics, and so traps.
    Trap,
    /// Runs forever in its own code.
    Loop,
    /// Runs forever with host calls for the time.
    Never,
    /// Allocates until the memory is exhausted.
    Hog,
    /// Recurses until the stack is exhausted.
    Recurse,
    /// Returns 16 MiB of text, or as much in a list.
    Giant,
    /// Names a peer a hundred thousand times.
    ManyLegs,
    /// Returns a text that is not UTF-8.
    BadUtf8,
    /// Names a peer with a text that is not UTF-8.
    BadUtf8Peer,
    /// Names an unknown peer or account.
    UnknownPeer,
    /// Answers "try later".
    TryLater,
    /// Returns out-of-range times and amounts.
    Absurd,
}

/// A moody guest's document: a mood, and a name after a blank (a peer, for those that need one).
#[derive(Debug, Clone)]
pub struct Document {
    /// The mood for bad messages and numbers.
    pub mood: Mood,
    /// `upstream` by default.
    pub name: String,
}

impl Document {
    /// Parses a document.
    pub fn read(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let mood = match words.next() {
            Some("ok") => Mood::Ok,
            Some("trap") => Mood::Trap,
            Some("loop") => Mood::Loop,
            Some("never") => Mood::Never,
            Some("hog") => Mood::Hog,
            Some("recurse") => Mood::Recurse,
            Some("giant") => Mood::Giant,
            Some("many-legs") => Mood::ManyLegs,
            Some("bad-utf8") => Mood::BadUtf8,
            Some("bad-utf8-peer") => Mood::BadUtf8Peer,
            Some("unknown-peer") => Mood::UnknownPeer,
            Some("try-later") => Mood::TryLater,
            Some("absurd") => Mood::Absurd,
            // Exhausts the stack while it is configured.
            Some("deep-configure") => {
                black_box(recurse(0));
                Mood::Ok
            }
            other => {
                return Err(format!(
                    "{other:?} is not a mood; write ok, trap, loop, never, hog, recurse, giant, many-legs, bad-utf8, \
                     bad-utf8-peer, unknown-peer, try-later, absurd or deep-configure"
                ));
            }
        };
        Ok(Self { mood, name: words.next().unwrap_or("upstream").to_owned() })
    }
}

/// Whether a guest misbehaves: on messages from "bad", and on numbers that begin with 666. Thus it passes a self-check,
/// and other messages go through.
pub fn is_bad(source: &str, destination: &str) -> bool {
    source == "bad" || destination.trim_start_matches('+').starts_with("666")
}

/// Allocates until the memory is exhausted.
pub fn hog() -> ! {
    let mut hog: Vec<Vec<u8>> = Vec::new();
    loop {
        hog.push(black_box(vec![1; 1 << 20]));
    }
}

/// Never returns.
pub fn forever() -> ! {
    loop {
        black_box(());
    }
}

/// Recurses until the stack is exhausted.
pub fn recurse(level: u64) -> u64 {
    if black_box(level) == u64::MAX {
        return level;
    }
    // Not a tail call and not a loop that the compiler can derive, so it stays a call.
    recurse(level + 1).wrapping_mul(3).rotate_left(7) ^ level
}

/// 16 MiB of text.
pub fn giant() -> String {
    black_box("x".repeat(16 << 20))
}

/// A text that is not UTF-8.
pub fn bad_utf8() -> String {
    // SAFETY: deliberately unsound: the test checks that the host does not trust a guest's text. Nothing in the guest
    // reads it.
    unsafe { String::from_utf8_unchecked(black_box(vec![b'a', 0xff, 0xfe, 0xc3])) }
}

impl Mood {
    /// Performs a misbehaviour that needs no answer; `ask_host` makes a host call.
    pub fn act(self, ask_host: impl Fn()) {
        match self {
            Self::Trap => panic!("as asked"),
            Self::Loop => forever(),
            Self::Never => loop {
                ask_host();
            },
            Self::Hog => hog(),
            Self::Recurse => {
                black_box(recurse(0));
            }
            _ => {}
        }
    }

    /// The note of the answer.
    pub fn note(self) -> Option<String> {
        match self {
            Self::Giant => Some(giant()),
            Self::BadUtf8 => Some(bad_utf8()),
            _ => None,
        }
    }
}
