use crate::document::{Block, Neighbours, Velocity, WrittenThen};
use policy_words::Time;
use std::time::Duration;

/// The windows that the host's counters have.
const WINDOWS: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

/// What a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Messages of the source.
    Velocity,
    /// Numbers whose neighbour, the number one above or below, had a message in the window too.
    Neighbours,
    /// Different numbers of one block: numbers that differ only in so many last digits.
    Block {
        /// 1 to 4.
        digits: usize,
    },
}

/// What becomes of a message that is one too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// It is refused.
    Reject,
    /// It is kept for so long, and then asked about again.
    Hold(Duration),
}

/// How many are too many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name, in notes and counters.
    pub name: String,
    /// What it looks at.
    pub check: Check,
    /// So many are allowed.
    pub allowed: u64,
    /// Within this time.
    pub window: Duration,
    /// What becomes of the next one.
    pub then: Then,
}

impl Rule {
    pub(crate) fn velocity(written: Velocity) -> Result<Self, String> {
        let Velocity { name, messages, window, then, hold } = written;
        Self::check(name, Check::Velocity, messages, window, then, hold)
    }

    pub(crate) fn neighbours(written: Neighbours) -> Result<Self, String> {
        let Neighbours { name, numbers, window, then, hold } = written;
        Self::check(name, Check::Neighbours, numbers, window, then, hold)
    }

    pub(crate) fn block(written: Block) -> Result<Self, String> {
        let Block { name, size, numbers, window, then, hold } = written;
        let digits = match size {
            10 => 1,
            100 => 2,
            1_000 => 3,
            10_000 => 4,
            _ => {
                return Err(format!(
                    "rule {name:?}: `size` is {size}; a block has 10, 100, 1000 or 10000 numbers"
                ));
            }
        };
        if numbers >= size {
            return Err(format!(
                "rule {name:?}: `numbers` is {numbers}, and a block of {size} never has more"
            ));
        }
        Self::check(name, Check::Block { digits }, numbers, window, then, hold)
    }

    fn check(
        name: String,
        check: Check,
        allowed: u32,
        window: Time,
        then: WrittenThen,
        hold: Option<Time>,
    ) -> Result<Self, String> {
        if name.is_empty() || name.len() > 64 || name.chars().any(char::is_control) {
            return Err(format!(
                "a rule has the name {name:?}; it takes 1 to 64 octets, since notes and counters show it"
            ));
        }
        if allowed == 0 {
            return Err(format!(
                "rule {name:?} allows none at all; to refuse everything, reject it in a route"
            ));
        }
        let window = window.0;
        if !WINDOWS.contains(&window) {
            return Err(format!("rule {name:?}: a `window` is 1s to 24h"));
        }
        let then = match (then, hold) {
            (WrittenThen::Reject, None) => Then::Reject,
            (WrittenThen::Reject, Some(_)) => {
                return Err(format!("rule {name:?}: `hold` goes with `then = \"hold\"`"));
            }
            (WrittenThen::Hold, None) => {
                return Err(format!(
                    "rule {name:?}: `then = \"hold\"` needs `hold`, such as `hold = \"10m\"`"
                ));
            }
            // A held message is asked about again, and counts again: within the window it would hold itself.
            (WrittenThen::Hold, Some(hold)) if hold.0 < window => {
                return Err(format!(
                    "rule {name:?}: `hold` is shorter than `window`, so that a message would hold itself; make it as long"
                ));
            }
            (WrittenThen::Hold, Some(hold)) => Then::Hold(hold.0),
        };
        Ok(Self { name, check, allowed: u64::from(allowed), window, then })
    }
}
