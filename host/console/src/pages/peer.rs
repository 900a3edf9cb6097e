//! One peer, one gateway or one account: how it stands, its settings, a test of its connection.

use crate::ask::{Refusal, part, with_query};
use crate::documents::{Document, merge_patch};
use crate::form::Form;
use crate::live::Region;
use crate::pages::standing::{links, queues};
use crate::settings::{self, ACCOUNT, Field, GATEWAY, HASH, PEER};
use crate::shell::{Room, csrf, live_page, problems, trouble};
use crate::table::{facts, table};
use crate::visit::Visit;
use crate::words::{ago, count, figure, moment, number, sentence, state, text};
use axum::extract::Path;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

struct Kind {
    list: &'static str,
    one: &'static str,
    path: &'static str,
    room: Room,
    fields: &'static [Field],
    /// Its messages are found by this.
    sought_by: &'static str,
}

const PEERS: Kind =
    Kind { list: "peer", one: "peer", path: "/peers", room: Room::Peers, fields: PEER, sought_by: "peer" };
const GATEWAYS: Kind = Kind {
    list: "gateway",
    one: "gateway",
    path: "/gateways",
    room: Room::Gateways,
    fields: GATEWAY,
    sought_by: "peer",
};
const ACCOUNTS: Kind = Kind {
    list: "account",
    one: "account",
    path: "/accounts",
    room: Room::Accounts,
    fields: ACCOUNT,
    sought_by: "account",
};

/// What a page says beside what there is.
#[derive(Default)]
struct Said<'a> {
    form: Option<&'a Form>,
    refusal: Option<&'a Refusal>,
    /// How a test of the connection went.
    test: Option<&'a Value>,
    /// What counts only after a restart.
    restart: Vec<String>,
}

pub(crate) async fn show_peer(visit: Visit, Path(name): Path<String>) -> Response {
    draw(&visit, &PEERS, &name, &Said::default()).await
}

pub(crate) async fn show_gateway(visit: Visit, Path(name): Path<String>) -> Response {
    draw(&visit, &GATEWAYS, &name, &Said::default()).await
}

pub(crate) async fn show_account(visit: Visit, Path(name): Path<String>) -> Response {
    draw(&visit, &ACCOUNTS, &name, &Said::default()).await
}

/// The live parts of the page. `list` is `peer`, `gateway` or `account`.
pub(crate) async fn regions(visit: &Visit, list: &str, name: &str) -> Result<Vec<Region>, Refusal> {
    let (queues, links) = tokio::join!(queues(visit), links(visit));
    let (queues, links) = (queues?, links?);
    let queue = queues.iter().find(|queue| queue.peer == name);
    let rows: Vec<_> = links
        .iter()
        .filter(|link| link.peer == name)
        .map(|link| {
            vec![
                state(&link.phase),
                html! { (link.remote.as_deref().unwrap_or("—")) @if link.tls { " " span.badge.good { "TLS" } } },
                html! { (link.bind.as_deref().unwrap_or("—")) },
                html! { (link.in_flight) " of " (link.window) },
                html! { (link.round_trip().map_or_else(|| "—".to_owned(), |ms| format!("{} ms", figure(ms)))) },
                html! { (if link.brake == "none" { "nothing".to_owned() } else { sentence(&link.brake).replace('-', " ") }) },
                html! { @if link.since > 0 { (ago(link.since)) } @else { "—" } },
                html! {
                    (link.last_error.as_deref().unwrap_or("—"))
                    @if let Some(at) = link.back_off_until { " " span.muted { "dialled again " (ago(at)) } }
                },
            ]
        })
        .collect();
    let waits = links.iter().any(|link| link.peer == name && link.back_off_until.is_some());
    let dial = format!("/{list}s/{}/dial", part(name));
    let heads =
        &["State", "Other end", "Bound as", "On their way", "Answer", "Limited by", "Since", "Last trouble"];
    let empty = html! { p { "Nobody is connected." } };
    Ok(vec![
        (
            "links",
            html! {
                h2 { "Links" }
                (table("Links", heads, &rows, &empty))
                @if waits && list != "account" && visit.may("operate") {
                    form.inline method="post" action=(dial) { (csrf(visit)) button type="submit" { "Dial now" } }
                }
            },
        ),
        (
            "queue",
            html! {
                h2 { "Queue" }
                @match queue {
                    Some(queue) => {
                        (facts(&[
                            ("Queued", html! { (count(queue.queued + queue.aside)) }),
                            ("Deferred", html! { (count(queue.deferred)) }),
                            ("On their way", html! { (count(queue.in_flight)) }),
                            ("Uncertain", html! { @if queue.uncertain > 0 { a href="/uncertain" { (count(queue.uncertain)) } } @else { "0" } }),
                            ("Receipts to come", html! { (count(queue.awaiting_receipt)) }),
                            ("Oldest", html! { @match queue.oldest { Some(at) => { (moment(at)) " " span.muted { (ago(at)) } } None => { "—" } } }),
                            ("Limited by", html! { (sentence(&queue.brake)) }),
                            ("Learnt rate", html! { @match queue.learnt_rate { Some(rate) => { (format!("{rate:.1} messages a second")) } None => { span.muted { "the peer has never answered \"too fast\"" } } } }),
                        ]))
                    }
                    None => { p { "Nothing has been queued for it yet." } }
                }
            },
        ),
    ])
}

