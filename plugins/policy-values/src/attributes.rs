use crate::Names;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Conditions on the attributes of a message: `{ mcc = "262", mnc = ["01", "06"] }`. Each named attribute must have one of
/// its values; a star at the end of a value matches any rest.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttributeConditions(Vec<(String, Vec<String>)>);

impl<'de> Deserialize<'de> for AttributeConditions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let named: BTreeMap<String, Names> = BTreeMap::deserialize(deserializer)?;
        if let Some(wrong) = named.keys().find(|name| !is_attribute_name(name)) {
            return Err(D::Error::custom(format!(
                "{wrong:?} is not an attribute: its name has 1 to 64 of a-z, 0-9, dot, hyphen and underscore"
            )));
        }
        Ok(Self(named.into_iter().map(|(name, values)| (name, values.0)).collect()))
    }
}

/// Whether an attribute can have this name.
fn is_attribute_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|octet| octet.is_ascii_lowercase() || octet.is_ascii_digit() || b".-_".contains(&octet))
}

impl AttributeConditions {
    /// Whether the attributes of a message meet all conditions. Without conditions, no attribute is read.
    #[must_use]
    pub fn hold(&self, attributes: &MessageAttributes<impl Fn(&str) -> Option<String>>) -> bool {
        self.0.iter().all(|(name, patterns)| {
            attributes.read(name, |value| patterns.iter().any(|pattern| matches(pattern, value)))
        })
    }

    /// Whether these conditions hold for every message for which the other conditions hold.
    #[must_use]
    pub fn cover(&self, other: &Self) -> bool {
        self.0.iter().all(|(name, wide)| {
            let narrow = other.0.iter().find(|(narrow, _)| narrow == name);
            narrow.is_some_and(|(_, narrow)| {
                narrow.iter().all(|narrow| wide.iter().any(|wide| includes(wide, narrow)))
            })
        })
    }
}

fn matches(pattern: &str, value: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => value.starts_with(start),
        None => value == pattern,
    }
}

/// Whether a pattern matches every value that the other pattern matches.
fn includes(wide: &str, narrow: &str) -> bool {
    match wide.strip_suffix('*') {
        Some(start) => narrow.starts_with(start),
        None => narrow == wide,
    }
}

/// The attributes of a message. Each is fetched from the host at its first use, and then cached.
#[derive(Debug)]
pub struct MessageAttributes<Fetch> {
    fetch: Fetch,
    fetched: RefCell<Vec<(String, Option<String>)>>,
}

impl<Fetch: Fn(&str) -> Option<String>> MessageAttributes<Fetch> {
    /// Attributes that a function fetches: it returns the value of a name; `None` if the message does not have it.
    pub const fn new(fetch: Fetch) -> Self {
        Self { fetch, fetched: RefCell::new(Vec::new()) }
    }

    /// Whether the message has the attribute, with a value of this kind.
    fn read(&self, name: &str, is_right: impl Fn(&str) -> bool) -> bool {
        let mut fetched = self.fetched.borrow_mut();
        let value = match fetched.iter().find(|(known, _)| known == name) {
            Some((_, value)) => value,
            None => {
                fetched.push((name.to_owned(), (self.fetch)(name)));
                match fetched.last() {
                    Some((_, value)) => value,
                    None => return false,
                }
            }
        };
        value.as_deref().is_some_and(is_right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    #[derive(Debug, Deserialize)]
    struct Document {
        attributes: AttributeConditions,
    }

    fn read(text: &str) -> Result<AttributeConditions, String> {
        crate::read::<Document>(&format!("attributes = {text}")).map(|document| document.attributes)
    }

    fn holds(conditions: &AttributeConditions, known: &[(&str, &str)]) -> bool {
        let fetch =
            |name: &str| known.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        conditions.hold(&MessageAttributes::new(fetch))
    }

    #[test]
    fn all_names_have_one_of_their_values() {
        let conditions = read(r#"{ mcc = "262", mnc = ["01", "06"], ported = "yes" }"#).unwrap();
        let message = |mnc| [("mcc", "262"), ("mnc", mnc), ("ported", "yes")];
        assert!(holds(&conditions, &message("01")) && holds(&conditions, &message("06")));
        assert!(!holds(&conditions, &message("02")) && !holds(&conditions, &message("01")[..2]));
        assert!(holds(&AttributeConditions::default(), &[]));
        let any = read(r#"{ campaign = "*", spn = "D*" }"#).unwrap();
        assert!(holds(&any, &[("campaign", ""), ("spn", "D1")]));
        assert!(!holds(&any, &[("spn", "D1")]) && !holds(&any, &[("campaign", "x"), ("spn", "E1")]));
    }

    #[test]
    fn attributes_are_fetched_once_and_only_if_a_condition_asks() {
        let fetches = Cell::new(0);
        let attributes = MessageAttributes::new(|_: &str| {
            fetches.set(fetches.get() + 1);
            None
        });
        assert!(AttributeConditions::default().hold(&attributes));
        assert_eq!(fetches.get(), 0);
        let conditions = read(r#"{ mcc = "262", mnc = "01" }"#).unwrap();
        assert!(!conditions.hold(&attributes) && !conditions.hold(&attributes));
        assert_eq!(fetches.get(), 1, "the first condition does not hold");
    }

    #[test]
    fn wrong_conditions_are_refused() {
        for (text, expected) in [
            (r#"{ Mcc = "262" }"#, "is not an attribute"),
            (r#"{ mcc = [] }"#, "at least one"),
            (r#"{ mcc = 262 }"#, "a text in quotes"),
            (r#"{ "" = "x" }"#, "is not an attribute"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    fn conditions() -> impl Strategy<Value = AttributeConditions> {
        let values = proptest::collection::vec("[12]{0,2}\\*?", 1..3);
        proptest::collection::btree_map("[ab]", values, 0..3)
            .prop_map(|named| AttributeConditions(named.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn conditions_that_cover_others_hold_with_them(
            wide in conditions(), narrow in conditions(), a in "[12]{0,2}", b in proptest::option::of("[12]{0,2}"),
        ) {
            let known: Vec<(&str, &str)> =
                [("a", Some(&*a)), ("b", b.as_deref())].into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            if wide.cover(&narrow) && holds(&narrow, &known) {
                prop_assert!(holds(&wide, &known));
            }
        }
    }
}
