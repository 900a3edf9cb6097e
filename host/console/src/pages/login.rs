//! Coming in, going out, dark and light.

use crate::ask::{Refusal, Sent};
use crate::form::Form;
use crate::pages::Asked;
use crate::shell::{outside, trouble};
use crate::visit::{Console, THEME_COOKIE, asker, own_place};
use axum::extract::{FromRequest as _, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use serde_json::json;

fn form(next: &str, user: &str, refusal: Option<&Refusal>) -> Markup {
    html! {
        h1 { "Log in" }
        @if let Some(refusal) = refusal { (trouble(refusal)) }
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
        details.card open[refusal.is_none() && user.is_empty()] {
            summary { "The first time: log in with the appliance's token" }
            p {
                "The token was printed when the appliance was started for the first time. It is kept in the file "
                code { "token" } " of its data directory, readable for its owner alone. Make users with it, under "
                strong { "Users and tokens" } "; then it can stay where it is."
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

pub(crate) async fn show(headers: HeaderMap, Query(query): Asked) -> Response {
    let query = Form::of(query);
    outside(&headers, StatusCode::OK, "Log in", &form(query.text("next"), "", None))
}

pub(crate) async fn enter(State(console): State<Console>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let headers = parts.headers.clone();
    let asker = asker(&parts, &console);
    let given = match Form::from_request(Request::from_parts(parts, body), &()).await {
        Ok(form) => form,
        Err(response) => return response,
    };
    let next = own_place(given.text("next")).unwrap_or("/");
    let (user, token) = (given.text("user"), given.text("token"));
    let wish = match token {
        "" => json!({ "user": user, "password": given.raw("password") }),
        token => json!({ "token": token }),
    };
    let opened = asker.ask(Method::POST, "/v1/sessions", Sent::json("", &wish)).await;
    let answer = match opened {
        Ok(answer) => answer,
        Err(refusal) => {
            let refusal = Refusal { detail: plain(&refusal), ..refusal };
            return outside(&headers, refusal.status, "Log in", &form(next, user, Some(&refusal)));
        }
    };
    let mut response = Redirect::to(next).into_response();
    for cookie in answer.headers.get_all(header::SET_COOKIE) {
        response.headers_mut().append(header::SET_COOKIE, cookie.clone());
    }
    response
}

/// The API speaks to programs of bearer tokens; people want to know what was wrong.
fn plain(refusal: &Refusal) -> String {
    match refusal.status {
        StatusCode::UNAUTHORIZED => "User and password, or the token, are not right.".to_owned(),
        _ => refusal.detail.clone(),
    }
}

pub(crate) async fn leave(State(console): State<Console>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let asker = asker(&parts, &console);
    let headers = parts.headers.clone();
    let form = match Form::from_request(Request::from_parts(parts, body), &()).await {
        Ok(form) => form,
        Err(response) => return response,
    };
    let sent = Sent { csrf: form.text("csrf"), ..Sent::default() };
    let mut response = Redirect::to("/login").into_response();
    match asker.ask(Method::DELETE, "/v1/sessions/current", sent).await {
        Ok(answer) => {
            for cookie in answer.headers.get_all(header::SET_COOKIE) {
                response.headers_mut().append(header::SET_COOKIE, cookie.clone());
            }
        }
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => {}
        Err(refusal) => {
            return crate::shell::alone(&headers, &refusal);
        }
    }
    response
}

pub(crate) async fn theme(form: Form) -> Response {
    let theme = match form.text("theme") {
        theme @ ("dark" | "light") => theme,
        _ => "system",
    };
    let mut response = Redirect::to(own_place(form.text("back")).unwrap_or("/")).into_response();
    let cookie = format!("{THEME_COOKIE}={theme}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}
