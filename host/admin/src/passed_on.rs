//! Requests for another partition of the cluster, or about one of its messages: they are passed on to its leader.

use crate::all_partitions::{self, MergedList};
use crate::authz;
use crate::cluster::ClusterLeader;
use crate::passed_caller::{CALLER, header_of};
use crate::problem::{Problem, ProblemKind};
use access::Caller;
use axum::body::{Bytes, to_bytes};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use model::MessageId;
use ports::{PassedApi, PassedOnMarker};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The partition that a request is for, if it is not the one of this leader; `all` for lists of all partitions.
pub(crate) const PARTITION: HeaderName = HeaderName::from_static("partition");
/// Maximum size of a passed-on request's body, in octets.
const BODY_LIMIT: usize = 16 << 20;

/// The leaders that answer a request.
#[derive(Debug, PartialEq, Eq)]
enum Answerer {
    /// This leader.
    ThisLeader,
    /// The leader of this partition.
    Partition(u8),
    /// The leaders of all partitions.
    All,
}

/// The message that a path is about.
fn message_of(path: &str) -> Option<MessageId> {
    let rest = path.strip_prefix("/v1/messages/")?;
    rest.split('/').next()?.parse().ok()
}

/// The leaders that answer a request: by the header `Partition`, or else by the partition of its message.
fn answerer_of(request: &Request) -> Result<Answerer, Problem> {
    let Some(named) = request.headers().get(PARTITION) else {
        let partition = message_of(request.uri().path()).map(MessageId::partition);
        let partition = partition.filter(|partition| *partition <= MessageId::LAST_PARTITION);
        return Ok(partition.map_or(Answerer::ThisLeader, Answerer::Partition));
    };
    if named == "all" {
        return Ok(Answerer::All);
    }
    let number = named.to_str().ok().and_then(|text| {
        let number: u8 = text.parse().ok()?;
        // Without a sign or leading zeros, as the API's document says.
        (number <= MessageId::LAST_PARTITION && number.to_string() == text).then_some(number)
    });
    match number {
        Some(number) => Ok(Answerer::Partition(number)),
        None => {
            let what = format!("the header Partition must be 0 to {}, or `all`", MessageId::LAST_PARTITION);
            Err(Problem::new(ProblemKind::BadRequest, what))
        }
    }
}

/// The client address and the headers of a request, in the form for another leader.
pub(crate) struct PassedHead {
    remote: SocketAddr,
    headers: HeaderMap,
}

impl PassedHead {
    /// Replaces the credentials by the caller, which this node has authenticated.
    pub(crate) fn of(request: &Request) -> Result<Self, Problem> {
        let caller = request.extensions().get::<Caller>().and_then(header_of);
        let caller =
            caller.ok_or_else(|| Problem::new(ProblemKind::Internal, "the caller cannot be passed on"))?;
        let mut headers = request.headers().clone();
        headers.remove(header::AUTHORIZATION);
        headers.remove(header::COOKIE);
        headers.insert(CALLER, caller);
        let remote = request.extensions().get::<ConnectInfo<SocketAddr>>();
        let remote = remote.map_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into(), |ConnectInfo(remote)| *remote);
        Ok(Self { remote, headers })
    }

    /// The client address, and a GET request for this path and query.
    pub(crate) fn get(&self, uri: Uri) -> (SocketAddr, axum::http::Request<Bytes>) {
        let mut request = axum::http::Request::new(Bytes::new());
        *request.uri_mut() = uri;
        *request.headers_mut() = self.headers.clone();
        (self.remote, request)
    }
}

/// Middleware: passes a request for other partitions on to their leaders.
pub(crate) async fn pass_on(
    State(cluster): State<Arc<dyn ClusterLeader>>,
    request: Request,
    next: Next,
) -> Response {
    let was_passed_on = request.extensions().get::<PassedOnMarker>().is_some();
    let answerer = if was_passed_on { Ok(Answerer::ThisLeader) } else { answerer_of(&request) };
    let pass_on = cluster.pass_on();
    let (partition, pass_on) = match (answerer, pass_on) {
        (Ok(Answerer::All), pass_on) => {
            return match MergedList::of(&request) {
                Ok(list) => all_partitions::answer(pass_on, list, request, next).await,
                Err(problem) => problem.into_response(),
            };
        }
        (Ok(Answerer::Partition(partition)), Some(pass_on)) if partition != pass_on.partition() => {
            (partition, pass_on)
        }
        (Err(problem), _) => return problem.into_response(),
        _ => return next.run(request).await,
    };
    let PassedHead { remote, headers } = match PassedHead::of(&request) {
        Ok(head) => head,
        Err(problem) => return problem.into_response(),
    };
    let extensions = request.extensions().clone();
    let (mut head, body) = request.into_parts();
    head.headers = headers;
    let Ok(body) = to_bytes(body, BODY_LIMIT).await else {
        return Problem::new(ProblemKind::BadRequest, "the body is too long, or was cut off").into_response();
    };
    let request = axum::http::Request::from_parts(head, body);
    match pass_on.request(partition, PassedApi::Admin, remote, request).await {
        Ok(response) => {
            authz::scope_is_checked_elsewhere(&extensions);
            response
        }
        Err(error) => {
            tracing::warn!(partition, %error, "request not passed on to the leader of its partition");
            let what = format!(
                "this is a request for partition {partition}, whose leader does not answer: {error}; try again in a second"
            );
            Problem::new(ProblemKind::Unavailable, what).into_response()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_partition_or_its_message() {
        let request = |path: &str, partition: Option<&str>| {
            let request = Request::get(path);
            let request = match partition {
                Some(partition) => request.header(PARTITION, partition),
                None => request,
            };
            answerer_of(&request.body(axum::body::Body::empty()).unwrap()).ok()
        };
        let message = format!("/v1/messages/{}", MessageId::first_of(3));
        assert_eq!(request(&message, None), Some(Answerer::Partition(3)));
        assert_eq!(request(&message, Some("1")), Some(Answerer::Partition(1)));
        assert_eq!(request("/v1/messages/9007199254740993", None), Some(Answerer::ThisLeader));
        assert_eq!(request("/v1/queues", Some("1")), Some(Answerer::Partition(1)));
        assert_eq!(request("/v1/queues", Some("all")), Some(Answerer::All));
        assert_eq!(request("/v1/queues", None), Some(Answerer::ThisLeader));
        for wrong in ["", "x", "128", "-1", "+1", "01", "ALL"] {
            assert_eq!(request("/v1/queues", Some(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn a_path_names_a_message() {
        let id = MessageId::first_of(3);
        assert_eq!(message_of(&format!("/v1/messages/{id}")), Some(id));
        assert_eq!(message_of(&format!("/v1/messages/{id}/cancel")), Some(id));
        for other in ["/v1/messages", "/v1/messages/", "/v1/messages/x", "/v1/replays/5"] {
            assert_eq!(message_of(other), None, "{other}");
        }
    }
}