async fn draw(visit: &Visit, kind: &Kind, name: &str, said: &Said<'_>) -> Response {
    let is_new = name == "new";
    let title = if is_new { format!("A new {}", kind.one) } else { name.to_owned() };
    let body = parts(visit, kind, name, is_new, &title, said).await;
    let live = (!is_new && body.is_ok()).then(|| format!("/live?of={}&id={}", kind.list, part(name)));
    let mut response = live_page(visit, &title, kind.room, live.as_deref(), body);
    if let Some(refusal) = said.refusal {
        *response.status_mut() = refusal.status;
    }
    response
}

async fn parts(
    visit: &Visit,
    kind: &Kind,
    name: &str,
    is_new: bool,
    title: &str,
    said: &Said<'_>,
) -> Result<Markup, Refusal> {
    let document = visit.console.documents.known(visit).await?;
    let one = document.one(kind.list, name);
    if one.is_none() && !is_new {
        let detail = format!("There is no {} {name:?} in the configuration.", kind.one);
        return Err(Refusal::new(StatusCode::NOT_FOUND, detail));
    }
    let live = if is_new { Vec::new() } else { regions(visit, kind.list, name).await? };
    let refusals = if kind.list == "account" && !is_new {
        visit.look(&with_query("/v1/refusals", &[("account", name), ("limit", "20")])).await
    } else {
        None
    };
    Ok(html! {
        div.head {
            h1 { (title) }
            @if !is_new && visit.may("operate") {
                @if kind.list != "account" {
                    form.inline method="post" action=(format!("{}/{}/test", kind.path, part(name))) { (csrf(visit)) button type="submit" { "Test the connection" } }
                } @else {
                    a.button href=(with_query("/messages/new", &[("account", name)])) { "Send a test message" }
                }
            }
            @if !is_new { a.button.quiet href=(with_query("/messages", &[(kind.sought_by, name)])) { "Its messages" } }
        }
        @if let Some(refusal) = said.refusal { (trouble(refusal)) (problems(&settings::elsewhere(kind.fields, refusal))) }
        @if !said.restart.is_empty() {
            div.notice.warn role="status" {
                strong { "Kept, and not in use yet" }
                p { "This counts after the next start: " @for pointer in &said.restart { code { (pointer) } " " } }
            }
        }
        @if let Some(test) = said.test { (tested(test)) }
        @for (id, part) in live { section.card id=(id) { (part) } }
        @if let Some(refusals) = &refusals { (refused(refusals)) }
        @if visit.may("configure") {
            (editor(visit, kind, &document, one, is_new, said))
            @if !is_new { (removal(visit, kind, &document, name)) }
        } @else if let Some(one) = one {
            (settled(one))
        }
    })
}

/// Submissions of an account that were refused: counts, and the last of them.
fn refused(refusals: &Value) -> Markup {
    let list = |name: &str| refusals[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let counts = list("counts").iter().map(|one| {
        vec![
            html! { (text(one, "code")) },
            html! { (text(one, "protocol")) },
            html! { (count(number(one, "count"))) },
        ]
    });
    let last = list("refusals").iter().map(|one| {
        vec![
            moment(number(one, "at")),
            html! { (text(one, "protocol")) },
            html! { (text(one, "source")) },
            html! { (text(one, "destination")) },
            html! { (text(one, "reason")) },
        ]
    });
    let (counts, last): (Vec<_>, Vec<_>) = (counts.collect(), last.collect());
    let nothing = html! { p { "No submission was refused since the start of the daemon." } };
    html! {
        section.card #refusals {
            h2 { "Refused submissions" }
            (table("Refused messages since the start of the daemon", &["Code", "Protocol", "Messages"], &counts, &nothing))
            @if !last.is_empty() {
                h3 { "The last of them" }
                (table("The last refused submissions", &["Time", "Protocol", "From", "To", "Reason"], &last, &html! {}))
            }
        }
    }
}

