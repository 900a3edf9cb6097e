//! The display of a trace: numbers whole or masked, texts only if they were requested.

use model::NumberDisplay;
use serde_json::Value;
use serde_json::value::RawValue;

/// The keys of a trace whose values are numbers or addresses of subscribers.
const NUMBER_KEYS: [&str; 7] = ["source", "destination", "imsi", "number", "given", "holder", "user"];

/// The keys of a trace whose values are octets of the submission, which may contain numbers, such as callback_num.
const OCTETS_KEYS: [&str; 2] = ["tlvs", "protocol_fields"];

/// The trace with numbers in this form, and without a submitted text unless `body` is set. `None` if it is not JSON.
pub(crate) fn redact_trace(trace: &RawValue, numbers: NumberDisplay, body: bool) -> Option<Box<RawValue>> {
    if numbers == NumberDisplay::Whole && body {
        return Some(trace.to_owned());
    }
    let mut value: Value = serde_json::from_str(trace.get()).ok()?;
    if !body && let Some(screening) = value.get_mut("screening").and_then(Value::as_object_mut) {
        screening.remove("submitted");
    }
    if numbers == NumberDisplay::Masked {
        mask_numbers(&mut value);
    }
    serde_json::value::to_raw_value(&value).ok()
}

fn mask_numbers(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !OCTETS_KEYS.contains(&key.as_str()));
            for (key, value) in fields {
                match value {
                    Value::String(number) if NUMBER_KEYS.contains(&key.as_str()) => {
                        *number = NumberDisplay::Masked.text(std::mem::take(number));
                    }
                    value => mask_numbers(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(mask_numbers),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = concat!(
        r#"{"submission":{"tlvs":"0381000a","expires_at":17},"#,
        r#""route":{"legs":[{"peer":"north","destination":"491701234567","imsi":"262011234567890"}]},"#,
        r#""screening":{"plugin":"p","version":"1","submitted":{"octets":"68656c6c6f"}},"#,
        r#""steps":[{"at":7,"step":"sender_taken","pool":"p","number":"493012345678"}]}"#,
    );

    fn redacted(numbers: NumberDisplay, body: bool) -> String {
        let trace = RawValue::from_string(TRACE.to_owned()).unwrap();
        redact_trace(&trace, numbers, body).unwrap().get().to_owned()
    }

    #[test]
    fn numbers_in_traces_are_whole_or_masked() {
        let whole = redacted(NumberDisplay::Whole, true);
        assert_eq!(whole, TRACE);
        let masked = redacted(NumberDisplay::Masked, false);
        for hidden in ["491701234567", "262011234567890", "493012345678", "0381000a", "68656c6c6f"] {
            assert!(whole.contains(hidden) && !masked.contains(hidden), "{hidden}: {masked}");
        }
        assert!(masked.contains("4917******67") && masked.contains("2620*********90"), "{masked}");
        assert!(crate::trace::decode_trace(&masked).is_some());
    }

    #[test]
    fn a_submitted_text_is_shown_on_request_only() {
        let without = redacted(NumberDisplay::Whole, false);
        assert!(!without.contains("68656c6c6f") && without.contains("491701234567"), "{without}");
    }
}
