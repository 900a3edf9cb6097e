//! Sends pool events, one or many in batches.

use super::{NumberArgs, path};
use crate::format::value_text;
use crate::output::{Failure, Output};
use client::{ApiClient, ClientError};
use serde_json::{Value, json};

/// The number of events of one request: even, so that both events of a number stay together.
const BATCH: usize = 10_000;

/// Sends one event; prints number and ticket of a call, number and state of other events.
pub(super) fn send_event(api: &ApiClient, output: &Output, pool: &str, event: &Value) -> Result<(), Failure> {
    let answer = api.post(&path(pool, "/events"), event).map_err(|error| {
        // The API reports a missing pool as one without numbers: check whether the pool exists.
        let none = matches!(&error, ClientError::Refused { problem, .. } if problem["reason"] == "empty" || problem["reason"] == "not-in-pool");
        let missing = none.then(|| api.get(&path(pool, "")).err()).flatten();
        missing.filter(|missing| matches!(missing, ClientError::Refused { status: 404, .. })).unwrap_or(error)
    })?;
    if output.json {
        return output.document(&answer);
    }
    let second = if event["event"] == "call" { "ticket" } else { "state" };
    output.line(&format!("{} {}", value_text(&answer["number"]), value_text(&answer[second])))
}

/// Sends the same event for each number.
pub(super) fn send_for_each(
    api: &ApiClient,
    output: &Output,
    event: &str,
    which: &NumberArgs,
) -> Result<(), Failure> {
    let numbers = which.numbers.iter();
    let events: Vec<Value> = numbers.map(|number| json!({ "event": event, "number": number })).collect();
    send_batch(api, output, &which.pool, &events, 1)
}

/// Sends many events, `steps` for each number; prints the last result of each number, or the first refusal.
pub(super) fn send_batch(
    api: &ApiClient,
    output: &Output,
    pool: &str,
    events: &[Value],
    steps: usize,
) -> Result<(), Failure> {
    let mut refused = 0_usize;
    for batch in events.chunks(BATCH) {
        let answer = api.post(&path(pool, "/events"), &Value::Array(batch.to_vec()))?;
        let Value::Array(results) = answer else {
            return Err(Failure::Interrupted(format!("the answer of the appliance is not valid: {answer}")));
        };
        for results in results.chunks(steps) {
            let failed = results.iter().find(|result| result["result"] == "refused");
            refused += usize::from(failed.is_some());
            let Some(result) = failed.or_else(|| results.last()) else { continue };
            match (output.json, failed) {
                (true, _) => output.document(result)?,
                (false, Some(failed)) => output.remark(&format!(
                    "{}: {}: {}",
                    value_text(&failed["number"]),
                    value_text(&failed["reason"]),
                    value_text(&failed["detail"])
                )),
                (false, None) => {
                    output.line(&format!(
                        "{} {}",
                        value_text(&result["number"]),
                        value_text(&result["state"])
                    ))?;
                }
            }
        }
    }
    match refused {
        0 => Ok(()),
        refused => Err(Failure::PartlyRefused(format!("refused: {refused} of {}", events.len() / steps))),
    }
}

#[cfg(test)]
mod tests {
    use crate::fake_api::{FakeApi, run};
    use admin::{Problem, ProblemKind, ProblemReason};
    use serde_json::json;

    #[test]
    fn a_call_of_a_missing_pool_is_reported() {
        let empty = Problem::new(ProblemKind::Conflict, "the pool has no numbers");
        let empty = empty.with_reason(ProblemReason::of("empty"));
        let missing = Problem::new(ProblemKind::NotFound, "there is no pool slaes");
        let missing = missing.with_reason(ProblemReason::of("no-pool"));
        let pool = json!({
            "name": "sales", "settings": { "strategy": "longest-idle", "quarantine-ms": 0 },
            "numbers": { "idle+up": 0, "idle+down": 0, "busy+up": 0, "busy+down": 0, "total": 0 },
            "ready": 0, "next-ms": null, "entries": 0, "acquired": 0, "none": 1, "lapsed": 0,
        });
        let url = FakeApi::default()
            .refusing("POST /v1/pools/slaes/events", &empty)
            .refusing("GET /v1/pools/slaes", &missing)
            .refusing("POST /v1/pools/sales/events", &empty)
            .with("GET /v1/pools/sales", 200, &pool)
            .start();
        let result = run(&url, &["pool", "call", "slaes"]);
        assert!(result.code == 1 && result.error.contains("there is no pool slaes"), "{}", result.error);
        let result = run(&url, &["pool", "call", "sales"]);
        assert!(result.code == 1 && result.error.contains("has no numbers"), "{}", result.error);
    }
}
