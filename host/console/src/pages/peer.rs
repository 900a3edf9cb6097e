//! A peer, a gateway or an account: links, queue, report, settings and connection test.

mod report;

use crate::api_caller::{ApiError, encode_segment, with_query};
use crate::configuration_cache::{ConfigurationDocument, merge_patch};
use crate::form::Form;
use crate::format::{ago, count, figure, state_badge, time_tag, with_times};
use crate::layout::{csrf_field, error_notice, live_page, problem_list};
use crate::live::Region;
use crate::nav::NavItem;
use crate::pages::configuration::send_patch;
use crate::pages::plugin_peer;
use crate::request_context::RequestContext;
use crate::settings::{self, Field, PASSWORD_HASH};
use crate::table::{Column, detail_list, numeric_table, table};
use api::{
    BindMode, FieldProblem, LinkBlocker, LinkView, PeerFiguresView, PeerTestView, Permission, QueueView,
    RefusalsView,
};
use axum::extract::Path;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

struct EntityKind {
    list: &'static str,
    singular: &'static str,
    path: &'static str,
    nav_item: NavItem,
    /// The search parameter that finds its messages.
    search_field: &'static str,
}

const PEERS: EntityKind = EntityKind {
    list: "peer",
    singular: "peer",
    path: "/peers",
    nav_item: NavItem::Peers,
    search_field: "peer",
};
/// Peers whose protocol a plugin implements: they are listed with the other peers.
const PLUGIN_PEERS: EntityKind = EntityKind { list: "plugin-peer", ..PEERS };
const GATEWAYS: EntityKind = EntityKind {
    list: "gateway",
    singular: "gateway",
    path: "/gateways",
    nav_item: NavItem::Gateways,
    search_field: "peer",
};
const ACCOUNTS: EntityKind = EntityKind {
    list: "account",
    singular: "account",
    path: "/accounts",
    nav_item: NavItem::Accounts,
    search_field: "account",
};

/// The input, errors and results that the page shows.
#[derive(Default)]
struct PeerPageState<'a> {
    form: Option<&'a Form>,
    error: Option<&'a ApiError>,
    /// The result of a connection test.
    test: Option<&'a PeerTestView>,
    /// The changes that need a restart.
    restart: Vec<String>,
}

pub(crate) async fn show_peer(context: RequestContext, Path(name): Path<String>) -> Response {
    let kind = peer_kind(&context, &name).await;
    render(&context, kind, &name, &PeerPageState::default()).await
}

/// The kind of a peer, by its section of the configuration.
async fn peer_kind(context: &RequestContext, name: &str) -> &'static EntityKind {
    // Without a configuration the page shows the error.
    let Ok(document) = context.console.configuration.cached(context).await else { return &PEERS };
    let is_plugin_peer =
        document.one(PEERS.list, name).is_none() && document.one(PLUGIN_PEERS.list, name).is_some();
    if is_plugin_peer { &PLUGIN_PEERS } else { &PEERS }
}

pub(crate) async fn show_gateway(context: RequestContext, Path(name): Path<String>) -> Response {
    render(&context, &GATEWAYS, &name, &PeerPageState::default()).await
}

pub(crate) async fn show_account(context: RequestContext, Path(name): Path<String>) -> Response {
    render(&context, &ACCOUNTS, &name, &PeerPageState::default()).await
}

