//! Renames keys in stored versions that an older daemon wrote.
//!
//! Only stored versions are upgraded. Files and documents sent to the API must use the current keys. A file is upgraded
//! only to compare it with the stored versions: a file that has not changed since must not replace them.

use serde_json::Value;

/// Renamed keys: path of the table, old name, new name. `*` matches every item of a list.
const RENAMED_KEYS: &[(&[&str], &str, &str)] = &[
    (&["account", "*"], "reports", "dlrs"),
    (&["account", "*", "business"], "parts", "max-segments"),
    (&["account", "*", "sgip"], "connections-in", "inbound-connections"),
    (&["account", "*", "sgip"], "its-name", "inbound-login-name"),
    (&["account", "*", "sgip"], "longest-command", "max-command-length"),
    (&["account", "*", "sgip"], "window-in", "inbound-window"),
    (&["appliance"], "drain", "shutdown-timeout"),
    (&["archive"], "keep", "retention"),
    (&["biller", "grants"], "http-answer", "http-response-limit"),
    (&["business"], "patience", "submit-timeout"),
    (&["delivery-policy", "grants"], "http-answer", "http-response-limit"),
    (&["engine"], "key-retention", "idempotency-retention"),
    (&["engine"], "receipt-parking", "orphan-dlr-retention"),
    (&["gateway", "*"], "connections-in", "inbound-connections"),
    (&["gateway", "*"], "its-name", "inbound-login-name"),
    (&["gateway", "*"], "its-password", "inbound-login-password"),
    (&["gateway", "*"], "its-password-file", "inbound-login-password-file"),
    (&["gateway", "*"], "longest-command", "max-command-length"),
    (&["gateway", "*"], "receipt-limit", "dlr-timeout"),
    (&["gateway", "*"], "receipts", "dlrs"),
    (&["gateway", "*"], "uncertain-limit", "uncertain-timeout"),
    (&["gsm", "*"], "guard", "response-timeout"),
    (&["gsm", "*"], "receipt-limit", "dlr-timeout"),
    (&["gsm", "*"], "receipts", "dlrs"),
    (&["gsm", "*"], "repetition", "repetition-window"),
    (&["gsm", "*"], "uncertain-limit", "uncertain-timeout"),
    (&["peer", "*"], "receipt-limit", "dlr-timeout"),
    (&["peer", "*"], "receipts", "dlrs"),
    (&["peer", "*"], "uncertain-limit", "uncertain-timeout"),
    (&["pools"], "most-numbers", "max-numbers"),
    (&["redis"], "unsent", "output-buffer"),
    (&["redis", "account", "*"], "rights", "permissions"),
    (&["resolver", "grants"], "http-answer", "http-response-limit"),
    (&["router"], "native", "static-peer"),
    (&["router", "grants"], "http-answer", "http-response-limit"),
    (&["shell"], "parts", "max-segments"),
    (&["shell"], "patience", "submit-timeout"),
];

/// Renamed values: path of the key (by its new name), old value, new value.
const RENAMED_VALUES: &[(&[&str], &str, &str)] = &[
    (&["account", "*", "dlrs"], "per-part", "per-segment"),
    (&["gateway", "*", "uncertain"], "await-receipt", "await-dlr"),
    (&["gsm", "*", "uncertain"], "await-receipt", "await-dlr"),
    (&["peer", "*", "uncertain"], "ask", "query"),
    (&["peer", "*", "uncertain"], "await-receipt", "await-dlr"),
    (&["redis", "account", "*", "permissions", "*"], "call", "lease"),
];

