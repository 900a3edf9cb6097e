//! The layout of every page: header, navigation, notices, error messages and footer.

use crate::api_caller::ApiError;
use crate::nav::{NavItem, chapter_link, nav_list};
use crate::partition;
use crate::request_context::{RequestContext, theme};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use percent_encoding::percent_decode_str;

/// The notices after an action, by the query parameter `done`. Other values show no notice, so that links cannot contain texts.
const NOTICES: &[(&str, &str)] = &[
    ("activated", "The plugin is live."),
    ("added", "Added and active."),
    ("cancelled", "The message is cancelled."),
    ("content-erased", "The content of the message is erased."),
    ("candidate", "The candidate is on trial. Its counts are below."),
    ("changed", "Changed and active."),
    ("confirmed", "Confirmed. The configuration stays active."),
    ("dialled", "The peer is being dialled."),
    ("dismissed", "The trial is ended. The live chain is unchanged."),
    ("draining", "The appliance accepts no new messages. Waiting messages are sent."),
    ("filled", "The table is filled. Plugins read the new rows from now on."),
    ("funded", "Done. The balance below includes the change."),
    ("given-up", "Given up. The submitter gets a DLR if it requested one."),
    ("goes-on", "The opt-out is removed: messages of this sender are sent to this subscriber again."),
    ("handed-over", "This node stops. Another node leads, at its own address."),
    ("level", "The log level is changed until the next start."),
    ("next-start", "It takes effect at the next start of the machine."),
    (
        "started",
        "The queue action is active. It applies to messages that wait now and to messages that arrive later.",
    ),
    ("password", "Your password is changed; your other sessions have ended."),
    ("pinged", "The silent short message is accepted. This is its trace."),
    ("promoted", "The candidate is live."),
    ("pulled", "The version is stored. It is not used until you activate it or put it on trial."),
    ("purged", "The messages are purged: they end as rejected."),
    ("released", "The messages are released: they are routed."),
    ("removed", "Removed."),
    ("restarting", "The machine restarts. This page answers again when it is ready, in about a minute."),
    ("resumed", "The appliance accepts messages again."),
    ("retried", "The message is retried now."),
    ("reverted", "Reverted. The earlier configuration is active again."),
    ("rolled-back", "Rolled back to the chain that was live before."),
    ("sent", "The test message is accepted. This is its trace."),
    ("sent-again", "The message is sent again."),
    ("stopped", "The opt-out is added: no messages of this sender are sent to this subscriber."),
    ("unchanged", "There were no differences, so nothing was changed."),
    ("undone", "Undone. The messages that the action held continue."),
    ("uploaded", "The version is stored. It is not used until you activate it or put it on trial."),
    ("woken", "The deferred messages of the subscriber are retried now."),
];

/// The logo.
fn logo() -> Markup {
    PreEscaped(
        r#"<svg class="logo" viewBox="0 0 32 32" aria-hidden="true"><path d="M3 9h26M3 23h26M8 23 20 9" fill="none" stroke="currentColor" stroke-width="3" stroke-linecap="round"/><circle cx="20" cy="9" r="3.2"/></svg>"#
            .to_owned(),
    )
}

fn document(title: &str, theme: &str, live: bool, body: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" data-theme=(theme) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content=(match theme { "dark" => "dark", "light" => "light", _ => "light dark" });
                title { (title) " · Switchyard" }
                link rel="icon" href="/assets/logo.svg" type="image/svg+xml";
                link rel="stylesheet" href="/assets/console.css";
                @if live { script src="/assets/console.js" defer {} }
            }
            body { (body) }
        }
    }
}

/// An HTML response.
pub(crate) fn html_response(status: StatusCode, markup: Markup) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (status, headers, markup.into_string()).into_response()
}

/// An error of the API as a notice.
pub(crate) fn error_notice(error: &ApiError) -> Markup {
    let head = match error.status.as_u16() {
        401 => "You are not logged in",
        403 => "This is not allowed",
        404 => "Not found",
        409 => "This is not possible now",
        412 => "Changed by another user meanwhile",
        422 => "This was refused, and nothing was changed",
        429 => "Too many requests",
        503 => "The appliance is not available",
        status if status >= 500 => "Internal error",
        _ => "This request is not valid, and nothing was changed",
    };
    html! {
        div.notice.bad role="alert" {
            strong { (head) }
            p { (crate::format::with_times(&error.detail)) }
            @if let Some(after) = &error.retry_after { p { "Try again in " (after) " seconds." } }
            @if error.status.as_u16() == 412 {
                p { "The page below shows the current state; your input is kept." }
            }
        }
    }
}

/// The problems of a document as a list.
pub(crate) fn problem_list(error: &ApiError) -> Markup {
    html! {
        @if !error.problems.is_empty() {
            ul.problems {
                @for problem in error.problems.iter().take(crate::table::MAX_ROWS) {
                    li {
                        code { (if problem.pointer.is_empty() { "/" } else { &problem.pointer }) } " " (problem.what)
                        @if let Some(allowed) = &problem.allowed { " " span.muted { "Allowed: " (allowed) } }
                    }
                }
            }
        }
    }
}

