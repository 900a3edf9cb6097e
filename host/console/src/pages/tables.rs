//! Lookup tables: what plugins may look into, and what a table says of a key.

use crate::ask::{Refusal, Sent, part, with_query};
use crate::form::Form;
use crate::pages::Asked;
use crate::shell::{Room, button, csrf, page, trouble};
use crate::table::{Part, facts, table};
use crate::visit::Visit;
use crate::words::{count, number, octets, text};
use axum::body::Bytes;
use axum::extract::{Multipart, Query};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

const KINDS: &[(&str, &str)] =
    &[("prefix", "by the longest key that a number begins with"), ("exact", "for exactly the key")];

pub(crate) async fn show(visit: Visit, Query(query): Asked) -> Response {
    draw(&visit, &Form::of(query), None).await
}

async fn draw(visit: &Visit, query: &Form, refusal: Option<&Refusal>) -> Response {
    let body = parts(visit, query, refusal).await;
    let mut response = page(visit, "Lookup tables", Room::Tables, body);
    if let Some(refusal) = refusal {
        *response.status_mut() = refusal.status;
    }
    response
}

async fn parts(visit: &Visit, query: &Form, refusal: Option<&Refusal>) -> Result<Markup, Refusal> {
    let tables: Vec<Value> = visit.get("/v1/tables").await?;
    let configures = visit.may("configure");
    let shown = Part::new(tables.len(), query.text("page"));
    let rows: Vec<_> = tables[shown.from..shown.upto]
        .iter()
        .map(|one| {
            let name = text(one, "name");
            let kind = KINDS.iter().find(|(kind, _)| *kind == text(one, "kind"));
            let mut row = vec![
                html! { a href=(with_query("/tables", &[("table", name)])) { (name) } },
                html! { (kind.map_or(text(one, "kind"), |(_, words)| words)) },
                html! { (count(number(one, "rows"))) },
                html! { (octets(number(one, "octets"))) },
            ];
            if configures {
                row.push(button(visit, "/tables", "Remove", "danger", &[("table", name)]));
            }
            row
        })
        .collect();
    let mut heads = vec!["Table", "Searched", "Keys", "Memory"];
    if configures {
        heads.push("Remove");
    }
    let empty = html! {
        h2 { "No tables yet" }
        p { "A table holds what plugins look up by a number or a word: prefixes with prices, ported numbers, blocked senders. " }
    };
    Ok(html! {
        h1 { "Lookup tables" }
        @if let Some(refusal) = refusal { (trouble(refusal)) }
        section.card { (table("Tables", &heads, &rows, &empty)) }
        (shown.links("/tables", &[]))
        @if !tables.is_empty() { (look_up(visit, &tables, query).await) }
        @if configures { (filling(visit)) }
    })
}

async fn look_up(visit: &Visit, tables: &[Value], query: &Form) -> Markup {
    let (name, key) = (query.text("table"), query.text("key"));
    let found = match (name, key) {
        ("", _) | (_, "") => None,
        _ => Some(
            visit.get::<Value>(&with_query(&format!("/v1/tables/{}", part(name)), &[("key", key)])).await,
        ),
    };
    html! {
        section.card #look-up {
            h2 { "Look something up" }
            form.fields method="get" action="/tables" role="search" aria-label="Look something up" {
                p { label for="table" { "Table" } select #table name="table" { @for one in tables.iter().take(crate::table::MOST) { option value=(text(one, "name")) selected[text(one, "name") == name] { (text(one, "name")) } } } }
                p { label for="key" { "Key" } input #key name="key" value=(key) required autocomplete="off" spellcheck="false"; }
                p.do { button type="submit" { "Look" } }
            }
            @match found {
                None => {}
                Some(Err(refusal)) => { (trouble(&refusal)) }
                Some(Ok(said)) => {
                    (facts(&[
                        ("For exactly this key", html! { (said["exact"].as_str().unwrap_or("nothing")) }),
                        ("For the longest key it begins with", html! {
                            @match said["longest"]["value"].as_str() {
                                Some(value) => {
                                    (value) " "
                                    span.muted { "(" (key.chars().take(usize::try_from(number(&said["longest"], "length")).unwrap_or(0)).collect::<String>()) ")" }
                                }
                                None => { "nothing" }
                            }
                        }),
                    ]))
                }
            }
        }
    }
}

fn filling(visit: &Visit) -> Markup {
    html! {
        section.card {
            h2 { "Fill a table, or fill it anew" }
            form.fields method="post" action="/tables/fill" enctype="multipart/form-data" {
                // First of all fields, so that it is known before the rows come.
                (csrf(visit))
                p { label for="name" { "Name" } input #name name="name" required maxlength="64" autocomplete="off" spellcheck="false"; }
                p { label for="kind" { "Searched" } select #kind name="kind" { @for (value, name) in KINDS { option value=(value) { (name) } } } }
                p { label for="rows" { "Rows" } input #rows name="rows" type="file" accept=".csv,text/csv,text/plain" required aria-describedby="rows-hint"; small #rows-hint { "A file with a key and its value on each line: 4917,north" } }
                p.do { button.primary type="submit" { "Fill it" } }
                p.muted { "The rows take the place of all that the table has now. Larger files go in with " code { "curl" } " at " code { "/v1/tables" } "." }
            }
        }
    }
}

pub(crate) async fn fill(visit: Visit, fields: Multipart) -> Response {
    let asked = match read(fields).await {
        Ok(Filling { csrf, name, kind, rows }) => {
            let path = with_query(&format!("/v1/tables/{}", part(&name)), &[("kind", &kind)]);
            let sent = Sent { csrf: &csrf, body: rows.into(), media_type: "text/csv", headers: Vec::new() };
            visit.asker.ask(Method::PUT, &path, sent).await.map(|_| name)
        }
        Err(refusal) => Err(refusal),
    };
    match asked {
        Ok(name) => Visit::to(&with_query("/tables", &[("table", &name)]), "filled"),
        Err(refusal) => draw(&visit, &Form::default(), Some(&refusal)).await,
    }
}

/// What a form has brought.
#[derive(Default)]
struct Filling {
    csrf: String,
    name: String,
    kind: String,
    rows: Bytes,
}

async fn read(mut fields: Multipart) -> Result<Filling, Refusal> {
    let mut filling = Filling::default();
    while let Some(field) = fields.next_field().await? {
        let name = field.name().unwrap_or_default().to_owned();
        match name.as_str() {
            "csrf" => filling.csrf = field.text().await?,
            "name" => filling.name = field.text().await?.trim().to_owned(),
            "kind" => filling.kind = field.text().await?,
            "rows" => filling.rows = field.bytes().await?,
            _ => {}
        }
    }
    match filling.name.as_str() {
        "" => Err(Refusal::bad("Say which table.")),
        _ => Ok(filling),
    }
}

pub(crate) async fn remove(visit: Visit, form: Form) -> Response {
    let path = format!("/v1/tables/{}", part(form.text("table")));
    match visit.send(Method::DELETE, &path, &form, None).await {
        Ok(_) => Visit::to("/tables", "removed"),
        Err(refusal) => draw(&visit, &Form::default(), Some(&refusal)).await,
    }
}
