//! Events: one, or many in batches.

use super::{Numbers, path};
use crate::output::{Failure, Output};
use crate::table::word;
use client::{Appliance, ClientError};
use serde_json::{Value, json};

/// Events that are sent in one piece: an even number, so that what belongs together stays together.
const BATCH: usize = 10_000;

/// One event. Of a call, number and ticket are printed; of others, number and state.
pub(super) fn one(appliance: &Appliance, output: &Output, pool: &str, event: &Value) -> Result<(), Failure> {
    let answer = appliance.post(&path(pool, "/events"), event).map_err(|error| {
        // A pool that nobody has made has no numbers, and nothing else is said of it: its name may be wrong.
        let none = matches!(&error, ClientError::Refused { problem, .. } if problem["reason"] == "empty" || problem["reason"] == "not-in-pool");
        let missing = none.then(|| appliance.get(&path(pool, "")).err()).flatten();
        missing.filter(|missing| matches!(missing, ClientError::Refused { status: 404, .. })).unwrap_or(error)
    })?;
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

#[cfg(test)]
mod tests {
    use crate::stub::{Stub, run};
    use serde_json::json;

    #[test]
    fn a_call_of_a_pool_that_is_not_there_says_so() {
        let empty = json!({ "status": 409, "reason": "empty", "title": "conflict", "detail": "the pool has no numbers" });
        let missing = json!({ "status": 404, "reason": "no-pool", "title": "not found", "detail": "there is no pool slaes" });
        let pool = json!({ "pool": "sales" });
        let url = Stub::default()
            .with("POST /v1/pools/slaes/events", 409, &empty)
            .with("GET /v1/pools/slaes", 404, &missing)
            .with("POST /v1/pools/sales/events", 409, &empty)
            .with("GET /v1/pools/sales", 200, &pool)
            .start();
        let told = run(&url, &["pool", "call", "slaes"]);
        assert!(told.code == 1 && told.error.contains("there is no pool slaes"), "{}", told.error);
        let told = run(&url, &["pool", "call", "sales"]);
        assert!(told.code == 1 && told.error.contains("has no numbers"), "{}", told.error);
    }
}
