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
struct Naive(RefCell<HashMap<(String, String), u64>>);

impl Counters for Naive {
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

/// Which of these destinations were one too many, for one source.
fn stopped<'a>(policy: &Policy, destinations: &[&'a str]) -> Vec<&'a str> {
    let counters = Naive::default();
    let too_many = |destination: &&&str| policy.judge("acme", "ACME", destination, &counters).is_some();
    destinations.iter().filter(too_many).copied().collect()
}

#[test]
fn the_shipped_document_is_right() {
    Policy::parse(SHIPPED).unwrap();
}

#[test]
fn a_source_may_send_so_many() {
    let policy = only("burst");
    let counters = Naive::default();
    let ask = |account: &str, source: &str| policy.judge(account, source, "8613", &counters);
    for _ in 0..3 {
        assert_eq!(ask("acme", "ACME"), None);
    }
    let finding = ask("acme", "ACME").unwrap();
    assert_eq!(finding.then, Then::Hold(Duration::from_secs(300)));
    assert_eq!(finding.note, "burst: 4 messages in 60 s, 3 allowed");
    // Others have counters of their own, also where account and source make the same text together.
    assert_eq!(ask("acmeACME", ""), None);
    assert_eq!(ask("acme", "OTHER"), None);
}

#[test]
fn one_number_after_the_other_is_noticed() {
    // The second and the third are neighbours of one before; the fourth is one too many.
    assert_eq!(stopped(&only("ladder"), &["4901", "4902", "4903", "4904"]), ["4904"]);
    assert_eq!(stopped(&only("ladder"), &["+4904", "4903", "4902", "4901"]), ["4901"]);
    assert_eq!(stopped(&only("ladder"), &["4901", "4903", "4905", "4907", "4909"]), [""; 0]);
    // Addressees may get many each, also when they are neighbours.
    assert_eq!(stopped(&only("ladder"), &["4901", "4902", "4901", "4902", "4901", "4902"]), [""; 0]);
    assert_eq!(stopped(&only("ladder"), &["4901"; 20]), [""; 0]);
    assert_eq!(stopped(&only("ladder"), &["ACME", "ACMF", "ACMG", "ACMH"]), [""; 0]);
}

#[test]
fn many_numbers_of_a_block_are_noticed() {
    assert_eq!(stopped(&only("sweep"), &["4901", "4933", "4950", "4977", "4912"]), ["4912"]);
    // The same number again is no new one, but what is stopped stays stopped.
    assert_eq!(stopped(&only("sweep"), &["4901", "4901", "4933", "4950", "4977", "4901"]), [""; 0]);
    assert_eq!(stopped(&only("sweep"), &["4901", "4933", "4950", "4977", "4912", "4901"]), ["4912", "4901"]);
    assert_eq!(stopped(&only("sweep"), &["4901", "5002", "5103", "5204", "5305", "5406"]), [""; 0]);
    assert_eq!(stopped(&only("sweep"), &["1", "2", "3", "4", "5", "6"]), [""; 0]);
}

#[test]
fn the_allowed_are_left_alone_and_not_counted() {
    let policy = Policy::parse(SHORT).unwrap();
    let counters = Naive::default();
    for _ in 0..50 {
        assert_eq!(policy.judge("bank", "10655", "8613", &counters), None);
    }
    assert!(counters.0.borrow().is_empty());
    let others = (0..50).filter(|_| policy.judge("bank", "OTHER", "8613", &counters).is_some()).count();
    assert_eq!(others, 47);
}

#[test]
fn refusals_say_where_and_what() {
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

    /// A rule that counts the different numbers of a block says the same as a set of them.
    #[test]
    fn different_numbers_are_counted_as_in_a_set(numbers in prop::collection::vec(4900_u32..4915, 0..40)) {
        let policy = only("sweep");
        let counters = Naive::default();
        let mut seen = std::collections::HashSet::new();
        for number in numbers {
            seen.insert(number);
            let too_many = policy.judge("acme", "ACME", &number.to_string(), &counters).is_some();
            prop_assert_eq!(too_many, seen.len() > 4);
        }
    }

    #[test]
    fn no_address_is_too_odd(account in ".{0,20}", source in ".{0,20}", destination in ".{0,20}") {
        let counters = Naive::default();
        let policy = Policy::parse(SHORT).unwrap();
        prop_assert_eq!(policy.judge(&account, &source, &destination, &counters), None);
    }
}
