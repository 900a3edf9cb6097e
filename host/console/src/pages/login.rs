//! Login, logout and theme.

use crate::api_caller::{ApiError, ApiRequest};
use crate::form::Form;
use crate::layout::{bare_page, error_notice};
use crate::pages::QueryParams;
use crate::request_context::{ConsoleState, THEME_COOKIE, local_path};
use crate::session_extractor::api_caller;
use api::LoginRequest;
use axum::extract::{FromRequest as _, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

fn login_form(next: &str, user: &str, error: Option<&ApiError>) -> Markup {
    html! {
        h1 { "Log in" }
        @if let Some(error) = error { (error_notice(error)) }
        form.card.fields method="post" action="/login" {
            input type="hidden" name="next" value=(next);
            p {
                label for="user" { "User" }
                input #user name="user" value=(user) autocomplete="username" autocapitalize="none" spellcheck="false" maxlength="64";
            }
            p {
                label for="password" { "Password" }
                input #password name="password" type="password" autocomplete="current-password" maxlength="1024";
            }
            p { button.primary type="submit" { "Log in" } }
        }
        details.card open[error.is_none() && user.is_empty()] {
            summary { "The first time: log in with the appliance's token" }
            p {
                "The appliance printed the token at its first start. It is stored in the file "
                code { "token" } " of the data directory, readable by its owner only. Use it to create users under "
                strong { "Users and tokens" } "."
            }
            form.fields method="post" action="/login" {
                input type="hidden" name="next" value=(next);
                p {
                    label for="token" { "Token" }
                    input #token name="token" type="password" autocomplete="off" maxlength="256";
                }
                p { button type="submit" { "Log in with the token" } }
            }
        }
    }
}

pub(crate) async fn show(headers: HeaderMap, Query(query): QueryParams) -> Response {
    let query = Form::of(query);
    bare_page(&headers, StatusCode::OK, "Log in", &login_form(query.text("next"), "", None))
}

pub(crate) async fn log_in(State(console): State<ConsoleState>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let headers = parts.headers.clone();
    let api_caller = api_caller(&parts, &console);
    let form_values = match Form::from_request(Request::from_parts(parts, body), &()).await {
        Ok(form) => form,
        Err(response) => return response,
    };
    let next = local_path(form_values.text("next")).unwrap_or("/");
    let (user, token) = (form_values.text("user"), form_values.text("token"));
    let request = match token {
        "" => LoginRequest::with_password(user.to_owned(), form_values.raw("password").to_owned()),
        token => LoginRequest::with_token(token.to_owned()),
    };
    let opened = api_caller.call(Method::POST, "/v1/sessions", ApiRequest::json("", &request)).await;
    let answer = match opened {
        Ok(answer) => answer,
        Err(error) => {
            let error = ApiError { detail: login_error_text(&error), ..error };
            return bare_page(&headers, error.status, "Log in", &login_form(next, user, Some(&error)));
        }
    };
    let mut response = Redirect::to(next).into_response();
    for cookie in answer.headers.get_all(header::SET_COOKIE) {
        response.headers_mut().append(header::SET_COOKIE, cookie.clone());
    }
    response
}

/// The error text of a login: the API's text is about bearer tokens.
fn login_error_text(error: &ApiError) -> String {
    match error.status {
        StatusCode::UNAUTHORIZED => "The user, the password or the token is not correct.".to_owned(),
        _ => error.detail.clone(),
    }
}

pub(crate) async fn log_out(State(console): State<ConsoleState>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let api_caller = api_caller(&parts, &console);
    let headers = parts.headers.clone();
    let form = match Form::from_request(Request::from_parts(parts, body), &()).await {
        Ok(form) => form,
        Err(response) => return response,
    };
    let sent = ApiRequest { csrf: form.text("csrf"), ..ApiRequest::default() };
    let mut response = Redirect::to("/login").into_response();
    match api_caller.call(Method::DELETE, "/v1/sessions/current", sent).await {
        Ok(answer) => {
            for cookie in answer.headers.get_all(header::SET_COOKIE) {
                response.headers_mut().append(header::SET_COOKIE, cookie.clone());
            }
        }
        Err(error) if error.status == StatusCode::UNAUTHORIZED => {}
        Err(error) => {
            return crate::layout::error_page(&headers, &error);
        }
    }
    response
}

pub(crate) async fn theme(form: Form) -> Response {
    let theme = match form.text("theme") {
        theme @ ("dark" | "light") => theme,
        _ => "system",
    };
    let mut response = Redirect::to(local_path(form.text("back")).unwrap_or("/")).into_response();
    let cookie = format!("{THEME_COOKIE}={theme}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}
