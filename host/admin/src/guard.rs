//! What every request that is not for everybody passes: who makes it, whether he may, and the line in the audit log.

mod headers;
mod refusals;
mod streams;

pub(crate) use headers::secure;
pub(crate) use refusals::Refusals;

use crate::porter::{Porter, Turned};
use crate::problem::{Kind, Problem, Reason};
use crate::rights;
use access::{Caller, Deed, Outcome, Right, Role};
use axum::extract::{ConnectInfo, MatchedPath, Query, RawPathParams, Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use refusals::Line;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// More on what was done, for the audit log: an extension of a response. Never a secret, never a text of a message.
#[derive(Debug, Clone)]
pub(crate) struct Noted(pub(crate) String);

/// An answer, and more on what was done for the audit log.
pub(crate) type Detailed<T> = Result<(axum::Extension<Noted>, axum::Json<T>), Problem>;

/// The answer with the detail that `describe` makes of it.
pub(crate) fn detailed<T>(answer: axum::Json<T>, describe: impl FnOnce(&T) -> String) -> Detailed<T> {
    let detail = describe(&answer.0);
    Ok((axum::Extension(Noted(detail)), answer))
}

/// A detail, and the reason that was given, if one was.
pub(crate) fn with_reason(detail: String, why: Option<&str>) -> String {
    match why {
        Some(why) if !why.is_empty() => format!("{detail}; why: {why}"),
        _ => detail,
    }
}

/// Where a request comes from; nothing if nobody knows.
pub(crate) fn address(request: &axum::http::Extensions) -> Option<IpAddr> {
    request.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.ip().to_canonical())
}

/// Operations whose list of messages is an account's own, if an account's people ask.
const NARROWED: [&str; 3] = ["/v1/messages", "/v1/history", "/v1/statistics"];

pub(crate) async fn guard(
    State(porter): State<Arc<Porter>>,
    parameters: Result<RawPathParams, axum::extract::rejection::RawPathParamsRejection>,
    mut request: Request,
    next: Next,
) -> Response {
    let changes = !request.method().is_safe();
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let path = path.unwrap_or_default();
    let from = address(request.extensions());
    let (judged, caller) = match porter.recognise(request.headers(), changes) {
        Ok(presented) => {
            let caller = presented.caller.clone();
            (judge(&caller, &method, &path, request.uri()).map(|()| Some(presented)), caller)
        }
        Err(Turned::Doubtful(caller)) => (Err(not_its_own()), *caller),
        Err(Turned::Away) => return unknown(),
    };
    let is_noted = rights::is_noted(&method, &path) || asks_for_bodies(request.uri());
    let subject = parameters.ok().map(|parameters| {
        let parts: Vec<&str> = parameters.iter().map(|(_, value)| value).collect();
        parts.join("/")
    });
    let deed = is_noted.then(|| Deed {
        at: porter.now().wall,
        by: caller.name.to_string(),
        what: what(&method, &path, request.uri()),
        subject: subject.unwrap_or_default(),
        detail: None,
        from: from.map(|from| from.to_string()),
        outcome: Outcome::Done,
        status: 0,
    });
    let presented = judged.and_then(|presented| {
        narrow(&mut request, &caller, &path)?;
        Ok(presented)
    });
    let listener = (porter.clone(), rights::needed(&method, &path));
    let run = async move {
        match presented {
            Ok(presented) => {
                request.extensions_mut().insert(caller);
                let presented = presented.map(Arc::new);
                if let Some(presented) = &presented {
                    request.extensions_mut().insert(presented.clone());
                }
                let response = next.run(request).await;
                match (presented, listener) {
                    (Some(presented), (porter, Some(needed))) => {
                        streams::while_allowed(response, porter, presented, needed)
                    }
                    _ => response,
                }
            }
            Err(problem) => problem.into_response(),
        }
    };
    let Some(deed) = deed else { return run.await };
    // In a task of its own: a client that goes away in the midst of it does not keep what was done out of the log.
    let done = tokio::spawn(async move { note(&porter, deed, run.await).await }).await;
    done.unwrap_or_else(|_| {
        Problem::new(Kind::Internal, "the request failed inside; the log says more").into_response()
    })
}

/// Method and route, and whether texts of messages were asked for.
fn what(method: &Method, path: &str, uri: &Uri) -> String {
    let method = if *method == Method::HEAD { &Method::GET } else { method };
    let bodies = if asks_for_bodies(uri) { "?body=1" } else { "" };
    format!("{method} {path}{bodies}")
}

