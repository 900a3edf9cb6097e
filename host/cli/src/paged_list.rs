//! Lists that the API returns in pages.

use crate::output::Failure;
use client::{ApiClient, encode_segment};
use serde_json::Value;

/// The maximum number of items that are requested at a time.
const PAGE_SIZE: usize = 1_000;

/// A list of the API: its path, and the names of its fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PagedList<'a> {
    pub(crate) path: &'a str,
    /// The field of the answer that holds the items.
    pub(crate) items: &'a str,
    /// The query parameter for the next page.
    pub(crate) next: &'a str,
}

/// Fetches up to `limit` items, and the position of the next one.
pub(crate) fn fetch_items(
    api: &ApiClient,
    list: PagedList<'_>,
    query: &[(&str, String)],
    limit: usize,
) -> Result<(Vec<Value>, Value), Failure> {
    let PagedItems { items, next, .. } = fetch_paged_items(api, list, query, limit)?;
    Ok((items, next))
}

/// The items of several pages.
pub(crate) struct PagedItems {
    pub(crate) items: Vec<Value>,
    /// The position of the next item; null at the end.
    pub(crate) next: Value,
    /// The reason why items may be missing; null if none are.
    pub(crate) incomplete: Value,
}

/// As [`fetch_items`], with the reason why items may be missing.
pub(crate) fn fetch_paged_items(
    api: &ApiClient,
    list: PagedList<'_>,
    query: &[(&str, String)],
    limit: usize,
) -> Result<PagedItems, Failure> {
    let mut fetched = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let limit_of_page = (limit - fetched.len()).clamp(1, PAGE_SIZE);
        let mut path = format!("{}?limit={limit_of_page}", list.path);
        for (name, value) in query {
            // After the first page, the position comes from the page before.
            if after.is_none() || *name != list.next {
                path.push_str(&format!("&{name}={}", encode_segment(value)));
            }
        }
        if let Some(after) = &after {
            path.push_str(&format!("&{}={}", list.next, encode_segment(after)));
        }
        let mut page = api.get(&path)?;
        if let Some(Value::Array(items)) = page.get_mut(list.items).map(Value::take) {
            fetched.extend(items);
        }
        let next = page.get_mut("next").map(Value::take).unwrap_or_default();
        if next.is_null() || fetched.len() >= limit {
            let incomplete = page.get_mut("incomplete").map(Value::take).unwrap_or_default();
            return Ok(PagedItems { items: fetched, next, incomplete });
        }
        after = Some(next.as_str().map_or_else(|| next.to_string(), str::to_owned));
    }
}
