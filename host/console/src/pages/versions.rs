//! The configuration's history: who changed what, and the way back.

use crate::ask::{Refusal, Sent, part, with_query};
use crate::form::Form;
use crate::pages::Asked;
use crate::shell::{Room, csrf, page, problems, trouble};
use crate::table::{facts, more, table};
use crate::visit::Visit;
use crate::words::{count, number, text, time_of};
use axum::extract::{Path, Query};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Value, json};

pub(crate) async fn show(visit: Visit, Query(query): Asked) -> Response {
    let query = Form::of(query);
    let path =
        with_query("/v1/configuration/versions", &[("limit", "100"), ("before", query.text("before"))]);
    let body = visit.get::<Value>(&path).await.map(|found| list(&found));
    page(&visit, "Versions of the configuration", Room::Configuration, body)
}

fn list(found: &Value) -> Markup {
    let rows: Vec<_> = found["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            let version = number(one, "version");
            vec![
                html! { a href=(format!("/configuration/versions/{version}")) { "Version " (version) } },
                time_of(&one["at"]),
                html! { (text(one, "by")) },
                html! { (match text(one, "why") { "" => "—", why => why }) },
                html! { (count(number(one, "changes"))) },
            ]
        })
        .collect();
    let next = found["next"].as_u64().map(|next| next.to_string());
    html! {
        h1 { "Versions of the configuration" }
        section.card { (table("Versions, newest first", &["Version", "When", "By", "Why", "Changes"], &rows, &html! { p { "There are no versions yet." } })) }
        @if let Some(next) = &next { (more("/configuration/versions", &[("before", next)])) }
    }
}

pub(crate) async fn one(visit: Visit, Path(version): Path<String>) -> Response {
    draw(&visit, &version, None).await
}

async fn draw(visit: &Visit, version: &str, refusal: Option<&Refusal>) -> Response {
    let body = parts(visit, version, refusal).await;
    let mut response = page(visit, &format!("Version {version}"), Room::Configuration, body);
    if let Some(refusal) = refusal {
        *response.status_mut() = refusal.status;
    }
    response
}

/// Values side by side: what was, what is.
pub(crate) fn changes(changes: &[Value], before: &str, after: &str) -> Markup {
    let shown = |value: &Value| match value {
        Value::Null => html! { span.muted { "—" } },
        Value::String(text) => html! { code { (text) } },
        other => {
            let text = other.to_string();
            let short: String = text.chars().take(200).collect();
            html! { code { (short) @if short.len() < text.len() { "…" } } }
        }
    };
    let rows: Vec<_> = changes
        .iter()
        .map(|one| {
            vec![html! { code { (text(one, "pointer")) } }, shown(&one["before"]), shown(&one["after"])]
        })
        .collect();
    table("Changes", &["Where", before, after], &rows, &html! { p { "Nothing is different." } })
}

async fn parts(visit: &Visit, version: &str, refusal: Option<&Refusal>) -> Result<Markup, Refusal> {
    let chosen: u64 = version.parse().map_err(|_| Refusal::bad("A version is a number."))?;
    let path = format!("/v1/configuration/versions/{chosen}");
    let (found, newest) =
        tokio::join!(visit.get::<Value>(&path), visit.get::<Value>("/v1/configuration/versions?limit=1"));
    let (found, newest) = (found?, newest?);
    let current = number(&newest["versions"][0], "version");
    let diff = |from: u64, to: u64| {
        let path =
            with_query("/v1/configuration/diff", &[("from", &from.to_string()), ("to", &to.to_string())]);
        async move { visit.get::<Value>(&path).await }
    };
    let made = if chosen > 1 { diff(chosen - 1, chosen).await.ok() } else { None };
    let back = if chosen == current { None } else { Some(diff(current, chosen).await?) };
    let list = |value: &Value| value["changes"].as_array().cloned().unwrap_or_default();
    Ok(html! {
        h1 { "Version " (chosen) }
        @if let Some(refusal) = refusal { (trouble(refusal)) (problems(refusal)) }
        section.card {
            (facts(&[
                ("When", time_of(&found["at"])),
                ("By", html! { (text(&found, "by")) }),
                ("Why", html! { (match text(&found, "why") { "" => "—", why => why }) }),
                ("In use", html! { (if chosen == current { "yes, this one" } else { "no" }) }),
            ]))
        }
        @if let Some(made) = &made { section.card { h2 { "What it changed" } (changes(&list(made), "Before", "After")) } }
        @if let Some(back) = &back {
            section.card {
                h2 { "What would change if this one came back" }
                (changes(&list(back), "Now", "Then"))
                @if visit.may("configure") {
                    form.fields method="post" action=(format!("/configuration/versions/{chosen}")) {
                        (csrf(visit))
                        input type="hidden" name="tag" value=(format!("\"{current}\""));
                        p.wide { label for="why" { "Why" } input #why name="why" maxlength="256" autocomplete="off"; }
                        p.do { button.danger type="submit" { "Go back to version " (chosen) } }
                        p.muted { "It becomes a new version: nothing of what was in between is lost." }
                    }
                }
            }
        }
        p { a href="/configuration/versions" { "All versions" } }
    })
}

pub(crate) async fn back(visit: Visit, Path(version): Path<String>, form: Form) -> Response {
    let wish = json!({ "to": version.parse::<u64>().ok(), "why": form.text("why") });
    let sent = Sent {
        headers: vec![("if-match", form.text("tag").to_owned())],
        ..Sent::json(form.text("csrf"), &wish)
    };
    match visit.asker.ask(Method::POST, "/v1/configuration/rollback", sent).await {
        Ok(_) => Visit::to("/configuration", "reverted"),
        Err(refusal) => draw(&visit, &part(&version), Some(&refusal)).await,
    }
}
