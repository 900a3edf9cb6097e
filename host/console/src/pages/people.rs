//! Users and tokens: who may come in, and as what.

use crate::ask::{Refusal, part};
use crate::form::Form;
use crate::shell::{Room, button, csrf, page, problems, trouble};
use crate::table::table;
use crate::visit::Visit;
use crate::words::{either, text, time_of};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

const ROLES: &[(&str, &str)] = &[
    ("viewer", "viewer: sees, and changes nothing"),
    ("operator", "operator: keeps the traffic going"),
    ("admin", "admin: everything"),
    ("account", "account: one account's own people"),
];

#[derive(Default)]
struct Said {
    form: Form,
    refusal: Option<Refusal>,
    /// A token that was just made; it is shown this once.
    token: Option<String>,
}

pub(crate) async fn show(visit: Visit) -> Response {
    draw(&visit, &Said::default()).await
}

async fn draw(visit: &Visit, said: &Said) -> Response {
    let body = parts(visit, said).await;
    let mut response = page(visit, "Users and tokens", Room::People, body);
    if let Some(refusal) = &said.refusal {
        *response.status_mut() = refusal.status;
    }
    response
}

/// A list that may be the whole answer, or under its name.
fn list(found: &Value, name: &str) -> Vec<Value> {
    found.as_array().or_else(|| found[name].as_array()).cloned().unwrap_or_default()
}

async fn parts(visit: &Visit, said: &Said) -> Result<Markup, Refusal> {
    let (users, tokens) = tokio::join!(visit.get::<Value>("/v1/users"), visit.get::<Value>("/v1/tokens"));
    let (users, tokens) = (list(&users?, "users"), list(&tokens?, "tokens"));
    let bodies = |one: &Value| html! { (if one["bodies"].as_bool() == Some(true) { "yes" } else { "no" }) };
    let user_rows: Vec<_> = users
        .iter()
        .take(crate::table::MOST)
        .map(|one| {
            let name = text(one, "name");
            vec![
                html! { strong { (name) } @if name == visit.who.user { " " span.muted { "(you)" } } },
                role(visit, one),
                html! { (one["account"].as_str().unwrap_or("—")) },
                bodies(one),
                html! { @if name == visit.who.user { "—" } @else { (button(visit, "/people", "Remove", "danger", &[("do", "remove-user"), ("name", name)])) } },
            ]
        })
        .collect();
    let token_rows: Vec<_> = tokens
        .iter()
        .take(crate::table::MOST)
        .map(|one| {
            let name = text(one, "name");
            vec![
                html! { strong { (name) } },
                html! { (text(one, "role")) },
                html! { (one["account"].as_str().unwrap_or("—")) },
                bodies(one),
                time_of(either(one, "expires-at")),
                (button(visit, "/people", "Revoke", "danger", &[("do", "remove-token"), ("name", name)])),
            ]
        })
        .collect();
    let is_user = said.form.text("do") == "add-user";
    let nothing = Form::default();
    Ok(html! {
        h1 { "Users and tokens" }
        @if let Some(refusal) = &said.refusal { (trouble(refusal)) (problems(refusal)) }
        @if let Some(token) = &said.token {
            div.notice.good role="status" {
                strong { "The token. It is shown this once." }
                p { code.secret { (token) } }
                p { "Programs send it as " code { "Authorization: Bearer TOKEN" } "." }
            }
        }
        section.card { h2 { "Users" } (table("Users", &["User", "Role", "Account", "Reads texts", "Remove"], &user_rows, &html! { h3 { "No users yet" } p { "So far the appliance's token is the only way in. Add yourself as an admin." } })) }
        (adding(visit, "add-user", "Add a user", if is_user { &said.form } else { &nothing }))
        section.card { h2 { "Tokens" } (table("Tokens", &["Token", "Role", "Account", "Reads texts", "Ends", "Revoke"], &token_rows, &html! { p { "No tokens are made yet. Programs need one each." } })) }
        (adding(visit, "add-token", "Make a token", if is_user { &nothing } else { &said.form }))
    })
}

fn roles(id: &str, chosen: &str) -> Markup {
    html! { select id=(id) name="role" { @for (value, name) in ROLES { option value=(value) selected[chosen == *value] { (name) } } } }
}

