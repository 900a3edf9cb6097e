//! What stands around every page: its head, the ways to the others, what was just done, what went wrong.

use crate::ask::Refusal;
use crate::visit::{Visit, theme};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// The parts of the console.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Overview,
    Messages,
    Queues,
    Peers,
    Gateways,
    Networks,
    Accounts,
    Plugins,
    Policies,
    Tables,
    Pools,
    OptOuts,
    Ledger,
    Archive,
    Configuration,
    People,
    Audit,
    Maintenance,
    Own,
}

/// A room, its path, its name, and the right without which there is no point in going there.
type Door = (Room, &'static str, &'static str, &'static str);

/// What belongs together, under one head; the first needs none.
const FLOORS: &[(&str, &[Door])] = &[
    (
        "",
        &[
            (Room::Overview, "/", "Overview", "read"),
            (Room::Messages, "/messages", "Messages", "own"),
            (Room::Queues, "/queues", "Queues", "read"),
        ],
    ),
    (
        "Connections",
        &[
            (Room::Peers, "/peers", "Peers", "read"),
            (Room::Accounts, "/accounts", "Accounts", "read"),
            (Room::Gateways, "/gateways", "Gateways", "read"),
            (Room::Networks, "/networks", "GSM networks", "read"),
        ],
    ),
    (
        "Decisions",
        &[
            (Room::Plugins, "/plugins", "Plugins", "read"),
            (Room::Policies, "/policies", "Policies", "read"),
            (Room::Tables, "/tables", "Lookup tables", "read"),
            (Room::Pools, "/pools", "Number pools", "read"),
            (Room::OptOuts, "/opt-outs", "Opt-outs", "read"),
        ],
    ),
    (
        "Books",
        &[
            (Room::Ledger, "/ledger", "Ledger", "read"),
            (Room::Archive, "/archive", "Archive", "read"),
            (Room::Audit, "/audit", "Audit", "manage-users"),
        ],
    ),
    (
        "Appliance",
        &[
            (Room::Configuration, "/configuration", "Configuration", "read"),
            (Room::People, "/people", "Users and tokens", "manage-users"),
            (Room::Maintenance, "/maintenance", "Maintenance", "read"),
        ],
    ),
];

/// What was just done, by the word in the address: texts of ours only, so that nobody can put words into a link.
const DONE: &[(&str, &str)] = &[
    ("activated", "The plugin is live."),
    ("added", "Added. It is in use already."),
    ("cancelled", "The message is cancelled."),
    ("candidate", "The candidate is on trial. What it does is counted below."),
    ("changed", "Changed. It is in use already."),
    ("confirmed", "Confirmed. The configuration stays as it is."),
    ("dialled", "The peer is being dialled."),
    ("dismissed", "The trial has ended; what was live stays live."),
    ("draining", "The appliance takes nothing new; what waits goes out."),
    ("filled", "The table is filled. Plugins that ask it are given the new rows."),
    ("funded", "Done. The balance below is as it is after that."),
    ("given-up", "Given up. Its submitter is told as its receipts want it."),
    ("goes-on", "So it is from now on: messages of this sender go to this subscriber again."),
    ("level", "The log level is changed until the next start."),
    ("next-start", "It counts from the next start of the machine."),
    ("ordered", "The order stands. It holds for what waits now and for what comes later."),
    ("password", "Your password is changed; your other sessions have ended."),
    ("pinged", "The silent short message is accepted. This is its trace."),
    ("promoted", "The candidate is live."),
    ("removed", "Removed."),
    (
        "restarting",
        "The machine starts anew. This page answers again when it is ready, which takes a minute or so.",
    ),
    ("resumed", "The appliance takes messages again."),
    ("retried", "The message is tried again at once."),
    ("reverted", "Taken back. The configuration is as it was before."),
    ("rolled-back", "Rolled back to what was live before."),
    ("sent", "The test message is accepted. This is its trace."),
    ("sent-again", "It is sent again."),
    ("stopped", "So it is from now on: nothing of this sender goes to this subscriber."),
    ("unchanged", "Nothing was different, so nothing was changed."),
    ("undone", "Undone. What the order held goes its way again."),
    ("uploaded", "The version is kept. It decides nothing until it is activated or tried out."),
    ("woken", "Its messages that had failed are tried now."),
];

/// The sign of the house: two tracks and the points between them.
fn sign() -> Markup {
    PreEscaped(
        r#"<svg class="sign" viewBox="0 0 32 32" aria-hidden="true"><path d="M3 9h26M3 23h26M8 23 20 9" fill="none" stroke="currentColor" stroke-width="3" stroke-linecap="round"/><circle cx="20" cy="9" r="3.2"/></svg>"#
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
                link rel="icon" href="/assets/sign.svg" type="image/svg+xml";
                link rel="stylesheet" href="/assets/console.css";
                @if live { script src="/assets/console.js" defer {} }
            }
            body { (body) }
        }
    }
}

/// A page as an answer.
pub(crate) fn answer(status: StatusCode, markup: Markup) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/html; charset=utf-8")];
    (status, headers, markup.into_string()).into_response()
}

