//! Events: one, or many in batches.

use super::{Numbers, path};
use crate::output::{Failure, Output};
use crate::table::word;
use client::Appliance;
use serde_json::{Value, json};

/// Events that are sent in one piece: an even number, so that what belongs together stays together.
const BATCH: usize = 10_000;

/// One event. Of a call, number and ticket are printed; of others, number and state.
pub(super) fn one(appliance: &Appliance, output: &Output, pool: &str, event: &Value) -> Result<(), Failure> {
    let answer = appliance.post(&path(pool, "/events"), event)?;
    if output.json {
        return output.document(&answer);
    }
    let second = if event["event"] == "call" { "ticket" } else { "state" };
    output.line(&format!("{} {}", word(&answer["number"]), word(&answer[second])))
}

/// The same event for each number.
pub(super) fn each(
    appliance: &Appliance,
    output: &Output,
    event: &str,
    which: &Numbers,
) -> Result<(), Failure> {
    let numbers = which.numbers.iter();
    let events: Vec<Value> = numbers.map(|number| json!({ "event": event, "number": number })).collect();
    all(appliance, output, &which.pool, &events, 1)
}

/// Many events, `steps` of them for each number: the last of these is told, or the first that was refused.
pub(super) fn all(
    appliance: &Appliance,
    output: &Output,
    pool: &str,
    events: &[Value],
    steps: usize,
) -> Result<(), Failure> {
    let mut refused = 0_usize;
    for batch in events.chunks(BATCH) {
        let answer = appliance.post(&path(pool, "/events"), &Value::Array(batch.to_vec()))?;
        let Value::Array(results) = answer else {
            return Err(Failure::Broken(format!("the appliance's answer cannot be understood: {answer}")));
        };
        for results in results.chunks(steps) {
            let failed = results.iter().find(|result| result["result"] == "refused");
            refused += usize::from(failed.is_some());
            let Some(told) = failed.or_else(|| results.last()) else { continue };
            match (output.json, failed) {
                (true, _) => output.document(told)?,
                (false, Some(failed)) => output.remark(&format!(
                    "{}: {}: {}",
                    word(&failed["number"]),
                    word(&failed["reason"]),
                    word(&failed["detail"])
                )),
                (false, None) => {
                    output.line(&format!("{} {}", word(&told["number"]), word(&told["state"])))?;
                }
            }
        }
    }
    match refused {
        0 => Ok(()),
        refused => Err(Failure::InPart(format!("refused: {refused} of {}", events.len() / steps))),
    }
}
