//! Sending a test message.

use crate::ask::{Refusal, part};
use crate::form::Form;
use crate::pages::Asked;
use crate::shell::{Room, csrf, page, problems, trouble};
use crate::visit::Visit;
use axum::extract::Query;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::{Value, json};

fn draw(visit: &Visit, given: &Form, refusal: Option<&Refusal>, explained: Option<&Value>) -> Response {
    let body: Markup = html! {
        h1 { "A test message" }
        p.lead { "It goes the whole way, as if the account had submitted it: routing, price, queue, peer." }
        @if let Some(refusal) = refusal { (trouble(refusal)) (problems(refusal)) }
        @if let Some(explained) = explained {
            section.card role="status" {
                h2 { "What would become of it" }
                ol.steps { @for step in explained["steps"].as_array().into_iter().flatten() { li { (step.as_str().unwrap_or_default()) } } }
                p { "Its submitter would be told: " strong { (explained["answer"].as_str().unwrap_or_default()) } }
            }
        }
        form.card.fields method="post" action="/messages/new" {
            (csrf(visit))
            p { label for="account" { "Account" } input #account name="account" value=(given.text("account")) required autocomplete="off"; }
            p { label for="from" { "From" } input #from name="from" value=(given.text("from")) maxlength="20" autocomplete="off" aria-describedby="from-hint"; small #from-hint { "A number, or a name of at most 11 characters; the account's default if empty." } }
            p { label for="to" { "To" } input #to name="to" value=(given.text("to")) required maxlength="20" inputmode="tel" autocomplete="off"; }
            p.wide { label for="text" { "Text" } textarea #text name="text" rows="4" required { (given.whole("text")) } }
            p.do {
                button.primary type="submit" name="do" value="send" { "Send it" }
                button type="submit" name="do" value="explain" { "Only say what would become of it" }
            }
        }
    };
    let mut response = page(visit, "Test message", Room::Messages, Ok(body));
    if let Some(refusal) = refusal {
        *response.status_mut() = refusal.status;
    }
    response
}

pub(crate) async fn show(visit: Visit, Query(query): Asked) -> Response {
    if !visit.may("operate") {
        let refusal = Refusal::new(StatusCode::FORBIDDEN, "Only operators and admins send test messages.");
        return page(&visit, "Test message", Room::Messages, Err(refusal));
    }
    draw(&visit, &Form::of(query), None, None)
}

pub(crate) async fn send(visit: Visit, form: Form) -> Response {
    if form.text("do") == "explain" {
        let asked = json!({
            "origin": form.text("account"), "source": form.text("from"), "destination": form.text("to"), "text": form.whole("text"),
        });
        let told = visit
            .send(Method::POST, "/v1/explain", &form, Some(&asked))
            .await
            .and_then(|answer| answer.read());
        return match told {
            Ok(told) => draw(&visit, &form, None, Some(&told)),
            Err(refusal) => draw(&visit, &form, Some(&refusal), None),
        };
    }
    let mut wish =
        json!({ "account": form.text("account"), "to": form.text("to"), "text": form.whole("text") });
    if !form.text("from").is_empty() {
        wish["from"] = form.text("from").into();
    }
    let sent = visit.send(Method::POST, "/v1/messages", &form, Some(&wish)).await;
    match sent.and_then(|answer| answer.read::<Value>()) {
        Ok(told) => {
            let id = told["id"].as_str().map_or_else(|| told["id"].to_string(), str::to_owned);
            Visit::to(&format!("/messages/{}", part(&id)), "sent").into_response()
        }
        Err(refusal) => draw(&visit, &form, Some(&refusal), None),
    }
}
