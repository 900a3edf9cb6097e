//! The search for everything: messages, numbers, accounts, peers, hooks, plugins, pools, tables, configuration keys, pages and the
//! manual.

mod reference_keys;

use crate::api_caller::{encode_segment, with_query};
use crate::format::{plural, state_badge, time_tag};
use crate::manual;
use crate::nav::visible_pages;
use crate::request_context::RequestContext;
use api::{
    HookStateView, MessagePageView, MessageRowView, Permission, PluginVersionView, PoolsView, QueueView,
    TableView, TraceView,
};
use maud::{Markup, html};
use reference_keys::configuration_keys;

/// The maximum number of results of one kind.
const MAX_RESULTS: usize = 8;
/// The number of messages of a number.
const MAX_MESSAGES: &str = "5";
/// The number of digits from which a text may be a subscriber's number.
const MIN_DIGITS: usize = 4;

/// A result.
#[derive(Debug)]
pub(crate) struct SearchResult {
    pub(crate) label: String,
    pub(crate) path: String,
    pub(crate) note: Markup,
    /// Rank of the match: 0 is the best.
    rank: u8,
}

/// Results of one kind, the best first.
#[derive(Debug)]
pub(crate) struct ResultGroup {
    pub(crate) title: &'static str,
    pub(crate) results: Vec<SearchResult>,
    /// The results that are left out.
    pub(crate) left_out: usize,
}

impl ResultGroup {
    fn new(title: &'static str, mut results: Vec<SearchResult>) -> Self {
        results.sort_by(|a, b| (a.rank, a.label.len(), &a.label).cmp(&(b.rank, b.label.len(), &b.label)));
        let left_out = results.len().saturating_sub(MAX_RESULTS);
        results.truncate(MAX_RESULTS);
        Self { title, results, left_out }
    }
}

/// Rank of a match: equal, begins with the query, has a word that begins with it, contains it, contains all its words.
/// `None` if it does not match.
fn rank(query: &str, text: &str) -> Option<u8> {
    let (query, text) = (query.to_lowercase(), text.to_lowercase());
    if text == query {
        return Some(0);
    }
    match text.find(&query) {
        Some(0) => Some(1),
        Some(_) => {
            let mut starts = text.match_indices(&query).map(|(at, _)| at);
            let after_gap = |at: usize| {
                text.get(..at)
                    .and_then(|before| before.chars().next_back())
                    .is_some_and(|c| !c.is_alphanumeric())
            };
            Some(if starts.any(after_gap) { 2 } else { 3 })
        }
        None => {
            let mut words = query.split_whitespace();
            let several = query.split_whitespace().nth(1).is_some();
            (several && words.all(|word| text.contains(word))).then_some(4)
        }
    }
}

/// The result for a name; `None` if the name does not match.
fn named(query: &str, name: &str, path: String, note: Markup) -> Option<SearchResult> {
    Some(SearchResult { rank: rank(query, name)?, label: name.to_owned(), path, note })
}

/// The digits of a number as people write it; `None` if the text is not a number.
fn digits(query: &str) -> Option<String> {
    let rest = query.strip_prefix('+').unwrap_or(query);
    let is_separator = |c: char| matches!(c, ' ' | '-' | '/' | '(' | ')' | '.');
    let digits: String = rest.chars().filter(|c| !is_separator(*c)).collect();
    (digits.len() >= MIN_DIGITS && digits.len() <= 20 && digits.chars().all(|c| c.is_ascii_digit()))
        .then_some(digits)
}

/// All results, the kind with the best one first.
pub(crate) async fn search(context: &RequestContext, query: &str) -> Vec<ResultGroup> {
    let reads = context.has_permission(Permission::Read) && context.principal.tenant.is_none();
    let (messages, appliance) = tokio::join!(messages(context, query), async {
        if reads { of_appliance(context, query).await } else { Vec::new() }
    });
    let mut groups = messages;
    groups.extend(appliance);
    if reads {
        groups.push(ResultGroup::new("Configuration keys", configuration_results(query)));
    }
    groups.push(ResultGroup::new("Pages", page_results(context, query)));
    groups.push(ResultGroup::new("Manual", manual_results(query)));
    groups.retain(|group| !group.results.is_empty());
    groups.sort_by_key(|group| group.results.first().map(|best| best.rank));
    groups
}

fn message_result(message: &MessageRowView) -> SearchResult {
    let note = html! {
        (state_badge(message.state.name())) " " (message.source) " to " (message.destination) ", " (time_tag(message.at))
    };
    let path = format!("/messages/{}", encode_segment(&message.id));
    SearchResult { label: message.id.clone(), path, note, rank: 1 }
}

/// The message of an id, and the messages of a number.
async fn messages(context: &RequestContext, query: &str) -> Vec<ResultGroup> {
    let is_id = !query.is_empty() && query.len() <= 20 && query.chars().all(|c| c.is_ascii_digit());
    let by_id = async {
        let path = format!("/v1/messages/{}", encode_segment(query));
        if is_id { context.get_optional::<TraceView>(&path).await } else { None }
    };
    let number = digits(query);
    let by_number = async {
        let number = number.as_deref()?;
        let parameters = [("number", number), ("limit", MAX_MESSAGES), ("timeout_ms", "50")];
        context.get_optional::<MessagePageView>(&with_query("/v1/messages", &parameters)).await
    };
    let (by_id, by_number) = tokio::join!(by_id, by_number);
    let mut groups = Vec::new();
    if by_id.is_some() {
        let result = SearchResult {
            label: query.to_owned(),
            path: format!("/messages/{query}"),
            note: html! { "the message of this id" },
            rank: 0,
        };
        groups.push(ResultGroup::new("Message", vec![result]));
    }
    if let Some(number) = &number {
        let mut results: Vec<SearchResult> =
            by_number.iter().flat_map(|page| &page.messages).map(message_result).collect();
        if !results.is_empty() {
            results.push(SearchResult {
                label: format!("All messages of {number}"),
                path: with_query("/messages", &[("number", number)]),
                note: html! {},
                rank: 2,
            });
            groups.push(ResultGroup { title: "Messages of this number", results, left_out: 0 });
        }
    }
    groups
}

