//! JSON merge patches (RFC 7396) in which items of named lists are addressed by name.

use crate::Key;
use crate::named_list::{is_named_list, item_name};
use serde_json::{Map, Value};

/// Applies a merge patch. Objects are merged, `null` removes a key, any other value replaces the old one. A named list
/// ([`Key::named`]) can be patched with an object whose keys are item names and whose values are patches of
/// those items; `null` removes an item.
#[must_use]
pub fn merge(keys: &[Key], document: &Value, patch: &Value) -> Value {
    merge_value(keys, Some(document), patch, &mut Vec::new())
}

fn merge_value(keys: &[Key], target: Option<&Value>, patch: &Value, path: &mut Vec<String>) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    if is_named_list(keys, path) && !target.is_some_and(Value::is_object) {
        return merge_list(keys, target, patch, path);
    }
    let mut result = target.and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, value) in patch {
        if value.is_null() {
            result.remove(key);
            continue;
        }
        path.push(key.clone());
        let value = merge_value(keys, result.get(key), value, path);
        path.pop();
        result.insert(key.clone(), value);
    }
    Value::Object(result)
}

fn merge_list(
    keys: &[Key],
    target: Option<&Value>,
    patch: &Map<String, Value>,
    path: &mut Vec<String>,
) -> Value {
    let mut items = target.and_then(Value::as_array).cloned().unwrap_or_default();
    for (name, value) in patch {
        let index = items.iter().position(|item| item_name(item) == Some(name));
        if value.is_null() {
            if let Some(index) = index {
                items.remove(index);
            }
            continue;
        }
        path.push(name.clone());
        let fresh = Value::Object(Map::from_iter([("name".to_owned(), Value::String(name.clone()))]));
        let before = index.and_then(|index| items.get(index)).unwrap_or(&fresh);
        let after = merge_value(keys, Some(before), value, path);
        path.pop();
        match index {
            Some(index) => items[index] = after,
            None => items.push(after),
        }
    }
    Value::Array(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::tests::keys;
    use serde_json::json;

    #[test]
    fn merges_the_examples_of_rfc_7396() {
        for (target, patch, expected) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ] {
            assert_eq!(merge(&keys(), &target, &patch), expected, "{target} {patch}");
        }
    }

    #[test]
    fn named_items_are_patched_by_name() {
        let document = json!({"peer": [{"name": "a", "rate": 1}, {"name": "b", "rate": 2}]});
        let patch = json!({"peer": {"a": {"rate": null, "links": 3}, "b": null, "c": {"rate": 4}}});
        let expected = json!({"peer": [{"name": "a", "links": 3}, {"name": "c", "rate": 4}]});
        assert_eq!(merge(&keys(), &document, &patch), expected);
        // Also if the list does not exist yet, and two levels down.
        let patch = json!({"account": {"x": {"rate": 1}}, "redis": {"account": {"y": {}}}});
        let expected = json!({"account": [{"name": "x", "rate": 1}], "redis": {"account": [{"name": "y"}]}});
        assert_eq!(merge(&keys(), &json!({}), &patch), expected);
    }
}
