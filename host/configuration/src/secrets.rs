//! Secrets: hidden before a document is shown, restored when it is sent back.

use crate::key::{Key, find};
use crate::named_list::{is_named_list, item_name};
use crate::{ConfigChange, ConfigProblem};
use serde_json::Value;
use std::fmt::Write as _;

/// The placeholder of a secret in a document that is shown. In a document that is sent back it keeps the secret
/// unchanged.
pub const UNCHANGED: &str = "(unchanged)";

fn is_secret<T: AsRef<str>>(keys: &[Key], path: &[T]) -> bool {
    find(keys, path).is_some_and(|key| key.secret)
}

/// The range of the password in a URL: before the host, or in the query.
fn url_password_range(text: &str) -> Option<std::ops::Range<usize>> {
    let begin = text.find("://")? + 3;
    let rest = &text[begin..];
    let authority = rest.find(['/', '?', '#', ' ']).map_or(rest, |end| &rest[..end]);
    // A slash is not valid in a password, but the password must be hidden nevertheless.
    let before_host = authority.rfind('@').or_else(|| rest.rfind('@')).and_then(|at| {
        let colon = rest[..at].find(':')?;
        (colon + 1 < at).then_some(begin + colon + 1..begin + at)
    });
    before_host.or_else(|| {
        let named =
            ["?password=", "&password="].into_iter().find_map(|name| Some(rest.find(name)? + name.len()))?;
        let end = rest[named..].find(['&', '#']).map_or(rest.len(), |end| named + end);
        (named < end).then_some(begin + named..begin + end)
    })
}

/// Replaces every secret with [`UNCHANGED`], including passwords in URLs.
pub fn hide(keys: &[Key], document: &mut Value) {
    hide_in(keys, document, &mut Vec::new());
}

/// Replaces secrets in the values of differences. The differences themselves remain.
pub fn hide_changes(keys: &[Key], changes: &mut [ConfigChange]) {
    for change in changes {
        for side in [&mut change.before, &mut change.after].into_iter().flatten() {
            hide_in(keys, side, &mut change.path.clone());
        }
    }
}

