use crate::document::{ActionKeyword, Block, Neighbours, Velocity};
use policy_values::Time;
use std::time::Duration;

/// The range of window lengths of the host's counters.
const WINDOW_RANGE: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(86_400);

/// The quantity that a rule limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Messages of the source.
    Velocity,
    /// Numbers with a neighbour (the number one above or below) that got a message in the window too.
    Neighbours,
    /// Different numbers of one block: numbers that differ only in their last digits.
    Block {
        /// Number of last digits, 1 to 4.
        digits: usize,
    },
}

/// The action for a message that exceeds the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleAction {
    /// Refuse it.
    Reject,
    /// Hold it for this time, and then route it again.
    Hold(Duration),
}

/// A limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name, in notes and counters.
    pub name: String,
    /// The quantity.
    pub check: Check,
    /// The limit.
    pub allowed: u64,
    /// The window.
    pub window: Duration,
    /// The action for messages above the limit.
    pub then: RuleAction,
}

impl Rule {
    pub(crate) fn velocity(entry: Velocity) -> Result<Self, String> {
        let Velocity { name, messages, window, then, hold } = entry;
        Self::check(name, Check::Velocity, messages, window, then, hold)
    }

    pub(crate) fn neighbours(entry: Neighbours) -> Result<Self, String> {
        let Neighbours { name, numbers, window, then, hold } = entry;
        Self::check(name, Check::Neighbours, numbers, window, then, hold)
    }

    pub(crate) fn block(entry: Block) -> Result<Self, String> {
        let Block { name, size, numbers, window, then, hold } = entry;
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
        then: ActionKeyword,
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
        if !WINDOW_RANGE.contains(&window) {
            return Err(format!("rule {name:?}: a `window` is 1s to 24h"));
        }
        let then = match (then, hold) {
            (ActionKeyword::Reject, None) => RuleAction::Reject,
            (ActionKeyword::Reject, Some(_)) => {
                return Err(format!("rule {name:?}: `hold` goes with `then = \"hold\"`"));
            }
            (ActionKeyword::Hold, None) => {
                return Err(format!(
                    "rule {name:?}: `then = \"hold\"` needs `hold`, such as `hold = \"10m\"`"
                ));
            }
            // A held message is routed again, and counts again: within the window it would hold itself.
            (ActionKeyword::Hold, Some(hold)) if hold.0 < window => {
                return Err(format!(
                    "rule {name:?}: `hold` is shorter than `window`, so that a message would hold itself; make it as long"
                ));
            }
            (ActionKeyword::Hold, Some(hold)) => RuleAction::Hold(hold.0),
        };
        Ok(Self { name, check, allowed: u64::from(allowed), window, then })
    }
}