/// A page without navigation, for users who are not logged in.
pub(crate) fn bare_page(headers: &HeaderMap, status: StatusCode, title: &str, body: &Markup) -> Response {
    let body = html! {
        a.skip href="#content" { "Skip to the content" }
        main #content.narrow tabindex="-1" {
            div.brand { (logo()) "Switchyard" }
            (body)
        }
    };
    html_response(status, document(title, theme(headers), false, &body))
}

/// An error page without navigation.
pub(crate) fn error_page(headers: &HeaderMap, error: &ApiError) -> Response {
    let body = html! { h1 { "Error" } (error_notice(error)) p { a href="/" { "To the overview" } } };
    bare_page(headers, error.status, "Error", &body)
}

/// The hidden field with the CSRF token of the session.
pub(crate) fn csrf_field(context: &RequestContext) -> Markup {
    html! { input type="hidden" name="csrf" value=(context.principal.csrf.as_deref().unwrap_or_default()); }
}

/// A button in a form of its own.
pub(crate) fn action_button(
    context: &RequestContext,
    action: &str,
    label: &str,
    class: &str,
    fields: &[(&str, &str)],
) -> Markup {
    html! {
        form.inline method="post" action=(action) {
            (csrf_field(context))
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            // The script asks for confirmation before dangerous actions.
            button.(class) type="submit" data-confirm=[(class == "danger").then(|| format!("{label}?"))] { (label) }
        }
    }
}

fn footer_bar(context: &RequestContext) -> Markup {
    html! {
        footer {
            form.inline method="post" action="/theme" {
                input type="hidden" name="back" value=(context.path);
                label for="theme" { "Colours" }
                select #theme name="theme" {
                    @for (value, name) in [("system", "system"), ("light", "light"), ("dark", "dark")] {
                        option value=(value) selected[context.theme == value] { (name) }
                    }
                }
                button.quiet type="submit" { "Set" }
            }
            span.muted #zone { "All times are UTC." }
        }
    }
}

/// The query of the search, from the path of its page.
fn search_query(path: &str) -> String {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let value = query.split('&').find_map(|pair| pair.strip_prefix("q=")).unwrap_or_default();
    percent_decode_str(&value.replace('+', " ")).decode_utf8_lossy().into_owned()
}

/// The keys of the script, shown by the key `?`.
fn keys_dialog() -> Markup {
    let keys: &[(&str, &str)] = &[
        ("/", "Search"),
        ("\u{2191} \u{2193}", "Choose a result"),
        ("Enter", "Open it"),
        ("g o", "Overview"),
        ("g m", "Messages"),
        ("g q", "Queues"),
        ("g p", "Peers"),
        ("g a", "Accounts"),
        ("g c", "Configuration"),
        ("?", "These keys"),
        ("Esc", "Close"),
    ];
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keys" }
            dl { @for (key, meaning) in keys { div { dt { kbd { (key) } } dd { (meaning) } } } }
            form method="dialog" { button type="submit" { "Close" } }
        }
    }
}

/// A page, or its error.
pub(crate) fn page(
    context: &RequestContext,
    title: &str,
    item: NavItem,
    body: Result<Markup, ApiError>,
) -> Response {
    live_page(context, title, item, None, body)
}

/// A page with live regions, which are updated from the event stream `live`.
pub(crate) fn live_page(
    context: &RequestContext,
    title: &str,
    item: NavItem,
    live: Option<&str>,
    body: Result<Markup, ApiError>,
) -> Response {
    let (status, title, body) = match body {
        Ok(body) => (StatusCode::OK, title, body),
        Err(error) => {
            (error.status, "Error", html! { h1 { (title) } (error_notice(&error)) (problem_list(&error)) })
        }
    };
    let done = context.done.as_deref().and_then(|word| NOTICES.iter().find(|(name, _)| *name == word));
    let query = if item == NavItem::Search { search_query(&context.path) } else { String::new() };
    let body = html! {
        a.skip href="#content" { "Skip to the content" }
        header.top {
            a.brand href="/" { (logo()) span { "Switchyard" } }
            details.menu {
                summary { "Menu" }
                nav aria-label="Main, small" { (nav_list(context, item)) }
            }
            form.find role="search" aria-label="Everything" action="/search" {
                label.visually-hidden for="find" { "Search" }
                input #find type="search" name="q" value=(query) maxlength="100" autocomplete="off" spellcheck="false" placeholder="Id, number, name, key" aria-keyshortcuts="/";
                kbd aria-hidden="true" { "/" }
                ul #suggestions role="listbox" aria-label="Results" hidden {}
            }
            div.session {
                (partition::choice(context))
                a href="/profile" aria-current=[(item == NavItem::Profile).then_some("page")] { (context.principal.user) " (" (context.principal.role) ")" }
                (action_button(context, "/logout", "Log out", "quiet", &[]))
            }
        }
        div.body {
            nav.side aria-label="Main" { (nav_list(context, item)) }
            main #content tabindex="-1" data-live=[live] {
                @if let Some((_, words)) = done { div.notice.good role="status" { p { (words) } } }
                (chapter_link(item))
                (body)
                @if live.is_some() { noscript { p.muted { "This page is not updated without scripts. " a href=(context.path) { "Reload" } } } }
            }
        }
        (footer_bar(context))
        (keys_dialog())
    };
    html_response(status, document(title, context.theme, true, &body))
}
