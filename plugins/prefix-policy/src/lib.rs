//! The policy document of `prefix-router`: format, checks and rules.

mod document;
mod leg;
mod rule;

pub use leg::LegRule;
pub use rule::{Action, Reject, Rule, Target};

use document::Document;
use pace_policy::TableNames;
use policy_values::{check_prefix, line, read};
use std::collections::BTreeMap;

/// The checked document.
#[derive(Debug)]
pub struct Policy {
    /// Prefix → index into `rules`.
    pub prefixes: Vec<(String, u32)>,
    /// The rules of each prefix, in the order of the document.
    pub rules: Vec<Vec<Rule>>,
    /// The target of messages without a matching rule.
    pub default: Option<Target>,
    tables: TableNames,
}

impl Policy {
    /// The peers in its routes, each once.
    pub fn peers(&self) -> std::collections::BTreeSet<&str> {
        let targets = self.rules.iter().flatten().map(|rule| &rule.target).chain(&self.default);
        let legs = targets.flat_map(|target| match &target.action {
            Action::Forward(legs) => legs.as_slice(),
            Action::Home | Action::Reject(_) => &[],
        });
        legs.map(|leg| leg.peer.as_str()).collect()
    }

    /// The tables of the appliance that the routes use.
    #[must_use]
    pub fn tables(&self) -> &[String] {
        self.tables.names()
    }

    /// Parses and checks a document.
    ///
    /// # Errors
    /// The line, the mistake, and the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = read(text)?;
        if document.route.is_empty() && document.default.is_none() {
            return Err(
                "the document has neither a [[route]] nor a [default]: every message would be refused. \
                        Add a [[route]] with `prefix` and `legs`"
                    .to_owned(),
            );
        }
        let mut tables = TableNames::default();
        let default = document
            .default
            .map(|default| {
                let at = line(text, default.span());
                default
                    .into_inner()
                    .target(&mut tables)
                    .map_err(|what| format!("line {at}: [default] {what}"))
            })
            .transpose()?;
        let mut by_prefix: BTreeMap<String, Vec<Rule>> = BTreeMap::new();
        for route in document.route {
            let at = line(text, route.span());
            let mut route = route.into_inner();
            let target = route.target(&mut tables).map_err(|what| format!("line {at}: {what}"))?;
            for prefix in route.prefix.0 {
                check_prefix(&prefix).map_err(|what| format!("line {at}: {what}"))?;
                let rule = Rule {
                    accounts: route.accounts.clone(),
                    sources: route.sources.clone(),
                    attributes: route.attributes.clone(),
                    line: at,
                    target: target.clone(),
                };
                let earlier = by_prefix.entry(prefix.clone()).or_default();
                if let Some(first) = earlier.iter().find(|first| first.covers(&rule)) {
                    return Err(unreachable(&prefix, first.line, at));
                }
                earlier.push(rule);
            }
        }
        let mut policy = Self { prefixes: Vec::new(), rules: Vec::new(), default, tables };
        for (prefix, rules) in by_prefix {
            let index = u32::try_from(policy.rules.len()).map_err(|_| "too many prefixes".to_owned())?;
            policy.prefixes.push((prefix, index));
            policy.rules.push(rules);
        }
        Ok(policy)
    }
}

