//! Requests about a message of another partition of the cluster, or for another partition: its leader answers them.

use crate::authz;
use crate::cluster::ClusterLeader;
use crate::passed_caller::{CALLER, header_of};
use crate::problem::{Problem, ProblemKind};
use access::Caller;
use axum::body::to_bytes;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderName, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use model::MessageId;
use ports::{PassedApi, WasPassedOn};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The partition that a request is for, if it is not the one of this leader.
const PARTITION: HeaderName = HeaderName::from_static("partition");
/// Octets of a passed-on request's body.
const BODY_LIMIT: usize = 16 << 20;

/// The message that a path is about.
fn message_of(path: &str) -> Option<MessageId> {
    let rest = path.strip_prefix("/v1/messages/")?;
    rest.split('/').next()?.parse().ok()
}

/// The partition that a request is for: the one that it names, or that of its message.
fn partition_of(request: &Request) -> Result<Option<u8>, Problem> {
    let Some(named) = request.headers().get(PARTITION) else {
        return Ok(message_of(request.uri().path()).map(MessageId::partition));
    };
    let number = named.to_str().ok().and_then(|text| text.parse().ok());
    match number.filter(|number| *number <= MessageId::LAST_PARTITION) {
        Some(number) => Ok(Some(number)),
        None => {
            let what = format!("the header Partition must be 0 to {}", MessageId::LAST_PARTITION);
            Err(Problem::new(ProblemKind::BadRequest, what))
        }
    }
}

/// Passes a request that another partition must answer on to its leader.
pub(crate) async fn pass_on(
    State(cluster): State<Arc<dyn ClusterLeader>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(pass_on) = cluster.pass_on() else { return next.run(request).await };
    let partition = match partition_of(&request) {
        Ok(Some(partition)) if partition <= MessageId::LAST_PARTITION => partition,
        Ok(_) => return next.run(request).await,
        Err(problem) => return problem.into_response(),
    };
    if partition == pass_on.partition() || request.extensions().get::<WasPassedOn>().is_some() {
        return next.run(request).await;
    }
    let caller = request.extensions().get::<Caller>().and_then(header_of);
    let Some(caller) = caller else {
        return Problem::new(ProblemKind::Internal, "the caller cannot be passed on").into_response();
    };
    let headers = request.headers_mut();
    headers.remove(header::AUTHORIZATION);
    headers.remove(header::COOKIE);
    headers.insert(CALLER, caller);
    let remote = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(remote)| *remote);
    let remote = remote.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into());
    let extensions = request.extensions().clone();
    let (head, body) = request.into_parts();
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
            partition_of(&request.body(axum::body::Body::empty()).unwrap()).ok()
        };
        let message = format!("/v1/messages/{}", MessageId::first_of(3));
        assert_eq!(request(&message, None), Some(Some(3)));
        assert_eq!(request(&message, Some("1")), Some(Some(1)));
        assert_eq!(request("/v1/queues", Some("1")), Some(Some(1)));
        assert_eq!(request("/v1/queues", None), Some(None));
        for wrong in ["", "x", "128", "-1"] {
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
