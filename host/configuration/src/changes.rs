//! What is different between two documents.

use crate::place::{by_name, is_named_list, pointer};
use serde_json::{Map, Value};

/// Something that is different.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The keys one below the other; things of a list of named ones go by their name.
    pub path: Vec<String>,
    /// What was there.
    pub before: Option<Value>,
    /// What is there.
    pub after: Option<Value>,
}

/// What happened to something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// It is new.
    Added,
    /// It is another.
    Changed,
    /// It is gone.
    Removed,
}

impl What {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

impl Change {
    /// The place as a pointer, in which things of a list of named ones go by their name, as in a patch: `/peer/upstream/rate`.
    #[must_use]
    pub fn pointer(&self) -> String {
        pointer(&self.path)
    }

    /// What happened.
    #[must_use]
    pub fn what(&self) -> What {
        match (&self.before, &self.after) {
            (None, _) => What::Added,
            (_, None) => What::Removed,
            _ => What::Changed,
        }
    }
}

/// Everything that is different, in the order of the keys. The order of named things counts for nothing; a list of named
/// things that is empty, or a section, is the same as none.
#[must_use]
pub fn diff(before: &Value, after: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(Some(before), Some(after), &mut Vec::new(), &mut changes);
    changes
}

fn compare(before: Option<&Value>, after: Option<&Value>, path: &mut Vec<String>, changes: &mut Vec<Change>) {
    if before == after {
        return;
    }
    if is_named_list(path)
        && let (Some(old), Some(new)) = (by_name(before), by_name(after))
    {
        compare_keys(&old, &new, path, changes);
        return;
    }
    let nothing = Value::Object(Map::new());
    // A section that is new is told key by key, so that each of them says what it means.
    let section = |side: Option<&'_ Value>| path.len() == 1 && side.is_none();
    let old = if section(before) { Some(&nothing) } else { before };
    let new = if section(after) { Some(&nothing) } else { after };
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (old, new) {
        compare_keys(old, new, path, changes);
        return;
    }
    changes.push(Change { path: path.clone(), before: before.cloned(), after: after.cloned() });
}

fn compare_keys(
    old: &serde_json::Map<String, Value>,
    new: &serde_json::Map<String, Value>,
    path: &mut Vec<String>,
    changes: &mut Vec<Change>,
) {
    let added = new.keys().filter(|key| !old.contains_key(*key));
    let mut keys: Vec<&String> = old.keys().chain(added).collect();
    keys.sort();
    for key in keys {
        path.push(key.clone());
        compare(old.get(key), new.get(key), path, changes);
        path.pop();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn named_things_are_compared_by_name() {
        let before = json!({"peer": [{"name": "a", "rate": 1}, {"name": "b"}], "x": 1});
        let after = json!({"peer": [{"name": "c"}, {"name": "a", "rate": 2}], "x": 1});
        let told: Vec<_> =
            diff(&before, &after).iter().map(|change| (change.pointer(), change.what())).collect();
        assert_eq!(
            told,
            [
                ("/peer/a/rate".to_owned(), What::Changed),
                ("/peer/b".to_owned(), What::Removed),
                ("/peer/c".to_owned(), What::Added),
            ]
        );
    }

    #[test]
    fn the_first_peer_of_all_is_told_by_name() {
        let changes = diff(&json!({}), &json!({"peer": [{"name": "a"}]}));
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].pointer(), "/peer/a");
    }

    /// A tree without order where order means nothing.
    fn canonical(value: &Value, path: &mut Vec<String>) -> Value {
        match value {
            Value::Object(map) => {
                let mut result = Map::new();
                for (key, value) in map {
                    path.push(key.clone());
                    let value = canonical(value, path);
                    let list = is_named_list(path) && value.as_array().is_some_and(Vec::is_empty);
                    let section = path.len() == 1 && value.as_object().is_some_and(Map::is_empty);
                    if !list && !section {
                        result.insert(key.clone(), value);
                    }
                    path.pop();
                }
                Value::Object(result)
            }
            list @ Value::Array(_) if is_named_list(path) => match by_name(Some(list)) {
                Some(items) => Value::Array(items.into_iter().map(|(_, item)| item).collect()),
                None => list.clone(),
            },
            other => other.clone(),
        }
    }

    /// Does what the changes say.
    fn apply(document: &Value, changes: &[Change]) -> Value {
        let mut document = document.clone();
        for change in changes {
            set(&mut document, &change.path, &mut Vec::new(), change.after.as_ref());
        }
        document
    }

    fn set(value: &mut Value, path: &[String], walked: &mut Vec<String>, to: Option<&Value>) {
        let Some((key, rest)) = path.split_first() else {
            *value = to.cloned().unwrap_or(Value::Null);
            return;
        };
        if is_named_list(walked) && !value.is_object() {
            let items = value.as_array_mut().expect("a list");
            let place = items.iter().position(|item| crate::place::name_of(item) == Some(key));
            walked.push(key.clone());
            match (place, rest.is_empty(), to) {
                (Some(place), true, None) => drop(items.remove(place)),
                (Some(place), _, _) => set(&mut items[place], rest, walked, to),
                (None, _, Some(to)) => items.push(to.clone()),
                (None, _, None) => {}
            }
            return;
        }
        let map = value.as_object_mut().expect("an object");
        walked.push(key.clone());
        if rest.is_empty() {
            match to {
                Some(to) => drop(map.insert(key.clone(), to.clone())),
                None => drop(map.remove(key)),
            }
            return;
        }
        let empty = || if is_named_list(walked) { json!([]) } else { json!({}) };
        let below = map.entry(key.clone()).or_insert_with(empty);
        set(below, rest, walked, to);
    }

    /// Trees that look a little like configurations, and some that do not.
    pub(crate) fn trees() -> impl Strategy<Value = Value> {
        let word = prop_oneof![
            "[a-c~/]{0,3}",
            Just("name".to_owned()),
            Just("password".to_owned()),
            Just("password-hash".to_owned()),
            Just("peer".to_owned()),
            Just("account".to_owned()),
            Just("redis".to_owned()),
            Just("mysql://user:secret@host/db".to_owned()),
        ];
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            word.clone().prop_map(Value::from),
        ];
        let any = leaf.prop_recursive(4, 40, 5, move |inner| {
            let map = proptest::collection::btree_map(word.clone(), inner.clone(), 0..5);
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                map.prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        });
        let item = (prop_oneof![Just("a"), Just("b"), Just("c")], any.clone(), any.clone()).prop_map(
            |(name, password, other)| {
                json!({"name": name, "password": password, "password-hash": other, "rate": 1})
            },
        );
        let list = proptest::collection::vec(item, 0..4);
        (list.clone(), list.clone(), list, any).prop_map(|(peers, accounts, redis, other)| {
            json!({"peer": peers, "account": accounts, "redis": {"account": redis}, "other": other})
        })
    }

    proptest! {
        #[test]
        fn doing_what_is_different_gives_the_other(before in trees(), after in trees()) {
            let done = apply(&before, &diff(&before, &after));
            prop_assert_eq!(canonical(&done, &mut Vec::new()), canonical(&after, &mut Vec::new()));
        }

        #[test]
        fn nothing_is_different_from_itself(tree in trees()) {
            prop_assert_eq!(diff(&tree, &tree), vec![]);
        }

        #[test]
        fn no_patch_makes_trouble(tree in trees(), patch in trees()) {
            let _ = crate::merge(&tree, &patch);
        }
    }
}