fn role(visit: &Visit, one: &Value) -> Markup {
    let (name, now) = (text(one, "name"), text(one, "role"));
    html! {
        @if name == visit.who.user { (now) } @else {
            details id=(format!("role-{}", part(name))) {
                summary { (now) }
                form.inline method="post" action="/people" {
                    (csrf(visit))
                    input type="hidden" name="name" value=(name);
                    @let id = format!("role-of-{}", part(name));
                    label.visually-hidden for=(id) { "Role of " (name) }
                    (roles(&id, now))
                    label { input type="checkbox" name="bodies" value="true" checked[one["bodies"].as_bool() == Some(true)]; " reads texts" }
                    button type="submit" name="do" value="change-user" { "Change" }
                }
            }
        }
    }
}

fn adding(visit: &Visit, act: &str, title: &str, given: &Form) -> Markup {
    let id = |name: &str| format!("{act}-{name}");
    html! {
        details.card open[!given.text("name").is_empty()] {
            summary { (title) }
            form.fields method="post" action="/people" {
                (csrf(visit))
                p { label for=(id("name")) { "Name" } input id=(id("name")) name="name" value=(given.text("name")) required maxlength="64" autocomplete="off" autocapitalize="none" spellcheck="false"; }
                p { label for=(id("role")) { "Role" } (roles(&id("role"), given.text("role"))) }
                p { label for=(id("account")) { "Account" } input id=(id("account")) name="account" value=(given.text("account")) autocomplete="off" aria-describedby=(id("hint")); small id=(id("hint")) { "Only for the role account." } }
                p { label.tick { input type="checkbox" name="bodies" value="true" checked[given.has("bodies")]; " may read texts of messages" } }
                @if act == "add-user" {
                    p { label for="add-password" { "Password" } input #add-password name="password" type="password" autocomplete="new-password" required aria-describedby="password-hint"; small #password-hint { "At least 10 characters." } }
                } @else {
                    p { label for="add-days" { "Ends after, in days" } input #add-days name="days" value=(given.text("days")) inputmode="numeric" autocomplete="off" aria-describedby="days-hint"; small #days-hint { "Never if empty." } }
                }
                p.do { button.primary type="submit" name="do" value=(act) { (title) } }
            }
        }
    }
}

pub(crate) async fn change(visit: Visit, form: Form) -> Response {
    match changed(&visit, &form).await {
        Ok((done, None)) => Visit::to("/people", done),
        Ok((_, token)) => draw(&visit, &Said { token, ..Said::default() }).await,
        Err(refusal) => draw(&visit, &Said { form, refusal: Some(refusal), token: None }).await,
    }
}

async fn changed(visit: &Visit, form: &Form) -> Result<(&'static str, Option<String>), Refusal> {
    let name = form.text("name");
    let mut wish = Map::new();
    wish.insert("role".to_owned(), form.text("role").into());
    wish.insert("bodies".to_owned(), form.has("bodies").into());
    if !form.text("account").is_empty() {
        wish.insert("account".to_owned(), form.text("account").into());
    }
    let user = format!("/v1/users/{}", part(name));
    match form.text("do") {
        "add-user" => {
            wish.insert("name".to_owned(), name.into());
            wish.insert("password".to_owned(), form.raw("password").into());
            visit.send(Method::POST, "/v1/users", form, Some(&Value::Object(wish))).await?;
            Ok(("added", None))
        }
        "change-user" => {
            visit.send(Method::PATCH, &user, form, Some(&Value::Object(wish))).await?;
            Ok(("changed", None))
        }
        "remove-user" => {
            visit.send(Method::DELETE, &user, form, None).await?;
            Ok(("removed", None))
        }
        "add-token" => {
            wish.insert("name".to_owned(), name.into());
            if !form.text("days").is_empty() {
                let days: u64 = form.text("days").parse().map_err(|_| Refusal::bad("Days are a number."))?;
                wish.insert("days".to_owned(), json!(days));
            }
            let told: Value =
                visit.send(Method::POST, "/v1/tokens", form, Some(&Value::Object(wish))).await?.read()?;
            Ok(("added", Some(text(&told, "token").to_owned())))
        }
        "remove-token" => {
            visit.send(Method::DELETE, &format!("/v1/tokens/{}", part(name)), form, None).await?;
            Ok(("removed", None))
        }
        _ => Err(Refusal::bad("That cannot be done here.")),
    }
}
