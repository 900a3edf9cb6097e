use crate::{Check, Policy, Rule, Then};
use policy_words::digits_of;
use std::time::Duration;

/// The host's counters over sliding windows.
pub trait Counters {
    /// Adds one, and says what is in the window then.
    fn add(&self, name: &str, key: &str, window: Duration) -> u64;
    /// What is in the window.
    fn sum(&self, name: &str, key: &str, window: Duration) -> u64;
}

/// A message that is one too many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What becomes of it.
    pub then: Then,
    /// Which rule says so, and why; for the trace.
    pub note: String,
}

/// What stands between the parts of a counter's key. An account's name has none of it and a number is digits, so that no two
/// keys are one, whatever a source has in it.
const BETWEEN: char = '\u{1f}';

impl Policy {
    /// Counts a message, and says whether it is one too many. All rules count it, whichever of them says so first: else a
    /// source that one rule stops would be unknown to the others.
    pub fn judge(
        &self,
        account: &str,
        source: &str,
        destination: &str,
        counters: &impl Counters,
    ) -> Option<Finding> {
        if self.allow.iter().any(|allow| allow.covers(account, source)) {
            return None;
        }
        let sender = format!("{account}{BETWEEN}{source}");
        let number = digits_of(destination);
        let mut first = None;
        for rule in &self.rules {
            let found = match (rule.check, number) {
                (Check::Velocity, _) => rule.velocity_of(&sender, counters),
                // An alphanumeric destination has no neighbours.
                (Check::Neighbours, Some(number)) => rule.neighbours_of(&sender, number, counters),
                (Check::Block { digits }, Some(number)) => rule.block_of(&sender, number, digits, counters),
                (_, None) => 0,
            };
            if found > rule.allowed && first.is_none() {
                let what = match rule.check {
                    Check::Velocity => "messages",
                    Check::Neighbours => "neighbouring numbers",
                    Check::Block { .. } => "numbers of one block",
                };
                let seconds = rule.window.as_secs_f64();
                let note = format!("{}: {found} {what} in {seconds} s, {} allowed", rule.name, rule.allowed);
                first = Some(Finding { then: rule.then, note });
            }
        }
        first
    }
}

impl Rule {
    fn velocity_of(&self, sender: &str, counters: &impl Counters) -> u64 {
        counters.add(&format!("velocity {}", self.name), sender, self.window)
    }

    fn neighbours_of(&self, sender: &str, number: &str, counters: &impl Counters) -> u64 {
        let seen = format!("seen {}", self.name);
        let times = counters.add(&seen, &format!("{sender}{BETWEEN}{number}"), self.window);
        let near = [before(number), after(number)]
            .into_iter()
            .flatten()
            .any(|near| counters.sum(&seen, &format!("{sender}{BETWEEN}{near}"), self.window) > 0);
        let adjacent = format!("adjacent {}", self.name);
        // Two neighbours may get many messages each: a number counts once.
        match (near, times) {
            (false, _) => 0,
            (true, 1) => counters.add(&adjacent, sender, self.window),
            (true, _) => counters.sum(&adjacent, sender, self.window),
        }
    }

    fn block_of(&self, sender: &str, number: &str, digits: usize, counters: &impl Counters) -> u64 {
        let Some(block) = number.len().checked_sub(digits).and_then(|end| number.get(..end)) else {
            return 0;
        };
        let of_block = format!("{sender}{BETWEEN}{block}");
        let times = counters.add(
            &format!("of-block {}", self.name),
            &format!("{sender}{BETWEEN}{number}"),
            self.window,
        );
        let block = format!("block {}", self.name);
        match times {
            1 => counters.add(&block, &of_block, self.window),
            _ => counters.sum(&block, &of_block, self.window),
        }
    }
}

/// The number one below, in as many digits; none below zeros.
fn before(number: &str) -> Option<String> {
    let mut digits = number.as_bytes().to_vec();
    for digit in digits.iter_mut().rev() {
        match digit {
            b'0' => *digit = b'9',
            _ => {
                *digit -= 1;
                return String::from_utf8(digits).ok();
            }
        }
    }
    None
}

/// The number one above, in as many digits; none above nines.
fn after(number: &str) -> Option<String> {
    let mut digits = number.as_bytes().to_vec();
    for digit in digits.iter_mut().rev() {
        match digit {
            b'9' => *digit = b'0',
            _ => {
                *digit += 1;
                return String::from_utf8(digits).ok();
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_have_as_many_digits() {
        assert_eq!((before("4900"), after("4899")), (Some("4899".to_owned()), Some("4900".to_owned())));
        assert_eq!((before("10"), after("99")), (Some("09".to_owned()), None));
        assert_eq!((before("00"), after("")), (None, None));
    }

    proptest! {
        #[test]
        fn there_and_back(number in "[0-9]{1,20}") {
            if let Some(next) = after(&number) {
                prop_assert_eq!(before(&next), Some(number));
            }
        }
    }
}