/// What went wrong, in the API's words.
pub(crate) fn trouble(refusal: &Refusal) -> Markup {
    let head = match refusal.status.as_u16() {
        401 => "You are not logged in",
        403 => "This is not allowed",
        404 => "There is no such thing",
        409 => "This is not possible now",
        412 => "Somebody was faster",
        422 => "This was refused, and nothing was changed",
        429 => "Too often",
        503 => "The appliance is not available",
        status if status >= 500 => "Something went wrong inside",
        _ => "This was not understood, and nothing was changed",
    };
    html! {
        div.notice.bad role="alert" {
            strong { (head) }
            p { (crate::words::sentence(&refusal.detail)) }
            @if let Some(after) = &refusal.retry_after { p { "Try again in " (after) " seconds." } }
            @if refusal.status.as_u16() == 412 {
                p { "What you see below is what there is now; your own text is kept where there was one." }
            }
        }
    }
}

/// Everything that is wrong with a document.
pub(crate) fn problems(refusal: &Refusal) -> Markup {
    html! {
        @if !refusal.problems.is_empty() {
            ul.problems {
                @for problem in refusal.problems.iter().take(crate::table::MOST) {
                    li {
                        code { (if problem.pointer.is_empty() { "/" } else { &problem.pointer }) } " " (problem.what)
                        @if !problem.allowed.is_empty() { " " span.muted { "Allowed: " (problem.allowed) } }
                    }
                }
            }
        }
    }
}

/// A page for those who are not logged in.
pub(crate) fn outside(headers: &HeaderMap, status: StatusCode, title: &str, body: &Markup) -> Response {
    let whole = html! {
        a.skip href="#content" { "Skip to the content" }
        main #content.outside tabindex="-1" {
            div.brand { (sign()) "Switchyard" }
            (body)
        }
    };
    answer(status, document(title, theme(headers), false, &whole))
}

/// A refusal where there is no visitor to show a whole page to.
pub(crate) fn alone(headers: &HeaderMap, refusal: &Refusal) -> Response {
    let body = html! { h1 { "That did not work" } (trouble(refusal)) p { a href="/" { "To the overview" } } };
    outside(headers, refusal.status, "Trouble", &body)
}

/// A field of a form that says whose form it is.
pub(crate) fn csrf(visit: &Visit) -> Markup {
    html! { input type="hidden" name="csrf" value=(visit.who.csrf.as_deref().unwrap_or_default()); }
}

/// A button that is a form of its own.
pub(crate) fn button(
    visit: &Visit,
    action: &str,
    label: &str,
    class: &str,
    fields: &[(&str, &str)],
) -> Markup {
    html! {
        form.inline method="post" action=(action) {
            (csrf(visit))
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            // What is hard to undo is asked about once more, where there are scripts.
            button.(class) type="submit" data-ask=[(class == "danger").then(|| format!("{label}?"))] { (label) }
        }
    }
}

fn rooms(visit: &Visit, here: Room) -> Markup {
    html! {
        @for (name, doors) in FLOORS {
            @let mut open = doors.iter().filter(|(.., right)| visit.may(right)).peekable();
            @if open.peek().is_some() {
                @if !name.is_empty() { p { (name) } }
                ul {
                    @for (room, path, name, _) in open {
                        li { a href=(path) aria-current=[(*room == here).then_some("page")] { (name) } }
                    }
                }
            }
        }
    }
}

fn foot(visit: &Visit) -> Markup {
    html! {
        footer {
            form.inline method="post" action="/theme" {
                input type="hidden" name="back" value=(visit.here);
                label for="theme" { "Colours" }
                select #theme name="theme" {
                    @for (value, name) in [("system", "as the system"), ("light", "light"), ("dark", "dark")] {
                        option value=(value) selected[visit.theme == value] { (name) }
                    }
                }
                button.quiet type="submit" { "Set" }
            }
            span.muted { "All times are UTC." }
        }
    }
}

/// A page, or what went wrong instead.
pub(crate) fn page(visit: &Visit, title: &str, room: Room, body: Result<Markup, Refusal>) -> Response {
    live_page(visit, title, room, None, body)
}

/// A page whose live parts are kept up to date from `live`.
pub(crate) fn live_page(
    visit: &Visit,
    title: &str,
    room: Room,
    live: Option<&str>,
    body: Result<Markup, Refusal>,
) -> Response {
    let (status, title, body) = match body {
        Ok(body) => (StatusCode::OK, title, body),
        Err(refusal) => {
            (refusal.status, "Trouble", html! { h1 { (title) } (trouble(&refusal)) (problems(&refusal)) })
        }
    };
    let done = visit.done.as_deref().and_then(|word| DONE.iter().find(|(name, _)| *name == word));
    let whole = html! {
        a.skip href="#content" { "Skip to the content" }
        header.top {
            a.brand href="/" { (sign()) span { "Switchyard" } }
            details.menu {
                summary { "Menu" }
                nav aria-label="Rooms, small" { (rooms(visit, room)) }
            }
            div.who {
                a href="/own" aria-current=[(room == Room::Own).then_some("page")] { (visit.who.user) " (" (visit.who.role) ")" }
                (button(visit, "/logout", "Log out", "quiet", &[]))
            }
        }
        div.body {
            nav.side aria-label="Rooms" { (rooms(visit, room)) }
            main #content tabindex="-1" data-live=[live] {
                @if let Some((_, words)) = done { div.notice.good role="status" { p { (words) } } }
                (body)
                @if live.is_some() { noscript { p.muted { "This page is as it was when you opened it. " a href=(visit.here) { "Look again" } } } }
            }
        }
        (foot(visit))
    };
    answer(status, document(title, visit.theme, true, &whole))
}
