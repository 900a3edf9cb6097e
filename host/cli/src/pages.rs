//! Lists that come in pages.

use crate::output::Failure;
use client::{Appliance, segment};
use serde_json::Value;

/// Items that are asked for at a time.
const PAGE: usize = 1_000;

/// Where a list is, and what its answer calls things.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List<'a> {
    pub(crate) path: &'a str,
    /// Of the answer: where the items are.
    pub(crate) items: &'a str,
    /// Of the request: where to go on.
    pub(crate) next: &'a str,
}

/// So many items, and where the list would go on.
pub(crate) fn pages(
    appliance: &Appliance,
    list: List<'_>,
    query: &[(&str, String)],
    limit: usize,
) -> Result<(Vec<Value>, Value), Failure> {
    let Found { items, next, .. } = all_pages(appliance, list, query, limit)?;
    Ok((items, next))
}

/// What several pages have brought together.
pub(crate) struct Found {
    pub(crate) items: Vec<Value>,
    /// Where the list would go on.
    pub(crate) next: Value,
    /// Why items may be missing.
    pub(crate) incomplete: Value,
}

/// As [`pages`], with the reason why items may be missing.
pub(crate) fn all_pages(
    appliance: &Appliance,
    list: List<'_>,
    query: &[(&str, String)],
    limit: usize,
) -> Result<Found, Failure> {
    let mut found = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let most = (limit - found.len()).clamp(1, PAGE);
        let mut path = format!("{}?limit={most}", list.path);
        for (name, value) in query {
            // Where the list goes on is told by the page before, once there is one.
            if after.is_none() || *name != list.next {
                path.push_str(&format!("&{name}={}", segment(value)));
            }
        }
        if let Some(after) = &after {
            path.push_str(&format!("&{}={}", list.next, segment(after)));
        }
        let mut page = appliance.get(&path)?;
        if let Some(Value::Array(items)) = page.get_mut(list.items).map(Value::take) {
            found.extend(items);
        }
        let left = page.get_mut("next").map(Value::take).unwrap_or_default();
        if left.is_null() || found.len() >= limit {
            let incomplete = page.get_mut("incomplete").map(Value::take).unwrap_or_default();
            return Ok(Found { items: found, next: left, incomplete });
        }
        after = Some(left.as_str().map_or_else(|| left.to_string(), str::to_owned));
    }
}
