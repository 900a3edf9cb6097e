//! The user's own permissions and password.

use crate::api_caller::ApiError;
use crate::form::Form;
use crate::format::state_badge;
use crate::layout::{csrf_field, error_notice, page};
use crate::nav::NavItem;
use crate::request_context::RequestContext;
use crate::table::detail_list;
use api::PasswordRequest;
use axum::http::Method;
use axum::response::Response;
use maud::html;

fn render(context: &RequestContext, error: Option<&ApiError>) -> Response {
    let principal = &context.principal;
    let body = html! {
        h1 { "Profile" }
        @if let Some(error) = error { (error_notice(error)) }
        section.card {
            (detail_list(&[
                ("Name", html! { (principal.user) }),
                ("Role", state_badge(&principal.role.to_string())),
                ("Account", html! { (principal.account.as_deref().unwrap_or("—")) }),
                ("Permissions", html! { @for permission in &principal.permissions { (state_badge(&permission.to_string())) " " } }),
                ("Texts of messages", html! { (if context.may_read_bodies() { "permitted; each read is recorded in the audit log" } else { "not permitted" }) }),
            ]))
        }
        section.card {
            h2 { "Change the password" }
            form.fields method="post" action="/profile" {
                (csrf_field(context))
                input type="text" name="user" value=(principal.user) autocomplete="username" hidden;
                p { label for="old" { "Current password" } input #old name="old" type="password" autocomplete="current-password" required; }
                p { label for="new" { "New password" } input #new name="new" type="password" autocomplete="new-password" minlength="10" required aria-describedby="new-hint"; small #new-hint { "At least 10 characters." } }
                p { label for="again" { "New password, repeated" } input #again name="again" type="password" autocomplete="new-password" required; }
                p { button.primary type="submit" { "Change the password" } }
            }
        }
    };
    page(context, "Profile", NavItem::Profile, Ok(body))
}

pub(crate) async fn show(context: RequestContext) -> Response {
    render(&context, None)
}

pub(crate) async fn password(context: RequestContext, form: Form) -> Response {
    if form.raw("new") != form.raw("again") {
        return render(&context, Some(&ApiError::bad_request("The new passwords differ.")));
    }
    let request = PasswordRequest { old: form.raw("old").to_owned(), new: form.raw("new").to_owned() };
    match context.send_json(Method::POST, "/v1/whoami/password", &form, &request).await {
        Ok(_) => RequestContext::redirect("/profile", "password"),
        Err(error) => render(&context, Some(&error)),
    }
}
