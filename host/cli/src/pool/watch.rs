//! The stream of a pool's events.

use super::{path, shown};
use crate::output::{Failure, Output};
use crate::table::word;
use client::Appliance;
use serde_json::Value;
use std::io::{BufRead, BufReader};

pub(super) fn watch(
    appliance: &Appliance,
    output: &Output,
    pool: &str,
    from: Option<u64>,
    count: Option<u64>,
) -> Result<(), Failure> {
    let query = from.map(|from| format!("?from={from}")).unwrap_or_default();
    let stream =
        appliance.open(&path(pool, &format!("/watch{query}")), &[("accept", "text/event-stream")])?;
    let mut next = from;
    let mut left = count;
    let (mut kind, mut data) = (String::new(), String::new());
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        match line.split_once(':') {
            // A comment.
            Some(("", _)) => {}
            Some(("event", value)) => value.trim_start().clone_into(&mut kind),
            Some(("data", value)) => data.push_str(value.trim_start()),
            Some(_) => {}
            None if line.is_empty() => {
                let told: Value = serde_json::from_str(&std::mem::take(&mut data)).unwrap_or_default();
                match std::mem::take(&mut kind).as_str() {
                    "removed" => return Err(Failure::InPart("the pool was removed".to_owned())),
                    "forgotten" => output.remark(&format!(
                        "entries {} to {} are no longer kept",
                        word(&told["from"]),
                        word(&told["to"])
                    )),
                    _ if told.is_object() => {
                        shown::entry(output, &told)?;
                        next = told["id"].as_u64().map(|id| id + 1);
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
    let on = next.map(|next| format!("; go on with --from {next}")).unwrap_or_default();
    Err(Failure::Broken(format!("the appliance has ended the stream{on}")))
}
