//! Answers that do not end by themselves end with what let their reader in.

use crate::porter::{Porter, Presented};
use access::Right;
use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use futures_util::{Stream, StreamExt as _, stream};
use std::sync::Arc;
use std::time::Duration;

/// How often is looked whether somebody may still listen.
const EVERY: Duration = Duration::from_secs(2);

/// Server-sent events end when their reader's session or token does (a logout, a user who was removed, time), or when he has
/// not the right any more. Everything else is as it was.
pub(super) fn while_allowed(
    response: Response,
    porter: Arc<Porter>,
    presented: Arc<Presented>,
    needed: Right,
) -> Response {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return response;
    }
    let clock = stream::unfold(tokio::time::interval(EVERY), |mut interval| async move {
        interval.tick().await;
        Some(((), interval))
    });
    ends_when_refused(response, clock, move || porter.still_lets_in(&presented, needed))
}

/// Ends the answer at the first item of `checks` at which its reader is not allowed any more.
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
    use crate::token::Token;
    use access::{Access, NewUser, Role, UserChange};
    use axum::http::HeaderMap;
    use bytes::Bytes;
    use futures_util::FutureExt as _;
    use std::convert::Infallible;
    use std::future::ready;

    const PASSWORD: &str = "correct horse";

    struct House {
        _folder: tempfile::TempDir,
        porter: Arc<Porter>,
    }

    impl House {
        async fn with_ann() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let token = Token::load_or_make(&folder.path().join("token")).unwrap();
            let access = Arc::new(Access::open(&folder.path().join("access.redb")).unwrap());
            let porter = Porter::new(access, token, Arc::default()).unwrap();
            let password_hash = Some(porter.hash("password", "ann", PASSWORD).await.unwrap());
            let role = Role::Viewer;
            let ann = NewUser { name: "ann".to_owned(), role, account: None, bodies: false, password_hash };
            porter.access().add_user(ann, "token", porter.now()).unwrap();
            Self { _folder: folder, porter }
        }

        async fn ann(&self) -> Arc<Presented> {
            let (_, opened) = self.porter.log_in("ann", PASSWORD, None).await.unwrap();
            let mut headers = HeaderMap::new();
            let cookie = format!("{}={}", crate::porter::COOKIE, opened.secret);
            headers.insert(header::COOKIE, cookie.parse().unwrap());
            Arc::new(self.porter.recognise(&headers, false).unwrap())
        }

        /// Whether a stream of events ends when its reader is looked at now.
        fn ends(&self, presented: &Arc<Presented>) -> bool {
            let (porter, presented) = (self.porter.clone(), presented.clone());
            let once = stream::iter([()]).chain(stream::pending());
            let is_allowed = move || porter.still_lets_in(&presented, Right::Read);
            is_over(ends_when_refused(endless("text/event-stream"), once, is_allowed))
        }
    }

    /// An answer of this kind that does not end by itself.
    fn endless(kind: &str) -> Response {
        let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b":\n\n"))]);
        let body = Body::from_stream(first.chain(stream::pending()));
        Response::builder().header(header::CONTENT_TYPE, kind).body(body).unwrap()
    }

    /// Whether it ends without anything else that happens.
    fn is_over(response: Response) -> bool {
        response.into_body().into_data_stream().for_each(|_| ready(())).now_or_never().is_some()
    }

    #[tokio::test]
    async fn what_is_told_ends_with_the_session_the_user_or_the_right() {
        let house = House::with_ann().await;
        let access = house.porter.access().clone();
        let [stays, leaves, demoted, removed] =
            [house.ann().await, house.ann().await, house.ann().await, house.ann().await];
        assert!(!house.ends(&stays), "it ends while she is in");
        let (word, _) = leaves.session.clone().unwrap();
        access.close_session(&word);
        assert!(house.ends(&leaves), "it goes on after a logout");
        let file = while_allowed(endless("text/csv"), house.porter.clone(), leaves, Right::Read);
        assert!(!is_over(file), "a file that is being written is cut off");
        let change = UserChange {
            role: Some(Role::Account),
            account: Some(Some("acme".to_owned())),
            ..UserChange::default()
        };
        access.change_user("ann", change, None, ("token", None), house.porter.now()).unwrap();
        assert!(house.ends(&demoted), "it goes on without the right");
        access.remove_user("ann", None).unwrap();
        assert!(house.ends(&removed), "it goes on without the user");
    }
}