/// The live regions of the page. `list` is `peer`, `plugin-peer`, `gateway` or `account`.
pub(crate) async fn regions(
    context: &RequestContext,
    list: &str,
    name: &str,
) -> Result<Vec<Region>, ApiError> {
    let quality_path = format!("/v1/peers/{}/quality", encode_segment(name));
    let quality = async {
        // Accounts send no DLRs.
        if list == "account" { None } else { context.get::<PeerFiguresView>(&quality_path).await.ok() }
    };
    let (queues, links, quality) = tokio::join!(
        context.get::<Vec<QueueView>>("/v1/queues"),
        context.get::<Vec<LinkView>>("/v1/links"),
        quality,
    );
    let (queues, links) = (queues?, links?);
    let queue = queues.iter().find(|queue| queue.peer == name);
    let mut own: Vec<&LinkView> = links.iter().filter(|link| link.peer == name).collect();
    own.sort_by_key(|link| (link.is_up(), std::cmp::Reverse(link.in_flight)));
    let up = own.iter().filter(|link| link.is_up()).count() as u64;
    let rows: Vec<_> = own
        .iter()
        .map(|link| {
            vec![
                state_badge(link.phase.name()),
                html! { (link.remote.as_deref().unwrap_or("—")) @if link.tls { " " span.badge.good { "TLS" } } },
                html! { (link.bind.map_or("—", BindMode::name)) },
                html! { (link.in_flight) " of " (link.window) },
                html! { (link.round_trip_ms().map_or_else(|| "—".to_owned(), |ms| format!("{} ms", figure(ms)))) },
                html! { @if link.up_or_down_since() > 0 { (ago(link.up_or_down_since())) } @else { "—" } },
                html! { (if link.blocked_by == LinkBlocker::None { "nothing".to_owned() } else { link.blocked_by.name().replace('-', " ") }) },
                html! {
                    (link.last_error.as_deref().unwrap_or("—"))
                    @if let Some(at) = link.back_off_until { " " span.muted { "next attempt " (ago(at)) } }
                },
            ]
        })
        .collect();
    let waits = links.iter().any(|link| link.peer == name && link.back_off_until.is_some());
    let dial = format!("/{list}s/{}/dial", encode_segment(name));
    let heads = &[
        Column::Text("State"),
        Column::Text("Remote address"),
        Column::Text("Bound as"),
        Column::Number("In flight"),
        Column::Number("Answer"),
        Column::Number("Since"),
        Column::Text("Blocked by"),
        Column::Text("Last error"),
    ];
    let own = own.len() as u64;
    let empty = html! { p { "There are no connections." } };
    let plugin = match list {
        "plugin-peer" => plugin_peer::region(context, name).await?,
        _ => None,
    };
    let mut regions: Vec<Region> = plugin.into_iter().collect();
    regions.extend([
        (
            "links",
            html! {
                h2 { "Links" }
                @if own > 1 { p.muted { (count(up)) " of " (count(own)) " are up" } }
                (numeric_table("Links, those that are down first", heads, &rows, &empty))
                @if waits && has_connection_test(list) && context.has_permission(Permission::Operate) {
                    form.inline method="post" action=(dial) { (csrf_field(context)) button type="submit" { "Dial now" } }
                }
            },
        ),
        (
            "queue",
            html! {
                h2 { "Queue" }
                @match queue {
                    Some(queue) => {
                        (detail_list(&[
                            ("Queued", html! { (count(queue.queued)) }),
                            ("Suspended", html! { (count(queue.suspended)) }),
                            ("Paced", html! { (count(queue.paced)) }),
                            ("Deferred", html! { (count(queue.deferred)) }),
                            ("In flight", html! { (count(queue.in_flight)) }),
                            ("Uncertain", html! { @if queue.uncertain > 0 { a href="/uncertain" { (count(queue.uncertain)) } } @else { "0" } }),
                            ("Awaiting DLR", html! { (count(queue.awaiting_dlr)) }),
                            ("Oldest", html! { @match queue.oldest { Some(at) => { (time_tag(at)) " " span.muted { (ago(at)) } } None => { "—" } } }),
                            ("Blocked by", html! { (with_times(&queue.blocked_by)) }),
                            ("Learnt rate", html! { @match queue.learnt_rate { Some(rate) => { (format!("{rate:.1} messages a second")) } None => { span.muted { "the peer has never throttled" } } } }),
                        ]))
                    }
                    None => { p { "Nothing has been queued yet." } }
                }
            },
        ),
    ]);
    regions.extend(quality.map(|figures| ("quality", quality_region(&figures))));
    Ok(regions)
}

/// Whether the appliance dials such an entity, and can test its connection.
fn has_connection_test(list: &str) -> bool {
    matches!(list, "peer" | "gateway")
}

