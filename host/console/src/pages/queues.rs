//! Queues, and the actions on them.

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::csv_export::{csv_file, export_link};
use crate::form::Form;
use crate::format::{ago, count, plural, time_tag, timestamp, with_readable_times, with_times};
use crate::layout::{live_page, page};
use crate::list_filter::{FilterState, ListFilter};
use crate::live::Region;
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::pages::queue_actions::{self, QueuesPageState};
use crate::request_context::RequestContext;
use crate::table::{Column, numeric_table};
use api::{PaceBucketView, Permission, QueueView};
use axum::extract::Query;
use axum::response::Response;
use maud::{Markup, html};

/// The maximum number of queues that are shown, the fullest first.
const MAX_QUEUES: usize = 50;

/// The states of the filter.
const STATES: [(&str, &str); 6] = [
    ("no-link", "no link"),
    ("uncertain", "uncertain messages"),
    ("suspended", "suspended"),
    ("paced", "paced"),
    ("deferred", "deferred"),
    ("in-flight", "in flight"),
];

fn is_in_state(queue: &QueueView, state: &str) -> bool {
    match state {
        "no-link" => is_stuck(queue),
        "uncertain" => queue.uncertain > 0,
        "suspended" => queue.suspended > 0,
        "paced" => queue.paced > 0,
        "deferred" => queue.deferred > 0,
        "in-flight" => queue.in_flight > 0,
        _ => true,
    }
}

/// The queues with waiting messages that match the text of a filter, in the order of the page, and the number of empty ones.
async fn read(
    context: &RequestContext,
    filter: &ListFilter<'_>,
) -> Result<(Vec<QueueView>, usize), ApiError> {
    let mut all: Vec<QueueView> = context.get("/v1/queues").await?;
    all.retain(|queue| filter.matches(&queue.peer));
    let waiting_or_not = all.len();
    all.retain(|queue| queue.waiting() > 0);
    let empty = waiting_or_not - all.len();
    all.sort_by_key(order);
    Ok((all, empty))
}

/// The live region with the queues that match a filter with these parameters.
pub(crate) async fn regions(context: &RequestContext, parameters: &str) -> Result<Vec<Region>, ApiError> {
    let query = Form::from_query(parameters);
    let filter = ListFilter::new(&query);
    let (all, empty) = read(context, &filter).await?;
    table_regions(context, all, empty, &filter).await
}

async fn table_regions(
    context: &RequestContext,
    mut all: Vec<QueueView>,
    empty: usize,
    filter: &ListFilter<'_>,
) -> Result<Vec<Region>, ApiError> {
    all.retain(|queue| is_in_state(queue, filter.state()));
    let busy = all.len();
    let none = match filter.is_narrow() {
        true => {
            html! { h3 { "No matches" } p { "No queue with waiting messages matches. " a href="/queues" { "Show all" } } }
        }
        false => html! { h3 { "No messages wait" } p { "All queues are empty." } },
    };
    let rows: Vec<_> = all.iter().take(MAX_QUEUES).map(row).collect();
    let heads = &[
        Column::Text("Queue"),
        Column::Number("Queued"),
        Column::Number("Suspended"),
        Column::Number("Paced"),
        Column::Number("Deferred"),
        Column::Number("In flight"),
        Column::Number("Uncertain"),
        Column::Number("Awaiting DLR"),
        Column::Number("Oldest"),
        Column::Text("Blocked by"),
    ];
    let buckets: Vec<PaceBucketView> = context.get("/v1/pace-buckets").await?;
    Ok(vec![(
        "queues",
        html! {
            h2 { "Queues with waiting messages" }
            (numeric_table("Queues: those without a link first, then the fullest", heads, &rows, &none))
            p.muted {
                @if busy > MAX_QUEUES { "And " (count((busy - MAX_QUEUES) as u64)) " more. " }
                @if empty > 0 && busy > 0 { (plural(empty as u64, "other is empty.", "others are empty.")) }
            }
            (pace_buckets(buckets))
        },
    )])
}

/// Queues that no link empties come first, then those with uncertain messages, then the fullest.
fn order(queue: &QueueView) -> (bool, bool, std::cmp::Reverse<u64>) {
    (!is_stuck(queue), queue.uncertain == 0, std::cmp::Reverse(queue.waiting()))
}

fn is_stuck(queue: &QueueView) -> bool {
    !queue.configured || queue.links == 0
}

