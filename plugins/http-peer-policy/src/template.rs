//! Texts with placeholders.

use crate::Secrets;
use crate::request::Submission;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

/// The value of a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Placeholder {
    Source,
    Destination,
    Text,
    Hex,
    DataCoding,
    Id,
    Key,
    Peer,
    Secret(String),
}

const KNOWN: &str =
    "{source}, {destination}, {text}, {hex}, {data-coding}, {id}, {key}, {peer} and {secret:NAME}";

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Literal(String),
    Value(Placeholder),
}

/// A text with placeholders; `{{` and `}}` are braces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Template(Vec<Part>);

/// The reason why a template has no value for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoValue {
    /// The message is 8-bit data, which has no text.
    Text,
    /// The configuration of the peer has no secret of this name.
    Secret(String),
}

impl Template {
    fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(place) = rest.find(['{', '}']) {
            let (before, after) = rest.split_at(place);
            literal.push_str(before);
            if let Some(after) = after.strip_prefix("{{") {
                literal.push('{');
                rest = after;
            } else if let Some(after) = after.strip_prefix("}}") {
                literal.push('}');
                rest = after;
            } else if let Some((name, after)) =
                after.strip_prefix('{').and_then(|after| after.split_once('}'))
            {
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal)));
                }
                parts.push(Part::Value(placeholder(name)?));
                rest = after;
            } else {
                return Err(format!("{text:?} has a single brace; write {{{{ or }}}} for a brace"));
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self(parts))
    }

    /// The text for a message; `escape` is applied to the values.
    pub(crate) fn render(
        &self,
        submission: &Submission<'_>,
        secrets: Secrets<'_>,
        escape: impl Fn(&str) -> String,
    ) -> Result<String, NoValue> {
        let mut rendered = String::new();
        for part in &self.0 {
            match part {
                Part::Literal(text) => rendered.push_str(text),
                Part::Value(placeholder) => {
                    rendered.push_str(&escape(&value(placeholder, submission, secrets)?));
                }
            }
        }
        Ok(rendered)
    }

    /// The text before the first placeholder.
    pub(crate) fn start(&self) -> &str {
        match self.0.first() {
            Some(Part::Literal(text)) => text,
            _ => "",
        }
    }

    /// Whether there is no placeholder.
    pub(crate) fn is_literal(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Literal(_)))
    }

    pub(crate) fn uses_text(&self) -> bool {
        self.0.contains(&Part::Value(Placeholder::Text))
    }

    pub(crate) fn uses_octets(&self) -> bool {
        self.0.contains(&Part::Value(Placeholder::Hex))
    }

    pub(crate) fn uses_destination(&self) -> bool {
        self.0.contains(&Part::Value(Placeholder::Destination))
    }
}

fn placeholder(name: &str) -> Result<Placeholder, String> {
    Ok(match name {
        "source" => Placeholder::Source,
        "destination" => Placeholder::Destination,
        "text" => Placeholder::Text,
        "hex" => Placeholder::Hex,
        "data-coding" => Placeholder::DataCoding,
        "id" => Placeholder::Id,
        "key" => Placeholder::Key,
        "peer" => Placeholder::Peer,
        _ => match name.strip_prefix("secret:") {
            Some(secret) if !secret.is_empty() => Placeholder::Secret(secret.to_owned()),
            _ => return Err(format!("{{{name}}} is not a placeholder; the placeholders are {KNOWN}")),
        },
    })
}

fn value(
    placeholder: &Placeholder,
    submission: &Submission<'_>,
    secrets: Secrets<'_>,
) -> Result<String, NoValue> {
    let Submission { message, attempt, text, octets } = submission;
    let digits = |number: &str| number.strip_prefix('+').unwrap_or(number).to_owned();
    Ok(match placeholder {
        Placeholder::Source => digits(&message.source.value),
        Placeholder::Destination => digits(&message.destination.value),
        Placeholder::Text => text.clone().ok_or(NoValue::Text)?,
        Placeholder::Hex => octets.iter().map(|octet| format!("{octet:02x}")).collect(),
        Placeholder::DataCoding => message.data_coding.to_string(),
        Placeholder::Id => attempt.id.clone(),
        Placeholder::Key => attempt.key.clone(),
        Placeholder::Peer => attempt.peer.clone(),
        Placeholder::Secret(name) => secrets(name).ok_or_else(|| NoValue::Secret(name.clone()))?,
    })
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mistakes_are_named() {
        for (text, words) in [
            ("{text", "single brace"),
            ("a}b", "single brace"),
            ("{txt}", "{txt} is not a placeholder"),
            ("{secret:}", "not a placeholder"),
        ] {
            let why = Template::parse(text).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        assert_eq!(Template::parse("{{}}").unwrap(), Template(vec![Part::Literal("{}".to_owned())]));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "[a-z{}:]{0,24}") {
            let _ = Template::parse(&text);
        }
    }
}