/// Recent quality figures of a peer.
fn quality_region(figures: &PeerFiguresView) -> Markup {
    let ended = u64::from(figures.delivered) + u64::from(figures.failed);
    let rate = (ended > 0).then(|| f64::from(figures.delivered) * 100.0 / ended as f64);
    let time = |time: Option<u64>| {
        html! { @match time { Some(ms) => { "at most " (figure(ms as f64 / 1_000.0)) " s" } None => { "—" } } }
    };
    let cells = vec![
        html! { (count(figures.accepted.into())) },
        html! { (count(figures.refused.total())) },
        html! { (count(figures.unanswered.into())) },
        html! { (count(figures.delivered.into())) },
        html! { (count(figures.failed.into())) },
        html! { @match rate { Some(rate) => { (format!("{rate:.1} %")) } None => { "—" } } },
        time(figures.median_ms),
        time(figures.percentile95_ms),
        html! { (count(figures.conversions.into())) },
    ];
    let heads = [
        "Accepted",
        "Refused",
        "Unanswered",
        "Delivered",
        "Not delivered",
        "Delivery rate",
        "Half of DLRs in",
        "95 % of DLRs in",
        "Conversions",
    ]
    .map(Column::Number);
    html! {
        h2 { "Quality in the last " (figures.window_ms / 60_000) " minutes" }
        (numeric_table("Quality", &heads, &[cells], &html! {}))
    }
}

async fn render(
    context: &RequestContext,
    kind: &EntityKind,
    name: &str,
    page_state: &PeerPageState<'_>,
) -> Response {
    let is_new = name == "new";
    let title = if is_new { format!("A new {}", kind.singular) } else { name.to_owned() };
    let body = page_body(context, kind, name, is_new, &title, page_state).await;
    let live =
        (!is_new && body.is_ok()).then(|| format!("/live?of={}&id={}", kind.list, encode_segment(name)));
    let mut response = live_page(context, &title, kind.nav_item, live.as_deref(), body);
    if let Some(error) = page_state.error {
        *response.status_mut() = error.status;
    }
    response
}

