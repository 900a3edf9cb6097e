//! Authorization of API requests: authentication, permissions, and the audit record.

mod scope;
mod streams;

pub(crate) use scope::{Scope, scope_is_checked_elsewhere};

use crate::authenticator::{AuthError, Authenticator};
use crate::passed_caller::passed_caller;
use crate::permissions::{self, TenantAccess};
use crate::problem::{Problem, ProblemKind};
use crate::request_audit::{operation_name, record_outcome};
use crate::tenants::Tenants;
use access::Caller;
use api::{AuditOutcome, AuditRecord, Permission, ProblemReason, Role};
use axum::extract::{ConnectInfo, MatchedPath, Query, RawPathParams, Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// The client's IP address; `None` if it is unknown.
pub(crate) fn client_address(request: &axum::http::Extensions) -> Option<IpAddr> {
    request
        .get::<ConnectInfo<SocketAddr>>()
        .map(|ConnectInfo(client_address)| client_address.ip().to_canonical())
}

/// Operations that are restricted to the caller's own account if the caller has the role account.
const ACCOUNT_SCOPED: [&str; 3] = ["/v1/messages", "/v1/history", "/v1/statistics"];

/// The components for authorisation.
#[derive(Clone)]
pub(crate) struct Authorization {
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) tenants: Arc<dyn Tenants>,
}

pub(crate) async fn authorize(
    State(Authorization { authenticator, tenants }): State<Authorization>,
    parameters: Result<RawPathParams, axum::extract::rejection::RawPathParamsRejection>,
    mut request: Request,
    next: Next,
) -> Response {
    let changes = !request.method().is_safe();
    let method = request.method().clone();
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let path = path.unwrap_or_default();
    let from = client_address(request.extensions());
    let (allowed, caller) = match passed_caller(request.extensions(), request.headers()) {
        Some(caller) => (check_permissions(&caller, &method, &path, request.uri()).map(|()| None), caller),
        None => match authenticator.authenticate(request.headers(), changes) {
            Ok(identity) => {
                let caller = identity.caller.clone();
                (check_permissions(&caller, &method, &path, request.uri()).map(|()| Some(identity)), caller)
            }
            Err(AuthError::CsrfMismatch(caller)) => (Err(csrf_problem()), *caller),
            Err(AuthError::Unauthenticated) => return unauthenticated(),
        },
    };
    let is_audited = permissions::is_audited(&method, &path) || asks_for_bodies(request.uri());
    let subject = parameters.ok().map(|parameters| {
        let parts: Vec<&str> = parameters.iter().map(|(_, value)| value).collect();
        parts.join("/")
    });
    let record = is_audited.then(|| AuditRecord {
        at: authenticator.now().wall,
        by: caller.name.to_string(),
        tenant: caller.tenant.as_deref().map(str::to_owned),
        what: operation_name(&method, &path, request.uri()),
        subject: subject.unwrap_or_default(),
        detail: None,
        from: from.map(|from| from.to_string()),
        outcome: AuditOutcome::Done,
        status: 0,
    });
    let identity = allowed.and_then(|identity| {
        restrict_to_account(&mut request, &caller, &path)?;
        Ok(identity)
    });
    let listener = (authenticator.clone(), permissions::required_permission(&method, &path));
    let run = async move {
        match identity {
            Ok(identity) => {
                let scope = scope::ScopeTicket::of(&caller, &*tenants);
                request.extensions_mut().insert(scope.clone());
                request.extensions_mut().insert(caller);
                let identity = identity.map(Arc::new);
                if let Some(identity) = &identity {
                    request.extensions_mut().insert(identity.clone());
                }
                let response = scope.checked(next.run(request).await);
                match (identity, listener) {
                    (Some(identity), (authenticator, Some(required))) => {
                        streams::end_when_revoked(response, authenticator, identity, required)
                    }
                    _ => response,
                }
            }
            Err(problem) => problem.into_response(),
        }
    };
    let Some(record) = record else { return run.await };
    // In a task of its own: if the client disconnects, the operation and its audit record still complete.
    let done = tokio::spawn(async move { record_outcome(&authenticator, record, run.await).await }).await;
    done.unwrap_or_else(|_| {
        Problem::new(ProblemKind::Internal, "the request failed internally; see the log").into_response()
    })
}