/// Writes down what was done, before anybody is told.
async fn note(porter: &Arc<Porter>, mut deed: Deed, response: Response) -> Response {
    let status = response.status();
    deed.status = status.as_u16();
    deed.outcome = match status.as_u16() {
        500.. => Outcome::Failed,
        400.. => Outcome::Refused,
        _ => Outcome::Done,
    };
    deed.detail = response.extensions().get::<Noted>().map(|noted| noted.0.clone());
    if deed.outcome == Outcome::Refused
        && let Line::Counted(left) = porter.refusals().count(&deed.by, Instant::now())
    {
        if let Some(left) = left {
            tokio::spawn(fold(porter.clone(), deed, left));
        }
        return response;
    }
    if write(porter, deed).await {
        return response;
    }
    let done = if status.is_success() {
        "it was done, but the audit log cannot be written, and says nothing of it"
    } else {
        "the audit log cannot be written"
    };
    Problem::new(Kind::Internal, format!("{done}; look whether the disk is full or failing")).into_response()
}

/// When the minute is over, one line for all refusals of its caller that have none of their own.
async fn fold(porter: Arc<Porter>, deed: Deed, left: Duration) {
    tokio::time::sleep(left).await;
    let count = porter.refusals().take(&deed.by);
    let detail = format!("{count} more refused requests in a minute, the first of which was {}", deed.what);
    let (at, what) = (porter.now().wall, "refused requests".to_owned());
    write(&porter, Deed { at, what, subject: String::new(), detail: Some(detail), ..deed }).await;
}

/// Adds a line to the audit log; says whether it is there.
pub(crate) async fn write(porter: &Arc<Porter>, deed: Deed) -> bool {
    let access = porter.access().clone();
    let told = (deed.by.clone(), deed.what.clone(), deed.subject.clone(), deed.status);
    let written = tokio::task::spawn_blocking(move || access.note(deed)).await;
    let (by, what, subject, status) = told;
    match written {
        Ok(Ok(serial)) => {
            tracing::info!(serial, by, what, subject, status, "audit");
            true
        }
        Ok(Err(error)) => {
            tracing::error!(%error, by, what, subject, status, "audit log not written");
            false
        }
        Err(_) => false,
    }
}

