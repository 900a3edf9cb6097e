//! Sends pool events, one or many in batches.

use super::{NumberArgs, path};
use crate::format::value_text;
use crate::output::{Failure, Output};
use api::{PoolEventOutcome, PoolEventRequest, PoolEventResult, PoolView, Problem};
use client::{ApiClient, ClientError};

/// The number of events of one request: even, so that both events of a number stay together.
const BATCH: usize = 10_000;

/// Sends one event; prints number and ticket of a call, number and state of other events.
pub(super) fn send_event(
    api: &ApiClient,
    output: &Output,
    pool: &str,
    event: &PoolEventRequest,
) -> Result<(), Failure> {
    let sent = api.call::<PoolEventResult>("POST", &path(pool, "/events"), event);
    let result = sent.map_err(|error| {
        // The API reports a missing pool as one without numbers: check whether the pool exists.
        let none = matches!(&error, ClientError::Refused(problem) if matches!(problem.reason_code(), Some("empty" | "not-in-pool")));
        let missing = none.then(|| api.read::<PoolView>(&path(pool, "")).err()).flatten();
        missing.filter(|missing| matches!(missing, ClientError::Refused(Problem { status: 404, .. }))).unwrap_or(error)
    })?;
    if output.json {
        return output.document(&result);
    }
    let second = match event {
        PoolEventRequest::Call { .. } => value_text(&result.ticket),
        _ => value_text(&result.state),
    };
    output.line(&format!("{} {second}", value_text(&result.number)))
}

/// Sends the same event for each number.
pub(super) fn send_for_each(
    api: &ApiClient,
    output: &Output,
    which: NumberArgs,
    event: impl Fn(String) -> PoolEventRequest,
) -> Result<(), Failure> {
    let events: Vec<_> = which.numbers.into_iter().map(event).collect();
    send_batch(api, output, &which.pool, &events, 1)
}

/// Sends many events, `steps` for each number; prints the last result of each number, or the first refusal.
pub(super) fn send_batch(
    api: &ApiClient,
    output: &Output,
    pool: &str,
    events: &[PoolEventRequest],
    steps: usize,
) -> Result<(), Failure> {
    let mut refused = 0_usize;
    for batch in events.chunks(BATCH) {
        let results: Vec<PoolEventResult> = api.call("POST", &path(pool, "/events"), &batch)?;
        for results in results.chunks(steps) {
            let failed = results.iter().find(|result| result.result == PoolEventOutcome::Refused);
            refused += usize::from(failed.is_some());
            let Some(result) = failed.or_else(|| results.last()) else { continue };
            let number = value_text(&result.number);
            match (output.json, failed) {
                (true, _) => output.document(result)?,
                (false, Some(failed)) => output.remark(&format!(
                    "{number}: {}: {}",
                    value_text(&failed.reason),
                    value_text(&failed.detail)
                )),
                (false, None) => output.line(&format!("{number} {}", value_text(&result.state)))?,
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
    use admin::{Problem, ProblemKind};
    use api::{PoolCountsView, PoolSettingsView, PoolView, ProblemReason};
    use model::Strategy;

    #[test]
    fn a_call_of_a_missing_pool_is_reported() {
        let empty = Problem::new(ProblemKind::Conflict, "the pool has no numbers");
        let empty = empty.with_reason(ProblemReason::of("empty"));
        let missing = Problem::new(ProblemKind::NotFound, "there is no pool slaes");
        let missing = missing.with_reason(ProblemReason::of("no-pool"));
        let pool = PoolView {
            name: "sales".to_owned(),
            settings: PoolSettingsView { strategy: Strategy::LongestIdle, quarantine_ms: 0 },
            numbers: PoolCountsView { idle_up: 0, idle_down: 0, busy_up: 0, busy_down: 0, total: 0 },
            ready: 0,
            next_ms: None,
            entries: 0,
            acquired: 0,
            none: 1,
            lapsed: 0,
        };
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
