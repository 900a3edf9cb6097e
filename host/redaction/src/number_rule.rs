use configuration::{KeyValue, Section, Shape};
use serde_json::json;

/// Treatment of a number in data that leaves the appliance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberRule {
    /// The number is kept.
    Keep,
    /// A keyed hash stands in its place.
    Hash,
    /// The last characters are cut off: this number of them, 1 to 20.
    Cut(u8),
    /// The field is empty.
    Drop,
}

impl NumberRule {
    /// From its text in the configuration.
    fn parse(text: &str) -> Option<Self> {
        match text {
            "keep" => Some(Self::Keep),
            "hash" => Some(Self::Hash),
            "drop" => Some(Self::Drop),
            _ => {
                let count = text.strip_prefix("cut ")?.parse().ok()?;
                (1..=20).contains(&count).then_some(Self::Cut(count))
            }
        }
    }
}

impl KeyValue for NumberRule {
    fn read(section: &Section<'_>, key: &'static str) -> Option<Self> {
        let text = section.text(key)?;
        let rule = Self::parse(&text);
        if rule.is_none() {
            let rules = "keep, hash, drop, or cut N, with N from 1 to 20";
            section.invalid(key, format!("is {text:?}"), rules);
        }
        rule
    }

    fn empty() -> Self {
        Self::Keep
    }

    fn shape() -> Shape {
        let pattern = "^(keep|hash|drop|cut ([1-9]|1[0-9]|20))$";
        Shape::Value("rule", json!({ "type": "string", "pattern": pattern, "examples": ["hash", "cut 4"] }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_read() {
        let read =
            ["keep", "hash", "drop", "cut 1", "cut 20", "cut 0", "cut 21", "cut", "cut -1", "Hash", ""];
        let rules = read.map(NumberRule::parse);
        let expected =
            [NumberRule::Keep, NumberRule::Hash, NumberRule::Drop, NumberRule::Cut(1), NumberRule::Cut(20)];
        assert_eq!(rules[..5], expected.map(Some));
        assert!(rules[5..].iter().all(Option::is_none));
    }
}