fn unreachable(prefix: &str, first: usize, at: usize) -> String {
    if first == at {
        return format!("line {at}: prefix {prefix:?} stands twice in one list; write it once");
    }
    format!(
        "line {at}: prefix {prefix:?} can never be reached here, since the route of line {first} takes every such \
         message first; put the narrower route before it, or leave one of them out"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy_values::MessageAttributes;
    use proptest::prelude::*;

    const SHIPPED: &str = include_str!("../../../policies/routes.toml");

    #[test]
    fn the_shipped_document_is_valid() {
        Policy::parse(SHIPPED).unwrap();
    }

    /// Commented-out examples in the document must be valid as well.
    #[test]
    fn the_shipped_examples_are_valid() {
        let examples: String = SHIPPED
            .lines()
            .filter_map(|line| line.strip_prefix('#'))
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .skip_while(|line| !line.starts_with("[["))
            .filter(|line| {
                ["[", "]", " ", "}"].iter().any(|start| line.starts_with(start)) || line.contains(" = ")
            })
            .fold(String::new(), |text, line| text + line + "\n");
        let policy = Policy::parse(&examples).unwrap();
        assert!(policy.rules.len() >= 4, "{policy:?}");
    }

    #[test]
    fn errors_name_the_line_and_the_mistake() {
        for (document, expected) in [
            ("", "neither"),
            ("[[route]]\nprefix = \"86\"\n", "line 1: needs `legs`"),
            ("\n[[route]]\nprefix = \"+86\"\nreject = \"prohibited\"\n", "line 2: prefix \"+86\""),
            ("[[route]]\nprefix = \"86\"\nreject = \"because\"\n", "unknown variant `because`"),
            (
                "[[route]]\nprefix = \"86\"\nreject = \"prohibited\"\npace-buckets = [{ name = \"b\" }]\n",
                "line 1: has `reject`, and `pace-buckets`",
            ),
            (
                "[[route]]\nprefix = \"86\"\nhome = true\npace-buckets = [{ name = \"B\" }]\n",
                "line 1: the bucket \"B\"",
            ),
            (
                "[[route]]\nprefix = \"86\"\nhome = true\nsend-windows = [{ name = \"w\", zone = \"UTC\" }]\n",
                "line 1: the window \"w\" needs",
            ),
            (
                "[[route]]\nprefix = \"86\"\nhome = true\nattributes = { MCC = \"262\" }\n",
                "is not an attribute",
            ),
            (
                "[[route]]\nprefix = \"86\"\nattributes = { mcc = \"*\" }\nhome = true\n[[route]]\nprefix = \"86\"\nattributes = { mcc = \"460\" }\nhome = true\n",
                "line 5: prefix \"86\" can never be reached",
            ),
            ("[[route]]\nprefix = \"86\"\nlegs = [{ pear = \"x\" }]\n", "unknown field `pear`"),
            ("[[route]]\nprefix = [", "TOML"),
            ("[[route]]\nprefix = []\nhome = true\n", "at least one"),
            ("[[route]]\nprefix = \"86\"\nhome = true\nreject = \"no-route\"\n", "keep one"),
            ("[default]\nhome = false\n", "line 1: [default] needs"),
            (
                "[[route]]\nprefix = \"86\"\nlegs = [{ peer = \"x\", add = \"123456\" }]\n",
                "line 1: the leg to \"x\" would make 21 octets",
            ),
            (
                "[[route]]\nprefix = \"86\"\nhome = true\n\n[[route]]\nprefix = [\"49\", \"86\"]\naccounts = [\"a\"]\nhome = true\n",
                "line 5: prefix \"86\" can never be reached here, since the route of line 1",
            ),
            (
                "[[route]]\nprefix = \"86\"\nsources = [\"10*\"]\nhome = true\n[[route]]\nprefix = \"86\"\nsources = [\"1065\"]\nhome = true\n",
                "line 5: prefix \"86\" can never be reached",
            ),
            ("[[route]]\nprefix = [\"86\", \"86\"]\nhome = true\n", "line 1: prefix \"86\" stands twice"),
        ] {
            let error = Policy::parse(document).unwrap_err();
            assert!(error.contains(expected), "{document:?}: {error}");
        }
    }

    #[test]
    fn a_narrower_rule_may_stand_first() {
        let document = "[[route]]\nprefix = \"86\"\naccounts = [\"a\"]\nhome = true\n\
                        [[route]]\nprefix = \"86\"\naccounts = [\"a\", \"b\"]\nsources = [\"1*\"]\nhome = true\n\
                        [[route]]\nprefix = \"86\"\nhome = true\n";
        let policy = Policy::parse(document).unwrap();
        let lines: Vec<_> = policy.rules[0].iter().map(|rule| rule.line).collect();
        assert_eq!(lines, [1, 5, 10]);
    }

    #[test]
    fn attributes_and_limits_belong_to_a_route() {
        let document = "[[route]]\nprefix = \"49\"\nattributes = { mcc = \"262\", mnc = [\"01\", \"06\"] }\nhome = true\n\
                        pace-buckets = [{ name = \"campaign\", table = \"campaigns\" }, { name = \"brand\" }]\n\
                        send-windows = [{ name = \"daytime\" }]\n\
                        [[route]]\nprefix = \"49\"\nhome = true\n";
        let policy = Policy::parse(document).unwrap();
        assert_eq!(policy.tables(), ["campaigns"]);
        let decides = |mnc: Option<&str>| {
            let fetch = |name: &str| match name {
                "mcc" => Some("262".to_owned()),
                _ => mnc.map(str::to_owned),
            };
            let attributes = MessageAttributes::new(fetch);
            policy.rules[0].iter().find(|rule| rule.applies("a", "b", &attributes)).map(|rule| rule.line)
        };
        assert_eq!([Some("06"), Some("02"), None].map(decides), [Some(1), Some(7), Some(7)]);
        assert_eq!(policy.rules[0].iter().map(|rule| rule.target.limits.len()).collect::<Vec<_>>(), [3, 0]);
    }

    proptest! {
        #[test]
        fn any_text_is_a_policy_or_refused(text in "([\\[\\]{}=\",. \n#*+a-z0-9]|prefix|route|legs|peer|home|reject|true){0,80}") {
            if let Err(refusal) = Policy::parse(&text) {
                prop_assert!(!refusal.is_empty());
            }
        }

        /// A rule that is refused as unreachable could never have decided.
        #[test]
        fn a_covered_rule_never_decides(
            first in rule(), second in rule(), account in "[ab]", source in "[12]{0,2}",
        ) {
            let attributes = MessageAttributes::new(|_: &str| None);
            if first.covers(&second) && second.applies(&account, &source, &attributes) {
                prop_assert!(first.applies(&account, &source, &attributes));
            }
        }
    }

    fn rule() -> impl Strategy<Value = Rule> {
        let names = proptest::collection::vec("[ab]", 0..3);
        let sources = proptest::collection::vec("[12]{0,2}\\*?", 0..3);
        (names, sources).prop_map(|(accounts, sources)| Rule {
            accounts,
            sources,
            attributes: Default::default(),
            line: 0,
            target: Target { action: Action::Home, limits: Vec::new(), note: None },
        })
    }
}
