//! Answers that do not end by themselves end with what let their reader in.

use crate::porter::{Porter, Presented};
use access::Right;
use axum::body::Body;
use axum::http::header;
use axum::response::Response;
use futures_util::StreamExt as _;
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
    let gone = async move {
        let mut clock = tokio::time::interval(EVERY);
        loop {
            clock.tick().await;
            if !porter.still_lets_in(&presented, needed) {
                return;
            }
        }
    };
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(gone))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::Token;
    use access::{Access, NewUser, Role, UserChange};
    use axum::http::HeaderMap;
    use bytes::Bytes;
    use std::convert::Infallible;

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

        /// An answer of this kind that would never end.
        fn told(&self, presented: &Arc<Presented>, kind: &str) -> Body {
            let first = futures_util::stream::iter([Ok::<_, Infallible>(Bytes::from_static(b":\n\n"))]);
            let endless = first.chain(futures_util::stream::pending());
            let response = Response::builder().header(header::CONTENT_TYPE, kind);
            let response = response.body(Body::from_stream(endless)).unwrap();
            let (porter, needed) = (self.porter.clone(), Right::Read);
            while_allowed(response, porter, presented.clone(), needed).into_body()
        }
    }

    /// Whether it ends within a minute of a clock that is not the wall's.
    async fn ends(body: Body) -> bool {
        let whole = axum::body::to_bytes(body, 1_000);
        tokio::time::timeout(Duration::from_secs(60), whole).await.is_ok()
    }

    #[tokio::test]
    async fn what_is_told_ends_with_the_session_the_user_or_the_right() {
        let house = House::with_ann().await;
        let events = "text/event-stream";
        let access = house.porter.access().clone();
        let [stays, leaves, demoted, removed] =
            [house.ann().await, house.ann().await, house.ann().await, house.ann().await];
        tokio::time::pause();
        assert!(!ends(house.told(&stays, events)).await, "it ends while she is in");
        let (word, _) = leaves.session.clone().unwrap();
        access.close_session(&word);
        assert!(ends(house.told(&leaves, events)).await, "it goes on after a logout");
        assert!(!ends(house.told(&leaves, "text/csv")).await, "a file that is being written is cut off");
        let change = UserChange {
            role: Some(Role::Account),
            account: Some(Some("acme".to_owned())),
            ..UserChange::default()
        };
        access.change_user("ann", change, None, ("token", None), house.porter.now()).unwrap();
        assert!(ends(house.told(&demoted, events)).await, "it goes on without the right");
        access.remove_user("ann", None).unwrap();
        assert!(ends(house.told(&removed, events)).await, "it goes on without the user");
    }
}
