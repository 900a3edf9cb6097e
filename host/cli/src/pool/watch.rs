//! Follows the event stream of a pool.

use super::{path, render};
use crate::output::{Failure, Output};
use api::{PoolEntryView, PoolGapView};
use client::ApiClient;
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader};

pub(super) fn watch(
    api: &ApiClient,
    output: &Output,
    pool: &str,
    from: Option<u64>,
    count: Option<u64>,
) -> Result<(), Failure> {
    let query = from.map(|from| format!("?from={from}")).unwrap_or_default();
    let stream = api.open(&path(pool, &format!("/watch{query}")), &[("accept", "text/event-stream")])?;
    let mut next = from;
    let mut left = count;
    let (mut kind, mut data) = (String::new(), String::new());
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        match line.split_once(':') {
            // A comment line of the event stream.
            Some(("", _)) => {}
            Some(("event", value)) => value.trim_start().clone_into(&mut kind),
            Some(("data", value)) => data.push_str(value.trim_start()),
            Some(_) => {}
            None if line.is_empty() => {
                let data = std::mem::take(&mut data);
                match std::mem::take(&mut kind).as_str() {
                    "removed" => return Err(Failure::PartlyRefused("the pool was removed".to_owned())),
                    "forgotten" => {
                        let PoolGapView { from, to } = parse(&data)?;
                        output.remark(&format!("entries {from} to {to} are no longer stored"));
                    }
                    _ if data.is_empty() => {}
                    _ => {
                        let entry: PoolEntryView = parse(&data)?;
                        render::entry(output, &entry)?;
                        next = Some(entry.id + 1);
                        left = left.map(|left| left.saturating_sub(1));
                        if left == Some(0) {
                            return Ok(());
                        }
                    }
                }
            }
            None => {}
        }
    }
    let on = next.map(|next| format!("; continue with --from {next}")).unwrap_or_default();
    Err(Failure::Interrupted(format!("the appliance closed the stream{on}")))
}

/// Parses the data of an event.
fn parse<T: DeserializeOwned>(data: &str) -> Result<T, Failure> {
    let invalid = |error| Failure::Interrupted(format!("the event of the appliance is not valid: {error}"));
    serde_json::from_str(data).map_err(invalid)
}