/// The queues with messages as CSV, as the page is filtered.
pub(crate) async fn export(context: RequestContext, Query(query): QueryParams) -> Response {
    let query = Form::of(query);
    let filter = ListFilter::new(&query);
    let mut all = match read(&context, &filter).await {
        Ok((all, _)) => all,
        Err(error) => return page(&context, "Queues", NavItem::Queues, Err(error)),
    };
    all.retain(|queue| is_in_state(queue, filter.state()));
    let heads = [
        "queue",
        "links",
        "queued",
        "suspended",
        "paced",
        "deferred",
        "in-flight",
        "uncertain",
        "awaiting-dlr",
        "oldest",
        "blocked-by",
    ];
    let row = |queue: &QueueView| {
        let counts = [
            queue.links as u64,
            queue.queued + queue.resolving,
            queue.suspended,
            queue.paced,
            queue.deferred,
            queue.in_flight,
            queue.uncertain,
            queue.awaiting_dlr,
        ];
        let oldest = queue.oldest.map(|at| format!("{}Z", timestamp(at).replace(' ', "T")));
        let ends = [oldest.unwrap_or_default(), with_readable_times(&queue.blocked_by)];
        std::iter::once(queue.peer.clone()).chain(counts.map(|count| count.to_string())).chain(ends).collect()
    };
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    csv_file("queues.csv", &heads, &rows)
}

/// The pace buckets for which most messages wait; nothing without a bucket.
fn pace_buckets(mut buckets: Vec<PaceBucketView>) -> maud::Markup {
    if buckets.is_empty() {
        return html! {};
    }
    buckets.sort_by_key(|bucket| (std::cmp::Reverse(bucket.waiting), bucket.by_plugin));
    let row = |bucket: &PaceBucketView| {
        vec![
            html! { (bucket.name) @if bucket.by_plugin { " " span.badge { "plugin" } } },
            html! { (count(bucket.amount)) " " (bucket.counts) },
            html! { (count(bucket.tokens)) },
            html! { (count(bucket.waiting)) },
            html! { @match bucket.next_token { Some(at) => (time_tag(at)), None => "—" } },
        ]
    };
    let rows: Vec<_> = buckets.iter().take(MAX_QUEUES).map(row).collect();
    let heads = &[
        Column::Text("Bucket"),
        Column::Number("Amount"),
        Column::Number("Tokens"),
        Column::Number("Waiting"),
        Column::Number("Next token"),
    ];
    html! {
        h2 { "Pace buckets" }
        (numeric_table("Pace buckets, the busiest first", heads, &rows, &html! {}))
        @if buckets.len() > MAX_QUEUES { p.muted { "And " (count((buckets.len() - MAX_QUEUES) as u64)) " more." } }
    }
}

fn row(queue: &QueueView) -> Vec<maud::Markup> {
    vec![
        html! {
            a href=(format!("/messages?peer={}", encode_segment(&queue.peer))) { (queue.peer) }
            @if !queue.configured { " " span.badge.warn { "not configured" } }
            @else if queue.links == 0 { " " span.badge.bad { "no link" } }
        },
        html! { (count(queue.queued + queue.resolving)) },
        html! { (count(queue.suspended)) },
        html! { (count(queue.paced)) },
        html! { (count(queue.deferred)) },
        html! { (count(queue.in_flight)) },
        html! { (count(queue.uncertain)) },
        html! { (count(queue.awaiting_dlr)) },
        html! { (queue.oldest.map_or_else(|| "—".to_owned(), ago)) },
        html! { (with_times(&queue.blocked_by)) },
    ]
}

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    render(&context, &QueuesPageState { form: Form::of(query), ..QueuesPageState::default() }).await
}

/// The form of the filter, and the regions with the matching queues.
async fn filtered(
    context: &RequestContext,
    filter: &ListFilter<'_>,
) -> Result<(Markup, Vec<Region>), ApiError> {
    let (all, empty) = read(context, filter).await?;
    let states = STATES.map(|(value, label)| FilterState {
        value,
        label,
        count: all.iter().filter(|queue| is_in_state(queue, value)).count(),
    });
    let names = all.iter().map(|queue| queue.peer.as_str());
    let form = filter.form(("/queues", "Queues", "Peer or account"), names, all.len(), &states);
    Ok((form, table_regions(context, all, empty, filter).await?))
}

pub(crate) async fn render(context: &RequestContext, page_state: &QueuesPageState) -> Response {
    let filter = ListFilter::new(&page_state.form);
    let body = match tokio::join!(filtered(context, &filter), queue_actions::active_table(context)) {
        (Ok((form, regions)), actions) => Ok(html! {
            div.heading { h1 { "Queues" } (export_link("/queues.csv", &filter.parameters())) a.button.quiet href="/uncertain" { "Uncertain messages" } }
            @if context.has_permission(Permission::Operate) { (queue_actions::start_form(context, page_state)) }
            section.card #queue-actions { h2 { "Active queue actions" } (actions) }
            (form)
            @for (id, part) in regions { section.card id=(id) { (part) } }
        }),
        (Err(error), _) => Err(error),
    };
    let live = with_query("/live", &[("of", "queues"), ("id", &with_query("", &filter.parameters()))]);
    let mut response = live_page(context, "Queues", NavItem::Queues, Some(&live), body);
    if let Some(error) = &page_state.error {
        *response.status_mut() = error.status;
    }
    response
}
