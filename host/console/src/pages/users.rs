//! Users and API tokens.

use crate::api_caller::{ApiError, encode_segment};
use crate::form::Form;
use crate::format::time_tag;
use crate::layout::{action_button, csrf_field, error_notice, page, problem_list};
use crate::nav::NavItem;
use crate::request_context::RequestContext;
use crate::table::table;
use api::{
    CreatedTokenView, Role, TenantView, TokenInfo, TokenRequest, User, UserChangeRequest, UserRequest,
};
use axum::http::Method;
use axum::response::Response;
use maud::{Markup, html};

const ROLES: [(Role, &str); 4] = [
    (Role::Viewer, "reads everything, changes nothing"),
    (Role::Operator, "operates the traffic"),
    (Role::Admin, "everything"),
    (Role::Account, "messages of one account"),
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

async fn page_body(context: &RequestContext, page_state: &UsersPageState) -> Result<Markup, ApiError> {
    let (users, tokens, tenants) = tokio::join!(
        context.get::<Vec<User>>("/v1/users"),
        context.get::<Vec<TokenInfo>>("/v1/tokens"),
        context.get::<Vec<TenantView>>("/v1/tenants"),
    );
    let (users, tokens, tenants) = (users?, tokens?, tenants?);
    let yes_no = |is: bool| html! { (if is { "yes" } else { "no" }) };
    let user_rows: Vec<_> = users
        .iter()
        .take(crate::table::MAX_ROWS)
        .map(|user| {
            let is_you = user.name == context.principal.user;
            vec![
                html! { strong { (user.name) } @if is_you { " " span.muted { "(you)" } } },
                role(context, user),
                html! { (user.account.as_deref().unwrap_or("—")) },
                html! { (user.tenant.as_deref().unwrap_or("—")) },
                yes_no(user.bodies),
                html! { @if is_you { "—" } @else { (action_button(context, "/users", "Remove", "danger", &[("do", "remove-user"), ("name", &user.name)])) } },
            ]
        })
        .collect();
    let token_rows: Vec<_> = tokens
        .iter()
        .take(crate::table::MAX_ROWS)
        .map(|token| {
            vec![
                html! { strong { (token.name) } },
                html! { (token.role) },
                html! { (token.account.as_deref().unwrap_or("—")) },
                html! { (token.tenant.as_deref().unwrap_or("—")) },
                yes_no(token.bodies),
                html! { @if let Some(until) = token.until { (time_tag(until.0)) } @else { span.muted { "—" } } },
                (action_button(
                    context,
                    "/users",
                    "Revoke",
                    "danger",
                    &[("do", "remove-token"), ("name", &token.name)],
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
        section.card { h2 { "Users" } (table("Users", &["User", "Role", "Account", "Tenant", "Reads texts", "Remove"], &user_rows, &html! { h3 { "No users yet" } p { "Only the root token can log in. Add yourself as an admin." } })) }
        (add_form(context, "add-user", "Add a user", if is_user { &page_state.form } else { &nothing }, &tenants))
        section.card { h2 { "Tokens" } (table("Tokens", &["Token", "Role", "Account", "Tenant", "Reads texts", "Expires", "Revoke"], &token_rows, &html! { p { "There are no API tokens. Each program needs its own." } })) }
        (add_form(context, "add-token", "Create a token", if is_user { &nothing } else { &page_state.form }, &tenants))
    })
}

fn roles(id: &str, chosen: &str) -> Markup {
    html! { select id=(id) name="role" { @for (role, meaning) in ROLES { option value=(role) selected[chosen == role.to_string()] { (role) ": " (meaning) } } } }
}

fn role(context: &RequestContext, user: &User) -> Markup {
    html! {
        @if user.name == context.principal.user { (user.role) } @else {
            @let segment = encode_segment(&user.name);
            details id=(format!("role-{segment}")) {
                summary { (user.role) }
                form.inline method="post" action="/users" {
                    (csrf_field(context))
                    input type="hidden" name="name" value=(user.name);
                    @let id = format!("role-of-{segment}");
                    label.visually-hidden for=(id) { "Role of " (user.name) }
                    (roles(&id, &user.role.to_string()))
                    label { input type="checkbox" name="bodies" value="true" checked[user.bodies]; " reads texts" }
                    button type="submit" name="do" value="change-user" { "Change" }
                }
            }
        }
    }
}

/// Explains the tenant field to a user who creates a user or a token.
fn tenant_hint(context: &RequestContext) -> String {
    match &context.principal.tenant {
        Some(own) => format!("{own}, or a tenant below it; {own} if empty. The name ends with @ and the tenant's name."),
        None => "For someone who may see only the branch of this tenant: the name ends with @ and the tenant's name."
            .to_owned(),
    }
}

fn add_form(
    context: &RequestContext,
    act: &str,
    title: &str,
    form_values: &Form,
    tenants: &[TenantView],
) -> Markup {
    let id = |name: &str| format!("{act}-{name}");
    html! {
        details.card open[!form_values.text("name").is_empty()] {
            summary { (title) }
            form.fields method="post" action="/users" {
                (csrf_field(context))
                p { label for=(id("name")) { "Name" } input id=(id("name")) name="name" value=(form_values.text("name")) required maxlength="64" autocomplete="off" autocapitalize="none" spellcheck="false"; }
                p { label for=(id("role")) { "Role" } (roles(&id("role"), form_values.text("role"))) }
                p { label for=(id("account")) { "Account" } input id=(id("account")) name="account" value=(form_values.text("account")) autocomplete="off" aria-describedby=(id("hint")); small id=(id("hint")) { "Only for the role account." } }
                p { label for=(id("tenant")) { "Tenant" } input id=(id("tenant")) name="tenant" value=(form_values.text("tenant")) list=(id("tenants")) autocomplete="off" aria-describedby=(id("tenant-hint")); small id=(id("tenant-hint")) { (tenant_hint(context)) } }
                datalist id=(id("tenants")) { @for tenant in tenants { option value=(tenant.name) {} } }
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
    let bodies = form.has("bodies");
    let account = Some(form.text("account").to_owned()).filter(|account| !account.is_empty());
    let tenant = Some(form.text("tenant").to_owned()).filter(|tenant| !tenant.is_empty());
    let role = || {
        let chosen = ROLES.into_iter().find(|(role, _)| role.to_string() == form.text("role"));
        chosen.map(|(role, _)| role).ok_or_else(|| ApiError::bad_request("This role does not exist."))
    };
    let user = format!("/v1/users/{}", encode_segment(name));
    match form.text("do") {
        "add-user" => {
            let (name, password) = (name.to_owned(), Some(form.raw("password").to_owned()));
            let request = UserRequest { name, role: role()?, password, account, tenant, bodies };
            context.send_json(Method::POST, "/v1/users", form, &request).await?;
            Ok(("added", None))
        }
        "change-user" => {
            let (role, account, bodies) = (Some(role()?), account.map(Some), Some(bodies));
            let request = UserChangeRequest { role, account, bodies, password: None };
            context.send_json(Method::PATCH, &user, form, &request).await?;
            Ok(("changed", None))
        }
        "remove-user" => {
            context.send(Method::DELETE, &user, form, None).await?;
            Ok(("removed", None))
        }
        "add-token" => {
            let days = match form.text("days") {
                "" => None,
                days => Some(days.parse().map_err(|_| ApiError::bad_request("Days are a number."))?),
            };
            let request =
                TokenRequest { name: name.to_owned(), role: role()?, account, tenant, bodies, days };
            let answer = context.send_json(Method::POST, "/v1/tokens", form, &request).await?;
            Ok(("added", Some(answer.read::<CreatedTokenView>()?.token)))
        }
        "remove-token" => {
            context.send(Method::DELETE, &format!("/v1/tokens/{}", encode_segment(name)), form, None).await?;
            Ok(("removed", None))
        }
        _ => Err(ApiError::bad_request("This action does not exist.")),
    }
}
