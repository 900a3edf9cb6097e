//! Users and API tokens.

use crate::api_caller::{ApiError, encode_segment};
use crate::form::Form;
use crate::format::{text, time_value};
use crate::layout::{action_button, csrf_field, error_notice, page, problem_list};
use crate::nav::NavItem;
use crate::request_context::RequestContext;
use crate::table::table;
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::{Map, Value, json};

const ROLES: &[(&str, &str)] = &[
    ("viewer", "viewer: reads everything, changes nothing"),
    ("operator", "operator: operates the traffic"),
    ("admin", "admin: everything"),
    ("account", "account: messages of one account"),
];

#[derive(Default)]
struct UsersPageState {
    form: Form,
    error: Option<ApiError>,
    /// A new token; it is shown only once.
    token: Option<String>,
}

pub(crate) async fn show(context: RequestContext) -> Response {
    render(&context, &UsersPageState::default()).await
}

async fn render(context: &RequestContext, page_state: &UsersPageState) -> Response {
    let body = page_body(context, page_state).await;
    let mut response = page(context, "Users and tokens", NavItem::Users, body);
    if let Some(error) = &page_state.error {
        *response.status_mut() = error.status;
    }
    response
}

/// A list that is the whole answer, or a field of it.
fn list(found: &Value, name: &str) -> Vec<Value> {
    found.as_array().or_else(|| found[name].as_array()).cloned().unwrap_or_default()
}

async fn page_body(context: &RequestContext, page_state: &UsersPageState) -> Result<Markup, ApiError> {
    let (users, tokens) = tokio::join!(context.get::<Value>("/v1/users"), context.get::<Value>("/v1/tokens"));
    let (users, tokens) = (list(&users?, "users"), list(&tokens?, "tokens"));
    let bodies = |one: &Value| html! { (if one["bodies"].as_bool() == Some(true) { "yes" } else { "no" }) };
    let user_rows: Vec<_> = users
        .iter()
        .take(crate::table::MAX_ROWS)
        .map(|one| {
            let name = text(one, "name");
            vec![
                html! { strong { (name) } @if name == context.principal.user { " " span.muted { "(you)" } } },
                role(context, one),
                html! { (one["account"].as_str().unwrap_or("—")) },
                bodies(one),
                html! { @if name == context.principal.user { "—" } @else { (action_button(context, "/users", "Remove", "danger", &[("do", "remove-user"), ("name", name)])) } },
            ]
        })
        .collect();
    let token_rows: Vec<_> = tokens
        .iter()
        .take(crate::table::MAX_ROWS)
        .map(|one| {
            let name = text(one, "name");
            vec![
                html! { strong { (name) } },
                html! { (text(one, "role")) },
                html! { (one["account"].as_str().unwrap_or("—")) },
                bodies(one),
                time_value(&one["until"]),
                (action_button(
                    context,
                    "/users",
                    "Revoke",
                    "danger",
                    &[("do", "remove-token"), ("name", name)],
                )),
            ]
        })
        .collect();
    let is_user = page_state.form.text("do") == "add-user";
    let nothing = Form::default();
    Ok(html! {
        h1 { "Users and tokens" }
        @if let Some(error) = &page_state.error { (error_notice(error)) (problem_list(error)) }
        @if let Some(token) = &page_state.token {
            div.notice.good role="status" {
                strong { "The token. It is shown only once." }
                p { code.secret { (token) } }
                p { "Programs send it as " code { "Authorization: Bearer TOKEN" } "." }
            }
        }
        section.card { h2 { "Users" } (table("Users", &["User", "Role", "Account", "Reads texts", "Remove"], &user_rows, &html! { h3 { "No users yet" } p { "Only the root token can log in. Add yourself as an admin." } })) }
        (add_form(context, "add-user", "Add a user", if is_user { &page_state.form } else { &nothing }))
        section.card { h2 { "Tokens" } (table("Tokens", &["Token", "Role", "Account", "Reads texts", "Expires", "Revoke"], &token_rows, &html! { p { "There are no API tokens. Each program needs its own." } })) }
        (add_form(context, "add-token", "Create a token", if is_user { &nothing } else { &page_state.form }))
    })
}

fn roles(id: &str, chosen: &str) -> Markup {
    html! { select id=(id) name="role" { @for (value, name) in ROLES { option value=(value) selected[chosen == *value] { (name) } } } }
}