/// Accounts, peers, hooks, plugins, pools, lookup tables.
async fn of_appliance(context: &RequestContext, query: &str) -> Vec<ResultGroup> {
    let (queues, hooks, plugins, pools, tables) = tokio::join!(
        context.get_optional::<Vec<QueueView>>("/v1/queues"),
        context.get_optional::<Vec<HookStateView>>("/v1/hooks"),
        context.get_optional::<Vec<PluginVersionView>>("/v1/plugins"),
        context.get_optional::<PoolsView>("/v1/pools"),
        context.get_optional::<Vec<TableView>>("/v1/tables"),
    );
    let queues = queues.unwrap_or_default();
    let ends = |accounts: bool, root: &str| -> Vec<SearchResult> {
        let matching = queues.iter().filter(|queue| queue.is_account == accounts && queue.configured);
        let result = |queue: &QueueView| {
            let note = html! {
                (plural(queue.links as u64, "link", "links")) ", " (plural(queue.waiting(), "message waits", "messages wait"))
            };
            named(query, &queue.peer, format!("{root}/{}", encode_segment(&queue.peer)), note)
        };
        matching.filter_map(result).collect()
    };
    let hook_results = hooks.iter().flatten().filter_map(|hook| {
        let note = html! { @for one in hook.live.chain.iter().filter(|one| one.tenant.is_none()) { (one.plugin) " " } };
        named(query, hook.hook.name(), format!("/plugins/{}", hook.hook.name()), note)
    });
    let mut names: Vec<String> = plugins.into_iter().flatten().map(|plugin| plugin.plugin).collect();
    names.sort();
    names.dedup();
    let plugin_results =
        names.iter().filter_map(|name| named(query, name, "/plugins".to_owned(), html! { "plugin" }));
    let pool_results = pools.iter().flat_map(|pools| &pools.pools).filter_map(|pool| {
        named(query, &pool.name, format!("/pools/{}", encode_segment(&pool.name)), html! {})
    });
    let table_results = tables.iter().flatten().filter_map(|table| {
        named(query, &table.name, with_query("/tables", &[("table", &table.name)]), html! {})
    });
    vec![
        ResultGroup::new("Accounts", ends(true, "/accounts")),
        ResultGroup::new("Peers", ends(false, "/peers")),
        ResultGroup::new("Hooks and plugins", hook_results.chain(plugin_results).collect()),
        ResultGroup::new("Number pools", pool_results.collect()),
        ResultGroup::new("Lookup tables", table_results.collect()),
    ]
}

/// Configuration keys by name; keys with the words only in their description come last.
fn configuration_results(query: &str) -> Vec<SearchResult> {
    let results = configuration_keys().iter().filter_map(|key| {
        let by_name = rank(query, &key.path).or_else(|| rank(query, key.name)).into_iter();
        let rank = by_name.chain(rank(query, key.meaning).map(|_| 5)).min()?;
        let path = format!("/help/reference/configuration#{}", key.anchor);
        Some(SearchResult { label: key.path.clone(), path, note: html! { (key.summary()) }, rank })
    });
    results.collect()
}

fn page_results(context: &RequestContext, query: &str) -> Vec<SearchResult> {
    let pages = visible_pages(context);
    pages.filter_map(|(label, path)| named(query, label, path.to_owned(), html! {})).collect()
}

/// Pages and headings of the manual.
fn manual_results(query: &str) -> Vec<SearchResult> {
    let headings = manual::headings();
    let results = headings.iter().filter_map(|heading| {
        let rank = rank(query, &heading.text)? + 1;
        Some(SearchResult {
            label: heading.text.clone(),
            path: heading.path.clone(),
            note: html! { (heading.page) },
            rank,
        })
    });
    results.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_matches_come_first() {
        let ranks = ["acme", "acme-eu", "the acme", "xacme", "x"].map(|text| rank("ACME", text));
        assert_eq!(ranks, [Some(0), Some(1), Some(2), Some(3), None]);
        assert_eq!(rank("retry schedule", "the schedule of a retry"), Some(4));
        assert_eq!(rank("retry schedule", "the schedule"), None);
        assert_eq!(rank("é", "café"), Some(3));
    }

    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(digits("+49 151/123-45").as_deref(), Some("4915112345"));
        for other in ["", "12", "acme", "49151x", "+", "123456789012345678901"] {
            assert_eq!(digits(other), None, "{other}");
        }
    }

    #[test]
    fn configuration_keys_are_found_by_name_and_by_meaning() {
        let found = |query: &str| ResultGroup::new("", configuration_results(query)).results;
        assert_eq!(found("account.queue-limit")[0].label, "account.queue-limit");
        assert!(found("queue-limit").iter().any(|key| key.label == "account.queue-limit"));
        assert!(!found("idempotency keys").is_empty());
        let manual = ResultGroup::new("", manual_results("drain")).results;
        assert!(manual.iter().any(|one| one.path.contains("#drain")), "{manual:?}");
    }
}