/// Renames the keys and values of a stored document. Current keys are not changed. Idempotent.
pub fn upgrade_keys(document: &mut Value) {
    for (path, old, new) in RENAMED_KEYS {
        for_each_at(document, path, &mut |table| {
            if let Some(table) = table.as_object_mut()
                && !table.contains_key(*new)
                && let Some(value) = table.remove(*old)
            {
                table.insert((*new).to_owned(), value);
            }
        });
    }
    for (path, old, new) in RENAMED_VALUES {
        for_each_at(document, path, &mut |value| {
            if value.as_str() == Some(old) {
                *value = Value::from(*new);
            }
        });
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
    use serde_json::json;

    #[test]
    fn old_keys_and_values_are_renamed() {
        let mut document = json!({
            "appliance": {"drain": "5s"},
            "peer": [{"name": "a", "receipts": true, "uncertain": "ask"}, {"name": "b", "dlrs": false}],
            "account": [{"name": "c", "reports": "per-part", "sgip": {"its-name": "sp"}}],
            "redis": {"account": [{"name": "d", "rights": ["read", "call"]}]},
        });
        upgrade_keys(&mut document);
        let expected = json!({
            "appliance": {"shutdown-timeout": "5s"},
            "peer": [{"name": "a", "dlrs": true, "uncertain": "query"}, {"name": "b", "dlrs": false}],
            "account": [{"name": "c", "dlrs": "per-segment", "sgip": {"inbound-login-name": "sp"}}],
            "redis": {"account": [{"name": "d", "permissions": ["read", "lease"]}]},
        });
        assert_eq!(document, expected);
        upgrade_keys(&mut document);
        assert_eq!(document, expected);
    }

    /// All schemas of a path, alternatives included.
    fn schemas_at<'a>(root: &'a Value, schema: &'a Value, path: &[&str]) -> Vec<&'a Value> {
        if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/")) {
            return schemas_at(root, &root["$defs"][name], path);
        }
        let choices = ["anyOf", "oneOf"].into_iter().filter_map(move |key| schema[key].as_array()).flatten();
        let mut found: Vec<&Value> = choices.flat_map(|choice| schemas_at(root, choice, path)).collect();
        match path.split_first() {
            None => found.push(schema),
            Some((&"*", rest)) if schema["items"].is_object() => {
                found.extend(schemas_at(root, &schema["items"], rest));
            }
            Some((&key, rest)) if schema["properties"][key].is_object() => {
                found.extend(schemas_at(root, &schema["properties"][key], rest));
            }
            Some(_) => {}
        }
        found
    }

    #[test]
    fn new_keys_and_values_are_in_the_schema_and_old_ones_are_not() {
        let root = crate::schema();
        for (path, old, new) in RENAMED_KEYS {
            let has = |key: &str| {
                schemas_at(&root, &root, path).iter().any(|table| table["properties"].get(key).is_some())
            };
            assert!(has(new), "{path:?}: {new}");
            assert!(!has(old), "{path:?}: {old}");
        }
        for (path, old, new) in RENAMED_VALUES {
            let has = |value: &str| {
                schemas_at(&root, &root, path).iter().any(|schema| {
                    schema["const"] == value
                        || schema["enum"]
                            .as_array()
                            .is_some_and(|values| values.iter().any(|one| *one == value))
                })
            };
            assert!(has(new), "{path:?}: {new}");
            assert!(!has(old), "{path:?}: {old}");
        }
    }

    #[test]
    fn every_renamed_key_and_value_is_upgraded() {
        /// A document with one value at a path.
        fn nest(path: &[&str], value: Value) -> Value {
            match path.split_first() {
                None => value,
                Some((&"*", rest)) => json!([nest(rest, value)]),
                Some((key, rest)) => json!({ *key: nest(rest, value) }),
            }
        }
        for (path, old, new) in RENAMED_KEYS {
            let mut document = nest(path, json!({ *old: 1 }));
            upgrade_keys(&mut document);
            assert_eq!(document, nest(path, json!({ *new: 1 })), "{path:?}: {old}");
        }
        for (path, old, new) in RENAMED_VALUES {
            let mut document = nest(path, json!(old));
            upgrade_keys(&mut document);
            assert_eq!(document, nest(path, json!(new)), "{path:?}: {old}");
        }
    }

    #[test]
    fn malformed_documents_stay_as_they_are() {
        for document in [json!(null), json!([1]), json!({"peer": {"receipts": 1}, "router": 7})] {
            let mut upgraded = document.clone();
            upgrade_keys(&mut upgraded);
            assert_eq!(upgraded, document);
        }
    }
}