/// The settings for those who may not change them.
fn settled(one: &Value) -> Markup {
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

/// Why, and whether it goes back by itself: what every change of the configuration asks.
pub(crate) fn reasons(why: &str) -> Markup {
    html! {
        p { label for="why" { "Why" } input #why name="why" value=(why) maxlength="256" autocomplete="off" aria-describedby="why-hint"; small #why-hint { "Kept with the version, for those who come after you." } }
        p {
            label for="within" { "Goes back by itself" }
            select #within name="within" {
                option value="" { "no" }
                @for (value, name) in [("2m", "unless I confirm it within 2 minutes"), ("10m", "unless I confirm it within 10 minutes"), ("1h", "unless I confirm it within an hour")] {
                    option value=(value) { (name) }
                }
            }
        }
    }
}

fn editor(
    visit: &Visit,
    kind: &Kind,
    document: &Document,
    one: Option<&Value>,
    is_new: bool,
    said: &Said<'_>,
) -> Markup {
    let nothing = json!({});
    let shown = said.form.cloned().unwrap_or_else(|| settings::texts(kind.fields, one.unwrap_or(&nothing)));
    let action =
        format!("{}/{}", kind.path, one.map_or_else(|| "new".to_owned(), |one| part(text(one, "name"))));
    html! {
        section.card {
            h2 { "Settings" }
            form.fields method="post" action=(action) {
                (csrf(visit))
                input type="hidden" name="tag" value=(document.tag);
                @if is_new {
                    (settings::labelled("name", "Name", "Letters, digits, - and _; it cannot be changed later.", said.refusal, |describes, _| html! {
                        input #field-name name="name" value=(shown.text("name")) required maxlength="64" autocomplete="off" spellcheck="false" aria-describedby=(describes);
                    }))
                }
                (settings::fields(kind.fields, &shown, is_new, said.refusal))
                (reasons(shown.text("why")))
                p.do { button.primary type="submit" name="do" value="save" { (if is_new { "Add it" } else { "Apply" }) } }
                p.muted { "Only this " (kind.one) "'s own connections are touched." }
            }
        }
    }
}

fn removal(visit: &Visit, kind: &Kind, document: &Document, name: &str) -> Markup {
    html! {
        details.card.removal {
            summary { "Remove this " (kind.one) }
            p { "Its connections are closed. What waits for it stays, and is listed under queues as not configured." }
            form.fields method="post" action=(format!("{}/{}", kind.path, part(name))) {
                (csrf(visit))
                input type="hidden" name="tag" value=(document.tag);
                p { label for="why-remove" { "Why" } input #why-remove name="why" maxlength="256" autocomplete="off"; }
                p.do { button.danger type="submit" name="do" value="remove" { "Remove " (name) } }
            }
        }
    }
}

fn tested(test: &Value) -> Markup {
    let ok = test["ok"].as_bool() == Some(true);
    html! {
        section.card #test role="status" {
            h2 { "Test of the connection: " (if ok { "it works" } else { "it does not work" }) }
            ol.checks {
                @for step in test["steps"].as_array().into_iter().flatten() {
                    @let ok = step["ok"].as_bool() == Some(true);
                    li {
                        (state(if ok { "ok" } else { "failed" })) " " (text(step, "what")) " "
                        span.muted { (number(step, "ms")) " ms" }
                        @if let Some(detail) = step["detail"].as_str() { p { (detail) } }
                    }
                }
            }
        }
    }
}

pub(crate) async fn test_peer(visit: Visit, Path(name): Path<String>, form: Form) -> Response {
    test(&visit, &PEERS, &name, &form).await
}

pub(crate) async fn test_gateway(visit: Visit, Path(name): Path<String>, form: Form) -> Response {
    test(&visit, &GATEWAYS, &name, &form).await
}

async fn test(visit: &Visit, kind: &Kind, name: &str, form: &Form) -> Response {
    let asked = visit.send(Method::POST, &format!("/v1/peers/{}/test", part(name)), form, None).await;
    match asked.and_then(|answer| answer.read::<Value>()) {
        Ok(told) => draw(visit, kind, name, &Said { test: Some(&told), ..Said::default() }).await,
        Err(refusal) => draw(visit, kind, name, &Said { refusal: Some(&refusal), ..Said::default() }).await,
    }
}

pub(crate) async fn dial_peer(visit: Visit, Path(name): Path<String>, form: Form) -> Response {
    dial(&visit, &PEERS, &name, &form).await
}

pub(crate) async fn dial_gateway(visit: Visit, Path(name): Path<String>, form: Form) -> Response {
    dial(&visit, &GATEWAYS, &name, &form).await
}

async fn dial(visit: &Visit, kind: &Kind, name: &str, form: &Form) -> Response {
    match visit.send(Method::POST, &format!("/v1/peers/{}/dial", part(name)), form, None).await {
        Ok(_) => Visit::to(&format!("{}/{}", kind.path, part(name)), "dialled"),
        Err(refusal) => draw(visit, kind, name, &Said { refusal: Some(&refusal), ..Said::default() }).await,
    }
}

pub(crate) async fn change_peer(visit: Visit, Path(name): Path<String>, form: Form) -> Response {
    change(&visit, &PEERS, &name, &form).await
}

pub(crate) async fn change_gateway(visit: Visit, Path(name): Path<String>, form: Form) -> Response {
    change(&visit, &GATEWAYS, &name, &form).await
}

pub(crate) async fn change_account(visit: Visit, Path(name): Path<String>, form: Form) -> Response {
    change(&visit, &ACCOUNTS, &name, &form).await
}

async fn change(visit: &Visit, kind: &Kind, place: &str, form: &Form) -> Response {
    match wish(visit, kind, place, form).await {
        Ok(Done::Nothing) => Visit::to(&format!("{}/{}", kind.path, part(place)), "unchanged"),
        Ok(Done::Removed) => Visit::to(kind.path, "removed"),
        Ok(Done::Kept { name, restart }) if restart.is_empty() => {
            let done = if place == "new" { "added" } else { "changed" };
            Visit::to(&format!("{}/{}", kind.path, part(&name)), done)
        }
        Ok(Done::Kept { name, restart }) => {
            draw(visit, kind, &name, &Said { restart, ..Said::default() }).await
        }
        Err(refusal) => {
            let said = Said { form: Some(form), refusal: Some(&refusal), ..Said::default() };
            draw(visit, kind, place, &said).await
        }
    }
}

enum Done {
    Nothing,
    Removed,
    Kept { name: String, restart: Vec<String> },
}

async fn wish(visit: &Visit, kind: &Kind, place: &str, form: &Form) -> Result<Done, Refusal> {
    let is_new = place == "new";
    let name = if is_new { form.text("name") } else { place };
    if form.text("do") == "remove" {
        patch(visit, form, &json!({ kind.list: { name: null } })).await?;
        return Ok(Done::Removed);
    }
    if name.is_empty() || name == "new" {
        return Err(Refusal::bad("A name is needed, and it cannot be \"new\"."));
    }
    let document = visit.console.documents.known(visit).await?;
    let known = document.one(kind.list, name);
    if is_new && known.is_some() {
        return Err(Refusal::new(StatusCode::CONFLICT, format!("There is a {} {name:?} already.", kind.one)));
    }
    let before = known.cloned().unwrap_or_else(|| json!({ "name": name }));
    let mut after = settings::read(kind.fields, form, &before)?;
    if kind.list == "account" {
        hashed(&before, &mut after).await?;
    }
    let nothing = json!({});
    let difference = merge_patch(if is_new { &nothing } else { &before }, &after);
    if difference.as_object().is_some_and(serde_json::Map::is_empty) {
        return Ok(Done::Nothing);
    }
    let told = patch(visit, form, &json!({ kind.list: { name: difference } })).await?;
    let restart = told["restart"].as_array().into_iter().flatten();
    let restart = restart.map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned)).collect();
    Ok(Done::Kept { name: name.to_owned(), restart })
}