async fn page_body(
    context: &RequestContext,
    kind: &EntityKind,
    name: &str,
    is_new: bool,
    title: &str,
    page_state: &PeerPageState<'_>,
) -> Result<Markup, ApiError> {
    let document = context.console.configuration.cached(context).await?;
    let one = document.one(kind.list, name);
    if one.is_none() && !is_new {
        let detail = format!("There is no {} {name:?} in the configuration.", kind.singular);
        return Err(ApiError::new(StatusCode::NOT_FOUND, detail));
    }
    let fields = match context.has_permission(Permission::Configure) {
        true => context.console.configuration.fields(context, kind.list).await?,
        false => Vec::new(),
    };
    let live = if is_new { Vec::new() } else { regions(context, kind.list, name).await? };
    let refusals = if kind.list == "account" && !is_new {
        let path = with_query("/v1/refusals", &[("account", name), ("limit", "20")]);
        context.get::<RefusalsView>(&path).await.ok()
    } else {
        None
    };
    let faults = match kind.list {
        "plugin-peer" => plugin_peer::faults_section(context, name).await,
        _ => None,
    };
    let report = if is_new { None } else { report::report(context, kind.search_field, name).await };
    Ok(html! {
        div.heading {
            h1 { (title) }
            @if !is_new && context.has_permission(Permission::Operate) {
                @if has_connection_test(kind.list) {
                    form.inline method="post" action=(format!("{}/{}/test", kind.path, encode_segment(name))) { (csrf_field(context)) button type="submit" { "Test the connection" } }
                } @else if kind.list == "account" {
                    a.button href=(with_query("/messages/new", &[("account", name)])) { "Send a test message" }
                }
            }
            @if !is_new { a.button.quiet href=(with_query("/messages", &[(kind.search_field, name)])) { "Messages" } }
        }
        @if let Some(error) = page_state.error { (error_notice(error)) (problem_list(&settings::other_problems(&fields, error))) }
        @if !page_state.restart.is_empty() {
            div.notice.warn role="status" {
                strong { "Stored, but not active yet" }
                p { "These settings take effect at the next start: " @for pointer in &page_state.restart { code { (pointer) } " " } }
            }
        }
        @if let Some(test) = page_state.test { (test_result(test)) }
        @for (id, part) in live { section.card id=(id) { (part) } }
        @if let Some(faults) = faults { (faults) }
        @if let Some(report) = &report { section.card #report { (report) } }
        @if let Some(refusals) = &refusals { (refused_submissions(refusals)) }
        @if context.has_permission(Permission::Configure) {
            (settings_form(context, (kind, &fields), &document, one, is_new, page_state))
            @if !is_new { (removal_form(context, kind, &document, name)) }
        } @else if let Some(one) = one {
            (settings_table(one))
        }
    })
}

/// The refused submissions of an account: counts, and the most recent ones.
fn refused_submissions(refusals: &RefusalsView) -> Markup {
    let counts = refusals
        .counts
        .iter()
        .map(|one| vec![html! { (one.code) }, html! { (one.protocol) }, html! { (count(one.count)) }]);
    let last = refusals.refusals.iter().map(|one| {
        vec![
            time_tag(one.at),
            html! { (one.protocol) },
            html! { (one.source) },
            html! { (one.destination) },
            html! { (one.reason) },
        ]
    });
    let (counts, last): (Vec<_>, Vec<_>) = (counts.collect(), last.collect());
    let nothing = html! { p { "No submission was refused since the start of the daemon." } };
    html! {
        section.card #refusals {
            h2 { "Refused submissions" }
            (numeric_table("Refused messages since the start of the daemon", &[Column::Text("Code"), Column::Text("Protocol"), Column::Number("Messages")], &counts, &nothing))
            @if !last.is_empty() {
                h3 { "The most recent ones" }
                (table("The last refused submissions", &["Time", "Protocol", "From", "To", "Reason"], &last, &html! {}))
            }
        }
    }
}

/// The settings, for users without permission to change them.
fn settings_table(one: &Value) -> Markup {
    html! {
        section.card {
            h2 { "Settings" }
            dl.facts {
                @for (key, value) in one.as_object().into_iter().flatten() {
                    div { dt { (key) } dd { @match value.as_str() { Some(text) => { (text) } None => { code { (value.to_string()) } } } } }
                }
            }
        }
    }
}

/// The fields for the reason and the automatic revert of a configuration change.
pub(crate) fn reason_fields(why: &str) -> Markup {
    html! {
        p { label for="why" { "Why" } input #why name="why" value=(why) maxlength="256" autocomplete="off" aria-describedby="why-hint"; small #why-hint { "Stored with the version." } }
        p {
            label for="within" { "Automatic revert" }
            select #within name="within" {
                option value="" { "no" }
                @for (value, name) in [("2m", "unless I confirm it within 2 minutes"), ("10m", "unless I confirm it within 10 minutes"), ("1h", "unless I confirm it within an hour")] {
                    option value=(value) { (name) }
                }
            }
        }
    }
}

fn settings_form(
    context: &RequestContext,
    (kind, fields): (&EntityKind, &[Field]),
    document: &ConfigurationDocument,
    one: Option<&Value>,
    is_new: bool,
    page_state: &PeerPageState<'_>,
) -> Markup {
    let nothing = json!({});
    let shown =
        page_state.form.cloned().unwrap_or_else(|| settings::form_values(fields, one.unwrap_or(&nothing)));
    let action = format!(
        "{}/{}",
        kind.path,
        one.map_or_else(|| "new".to_owned(), |one| encode_segment(one["name"].as_str().unwrap_or_default()))
    );
    html! {
        section.card {
            h2 { "Settings" }
            form.fields method="post" action=(action) {
                (csrf_field(context))
                input type="hidden" name="tag" value=(document.tag());
                @if is_new {
                    (settings::labelled_input("name", "Name", "Letters, digits, - and _; it cannot be changed later.", page_state.error, |describes, _| html! {
                        input #field-name name="name" value=(shown.text("name")) required maxlength="64" autocomplete="off" spellcheck="false" aria-describedby=(describes);
                    }))
                }
                (settings::fields(fields, &shown, is_new, page_state.error))
                (reason_fields(shown.text("why")))
                p.actions { button.primary type="submit" name="do" value="save" { (if is_new { "Add" } else { "Apply" }) } }
                p.muted { "Only the connections of this " (kind.singular) " are affected." }
            }
        }
    }
}