fn role(context: &RequestContext, one: &Value) -> Markup {
    let (name, now) = (text(one, "name"), text(one, "role"));
    html! {
        @if name == context.principal.user { (now) } @else {
            details id=(format!("role-{}", encode_segment(name))) {
                summary { (now) }
                form.inline method="post" action="/users" {
                    (csrf_field(context))
                    input type="hidden" name="name" value=(name);
                    @let id = format!("role-of-{}", encode_segment(name));
                    label.visually-hidden for=(id) { "Role of " (name) }
                    (roles(&id, now))
                    label { input type="checkbox" name="bodies" value="true" checked[one["bodies"].as_bool() == Some(true)]; " reads texts" }
                    button type="submit" name="do" value="change-user" { "Change" }
                }
            }
        }
    }
}

fn add_form(context: &RequestContext, act: &str, title: &str, form_values: &Form) -> Markup {
    let id = |name: &str| format!("{act}-{name}");
    html! {
        details.card open[!form_values.text("name").is_empty()] {
            summary { (title) }
            form.fields method="post" action="/users" {
                (csrf_field(context))
                p { label for=(id("name")) { "Name" } input id=(id("name")) name="name" value=(form_values.text("name")) required maxlength="64" autocomplete="off" autocapitalize="none" spellcheck="false"; }
                p { label for=(id("role")) { "Role" } (roles(&id("role"), form_values.text("role"))) }
                p { label for=(id("account")) { "Account" } input id=(id("account")) name="account" value=(form_values.text("account")) autocomplete="off" aria-describedby=(id("hint")); small id=(id("hint")) { "Only for the role account." } }
                p { label.tick { input type="checkbox" name="bodies" value="true" checked[form_values.has("bodies")]; " may read texts of messages" } }
                @if act == "add-user" {
                    p { label for="add-password" { "Password" } input #add-password name="password" type="password" autocomplete="new-password" required aria-describedby="password-hint"; small #password-hint { "At least 10 characters." } }
                } @else {
                    p { label for="add-days" { "Expires after, in days" } input #add-days name="days" value=(form_values.text("days")) inputmode="numeric" autocomplete="off" aria-describedby="days-hint"; small #days-hint { "Never if empty." } }
                }
                p.actions { button.primary type="submit" name="do" value=(act) { (title) } }
            }
        }
    }
}

pub(crate) async fn change(context: RequestContext, form: Form) -> Response {
    match apply_change(&context, &form).await {
        Ok((done, None)) => RequestContext::redirect("/users", done),
        Ok((_, token)) => render(&context, &UsersPageState { token, ..UsersPageState::default() }).await,
        Err(error) => render(&context, &UsersPageState { form, error: Some(error), token: None }).await,
    }
}

async fn apply_change(
    context: &RequestContext,
    form: &Form,
) -> Result<(&'static str, Option<String>), ApiError> {
    let name = form.text("name");
    let mut request = Map::new();
    request.insert("role".to_owned(), form.text("role").into());
    request.insert("bodies".to_owned(), form.has("bodies").into());
    if !form.text("account").is_empty() {
        request.insert("account".to_owned(), form.text("account").into());
    }
    let user = format!("/v1/users/{}", encode_segment(name));
    match form.text("do") {
        "add-user" => {
            request.insert("name".to_owned(), name.into());
            request.insert("password".to_owned(), form.raw("password").into());
            context.send(Method::POST, "/v1/users", form, Some(&Value::Object(request))).await?;
            Ok(("added", None))
        }
        "change-user" => {
            context.send(Method::PATCH, &user, form, Some(&Value::Object(request))).await?;
            Ok(("changed", None))
        }
        "remove-user" => {
            context.send(Method::DELETE, &user, form, None).await?;
            Ok(("removed", None))
        }
        "add-token" => {
            request.insert("name".to_owned(), name.into());
            if !form.text("days").is_empty() {
                let days: u64 =
                    form.text("days").parse().map_err(|_| ApiError::bad_request("Days are a number."))?;
                request.insert("days".to_owned(), json!(days));
            }
            let answer: Value = context
                .send(Method::POST, "/v1/tokens", form, Some(&Value::Object(request)))
                .await?
                .read()?;
            Ok(("added", Some(text(&answer, "token").to_owned())))
        }
        "remove-token" => {
            context.send(Method::DELETE, &format!("/v1/tokens/{}", encode_segment(name)), form, None).await?;
            Ok(("removed", None))
        }
        _ => Err(ApiError::bad_request("This action does not exist.")),
    }
}
