//! Follows the event stream of a pool.

use super::{path, render};
use crate::format::value_text;
use crate::output::{Failure, Output};
use client::ApiClient;
use serde_json::Value;
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
                let event: Value = serde_json::from_str(&std::mem::take(&mut data)).unwrap_or_default();
                match std::mem::take(&mut kind).as_str() {
                    "removed" => return Err(Failure::PartlyRefused("the pool was removed".to_owned())),
                    "forgotten" => output.remark(&format!(
                        "entries {} to {} are no longer stored",
                        value_text(&event["from"]),
                        value_text(&event["to"])
                    )),
                    _ if event.is_object() => {
                        render::entry(output, &event)?;
                        next = event["id"].as_u64().map(|id| id + 1);
                        left = left.map(|left| left.saturating_sub(1));
                        if left == Some(0) {
                            return Ok(());
                        }
                    }
                    _ => {}
                }
            }
            None => {}
        }
    }
    let on = next.map(|next| format!("; continue with --from {next}")).unwrap_or_default();
    Err(Failure::Interrupted(format!("the appliance closed the stream{on}")))
}
