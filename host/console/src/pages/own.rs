//! What a visitor may, and his password.

use crate::ask::Refusal;
use crate::form::Form;
use crate::shell::{Room, csrf, page, trouble};
use crate::table::facts;
use crate::visit::Visit;
use crate::words::state;
use axum::http::Method;
use axum::response::Response;
use maud::html;
use serde_json::json;

fn draw(visit: &Visit, refusal: Option<&Refusal>) -> Response {
    let who = &visit.who;
    let body = html! {
        h1 { "You" }
        @if let Some(refusal) = refusal { (trouble(refusal)) }
        section.card {
            (facts(&[
                ("Name", html! { (who.user) }),
                ("Role", state(&who.role)),
                ("Account", html! { (who.account.as_deref().unwrap_or("—")) }),
                ("May", html! { @for right in &who.rights { (state(right)) " " } }),
                ("Texts of messages", html! { (if visit.reads_bodies() { "may be read; each reading is written down" } else { "are not shown to you" }) }),
            ]))
        }
        section.card {
            h2 { "Another password" }
            form.fields method="post" action="/own" {
                (csrf(visit))
                input type="text" name="user" value=(who.user) autocomplete="username" hidden;
                p { label for="old" { "The password that you have" } input #old name="old" type="password" autocomplete="current-password" required; }
                p { label for="new" { "The new one" } input #new name="new" type="password" autocomplete="new-password" minlength="10" required aria-describedby="new-hint"; small #new-hint { "At least 10 characters." } }
                p { label for="again" { "The new one once more" } input #again name="again" type="password" autocomplete="new-password" required; }
                p { button.primary type="submit" { "Change the password" } }
            }
        }
    };
    page(visit, "You", Room::Own, Ok(body))
}

pub(crate) async fn show(visit: Visit) -> Response {
    draw(&visit, None)
}

pub(crate) async fn password(visit: Visit, form: Form) -> Response {
    if form.raw("new") != form.raw("again") {
        return draw(&visit, Some(&Refusal::bad("The new password was not the same both times.")));
    }
    let wish = json!({ "old": form.raw("old"), "new": form.raw("new") });
    match visit.send(Method::POST, "/v1/whoami/password", &form, Some(&wish)).await {
        Ok(_) => Visit::to("/own", "password"),
        Err(refusal) => draw(&visit, Some(&refusal)),
    }
}
