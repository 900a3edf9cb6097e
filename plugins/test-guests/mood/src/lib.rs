//! What the test guests have in common: when they misbehave, and how.

use std::hint::black_box;

/// A misbehaviour, or none; the first word of a moody guest's document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// Well-behaved.
    Ok,
    /// Panics, and so traps.
    Trap,
    /// Runs for ever, in its own code.
    Loop,
    /// Runs for ever, asking the host for the time again and again.
    Never,
    /// Takes memory until there is none.
    Hog,
    /// Recurses until the stack is used up.
    Recurse,
    /// Returns sixteen mebioctets of text, or as much in a list.
    Giant,
    /// Returns a text that is no UTF-8.
    BadUtf8,
    /// Names a peer, or an account, that does not exist.
    UnknownPeer,
    /// Says that it does not know now.
    TryLater,
    /// Returns figures that no clock and no ledger knows.
    Absurd,
}

/// A moody guest's document: a mood, and a name after a blank (a peer, for those that need one).
#[derive(Debug, Clone)]
pub struct Document {
    /// How it is when it is asked about what is bad.
    pub mood: Mood,
    /// `upstream`, unless the document says otherwise.
    pub name: String,
}

impl Document {
    /// Reads a document.
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
            Some("bad-utf8") => Mood::BadUtf8,
            Some("unknown-peer") => Mood::UnknownPeer,
            Some("try-later") => Mood::TryLater,
            Some("absurd") => Mood::Absurd,
            other => {
                return Err(format!(
                    "{other:?} is no mood; write ok, trap, loop, never, hog, recurse, giant, bad-utf8, unknown-peer, \
                     try-later or absurd"
                ));
            }
        };
        Ok(Self { mood, name: words.next().unwrap_or("upstream").to_owned() })
    }
}

/// Whether a guest is to misbehave: on messages from "bad", and on numbers that begin with 666. So it passes a self-check,
/// and other messages go through.
pub fn is_bad(source: &str, destination: &str) -> bool {
    source == "bad" || destination.trim_start_matches('+').starts_with("666")
}

/// Takes memory until there is none.
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

/// Recurses until the stack is used up.
pub fn recurse(level: u64) -> u64 {
    if black_box(level) == u64::MAX {
        return level;
    }
    // Not the last thing that is done, and not something that a compiler can turn around: so it stays a call.
    recurse(level + 1).wrapping_mul(3).rotate_left(7) ^ level
}

/// Sixteen mebioctets.
pub fn giant() -> String {
    black_box("x".repeat(16 << 20))
}

/// A text that is none.
pub fn bad_utf8() -> String {
    // SAFETY: none; that the host does not trust a guest's text is what is tested. Nothing in the guest reads it.
    unsafe { String::from_utf8_unchecked(black_box(vec![b'a', 0xff, 0xfe, 0xc3])) }
}

impl Mood {
    /// Does what needs no answer; `ask_host` is some call of the host's.
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

    /// The note that goes with the answer.
    pub fn note(self) -> Option<String> {
        match self {
            Self::Giant => Some(giant()),
            Self::BadUtf8 => Some(bad_utf8()),
            _ => None,
        }
    }
}
