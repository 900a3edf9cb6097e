use super::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::time::Duration;

const SHIPPED: &str = include_str!("../../../policies/fraud.toml");

const SHORT: &str = r#"
[[allow]]
accounts = ["bank"]
sources = ["1065*", "BANK"]

[[velocity]]
name = "burst"
messages = 3
window = "1m"
then = "hold"
hold = "5m"

[[neighbours]]
name = "ladder"
numbers = 2
window = "10m"

[[block]]
name = "sweep"
size = 100
numbers = 4
window = "1h"
"#;

/// Counters whose windows never end.
#[derive(Default)]
struct UnboundedCounters(RefCell<HashMap<(String, String), u64>>);

impl Counters for UnboundedCounters {
    fn add(&self, name: &str, key: &str, _window: Duration) -> u64 {
        let mut counts = self.0.borrow_mut();
        let count = counts.entry((name.to_owned(), key.to_owned())).or_default();
        *count += 1;
        *count
    }

    fn sum(&self, name: &str, key: &str, _window: Duration) -> u64 {
        self.0.borrow().get(&(name.to_owned(), key.to_owned())).copied().unwrap_or(0)
    }
}

/// A document with one of the rules of [`SHORT`].
fn only(name: &str) -> Policy {
    let mut policy = Policy::parse(SHORT).unwrap();
    policy.rules.retain(|rule| rule.name == name);
    assert_eq!(policy.rules.len(), 1);
    policy
}

/// The destinations that exceeded the limit, for one source.
fn stopped<'a>(policy: &Policy, destinations: &[&'a str]) -> Vec<&'a str> {
    let counters = UnboundedCounters::default();
    let too_many = |destination: &&&str| policy.evaluate("acme", "ACME", destination, &counters).is_some();
    destinations.iter().filter(too_many).copied().collect()
}

#[test]
fn the_shipped_document_is_valid() {
    Policy::parse(SHIPPED).unwrap();
}

#[test]
fn velocity_is_limited_per_source() {
    let policy = only("burst");
    let counters = UnboundedCounters::default();
    let ask = |account: &str, source: &str| policy.evaluate(account, source, "8613", &counters);
    for _ in 0..3 {
        assert_eq!(ask("acme", "ACME"), None);
    }
    let finding = ask("acme", "ACME").unwrap();
    assert_eq!(finding.then, RuleAction::Hold(Duration::from_secs(300)));
    assert_eq!(finding.note, "burst: 4 messages in 60 s, 3 allowed");
    // Others have their own counters, even if account and source concatenate to the same text.
    assert_eq!(ask("acmeACME", ""), None);
    assert_eq!(ask("acme", "OTHER"), None);
}

#[test]
fn consecutive_numbers_are_detected() {
    // The second and the third are neighbours of an earlier one; the fourth exceeds the limit.
    assert_eq!(stopped(&only("ladder"), &["4901", "4902", "4903", "4904"]), ["4904"]);
    assert_eq!(stopped(&only("ladder"), &["+4904", "4903", "4902", "4901"]), ["4901"]);
    assert_eq!(stopped(&only("ladder"), &["4901", "4903", "4905", "4907", "4909"]), [""; 0]);
    // Recipients may get many messages each, even if they are neighbours.
    assert_eq!(stopped(&only("ladder"), &["4901", "4902", "4901", "4902", "4901", "4902"]), [""; 0]);
    assert_eq!(stopped(&only("ladder"), &["4901"; 20]), [""; 0]);
    assert_eq!(stopped(&only("ladder"), &["ACME", "ACMF", "ACMG", "ACMH"]), [""; 0]);
}

#[test]
fn numbers_of_one_block_are_detected() {
    assert_eq!(stopped(&only("sweep"), &["4901", "4933", "4950", "4977", "4912"]), ["4912"]);
    // A repeated number is not a new one, but a stopped number stays stopped.
    assert_eq!(stopped(&only("sweep"), &["4901", "4901", "4933", "4950", "4977", "4901"]), [""; 0]);
    assert_eq!(stopped(&only("sweep"), &["4901", "4933", "4950", "4977", "4912", "4901"]), ["4912", "4901"]);
    assert_eq!(stopped(&only("sweep"), &["4901", "5002", "5103", "5204", "5305", "5406"]), [""; 0]);
    assert_eq!(stopped(&only("sweep"), &["1", "2", "3", "4", "5", "6"]), [""; 0]);
}

#[test]
fn allowed_sources_are_not_counted() {
    let policy = Policy::parse(SHORT).unwrap();
    let counters = UnboundedCounters::default();
    for _ in 0..50 {
        assert_eq!(policy.evaluate("bank", "10655", "8613", &counters), None);
    }
    assert!(counters.0.borrow().is_empty());
    let others = (0..50).filter(|_| policy.evaluate("bank", "OTHER", "8613", &counters).is_some()).count();
    assert_eq!(others, 47);
}

#[test]
fn errors_name_the_line_and_the_mistake() {
    let rule = "[[velocity]]\nname = \"v\"\nmessages = 3\nwindow = \"1m\"\n";
    for (document, expected) in [
        (String::new(), "has no rule"),
        (format!("{rule}[[allow]]\n"), "line 5: this [[allow]] names nobody"),
        (format!("{rule}{rule}"), "line 5: the rule of line 1 has the name \"v\" too"),
        (format!("{rule}then = \"hold\"\n"), "line 1: rule \"v\": `then = \"hold\"` needs `hold`"),
        (format!("{rule}then = \"hold\"\nhold = \"30s\"\n"), "would hold itself"),
        (format!("{rule}hold = \"30s\"\n"), "goes with"),
        (format!("{rule}limit = 3\n"), "unknown field `limit`"),
        (rule.replace("1m", "2d"), "a `window` is 1s to 24h"),
        (rule.replace("1m", "500ms"), "a `window` is 1s to 24h"),
        (rule.replace("= 3", "= 0"), "allows none"),
        (rule.replace("\"v\"", "\"\""), "takes 1 to 64"),
        (
            "[[block]]\nname = \"b\"\nsize = 50\nnumbers = 3\nwindow = \"1m\"\n".to_owned(),
            "line 1: rule \"b\": `size` is 50",
        ),
        ("[[block]]\nname = \"b\"\nsize = 10\nnumbers = 10\nwindow = \"1m\"\n".to_owned(), "never has more"),
    ] {
        let error = Policy::parse(&document).unwrap_err();
        assert!(error.contains(expected), "{document:?}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_policy_or_refused(
        text in "([\\[\\]{}=\",. \n#a-z0-9]|velocity|block|allow|name|window|\"1m\"|messages){0,60}",
    ) {
        if let Err(refusal) = Policy::parse(&text) {
            prop_assert!(!refusal.is_empty());
        }
    }

    /// A rule that counts the different numbers of a block agrees with a set of them.
    #[test]
    fn distinct_numbers_match_a_set(numbers in prop::collection::vec(4900_u32..4915, 0..40)) {
        let policy = only("sweep");
        let counters = UnboundedCounters::default();
        let mut seen = std::collections::HashSet::new();
        for number in numbers {
            seen.insert(number);
            let too_many = policy.evaluate("acme", "ACME", &number.to_string(), &counters).is_some();
            prop_assert_eq!(too_many, seen.len() > 4);
        }
    }

    #[test]
    fn any_address_is_accepted(account in ".{0,20}", source in ".{0,20}", destination in ".{0,20}") {
        let counters = UnboundedCounters::default();
        let policy = Policy::parse(SHORT).unwrap();
        prop_assert_eq!(policy.evaluate(&account, &source, &destination, &counters), None);
    }
}
