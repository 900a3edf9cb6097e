//! Any text as a policy document of the default router: refused with words, or sane; never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prefix_policy::{Action, Policy};

fuzz_target!(|octets: &[u8]| {
    let Ok(text) = std::str::from_utf8(octets) else { return };
    match Policy::parse(text) {
        Err(refusal) => assert!(!refusal.is_empty()),
        Ok(policy) => {
            assert!(!policy.prefixes.is_empty() || policy.default.is_some());
            for (prefix, rules) in &policy.prefixes {
                assert!(prefix.len() <= 30 && prefix.bytes().all(|digit| digit.is_ascii_digit()));
                let rules = &policy.rules[*rules as usize];
                assert!(!rules.is_empty());
                for rule in rules {
                    rule.applies("acme", "10655");
                    if let Action::Forward(legs) = &rule.target.action {
                        assert!(!legs.is_empty());
                    }
                }
            }
        }
    }
});
