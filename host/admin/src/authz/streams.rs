//! Ends event streams when the reader is no longer authorized.

use crate::authenticator::{Authenticator, Identity};
use api::Permission;
use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use futures_util::{Stream, StreamExt as _, stream};
use std::sync::Arc;
use std::time::Duration;

/// Interval of the checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Ends server-sent events when the reader's session or token ends, or the reader loses the permission. Other responses
/// are unchanged.
pub(super) fn end_when_revoked(
    response: Response,
    authenticator: Arc<Authenticator>,
    identity: Arc<Identity>,
    required: Permission,
) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return response;
    }
    let clock = stream::unfold(tokio::time::interval(CHECK_INTERVAL), |mut interval| async move {
        interval.tick().await;
        Some(((), interval))
    });
    ends_when_refused(response, clock, move || authenticator.is_still_authorized(&identity, required))
}

/// Ends the response at the first item of `checks` at which the reader is not allowed.
fn ends_when_refused(
    response: Response,
    checks: impl Stream<Item = ()> + Send + 'static,
    is_allowed: impl Fn() -> bool + Send + 'static,
) -> Response {
    let mut checks = Box::pin(checks);
    let refused = async move { while checks.next().await.is_some() && is_allowed() {} };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(refused))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root_token::RootToken;
    use access::{Access, NewUser, UserChange};
    use api::Role;
    use axum::http::HeaderMap;
    use bytes::Bytes;
    use futures_util::FutureExt as _;
    use std::convert::Infallible;
    use std::future::ready;

    const PASSWORD: &str = "correct horse";

    struct Fixture {
        _folder: tempfile::TempDir,
        authenticator: Arc<Authenticator>,
    }

    impl Fixture {
        async fn with_ann() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let token = RootToken::load_or_create(&folder.path().join("token")).unwrap();
            let access = Arc::new(Access::open(&folder.path().join("access.redb")).unwrap());
            let authenticator = Authenticator::new(access, token, Arc::default()).unwrap();
            let password_hash = Some(authenticator.hash_password("password", "ann", PASSWORD).await.unwrap());
            let role = Role::Viewer;
            let ann = NewUser {
                name: "ann".to_owned(),
                role,
                account: None,
                tenant: None,
                bodies: false,
                password_hash,
            };
            authenticator.access().add_user(ann, "token", authenticator.now()).unwrap();
            Self { _folder: folder, authenticator }
        }

        async fn ann(&self) -> Arc<Identity> {
            let (_, opened) = self.authenticator.log_in("ann", PASSWORD, None).await.unwrap();
            let mut headers = HeaderMap::new();
            let cookie = format!("{}={}", crate::authenticator::SESSION_COOKIE, opened.secret);
            headers.insert(header::COOKIE, cookie.parse().unwrap());
            Arc::new(self.authenticator.authenticate(&headers, false).unwrap())
        }

        /// Whether an event stream ends at the next check.
        fn ends(&self, identity: &Arc<Identity>) -> bool {
            let (authenticator, identity) = (self.authenticator.clone(), identity.clone());
            let once = stream::iter([()]).chain(stream::pending());
            let is_allowed = move || authenticator.is_still_authorized(&identity, Permission::Read);
            is_over(ends_when_refused(endless("text/event-stream"), once, is_allowed))
        }
    }

    /// A response of this media type that does not end by itself.
    fn endless(kind: &str) -> Response {
        let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b":\n\n"))]);
        let body = Body::from_stream(first.chain(stream::pending()));
        Response::builder().header(header::CONTENT_TYPE, kind).body(body).unwrap()
    }

    /// Whether the response ends without any further event.
    fn is_over(response: Response) -> bool {
        response.into_body().into_data_stream().for_each(|_| ready(())).now_or_never().is_some()
    }

    #[tokio::test]
    async fn stream_ends_with_session_user_or_permission() {
        let fixture = Fixture::with_ann().await;
        let access = fixture.authenticator.access().clone();
        let [stays, leaves, demoted, removed] =
            [fixture.ann().await, fixture.ann().await, fixture.ann().await, fixture.ann().await];
        assert!(!fixture.ends(&stays), "the stream ended during the session");
        let (secret, _) = leaves.session.clone().unwrap();
        access.close_session(&secret);
        assert!(fixture.ends(&leaves), "the stream continued after the logout");
        let file =
            end_when_revoked(endless("text/csv"), fixture.authenticator.clone(), leaves, Permission::Read);
        assert!(!is_over(file), "a file download was cut off");
        let change = UserChange {
            role: Some(Role::Account),
            account: Some(Some("acme".to_owned())),
            ..UserChange::default()
        };
        access.change_user("ann", change, None, ("token", None), fixture.authenticator.now()).unwrap();
        assert!(fixture.ends(&demoted), "the stream continued without the permission");
        access.remove_user("ann", None).unwrap();
        assert!(fixture.ends(&removed), "the stream continued without the user");
    }
}