fn unknown() -> Response {
    let detail = "log in, or send the header `Authorization: Bearer TOKEN`; the token of the first start is in the file \
                  `token` of the data directory";
    let mut response = Problem::new(Kind::Unauthorised, detail).into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn not_its_own() -> Problem {
    let detail = "a session that changes something sends the header `Switchyard-CSRF` with the word that it was given when it \
                  was opened";
    Problem::new(Kind::Forbidden, detail).because(Reason::of("csrf"))
}

fn judge(caller: &Caller, method: &Method, path: &str, uri: &Uri) -> Result<(), Problem> {
    // An operation without a row in the table is for nobody.
    let Some(needed) = rights::needed(method, path) else {
        return Err(Problem::new(Kind::Forbidden, "this is for nobody"));
    };
    demand(caller, needed)?;
    if asks_for_bodies(uri) { demand(caller, Right::ReadBodies) } else { Ok(()) }
}

/// # Errors
/// When the caller has not the right.
pub(crate) fn demand(caller: &Caller, needed: Right) -> Result<(), Problem> {
    if caller.may(needed) {
        return Ok(());
    }
    let (name, who) = (name(needed), &caller.name);
    let detail = match needed {
        Right::ReadBodies => {
            format!(
                "{who} may not read texts of messages (the right {name}): an admin grants it to a user by name"
            )
        }
        _ => format!("this needs the right {name}, which {who} has not; the role is {}", role(caller.role)),
    };
    Err(Problem::new(Kind::Forbidden, detail).because(Reason::of("right-missing")))
}

fn name(right: Right) -> String {
    serde_json::to_value(right).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn role(role: Role) -> String {
    serde_json::to_value(role).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn query(uri: &Uri) -> Vec<(String, String)> {
    Query::try_from_uri(uri).map(|Query(pairs)| pairs).unwrap_or_default()
}

/// Whether texts of messages are asked for. What only looks like it is taken for it.
fn asks_for_bodies(uri: &Uri) -> bool {
    query(uri).iter().any(|(name, value)| name == "body" && !matches!(value.as_str(), "" | "0" | "false"))
}

/// An account's people see what is the account's: whatever they ask for, it is asked for that account.
fn narrow(request: &mut Request, caller: &Caller, path: &str) -> Result<(), Problem> {
    if caller.role != Role::Account || !NARROWED.contains(&path) {
        return Ok(());
    }
    let none = || Problem::new(Kind::Forbidden, "your user belongs to no account; an admin says to which");
    let own = caller.account.as_deref().ok_or_else(none)?;
    let mut pairs = query(request.uri());
    if pairs.iter().any(|(name, value)| name == "account" && !value.is_empty() && value != own) {
        let detail = format!("account: you may see {own:?} only");
        return Err(Problem::new(Kind::Forbidden, detail).because(Reason::of("other-account")));
    }
    pairs.retain(|(name, _)| name != "account");
    pairs.push(("account".to_owned(), own.to_owned()));
    let plain = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", plain(name), plain(value))).collect();
    let whole = format!("{}?{}", request.uri().path(), pairs.join("&"));
    let wrong = || Problem::new(Kind::BadRequest, "the query is no query");
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = Some(whole.parse::<PathAndQuery>().map_err(|_| wrong())?);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| wrong())?;
    Ok(())
}

/// Whether a message may be shown to a caller: an account's people see what that account has submitted.
pub(crate) fn is_shown(caller: &Caller, origin: &str) -> bool {
    caller.role != Role::Account || caller.account.as_deref() == Some(origin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn of_account(account: Option<&str>) -> Caller {
        Caller { name: "shop-1".into(), role: Role::Account, account: account.map(Into::into), bodies: false }
    }

    fn narrowed(caller: &Caller, uri: &str) -> Result<String, u16> {
        let mut request = Request::builder().uri(uri).body(Body::empty()).unwrap();
        let path = request.uri().path().to_owned();
        narrow(&mut request, caller, &path).map_err(|problem| problem.status)?;
        Ok(request.uri().to_string())
    }

    #[test]
    fn an_account_asks_for_itself_whatever_it_asks_for() {
        let shop = of_account(Some("shop & co"));
        for (asked, want) in [
            ("/v1/history", Ok("/v1/history?account=shop%20%26%20co")),
            ("/v1/history?account=", Ok("/v1/history?account=shop%20%26%20co")),
            ("/v1/history?account=shop+%26%20co&limit=3", Ok("/v1/history?limit=3&account=shop%20%26%20co")),
            ("/v1/messages?account=other", Err(403)),
            ("/v1/messages?account=shop+%26+co&account=other", Err(403)),
            ("/v1/statistics?acc%6Funt=other", Err(403)),
            ("/v1/whoami?x=1", Ok("/v1/whoami?x=1")),
        ] {
            assert_eq!(narrowed(&shop, asked), want.map(str::to_owned), "{asked}");
        }
        assert_eq!(narrowed(&of_account(None), "/v1/history"), Err(403));
        assert_eq!(
            narrowed(&Caller::house(), "/v1/history?account=x"),
            Ok("/v1/history?account=x".to_owned())
        );
    }

    #[test]
    fn whoever_asks_for_texts_is_seen_however_it_is_written() {
        for (uri, want) in [
            ("/v1/history?body=1", true),
            ("/v1/history?bod%79=true", true),
            ("/v1/history?body=maybe", true),
            ("/v1/history?body=0&body=1", true),
            ("/v1/history?body=0", false),
            ("/v1/history?body=", false),
            ("/v1/history?nobody=1", false),
        ] {
            assert_eq!(asks_for_bodies(&uri.parse().unwrap()), want, "{uri}");
        }
    }

    #[test]
    fn an_account_sees_its_own_messages_only() {
        let shop = of_account(Some("shop"));
        assert!(is_shown(&shop, "shop") && !is_shown(&shop, "other") && !is_shown(&of_account(None), ""));
        assert!(is_shown(&Caller::house(), "other"));
    }

    #[test]
    fn who_has_not_the_right_is_told_which() {
        let viewer = Caller { role: Role::Viewer, account: None, ..of_account(None) };
        let problem = demand(&viewer, Right::ManagePlugins).unwrap_err();
        assert_eq!(problem.status, 403);
        assert!(
            problem.detail.contains("manage-plugins") && problem.detail.contains("viewer"),
            "{}",
            problem.detail
        );
        let problem = demand(&viewer, Right::ReadBodies).unwrap_err();
        assert!(problem.detail.contains("read-bodies"), "{}", problem.detail);
        assert!(demand(&viewer, Right::Read).is_ok());
    }
}