/// An account's password is not kept: its hash is, and nobody but this function has seen the password.
async fn hashed(before: &Value, after: &mut Value) -> Result<(), Refusal> {
    let Some(after) = after.as_object_mut() else { return Ok(()) };
    let hash = match after.remove("password") {
        Some(Value::String(password)) => {
            let hash = tokio::task::spawn_blocking(move || doors::hash_password(password.as_bytes())).await;
            let failed = |why: String| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, why);
            hash.map_err(|error| failed(error.to_string()))?
                .map_err(|error| failed(error.to_string()))?
                .into()
        }
        _ => match before.get(HASH) {
            Some(known) => known.clone(),
            None => {
                let problem = crate::ask::Misplaced {
                    pointer: "/account/new/password".to_owned(),
                    what: "A new account needs a password.".to_owned(),
                    allowed: String::new(),
                };
                return Err(Refusal { problems: vec![problem], ..Refusal::bad("One thing is missing.") });
            }
        },
    };
    after.insert(HASH.to_owned(), hash);
    Ok(())
}

/// Merges something into the configuration, as the form's reasons say.
pub(crate) async fn patch(visit: &Visit, form: &Form, patch: &Value) -> Result<Value, Refusal> {
    let path = with_query(
        "/v1/configuration",
        &[("why", form.text("why")), ("confirm-within", form.text("within"))],
    );
    let sent = crate::ask::Sent {
        csrf: form.text("csrf"),
        body: patch.to_string().into(),
        media_type: "application/merge-patch+json",
        headers: vec![("if-match", form.text("tag").to_owned())],
    };
    visit.asker.ask(Method::PATCH, &path, sent).await?.read()
}
