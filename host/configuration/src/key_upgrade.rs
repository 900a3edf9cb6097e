//! Renames keys in stored versions that an older daemon wrote.
//!
//! Only stored versions are upgraded. Files and documents sent to the API must use the current keys. A file is upgraded
//! only to compare it with the stored versions: a file that has not changed since must not replace them.

use crate::Key;
use serde_json::Value;

/// Renamed values: path of the key (by its new name), old value, new value.
pub const RENAMED_VALUES: &[(&[&str], &str, &str)] = &[
    (&["account", "*", "dlrs"], "per-part", "per-segment"),
    (&["gateway", "*", "uncertain"], "await-receipt", "await-dlr"),
    (&["gsm", "*", "uncertain"], "await-receipt", "await-dlr"),
    (&["peer", "*", "uncertain"], "ask", "query"),
    (&["peer", "*", "uncertain"], "await-receipt", "await-dlr"),
    (&["redis", "account", "*", "permissions", "*"], "call", "lease"),
];

/// Renames the keys and values of a stored document. Current keys are not changed. Idempotent.
pub fn upgrade_keys(keys: &[Key], document: &mut Value) {
    rename(keys, document);
    for (path, old, new) in RENAMED_VALUES {
        for_each_at(document, path, &mut |value| {
            if value.as_str() == Some(old) {
                *value = Value::from(*new);
            }
        });
    }
}

/// Renames the keys of a table and of the tables in it.
fn rename(keys: &[Key], table: &mut Value) {
    let Some(table) = table.as_object_mut() else { return };
    for key in keys {
        if let Some(old) = key.was
            && !table.contains_key(key.name)
            && let Some(value) = table.remove(old)
        {
            table.insert(key.name.to_owned(), value);
        }
        match (key.shape.keys(), table.get_mut(key.name)) {
            (Some(keys), Some(Value::Array(items))) => items.iter_mut().for_each(|item| rename(keys, item)),
            (Some(keys), Some(below)) => rename(keys, below),
            _ => {}
        }
    }
}

fn for_each_at(value: &mut Value, path: &[&str], change: &mut dyn FnMut(&mut Value)) {
    match path.split_first() {
        None => change(value),
        Some((&"*", rest)) => {
            for item in value.as_array_mut().into_iter().flatten() {
                for_each_at(item, rest, change);
            }
        }
        Some((key, rest)) => {
            if let Some(below) = value.get_mut(*key) {
                for_each_at(below, rest, change);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests::keys;
    use serde_json::json;

    #[test]
    fn old_keys_and_values_are_renamed() {
        let mut document = json!({
            "peer": [{"name": "a", "size": 7, "uncertain": "ask"}, {"name": "b", "window": 5, "size": 6}],
            "account": [{"name": "c", "dlrs": "per-part"}],
            "redis": {"account": [{"name": "d", "permissions": ["read", "call"]}]},
        });
        upgrade_keys(&keys(), &mut document);
        let expected = json!({
            "peer": [{"name": "a", "window": 7, "uncertain": "query"}, {"name": "b", "window": 5, "size": 6}],
            "account": [{"name": "c", "dlrs": "per-segment"}],
            "redis": {"account": [{"name": "d", "permissions": ["read", "lease"]}]},
        });
        assert_eq!(document, expected);
        upgrade_keys(&keys(), &mut document);
        assert_eq!(document, expected);
    }

    #[test]
    fn every_renamed_value_is_upgraded() {
        /// A document with one value at a path.
        fn nest(path: &[&str], value: Value) -> Value {
            match path.split_first() {
                None => value,
                Some((&"*", rest)) => json!([nest(rest, value)]),
                Some((key, rest)) => json!({ *key: nest(rest, value) }),
            }
        }
        for (path, old, new) in RENAMED_VALUES {
            let mut document = nest(path, json!(old));
            upgrade_keys(&[], &mut document);
            assert_eq!(document, nest(path, json!(new)), "{path:?}: {old}");
        }
    }

    #[test]
    fn malformed_documents_stay_as_they_are() {
        for document in [json!(null), json!([1]), json!({"peer": {"receipts": 1}, "router": 7})] {
            let mut upgraded = document.clone();
            upgrade_keys(&keys(), &mut upgraded);
            assert_eq!(upgraded, document);
        }
    }
}