fn removal_form(
    context: &RequestContext,
    kind: &EntityKind,
    document: &ConfigurationDocument,
    name: &str,
) -> Markup {
    html! {
        details.card.removal {
            summary { "Remove this " (kind.singular) }
            p { "Its connections are closed. Waiting messages stay, and their queue is listed as not configured." }
            form.fields method="post" action=(format!("{}/{}", kind.path, encode_segment(name))) {
                (csrf_field(context))
                input type="hidden" name="tag" value=(document.tag());
                p { label for="why-remove" { "Why" } input #why-remove name="why" maxlength="256" autocomplete="off"; }
                p.actions { button.danger type="submit" name="do" value="remove" { "Remove " (name) } }
            }
        }
    }
}

fn test_result(test: &PeerTestView) -> Markup {
    html! {
        section.card #test role="status" {
            h2 { "Connection test: " (if test.ok { "passed" } else { "failed" }) }
            ol.checks {
                @for step in &test.steps {
                    li {
                        (state_badge(if step.ok { "ok" } else { "failed" })) " " (step.what.name()) " "
                        span.muted { (step.ms) " ms" }
                        @if let Some(detail) = &step.detail { p { (detail) } }
                    }
                }
            }
        }
    }
}

pub(crate) async fn test_peer(context: RequestContext, Path(name): Path<String>, form: Form) -> Response {
    test(&context, &PEERS, &name, &form).await
}

pub(crate) async fn test_gateway(context: RequestContext, Path(name): Path<String>, form: Form) -> Response {
    test(&context, &GATEWAYS, &name, &form).await
}

async fn test(context: &RequestContext, kind: &EntityKind, name: &str, form: &Form) -> Response {
    let result =
        context.send(Method::POST, &format!("/v1/peers/{}/test", encode_segment(name)), form, None).await;
    match result.and_then(|answer| answer.read::<PeerTestView>()) {
        Ok(answer) => {
            render(context, kind, name, &PeerPageState { test: Some(&answer), ..PeerPageState::default() })
                .await
        }
        Err(error) => {
            render(context, kind, name, &PeerPageState { error: Some(&error), ..PeerPageState::default() })
                .await
        }
    }
}

pub(crate) async fn dial_peer(context: RequestContext, Path(name): Path<String>, form: Form) -> Response {
    let kind = peer_kind(&context, &name).await;
    dial(&context, kind, &name, &form).await
}

pub(crate) async fn dial_gateway(context: RequestContext, Path(name): Path<String>, form: Form) -> Response {
    dial(&context, &GATEWAYS, &name, &form).await
}

async fn dial(context: &RequestContext, kind: &EntityKind, name: &str, form: &Form) -> Response {
    match context.send(Method::POST, &format!("/v1/peers/{}/dial", encode_segment(name)), form, None).await {
        Ok(_) => RequestContext::redirect(&format!("{}/{}", kind.path, encode_segment(name)), "dialled"),
        Err(error) => {
            render(context, kind, name, &PeerPageState { error: Some(&error), ..PeerPageState::default() })
                .await
        }
    }
}

pub(crate) async fn change_peer(context: RequestContext, Path(name): Path<String>, form: Form) -> Response {
    let kind = peer_kind(&context, &name).await;
    change(&context, kind, &name, &form).await
}

pub(crate) async fn change_gateway(
    context: RequestContext,
    Path(name): Path<String>,
    form: Form,
) -> Response {
    change(&context, &GATEWAYS, &name, &form).await
}

