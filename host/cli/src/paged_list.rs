//! Lists that the API returns in pages.

use crate::output::Failure;
use api::{
    ConfigVersionPageView, ConfigVersionSummaryView, MessagePageView, MessageRowView, UncertainPageView,
    UncertainView,
};
use client::{ApiClient, encode_segment};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The maximum number of items that are requested at a time.
const PAGE_SIZE: usize = 1_000;

/// A page of a list.
pub(crate) trait Page: DeserializeOwned {
    type Item;
    /// The query parameter for the next page.
    const NEXT: &'static str;

    fn items(&mut self) -> &mut Vec<Self::Item>;
    /// The position of the next page; `None` on the last one.
    fn next(&self) -> Option<String>;
}

impl Page for MessagePageView {
    type Item = MessageRowView;
    const NEXT: &'static str = "cursor";

    fn items(&mut self) -> &mut Vec<MessageRowView> {
        &mut self.messages
    }

    fn next(&self) -> Option<String> {
        self.next.clone()
    }
}

impl Page for UncertainPageView {
    type Item = UncertainView;
    const NEXT: &'static str = "after";

    fn items(&mut self) -> &mut Vec<UncertainView> {
        &mut self.messages
    }

    fn next(&self) -> Option<String> {
        self.next.clone()
    }
}

impl Page for ConfigVersionPageView {
    type Item = ConfigVersionSummaryView;
    const NEXT: &'static str = "before";

    fn items(&mut self) -> &mut Vec<ConfigVersionSummaryView> {
        &mut self.versions
    }

    fn next(&self) -> Option<String> {
        self.next.map(|next| next.to_string())
    }
}

/// Fetches up to `limit` items, as one page.
pub(crate) fn fetch_pages<P: Page>(
    api: &ApiClient,
    path: &str,
    query: &[(&str, String)],
    limit: usize,
) -> Result<P, Failure> {
    let (mut fetched, mut after) = (Vec::new(), None);
    loop {
        let limit_of_page = (limit - fetched.len()).clamp(1, PAGE_SIZE);
        let mut page_path = format!("{path}?limit={limit_of_page}");
        // After the first page, the position comes from the page before.
        let query = query.iter().filter(|(name, _)| after.is_none() || *name != P::NEXT).cloned();
        for (name, value) in query.chain(after.iter().map(|after: &String| (P::NEXT, after.clone()))) {
            page_path.push_str(&format!("&{name}={}", encode_segment(&value)));
        }
        let mut page: P = api.read(&page_path)?;
        fetched.append(page.items());
        after = page.next();
        if after.is_none() || fetched.len() >= limit {
            *page.items() = fetched;
            return Ok(page);
        }
    }
}

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
            return Ok((fetched, next));
        }
        after = Some(next.as_str().map_or_else(|| next.to_string(), str::to_owned));
    }
}
