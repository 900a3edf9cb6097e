use crate::{Check, Policy, Rule, RuleAction};
use policy_values::digits_of;
use std::time::Duration;

/// The host's counters over sliding windows.
pub trait Counters {
    /// Adds one, and returns the sum of the window.
    fn add(&self, name: &str, key: &str, window: Duration) -> u64;
    /// The sum of the window.
    fn sum(&self, name: &str, key: &str, window: Duration) -> u64;
}

/// A message that exceeds a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The action for it.
    pub then: RuleAction,
    /// The rule and the reason, for the trace.
    pub note: String,
}

/// Separates the parts of a counter's key. It does not occur in an account's name, and a number is digits, so keys are
/// unambiguous whatever the source contains.
const SEPARATOR: char = '\u{1f}';

impl Policy {
    /// Counts a message, and reports the first rule whose limit it exceeds. All rules count it, even after one has stopped
    /// it: otherwise the other rules would not see a stopped source.
    pub fn evaluate(
        &self,
        account: &str,
        source: &str,
        destination: &str,
        counters: &impl Counters,
    ) -> Option<Finding> {
        if self.allow.iter().any(|allow| allow.covers(account, source)) {
            return None;
        }
        let sender = format!("{account}{SEPARATOR}{source}");
        let number = digits_of(destination);
        let mut first = None;
        for rule in &self.rules {
            let found = match (rule.check, number) {
                (Check::Velocity, _) => rule.count_velocity(&sender, counters),
                // An alphanumeric destination has no neighbours.
                (Check::Neighbours, Some(number)) => rule.count_neighbours(&sender, number, counters),
                (Check::Block { digits }, Some(number)) => {
                    rule.count_block(&sender, number, digits, counters)
                }
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
    fn count_velocity(&self, sender: &str, counters: &impl Counters) -> u64 {
        counters.add(&format!("velocity {}", self.name), sender, self.window)
    }

    fn count_neighbours(&self, sender: &str, number: &str, counters: &impl Counters) -> u64 {
        let seen = format!("seen {}", self.name);
        let times = counters.add(&seen, &format!("{sender}{SEPARATOR}{number}"), self.window);
        let near = [predecessor(number), successor(number)]
            .into_iter()
            .flatten()
            .any(|near| counters.sum(&seen, &format!("{sender}{SEPARATOR}{near}"), self.window) > 0);
        let adjacent = format!("adjacent {}", self.name);
        // Two neighbours may get many messages each: a number counts once.
        match (near, times) {
            (false, _) => 0,
            (true, 1) => counters.add(&adjacent, sender, self.window),
            (true, _) => counters.sum(&adjacent, sender, self.window),
        }
    }

    fn count_block(&self, sender: &str, number: &str, digits: usize, counters: &impl Counters) -> u64 {
        let Some(block) = number.len().checked_sub(digits).and_then(|end| number.get(..end)) else {
            return 0;
        };
        let block_key = format!("{sender}{SEPARATOR}{block}");
        let times = counters.add(
            &format!("of-block {}", self.name),
            &format!("{sender}{SEPARATOR}{number}"),
            self.window,
        );
        let block = format!("block {}", self.name);
        match times {
            1 => counters.add(&block, &block_key, self.window),
            _ => counters.sum(&block, &block_key, self.window),
        }
    }
}

/// The number below, with the same number of digits; `None` for zeros only.
fn predecessor(number: &str) -> Option<String> {
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

/// The number above, with the same number of digits; `None` for nines only.
fn successor(number: &str) -> Option<String> {
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
        assert_eq!(
            (predecessor("4900"), successor("4899")),
            (Some("4899".to_owned()), Some("4900".to_owned()))
        );
        assert_eq!((predecessor("10"), successor("99")), (Some("09".to_owned()), None));
        assert_eq!((predecessor("00"), successor("")), (None, None));
    }

    proptest! {
        #[test]
        fn successor_then_predecessor(number in "[0-9]{1,20}") {
            if let Some(next) = successor(&number) {
                prop_assert_eq!(predecessor(&next), Some(number));
            }
        }
    }
}
