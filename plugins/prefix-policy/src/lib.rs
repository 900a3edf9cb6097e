//! The policy document, as it is written, and what it comes to.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The document. `policies/routes.toml` explains it by example.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Document {
    #[serde(default)]
    route: Vec<toml::Spanned<Route>>,
    default: Option<Target>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Route {
    prefix: Prefixes,
    #[serde(default)]
    accounts: Vec<String>,
    #[serde(default)]
    sources: Vec<String>,
    #[serde(default)]
    legs: Vec<LegRule>,
    reject: Option<Reject>,
    note: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Prefixes {
    One(String),
    Many(Vec<String>),
}

/// Where messages go: legs, or a refusal.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Target {
    /// The legs.
    #[serde(default)]
    pub legs: Vec<LegRule>,
    /// Or the refusal.
    pub reject: Option<Reject>,
    /// For the trace.
    pub note: Option<String>,
}

/// One leg.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LegRule {
    /// The peer's name.
    pub peer: String,
    /// Lower ranks first.
    #[serde(default)]
    pub rank: u8,
    /// Share within the rank.
    #[serde(default = "one")]
    pub weight: u16,
    /// In millionths.
    #[serde(default)]
    pub cost: u32,
    /// Milliseconds to wait for this leg before the next.
    pub longest_wait_ms: Option<u64>,
    /// Digits taken off the front of the destination.
    #[serde(default)]
    pub strip: usize,
    /// Digits put in front of it.
    #[serde(default)]
    pub add: String,
    /// Type of number of the destination on this leg.
    pub ton: Option<u8>,
    /// Numbering plan of the destination on this leg.
    pub npi: Option<u8>,
    /// The source to show on this leg.
    pub source: Option<String>,
}

fn one() -> u16 {
    1
}

/// The reasons for which a route may refuse.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reject {
    /// No route.
    NoRoute,
    /// Not a number.
    InvalidDestination,
    /// Not this sender.
    InvalidSource,
    /// Against the rules.
    Prohibited,
    /// Not for this account.
    NotAuthorised,
    /// Not now.
    TryLater,
}

/// One rule of a prefix, with its conditions.
#[derive(Debug)]
pub struct Rule {
    accounts: Vec<String>,
    sources: Vec<String>,
    /// Where to.
    pub target: Target,
}

impl Rule {
    /// Whether its conditions hold.
    pub fn applies(&self, account: &str, source: &str) -> bool {
        (self.accounts.is_empty() || self.accounts.iter().any(|name| name == account))
            && (self.sources.is_empty()
                || self.sources.iter().any(|pattern| match pattern.strip_suffix('*') {
                    Some(start) => source.starts_with(start),
                    None => source == pattern,
                }))
    }
}

/// The document, checked.
#[derive(Debug)]
pub struct Policy {
    /// Prefix → index into `rules`.
    pub prefixes: Vec<(String, u32)>,
    /// The rules of each prefix, in the order of the document.
    pub rules: Vec<Vec<Rule>>,
    /// What happens to messages that no rule takes.
    pub default: Option<Target>,
}

impl Policy {
    /// Reads and checks a document.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = toml::from_str(text).map_err(|error| error.to_string())?;
        let line =
            |span: std::ops::Range<usize>| text.get(..span.start).unwrap_or(text).matches('\n').count() + 1;
        if document.route.is_empty() && document.default.is_none() {
            return Err(
                "the document has neither a [[route]] nor a [default]: every message would be refused. \
                        Add a [[route]] with `prefix` and `legs`"
                    .to_owned(),
            );
        }
        if let Some(default) = &document.default {
            check(default).map_err(|what| format!("[default]: {what}"))?;
        }
        let mut by_prefix: BTreeMap<String, Vec<Rule>> = BTreeMap::new();
        for route in document.route {
            let at = line(route.span());
            let route = route.into_inner();
            let target = Target { legs: route.legs, reject: route.reject, note: route.note };
            check(&target).map_err(|what| format!("line {at}: {what}"))?;
            let prefixes = match route.prefix {
                Prefixes::One(prefix) => vec![prefix],
                Prefixes::Many(prefixes) => prefixes,
            };
            if prefixes.is_empty() {
                return Err(format!(
                    "line {at}: `prefix` is an empty list; write \"\" for every destination"
                ));
            }
            for prefix in prefixes {
                if prefix.len() > 30 || !prefix.bytes().all(|digit| digit.is_ascii_digit()) {
                    return Err(format!(
                        "line {at}: prefix {prefix:?} is not at most 30 decimal digits; leave out the plus sign"
                    ));
                }
                by_prefix.entry(prefix).or_default().push(Rule {
                    accounts: route.accounts.clone(),
                    sources: route.sources.clone(),
                    target: target.clone(),
                });
            }
        }
        let mut policy = Self { prefixes: Vec::new(), rules: Vec::new(), default: document.default };
        for (prefix, rules) in by_prefix {
            let index = u32::try_from(policy.rules.len()).map_err(|_| "too many prefixes".to_owned())?;
            policy.prefixes.push((prefix, index));
            policy.rules.push(rules);
        }
        Ok(policy)
    }
}

fn check(target: &Target) -> Result<(), String> {
    match (target.legs.is_empty(), target.reject) {
        (true, None) => return Err("needs `legs` or `reject`".to_owned()),
        (false, Some(_)) => return Err("has both `legs` and `reject`; keep one".to_owned()),
        _ => {}
    }
    if target.legs.len() > 255 {
        return Err("has more than 255 legs".to_owned());
    }
    for leg in &target.legs {
        if leg.peer.is_empty() {
            return Err("a leg has an empty `peer`".to_owned());
        }
        if leg.add.len() + 1 > 20 || !leg.add.bytes().all(|octet| octet.is_ascii_digit() || octet == b'+') {
            return Err(format!("`add` is {:?}: it takes at most 19 digits", leg.add));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_document_is_right() {
        Policy::parse(include_str!("../../../policies/routes.toml")).unwrap();
    }

    #[test]
    fn refusals_say_where_and_what() {
        for (document, expected) in [
            ("", "neither"),
            ("[[route]]\nprefix = \"86\"\n", "line 1: needs `legs` or `reject`"),
            ("\n[[route]]\nprefix = \"+86\"\nreject = \"prohibited\"\n", "line 2: prefix \"+86\""),
            ("[[route]]\nprefix = \"86\"\nreject = \"because\"\n", "unknown variant `because`"),
            ("[[route]]\nprefix = \"86\"\nlegs = [{ pear = \"x\" }]\n", "unknown field `pear`"),
            ("[[route]]\nprefix = [", "TOML"),
        ] {
            let error = Policy::parse(document).unwrap_err();
            assert!(error.contains(expected), "{document:?}: {error}");
        }
    }
}