fn unauthenticated() -> Response {
    let detail = "log in, or send the header `Authorization: Bearer TOKEN`; the root token is in the file `token` of the data \
                  directory";
    let mut response = Problem::new(ProblemKind::Unauthorised, detail).into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn csrf_problem() -> Problem {
    let detail = "a request of a session that changes something must send the session's CSRF token in the header \
                  `Switchyard-CSRF`";
    Problem::new(ProblemKind::Forbidden, detail).with_reason(ProblemReason::of("csrf"))
}

fn check_permissions(caller: &Caller, method: &Method, path: &str, uri: &Uri) -> Result<(), Problem> {
    // An operation without a row in the permission table is refused for everyone.
    let Some(required) = permissions::required_permission(method, path) else {
        return Err(Problem::new(ProblemKind::Forbidden, "this operation is refused for everyone"));
    };
    if caller.tenant.is_some() && permissions::tenant_access(method, path) == TenantAccess::Refused {
        let detail = "this operation concerns the whole appliance, and is refused for users of tenants";
        return Err(Problem::new(ProblemKind::Forbidden, detail).with_reason(ProblemReason::of("tenant")));
    }
    require(caller, required)?;
    if asks_for_bodies(uri) { require(caller, Permission::ReadBodies) } else { Ok(()) }
}

/// # Errors
/// If the caller does not have the permission.
pub(crate) fn require(caller: &Caller, required: Permission) -> Result<(), Problem> {
    if caller.has(required) {
        return Ok(());
    }
    let (name, who) = (permission_name(required), &caller.name);
    let detail = match required {
        Permission::ReadBodies => {
            format!(
                "{who} may not read message texts (permission {name}): an admin grants it to single users"
            )
        }
        _ => format!("this requires the permission {name}; {who} has the role {}", role_name(caller.role)),
    };
    Err(Problem::new(ProblemKind::Forbidden, detail).with_reason(ProblemReason::of("permission-missing")))
}

fn permission_name(permission: Permission) -> String {
    serde_json::to_value(permission)
        .ok()
        .and_then(|name| name.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn role_name(role: Role) -> String {
    serde_json::to_value(role).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

fn query(uri: &Uri) -> Vec<(String, String)> {
    Query::try_from_uri(uri).map(|Query(pairs)| pairs).unwrap_or_default()
}

/// Whether the request asks for message texts. A value that cannot be parsed counts as yes.
pub(crate) fn asks_for_bodies(uri: &Uri) -> bool {
    query(uri).iter().any(|(name, value)| name == "body" && !matches!(value.as_str(), "" | "0" | "false"))
}

/// Restricts the query of a caller with the role account to that account.
fn restrict_to_account(request: &mut Request, caller: &Caller, path: &str) -> Result<(), Problem> {
    if caller.role != Role::Account || !ACCOUNT_SCOPED.contains(&path) {
        return Ok(());
    }
    let none = || Problem::new(ProblemKind::Forbidden, "your user has no account; an admin must set it");
    let own = caller.account.as_deref().ok_or_else(none)?;
    let mut pairs = query(request.uri());
    if pairs.iter().any(|(name, value)| name == "account" && !value.is_empty() && value != own) {
        let detail = format!("account: you may see {own:?} only");
        return Err(
            Problem::new(ProblemKind::Forbidden, detail).with_reason(ProblemReason::of("other-account"))
        );
    }
    pairs.retain(|(name, _)| name != "account");
    pairs.push(("account".to_owned(), own.to_owned()));
    let plain = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", plain(name), plain(value))).collect();
    let whole = format!("{}?{}", request.uri().path(), pairs.join("&"));
    let wrong = || Problem::new(ProblemKind::BadRequest, "the query is malformed");
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = Some(whole.parse::<PathAndQuery>().map_err(|_| wrong())?);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| wrong())?;
    Ok(())
}

/// Whether the caller may see a message: callers with the role account see only messages that the account submitted.
pub(crate) fn is_visible_to(caller: &Caller, origin: &str) -> bool {
    caller.role != Role::Account || caller.account.as_deref() == Some(origin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    fn of_account(account: Option<&str>) -> Caller {
        Caller {
            name: "shop-1".into(),
            role: Role::Account,
            account: account.map(Into::into),
            tenant: None,
            bodies: false,
        }
    }

    fn restricted(caller: &Caller, uri: &str) -> Result<String, u16> {
        let mut request = Request::builder().uri(uri).body(Body::empty()).unwrap();
        let path = request.uri().path().to_owned();
        restrict_to_account(&mut request, caller, &path).map_err(|problem| problem.status)?;
        Ok(request.uri().to_string())
    }

    #[test]
    fn account_queries_are_restricted_to_the_account() {
        let shop = of_account(Some("shop & co"));
        for (query, want) in [
            ("/v1/history", Ok("/v1/history?account=shop%20%26%20co")),
            ("/v1/history?account=", Ok("/v1/history?account=shop%20%26%20co")),
            ("/v1/history?account=shop+%26%20co&limit=3", Ok("/v1/history?limit=3&account=shop%20%26%20co")),
            ("/v1/messages?account=other", Err(403)),
            ("/v1/messages?account=shop+%26+co&account=other", Err(403)),
            ("/v1/statistics?acc%6Funt=other", Err(403)),
            ("/v1/whoami?x=1", Ok("/v1/whoami?x=1")),
        ] {
            assert_eq!(restricted(&shop, query), want.map(str::to_owned), "{query}");
        }
        assert_eq!(restricted(&of_account(None), "/v1/history"), Err(403));
        assert_eq!(
            restricted(&Caller::root(), "/v1/history?account=x"),
            Ok("/v1/history?account=x".to_owned())
        );
    }

    #[test]
    fn asks_for_bodies_in_any_query_encoding() {
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
    fn account_sees_only_its_own_messages() {
        let shop = of_account(Some("shop"));
        assert!(
            is_visible_to(&shop, "shop")
                && !is_visible_to(&shop, "other")
                && !is_visible_to(&of_account(None), "")
        );
        assert!(is_visible_to(&Caller::root(), "other"));
    }

    #[test]
    fn missing_permission_is_named() {
        let viewer = Caller { role: Role::Viewer, account: None, ..of_account(None) };
        let problem = require(&viewer, Permission::ManagePlugins).unwrap_err();
        assert_eq!(problem.status, 403);
        assert!(
            problem.detail.contains("manage-plugins") && problem.detail.contains("viewer"),
            "{}",
            problem.detail
        );
        let problem = require(&viewer, Permission::ReadBodies).unwrap_err();
        assert!(problem.detail.contains("read-bodies"), "{}", problem.detail);
        assert!(require(&viewer, Permission::Read).is_ok());
    }
}
