//! Lists that the API returns in pages.

use crate::output::{Failure, Output};
use api::{
    ConfigVersionPageView, ConfigVersionSummaryView, FinishedMessageView, HistoryPageView, MessagePageView,
    MessageRowView, MissingPartitionView, QuarantinePageView, QuarantinedView, UncertainPageView,
    UncertainView,
};
use client::{ApiClient, encode_segment};
use serde::de::DeserializeOwned;

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

impl Page for HistoryPageView {
    type Item = FinishedMessageView;
    const NEXT: &'static str = "cursor";

    fn items(&mut self) -> &mut Vec<FinishedMessageView> {
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

impl Page for QuarantinePageView {
    type Item = QuarantinedView;
    const NEXT: &'static str = "after";

    fn items(&mut self) -> &mut Vec<QuarantinedView> {
        &mut self.messages
    }

    fn next(&self) -> Option<String> {
        self.next.clone()
    }
}

/// Says on standard error which partitions of the cluster are missing in an answer.
pub(crate) fn remark_missing(output: &Output, missing: &[MissingPartitionView]) {
    for MissingPartitionView { partition, reason } in missing {
        output.remark(&format!("partition {partition} is missing: {reason}"));
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
