//! Merge patches (RFC 7396), with lists of named things taken by name.

use crate::place::{is_named_list, name_of};
use serde_json::{Map, Value};

/// Applies a patch to a document: objects are merged, `null` removes a key, everything else takes the place of what was
/// there. A list of named things ([`crate::NAMED_LISTS`]) may be patched by an object keyed by name, of which each value is a
/// patch of the item of that name, `null` to remove it.
#[must_use]
pub fn merge(document: &Value, patch: &Value) -> Value {
    merged(Some(document), patch, &mut Vec::new())
}

fn merged(target: Option<&Value>, patch: &Value, path: &mut Vec<String>) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    if is_named_list(path) && !target.is_some_and(Value::is_object) {
        return merged_list(target, patch, path);
    }
    let mut result = target.and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, value) in patch {
        if value.is_null() {
            result.remove(key);
            continue;
        }
        path.push(key.clone());
        let value = merged(result.get(key), value, path);
        path.pop();
        result.insert(key.clone(), value);
    }
    Value::Object(result)
}

fn merged_list(target: Option<&Value>, patch: &Map<String, Value>, path: &mut Vec<String>) -> Value {
    let mut items = target.and_then(Value::as_array).cloned().unwrap_or_default();
    for (name, value) in patch {
        let place = items.iter().position(|item| name_of(item) == Some(name));
        if value.is_null() {
            if let Some(place) = place {
                items.remove(place);
            }
            continue;
        }
        path.push(name.clone());
        let fresh = Value::Object(Map::from_iter([("name".to_owned(), Value::String(name.clone()))]));
        let before = place.and_then(|place| items.get(place)).unwrap_or(&fresh);
        let after = merged(Some(before), value, path);
        path.pop();
        match place {
            Some(place) => items[place] = after,
            None => items.push(after),
        }
    }
    Value::Array(items)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_examples_of_rfc_7396_hold() {
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
            assert_eq!(merge(&target, &patch), expected, "{target} {patch}");
        }
    }

    #[test]
    fn named_things_are_patched_by_name() {
        let document = json!({"peer": [{"name": "a", "rate": 1}, {"name": "b", "rate": 2}]});
        let patch = json!({"peer": {"a": {"rate": null, "links": 3}, "b": null, "c": {"rate": 4}}});
        let expected = json!({"peer": [{"name": "a", "links": 3}, {"name": "c", "rate": 4}]});
        assert_eq!(merge(&document, &patch), expected);
        // Also where there is no list yet, and two steps down.
        let patch = json!({"account": {"x": {"rate": 1}}, "redis": {"account": {"y": {}}}});
        let expected = json!({"account": [{"name": "x", "rate": 1}], "redis": {"account": [{"name": "y"}]}});
        assert_eq!(merge(&json!({}), &patch), expected);
    }
}
