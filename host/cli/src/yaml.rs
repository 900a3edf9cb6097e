//! JSON values as YAML, in block style. All texts are quoted, so that no text is read as a number or a keyword.

use client::terminal;
use serde_json::Value;

/// A value as a YAML document.
pub(crate) fn yaml(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, 0, &mut text);
    text
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => false,
    }
}

/// Writes a value whose first line is indented already.
fn write_value(value: &Value, depth: usize, text: &mut String) {
    match value {
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push_str(&"  ".repeat(depth));
                }
                text.push_str("- ");
                write_value(item, depth + 1, text);
            }
        }
        Value::Object(fields) if !fields.is_empty() => {
            for (at, (name, field)) in fields.iter().enumerate() {
                if at > 0 {
                    text.push_str(&"  ".repeat(depth));
                }
                text.push_str(&terminal::json(name));
                text.push(':');
                if is_block(field) {
                    text.push('\n');
                    text.push_str(&"  ".repeat(depth + 1));
                    write_value(field, depth + 1, text);
                } else {
                    text.push(' ');
                    write_value(field, depth + 1, text);
                }
            }
        }
        // A JSON text is a double-quoted text of YAML.
        other => {
            text.push_str(&terminal::json(other));
            text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_blocks_with_quoted_texts() {
        let value =
            json!({"a": [1, {"b": "no", "c": []}, [true]], "d": {}, "e": {"f": "x\ny: #"}, "g": null});
        let expected = "\"a\":\n  - 1\n  - \"b\": \"no\"\n    \"c\": []\n  - - true\n\"d\": {}\n\"e\":\n  \"f\": \"x\\ny: #\"\n\"g\": null\n";
        assert_eq!(yaml(&value), expected);
        assert_eq!((yaml(&json!([])), yaml(&json!("a"))), ("[]\n".into(), "\"a\"\n".into()));
    }
}
