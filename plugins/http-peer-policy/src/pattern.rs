use regex_lite::Regex;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// A regular expression with one group.
#[derive(Debug, Clone)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// The group in the first match; `None` if there is none, or the text is empty.
    pub(crate) fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.captures(text)?.get(1).map(|group| group.as_str()).filter(|text| !text.is_empty())
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let pattern = Regex::new(&text)
            .map_err(|error| D::Error::custom(format!("{text:?} is not a regular expression: {error}")))?;
        // The whole match counts as a group, too.
        if pattern.captures_len() != 2 {
            let what = format!(
                "{text:?} must have one group in parentheses, which is the value, such as \"id=(\\\\S+)\""
            );
            return Err(D::Error::custom(what));
        }
        Ok(Self(pattern))
    }
}
