//! Patterns of senders and accounts, and the table in which senders are registered.

use std::str::Chars;

/// A sender or an account with wildcards: `*` matches any characters, `?` one character, `#` one digit. Case does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<char>);

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// The correction.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err(
                "a pattern of `accounts` or `sources` is empty; write a name, or \"*\" for every one"
                    .to_owned(),
            );
        }
        Ok(Self(without_plus(text).chars().map(|c| c.to_ascii_lowercase()).collect()))
    }

    /// Whether a sender or an account matches. A leading plus sign does not count.
    pub(crate) fn matches(&self, source: &str) -> bool {
        let mut rest = without_plus(source).chars();
        let mut at = 0;
        // The last star, and the rest of the sender after the characters that it matches.
        let mut star: Option<(usize, Chars<'_>)> = None;
        loop {
            let mut behind = rest.clone();
            let Some(c) = behind.next() else { break };
            match self.0.get(at) {
                Some('*') => {
                    star = Some((at, rest.clone()));
                    at += 1;
                }
                Some(wanted) if matches_character(*wanted, c) => {
                    at += 1;
                    rest = behind;
                }
                _ => {
                    let Some((star_at, left)) = &mut star else { return false };
                    left.next();
                    at = *star_at + 1;
                    rest = left.clone();
                }
            }
        }
        self.0.iter().skip(at).all(|rest| *rest == '*')
    }
}

fn matches_character(wanted: char, c: char) -> bool {
    match wanted {
        '?' => true,
        '#' => c.is_ascii_digit(),
        _ => wanted == c.to_ascii_lowercase(),
    }
}

/// The kind of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SourceKind {
    /// Digits only, after a plus sign.
    Numeric,
    /// Anything else.
    Alphanumeric,
}

impl SourceKind {
    pub(crate) fn of(source: &str) -> Self {
        match policy_values::digits_of(source) {
            Some(_) => Self::Numeric,
            None => Self::Alphanumeric,
        }
    }
}

/// Whether a sender is registered for an account: the table has the key `ACCOUNT/SENDER`, or `*/SENDER` for every account, with
/// the sender unchanged or in lower case.
pub(crate) fn is_registered(account: &str, source: &str, has_key: impl Fn(&str) -> bool) -> bool {
    let source = without_plus(source);
    let lower = source.to_lowercase();
    let spellings = [Some(source), (lower != source).then_some(&*lower)];
    [account, "*"]
        .into_iter()
        .any(|account| spellings.into_iter().flatten().any(|source| has_key(&format!("{account}/{source}"))))
}

fn without_plus(source: &str) -> &str {
    source.strip_prefix('+').unwrap_or(source)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_have_wildcards() {
        for (pattern, source, expected) in [
            ("ACME", "acme", true),
            ("ACME", "ACME2", false),
            ("ACME*", "ACME-Shop", true),
            ("*BANK*", "MyBank24", true),
            ("*BANK*", "BAN K", false),
            ("A?ME", "ACME", true),
            ("A?ME", "AME", false),
            ("1065#", "10655", true),
            ("1065#", "1065x", false),
            ("+49*", "4915", true),
            ("49*", "+4915", true),
            ("*", "", true),
            ("a*b*c", "a--b-bc", true),
            ("a*b*c", "a--b-b", false),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap().matches(source), expected, "{pattern} {source}");
        }
        assert!(Pattern::parse("").unwrap_err().contains("sources"));
    }

    #[test]
    fn numbers_and_names_differ() {
        assert_eq!(["+4915", "10655", "ACME", "49 15", ""].map(SourceKind::of), {
            use SourceKind::{Alphanumeric, Numeric};
            [Numeric, Numeric, Alphanumeric, Alphanumeric, Alphanumeric]
        });
    }

    #[test]
    fn a_sender_is_registered_for_one_account_or_for_all() {
        let registered = |account: &str, source: &str| {
            is_registered(account, source, |key| {
                ["shop/ACME", "shop/4915", "*/info", "bank/bank 24"].contains(&key)
            })
        };
        assert!(registered("shop", "ACME") && registered("shop", "+4915"));
        assert!(!registered("shop", "acme"), "in the spelling of the table");
        assert!(
            registered("any", "INFO") && registered("bank", "Bank 24"),
            "a key in lower case is for any case"
        );
        assert!(!registered("bank", "ACME") && !registered("shop", ""));
    }

    proptest! {
        #[test]
        fn a_text_matches_itself_and_its_beginning(text in "[a-zA-Z0-9 ]{1,12}", rest in ".{0,8}") {
            prop_assert!(Pattern::parse(&text).unwrap().matches(&text));
            let begins = Pattern::parse(&format!("{text}*")).unwrap();
            let longer = format!("{text}{rest}");
            prop_assert!(begins.matches(&longer));
        }
    }
}
