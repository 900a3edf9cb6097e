//! Differences between two documents.

use crate::named_list::{is_named_list, items_by_name};
use crate::{ConfigChange, Key};
use serde_json::{Map, Value};

/// All differences, in the order of the keys. The order of named items is ignored; an empty named list or an empty
/// section equals a missing one.
#[must_use]
pub fn diff(keys: &[Key], before: &Value, after: &Value) -> Vec<ConfigChange> {
    let mut changes = Vec::new();
    compare(keys, Some(before), Some(after), &mut Vec::new(), &mut changes);
    changes
}

fn compare(
    keys: &[Key],
    before: Option<&Value>,
    after: Option<&Value>,
    path: &mut Vec<String>,
    changes: &mut Vec<ConfigChange>,
) {
    if before == after {
        return;
    }
    if is_named_list(keys, path)
        && let (Some(old), Some(new)) = (items_by_name(before), items_by_name(after))
    {
        compare_keys(keys, &old, &new, path, changes);
        return;
    }
    let nothing = Value::Object(Map::new());
    // A new section is reported key by key, because each key has its own effect.
    let section = |side: Option<&'_ Value>| path.len() == 1 && side.is_none();
    let old = if section(before) { Some(&nothing) } else { before };
    let new = if section(after) { Some(&nothing) } else { after };
    if let (Some(Value::Object(old)), Some(Value::Object(new))) = (old, new) {
        compare_keys(keys, old, new, path, changes);
        return;
    }
    changes.push(ConfigChange { path: path.clone(), before: before.cloned(), after: after.cloned() });
}

fn compare_keys(
    keys: &[Key],
    old: &serde_json::Map<String, Value>,
    new: &serde_json::Map<String, Value>,
    path: &mut Vec<String>,
    changes: &mut Vec<ConfigChange>,
) {
    let added = new.keys().filter(|key| !old.contains_key(*key));
    let mut names: Vec<&String> = old.keys().chain(added).collect();
    names.sort();
    for key in names {
        path.push(key.clone());
        compare(keys, old.get(key), new.get(key), path, changes);
        path.pop();
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::ChangeKind;
    use crate::key::tests::keys;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn named_items_are_compared_by_name() {
        let before = json!({"peer": [{"name": "a", "rate": 1}, {"name": "b"}], "x": 1});
        let after = json!({"peer": [{"name": "c"}, {"name": "a", "rate": 2}], "x": 1});
        let found: Vec<_> =
            diff(&keys(), &before, &after).iter().map(|change| (change.pointer(), change.kind())).collect();
        assert_eq!(
            found,
            [
                ("/peer/a/rate".to_owned(), ChangeKind::Changed),
                ("/peer/b".to_owned(), ChangeKind::Removed),
                ("/peer/c".to_owned(), ChangeKind::Added),
            ]
        );
    }

    #[test]
    fn a_new_named_list_is_reported_by_item_name() {
        let changes = diff(&keys(), &json!({}), &json!({"peer": [{"name": "a"}]}));
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].pointer(), "/peer/a");
    }

    /// Removes order where it has no meaning.
    fn canonical(value: &Value, path: &mut Vec<String>) -> Value {
        match value {
            Value::Object(map) => {
                let mut result = Map::new();
                for (key, value) in map {
                    path.push(key.clone());
                    let value = canonical(value, path);
                    let list = is_named_list(&keys(), path) && value.as_array().is_some_and(Vec::is_empty);
                    let section = path.len() == 1 && value.as_object().is_some_and(Map::is_empty);
                    if !list && !section {
                        result.insert(key.clone(), value);
                    }
                    path.pop();
                }
                Value::Object(result)
            }
            list @ Value::Array(_) if is_named_list(&keys(), path) => match items_by_name(Some(list)) {
                Some(items) => Value::Array(items.into_iter().map(|(_, item)| item).collect()),
                None => list.clone(),
            },
            other => other.clone(),
        }
    }

    /// Applies the differences to a document.
    fn apply(document: &Value, changes: &[ConfigChange]) -> Value {
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
        if is_named_list(&keys(), walked) && !value.is_object() {
            let items = value.as_array_mut().expect("a list");
            let index = items.iter().position(|item| crate::named_list::item_name(item) == Some(key));
            walked.push(key.clone());
            match (index, rest.is_empty(), to) {
                (Some(index), true, None) => drop(items.remove(index)),
                (Some(index), _, _) => set(&mut items[index], rest, walked, to),
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
        let empty = || if is_named_list(&keys(), walked) { json!([]) } else { json!({}) };
        let below = map.entry(key.clone()).or_insert_with(empty);
        set(below, rest, walked, to);
    }

    /// Random documents, some of which resemble configurations.
    pub(crate) fn trees() -> impl Strategy<Value = Value> {
        let scalar = prop_oneof![
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
            scalar.clone().prop_map(Value::from),
        ];
        let any = leaf.prop_recursive(4, 40, 5, move |inner| {
            let map = proptest::collection::btree_map(scalar.clone(), inner.clone(), 0..5);
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
        fn applying_a_diff_yields_the_other_document(before in trees(), after in trees()) {
            let result = apply(&before, &diff(&keys(), &before, &after));
            prop_assert_eq!(canonical(&result, &mut Vec::new()), canonical(&after, &mut Vec::new()));
        }

        #[test]
        fn a_document_has_no_diff_with_itself(tree in trees()) {
            prop_assert_eq!(diff(&keys(), &tree, &tree), vec![]);
        }

        #[test]
        fn merge_never_panics(tree in trees(), patch in trees()) {
            let _ = crate::merge(&keys(), &tree, &patch);
        }
    }
}
