//! The trace of a message whose content was erased.

use model::{Step, StepKind, Timestamp};
use serde_json::{Value, json};
use std::sync::Arc;

/// A trace without the text that a screen replaced, and with a step for the erasure. `None` if it is not a trace.
pub(crate) fn trace_without_content(trace: &str, at: Timestamp, by: &Arc<str>) -> Option<String> {
    let mut trace: Value = serde_json::from_str(trace).ok()?;
    without_submitted_text(&mut trace);
    with_erasure_step(&mut trace, at, by)?;
    serde_json::to_string(&trace).ok()
}

/// Removes the text that a screen replaced. The trace still shows that there was one.
pub(crate) fn without_submitted_text(trace: &mut Value) {
    if let Some(octets) = trace.pointer_mut("/screening/submitted/octets") {
        *octets = json!("");
    }
}

/// Adds a step for the erasure. `None` if it is not a trace.
pub(crate) fn with_erasure_step(trace: &mut Value, at: Timestamp, by: &Arc<str>) -> Option<()> {
    let step: Step = Step { at, kind: StepKind::ContentErased { by: by.clone() } };
    trace.get_mut("steps")?.as_array_mut()?.push(serde_json::to_value(step).ok()?);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_keeps_all_but_the_submitted_text() {
        let trace = concat!(
            r#"{"submission":{"expires_at":17},"route":{"legs":[{"peer":"a"}]},"#,
            r#""screening":{"plugin":"p","version":"v","submitted":{"octets":"68656c6c6f","data_coding":8}},"#,
            r#""steps":[{"at":1,"step":"accepted"}]}"#,
        );
        let erased = trace_without_content(trace, Timestamp(7), &"ada".into()).unwrap();
        assert!(!erased.contains("68656c6c6f"), "{erased}");
        let decoded = crate::trace::decode_trace(&erased).unwrap();
        let submitted = decoded.screening.unwrap().submitted_text.unwrap();
        assert!(submitted.octets.is_empty() && submitted.data_coding == 8);
        assert_eq!(model::content_erased_at(&decoded.steps), Some(Timestamp(7)));
        assert_eq!(decoded.steps.len(), 2);
        assert_eq!(trace_without_content("no JSON", Timestamp(7), &"ada".into()), None);
    }
}