fn hide_in(keys: &[Key], value: &mut Value, path: &mut Vec<String>) {
    if is_secret(keys, path) {
        *value = Value::String(UNCHANGED.to_owned());
        return;
    }
    match value {
        Value::String(text) => {
            if let Some(range) = url_password_range(text) {
                text.replace_range(range, UNCHANGED);
            }
        }
        Value::Array(items) => {
            for item in items {
                path.push("*".to_owned());
                hide_in(keys, item, path);
                path.pop();
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                path.push(key.clone());
                hide_in(keys, item, path);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces [`UNCHANGED`] in `new` with the secrets of `old`. In named lists secrets are taken from the item of the
/// same name, elsewhere from the same position. Returns a problem for each placeholder without an old secret.
#[must_use]
pub fn restore(keys: &[Key], new: &mut Value, old: &Value) -> Vec<ConfigProblem> {
    let mut problems = Vec::new();
    restore_in(keys, new, Some(old), &mut Vec::new(), &mut Vec::new(), &mut problems);
    problems
}

fn restore_in(
    keys: &[Key],
    new: &mut Value,
    old: Option<&Value>,
    path: &mut Vec<String>,
    location: &mut Vec<String>,
    problems: &mut Vec<ConfigProblem>,
) {
    let mut missing = || problems.push(missing_secret(location));
    match new {
        Value::String(text) if text == UNCHANGED && is_secret(keys, path) => match old {
            Some(old) => *new = old.clone(),
            None => missing(),
        },
        Value::String(text) => {
            let Some(range) = url_password_range(text).filter(|range| text[range.clone()] == *UNCHANGED)
            else {
                return;
            };
            let old = old.and_then(Value::as_str);
            match old.and_then(|old| Some(&old[url_password_range(old)?])) {
                Some(secret) => text.replace_range(range, secret),
                None => missing(),
            }
        }
        Value::Array(items) => {
            let named = is_named_list(keys, path);
            let list = old.and_then(Value::as_array);
            for (index, item) in items.iter_mut().enumerate() {
                let same_place = list.and_then(|list| list.get(index));
                let before = if named {
                    // Duplicate names are reported elsewhere; until then each item keeps its own secret.
                    let name = item_name(item);
                    let same = |other: &&Value| name.is_some() && item_name(other) == name;
                    same_place.filter(same).or_else(|| list?.iter().find(same))
                } else {
                    same_place
                };
                path.push("*".to_owned());
                location.push(index.to_string());
                restore_in(keys, item, before, path, location, problems);
                location.pop();
                path.pop();
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                let before = old.and_then(|old| old.get(key));
                path.push(key.clone());
                location.push(key.clone());
                restore_in(keys, item, before, path, location, problems);
                location.pop();
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn missing_secret(location: &[String]) -> ConfigProblem {
    let mut key = String::new();
    for token in location {
        if token.bytes().all(|c| c.is_ascii_digit()) {
            let _ = write!(key, "[{token}]");
        } else {
            if !key.is_empty() {
                key.push('.');
            }
            key.push_str(token);
        }
    }
    let message = format!("is {UNCHANGED:?}, but there is no current secret to keep");
    let pointer = crate::pointer(location);
    ConfigProblem { line: None, key, pointer, message, allowed: Some("the secret itself".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::tests::trees;
    use crate::key::tests::keys;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_password_in_the_query_of_a_url_is_a_secret() {
        let old = json!({"archive": {"url": "postgres://host/db?user=u&password=pass4&sslmode=require"}});
        let mut shown = old.clone();
        hide(&keys(), &mut shown);
        assert_eq!(shown["archive"]["url"], "postgres://host/db?user=u&password=(unchanged)&sslmode=require");
        assert_eq!(restore(&keys(), &mut shown, &old), []);
        assert_eq!(shown, old);
    }

    #[test]
    fn secrets_are_hidden_and_restored_by_name() {
        let old = json!({
            "peer": [{"name": "a", "password": "pass1"}, {"name": "b", "password": "pass2"}],
            "archive": {"url": "mysql://us:pass3@host/db"},
        });
        let mut shown = old.clone();
        hide(&keys(), &mut shown);
        let text = shown.to_string();
        assert!(!["pass1", "pass2", "pass3"].iter().any(|secret| text.contains(secret)), "{text}");
        // Another order, and one secret replaced.
        let mut back = json!({
            "peer": [{"name": "b", "password": UNCHANGED}, {"name": "a", "password": "new"}],
            "archive": {"url": "mysql://us:(unchanged)@other/db"},
        });
        assert_eq!(restore(&keys(), &mut back, &old), []);
        let expected = json!({
            "peer": [{"name": "b", "password": "pass2"}, {"name": "a", "password": "new"}],
            "archive": {"url": "mysql://us:pass3@other/db"},
        });
        assert_eq!(back, expected);
    }

    #[test]
    fn restoring_an_unknown_secret_is_reported() {
        let mut new = json!({"peer": [{"name": "c", "password": UNCHANGED}]});
        let problems = restore(&keys(), &mut new, &json!({"peer": [{"name": "a", "password": "pass1"}]}));
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].pointer, "/peer/0/password");
        assert_eq!(problems[0].key, "peer[0].password");
    }

    #[test]
    fn changes_do_not_reveal_secrets() {
        let before = json!({"peer": [{"name": "a", "password": "pass1"}]});
        let after = json!({"peer": [{"name": "a", "password": "pass2"}, {"name": "b", "password": "pass3"}]});
        let mut changes = crate::diff(&keys(), &before, &after);
        assert_eq!(changes.len(), 2);
        hide_changes(&keys(), &mut changes);
        let text = format!("{changes:?}");
        assert!(!["pass1", "pass2", "pass3"].iter().any(|secret| text.contains(secret)), "{text}");
    }

    proptest! {
        #[test]
        fn restore_is_the_inverse_of_hide(tree in trees()) {
            let mut shown = tree.clone();
            hide(&keys(), &mut shown);
            prop_assert_eq!(restore(&keys(), &mut shown, &tree), vec![]);
            prop_assert_eq!(shown, tree);
        }
    }
}