pub(crate) async fn change_account(
    context: RequestContext,
    Path(name): Path<String>,
    form: Form,
) -> Response {
    change(&context, &ACCOUNTS, &name, &form).await
}

async fn change(context: &RequestContext, kind: &EntityKind, path_name: &str, form: &Form) -> Response {
    match apply_change(context, kind, path_name, form).await {
        Ok(ChangeOutcome::Nothing) => {
            RequestContext::redirect(&format!("{}/{}", kind.path, encode_segment(path_name)), "unchanged")
        }
        Ok(ChangeOutcome::Removed) => RequestContext::redirect(kind.path, "removed"),
        Ok(ChangeOutcome::Saved { name, restart }) if restart.is_empty() => {
            let done = if path_name == "new" { "added" } else { "changed" };
            RequestContext::redirect(&format!("{}/{}", kind.path, encode_segment(&name)), done)
        }
        Ok(ChangeOutcome::Saved { name, restart }) => {
            render(context, kind, &name, &PeerPageState { restart, ..PeerPageState::default() }).await
        }
        Err(error) => {
            let page_state =
                PeerPageState { form: Some(form), error: Some(&error), ..PeerPageState::default() };
            render(context, kind, path_name, &page_state).await
        }
    }
}

enum ChangeOutcome {
    Nothing,
    Removed,
    Saved { name: String, restart: Vec<String> },
}

async fn apply_change(
    context: &RequestContext,
    kind: &EntityKind,
    path_name: &str,
    form: &Form,
) -> Result<ChangeOutcome, ApiError> {
    let is_new = path_name == "new";
    let name = if is_new { form.text("name") } else { path_name };
    if form.text("do") == "remove" {
        send_patch(context, form, &json!({ kind.list: { name: null } })).await?;
        return Ok(ChangeOutcome::Removed);
    }
    if name.is_empty() || name == "new" {
        return Err(ApiError::bad_request("Give a name; it cannot be \"new\"."));
    }
    let document = context.console.configuration.cached(context).await?;
    let known = document.one(kind.list, name);
    if is_new && known.is_some() {
        return Err(ApiError::new(
            StatusCode::CONFLICT,
            format!("There is a {} {name:?} already.", kind.singular),
        ));
    }
    let before = known.cloned().unwrap_or_else(|| json!({ "name": name }));
    let fields = context.console.configuration.fields(context, kind.list).await?;
    let mut after = settings::settings_from_form(&fields, form, &before)?;
    if kind.list == "account" {
        hash_account_password(&before, &mut after).await?;
    }
    let nothing = json!({});
    let difference = merge_patch(if is_new { &nothing } else { &before }, &after);
    if difference.as_object().is_some_and(serde_json::Map::is_empty) {
        return Ok(ChangeOutcome::Nothing);
    }
    let result = send_patch(context, form, &json!({ kind.list: { name: difference } })).await?;
    Ok(ChangeOutcome::Saved { name: name.to_owned(), restart: result.restart })
}

/// Replaces an account's password by its hash; the password itself is not stored or logged.
async fn hash_account_password(before: &Value, after: &mut Value) -> Result<(), ApiError> {
    let Some(after) = after.as_object_mut() else { return Ok(()) };
    let hash = match after.remove("password") {
        Some(Value::String(password)) => {
            let hash = tokio::task::spawn_blocking(move || ports::hash_password(password.as_bytes())).await;
            let failed = |why: String| ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, why);
            hash.map_err(|error| failed(error.to_string()))?
                .map_err(|error| failed(error.to_string()))?
                .into()
        }
        _ => match before.get(PASSWORD_HASH) {
            Some(known) => known.clone(),
            None => {
                let problem = FieldProblem {
                    pointer: "/account/new/password".to_owned(),
                    what: "A new account needs a password.".to_owned(),
                    allowed: None,
                };
                return Err(ApiError {
                    problems: vec![problem],
                    ..ApiError::bad_request("A value is missing.")
                });
            }
        },
    };
    after.insert(PASSWORD_HASH.to_owned(), hash);
    Ok(())
}
