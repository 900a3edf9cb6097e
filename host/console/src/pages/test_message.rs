//! The form for a test message.

use crate::api_caller::{ApiError, encode_segment};
use crate::form::Form;
use crate::layout::{csrf_field, error_notice, page, problem_list};
use crate::nav::NavItem;
use crate::pages::QueryParams;
use crate::request_context::RequestContext;
use api::{AcceptedMessage, ExplainRequest, ExplanationView, Permission, TestMessageRequest};
use axum::extract::Query;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

fn render(
    context: &RequestContext,
    form_values: &Form,
    error: Option<&ApiError>,
    explained: Option<&ExplanationView>,
) -> Response {
    let body: Markup = html! {
        h1 { "Test message" }
        p.lead { "The message is processed as if the account had submitted it: routing, price, queue, peer." }
        @if let Some(error) = error { (error_notice(error)) (problem_list(error)) }
        @if let Some(explained) = explained {
            section.card role="status" {
                h2 { "Preview" }
                ol.steps { @for step in &explained.steps { li { (step) } } }
                p { "Answer to the submitter: " strong { (explained.answer) } }
            }
        }
        form.card.fields method="post" action="/messages/new" {
            (csrf_field(context))
            p { label for="account" { "Account" } input #account name="account" value=(form_values.text("account")) required autocomplete="off"; }
            p { label for="from" { "From" } input #from name="from" value=(form_values.text("from")) maxlength="20" autocomplete="off" aria-describedby="from-hint"; small #from-hint { "A number, or a name of at most 11 characters; the account's default if empty." } }
            p { label for="to" { "To" } input #to name="to" value=(form_values.text("to")) required maxlength="20" inputmode="tel" autocomplete="off"; }
            p.wide { label for="text" { "Text" } textarea #text name="text" rows="4" required { (form_values.multiline("text")) } }
            p.actions {
                button.primary type="submit" name="do" value="send" { "Send" }
                button type="submit" name="do" value="explain" { "Preview only" }
            }
        }
    };
    let mut response = page(context, "Test message", NavItem::Messages, Ok(body));
    if let Some(error) = error {
        *response.status_mut() = error.status;
    }
    response
}

pub(crate) async fn show(context: RequestContext, Query(query): QueryParams) -> Response {
    if !context.has_permission(Permission::Operate) {
        let error = ApiError::new(StatusCode::FORBIDDEN, "Only operators and admins can send test messages.");
        return page(&context, "Test message", NavItem::Messages, Err(error));
    }
    render(&context, &Form::of(query), None, None)
}

pub(crate) async fn send(context: RequestContext, form: Form) -> Response {
    if form.text("do") == "explain" {
        let request = ExplainRequest {
            origin: form.text("account").to_owned(),
            source: form.text("from").to_owned(),
            destination: form.text("to").to_owned(),
            text: form.multiline("text"),
        };
        let answer = context.send_json(Method::POST, "/v1/explain", &form, &request).await;
        return match answer.and_then(|answer| answer.read()) {
            Ok(answer) => render(&context, &form, None, Some(&answer)),
            Err(error) => render(&context, &form, Some(&error), None),
        };
    }
    let request = TestMessageRequest {
        account: form.text("account").to_owned(),
        from: Some(form.text("from").to_owned()).filter(|from| !from.is_empty()),
        to: form.text("to").to_owned(),
        text: form.multiline("text"),
    };
    let sent = context.send_json(Method::POST, "/v1/messages", &form, &request).await;
    match sent.and_then(|answer| answer.read::<AcceptedMessage>()) {
        Ok(AcceptedMessage { id }) => {
            RequestContext::redirect(&format!("/messages/{}", encode_segment(&id)), "sent").into_response()
        }
        Err(error) => render(&context, &form, Some(&error), None),
    }
}
