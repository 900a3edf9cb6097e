//! Secrets: hidden before a document is shown, found again when it comes back.

use crate::place::{is_named_list, name_of};
use crate::{Change, Problem};
use serde_json::Value;
use std::fmt::Write as _;

/// What stands in the place of a secret in a document that is shown. In one that comes back it means "as it is".
pub const UNCHANGED: &str = "(unchanged)";

/// Where secrets stand; `*` for each item of a list.
const SECRETS: [&[&str]; 7] = [
    &["account", "*", "business", "push", "secret"],
    &["account", "*", "password-hash"],
    &["account", "*", "sgip", "login-password"],
    &["gateway", "*", "its-password"],
    &["gateway", "*", "login-password"],
    &["peer", "*", "password"],
    &["redis", "account", "*", "password-hash"],
];

/// Whether a secret stands at this place.
#[must_use]
pub fn is_secret<T: AsRef<str>>(path: &[T]) -> bool {
    SECRETS.iter().any(|known| {
        known.len() == path.len()
            && known.iter().zip(path).all(|(known, token)| *known == "*" || *known == token.as_ref())
    })
}

/// Where the password of a URL stands in it: before the host, or in the query.
fn password(text: &str) -> Option<std::ops::Range<usize>> {
    let begin = text.find("://")? + 3;
    let rest = &text[begin..];
    let authority = rest.find(['/', '?', '#', ' ']).map_or(rest, |end| &rest[..end]);
    // A slash in a password does not belong there, and hides nothing all the same.
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

/// Puts [`UNCHANGED`] in the place of every secret, passwords in URLs among them.
pub fn hide(document: &mut Value) {
    hide_below(document, &mut Vec::new());
}

/// The same for changes: what is told of them, and not that they happened.
pub fn hide_changes(changes: &mut [Change]) {
    for change in changes {
        for side in [&mut change.before, &mut change.after].into_iter().flatten() {
            hide_below(side, &mut change.path.clone());
        }
    }
}

fn hide_below(value: &mut Value, path: &mut Vec<String>) {
    if is_secret(path) {
        *value = Value::String(UNCHANGED.to_owned());
        return;
    }
    match value {
        Value::String(text) => {
            if let Some(range) = password(text) {
                text.replace_range(range, UNCHANGED);
            }
        }
        Value::Array(items) => {
            for item in items {
                path.push("*".to_owned());
                hide_below(item, path);
                path.pop();
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                path.push(key.clone());
                hide_below(item, path);
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Puts the secrets of `old` in where `new` says [`UNCHANGED`]: in lists of named things those of the same name, elsewhere
/// those at the same place. Gives back a problem for each place where there is none to keep.
#[must_use]
pub fn restore(new: &mut Value, old: &Value) -> Vec<Problem> {
    let mut problems = Vec::new();
    restore_below(new, Some(old), &mut Vec::new(), &mut Vec::new(), &mut problems);
    problems
}

fn restore_below(
    new: &mut Value,
    old: Option<&Value>,
    path: &mut Vec<String>,
    place: &mut Vec<String>,
    problems: &mut Vec<Problem>,
) {
    let mut missing = || problems.push(problem(place));
    match new {
        Value::String(text) if text == UNCHANGED && is_secret(path) => match old {
            Some(old) => *new = old.clone(),
            None => missing(),
        },
        Value::String(text) => {
            let Some(range) = password(text).filter(|range| text[range.clone()] == *UNCHANGED) else {
                return;
            };
            let old = old.and_then(Value::as_str);
            match old.and_then(|old| Some(&old[password(old)?])) {
                Some(secret) => text.replace_range(range, secret),
                None => missing(),
            }
        }
        Value::Array(items) => {
            let named = is_named_list(path);
            let list = old.and_then(Value::as_array);
            for (index, item) in items.iter_mut().enumerate() {
                let same_place = list.and_then(|list| list.get(index));
                let before = if named {
                    // The same name twice is an error that is told elsewhere; each keeps its own until then.
                    let name = name_of(item);
                    let same = |other: &&Value| name.is_some() && name_of(other) == name;
                    same_place.filter(same).or_else(|| list?.iter().find(same))
                } else {
                    same_place
                };
                path.push("*".to_owned());
                place.push(index.to_string());
                restore_below(item, before, path, place, problems);
                place.pop();
                path.pop();
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                let before = old.and_then(|old| old.get(key));
                path.push(key.clone());
                place.push(key.clone());
                restore_below(item, before, path, place, problems);
                place.pop();
                path.pop();
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn problem(place: &[String]) -> Problem {
    let mut key = String::new();
    for token in place {
        if token.bytes().all(|c| c.is_ascii_digit()) {
            let _ = write!(key, "[{token}]");
        } else {
            if !key.is_empty() {
                key.push('.');
            }
            key.push_str(token);
        }
    }
    let what = format!("is {UNCHANGED:?}, and there is none yet that could stay as it is");
    let pointer = crate::pointer(place);
    Problem { line: None, key, pointer, what, allowed: Some("the secret itself".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::tests::trees;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_password_in_the_query_of_a_url_is_a_secret() {
        let old = json!({"archive": {"url": "postgres://host/db?user=u&password=pass4&sslmode=require"}});
        let mut shown = old.clone();
        hide(&mut shown);
        assert_eq!(shown["archive"]["url"], "postgres://host/db?user=u&password=(unchanged)&sslmode=require");
        assert_eq!(restore(&mut shown, &old), []);
        assert_eq!(shown, old);
    }

    #[test]
    fn secrets_are_hidden_and_found_again_by_name() {
        let old = json!({
            "peer": [{"name": "a", "password": "pass1"}, {"name": "b", "password": "pass2"}],
            "archive": {"url": "mysql://us:pass3@host/db"},
        });
        let mut shown = old.clone();
        hide(&mut shown);
        let text = shown.to_string();
        assert!(!["pass1", "pass2", "pass3"].iter().any(|secret| text.contains(secret)), "{text}");
        // Another order, and one of them set anew.
        let mut back = json!({
            "peer": [{"name": "b", "password": UNCHANGED}, {"name": "a", "password": "new"}],
            "archive": {"url": "mysql://us:(unchanged)@other/db"},
        });
        assert_eq!(restore(&mut back, &old), []);
        let expected = json!({
            "peer": [{"name": "b", "password": "pass2"}, {"name": "a", "password": "new"}],
            "archive": {"url": "mysql://us:pass3@other/db"},
        });
        assert_eq!(back, expected);
    }

    #[test]
    fn what_cannot_stay_as_it_is_is_told() {
        let mut new = json!({"peer": [{"name": "c", "password": UNCHANGED}]});
        let problems = restore(&mut new, &json!({"peer": [{"name": "a", "password": "pass1"}]}));
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].pointer, "/peer/0/password");
        assert_eq!(problems[0].key, "peer[0].password");
    }

    #[test]
    fn changes_do_not_tell_secrets() {
        let before = json!({"peer": [{"name": "a", "password": "pass1"}]});
        let after = json!({"peer": [{"name": "a", "password": "pass2"}, {"name": "b", "password": "pass3"}]});
        let mut changes = crate::diff(&before, &after);
        assert_eq!(changes.len(), 2);
        hide_changes(&mut changes);
        let told = format!("{changes:?}");
        assert!(!["pass1", "pass2", "pass3"].iter().any(|secret| told.contains(secret)), "{told}");
    }

    proptest! {
        #[test]
        fn what_was_hidden_is_found_again(tree in trees()) {
            let mut shown = tree.clone();
            hide(&mut shown);
            prop_assert_eq!(restore(&mut shown, &tree), vec![]);
            prop_assert_eq!(shown, tree);
        }
    }
}
