//! Lists of all partitions of a cluster: this leader queries all leaders at the same time, and merges their rows.

use crate::authz;
use crate::passed_on::{PARTITION, PassedHead};
use crate::problem::{Problem, ProblemKind};
use api::MissingPartitionView;
use axum::Json;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderValue, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use futures_util::stream;
use ports::{PassOn, PassedApi};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ObjectBuilder, Type};

mod message_pages;

use message_pages::MessagePages;

/// Maximum number of leaders that are queried at the same time.
const MAX_CONCURRENT: usize = 16;
/// Timeout of a query to one leader. A search of messages takes at most five seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of one leader's answer, in octets.
const ANSWER_LIMIT: usize = 16 << 20;

/// A list that can cover all partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MergedList {
    Messages,
    Queues,
    Links,
    Status,
}

impl MergedList {
    /// The list of a request.
    ///
    /// # Errors
    /// The operation cannot cover all partitions.
    pub(crate) fn of(request: &Request) -> Result<Self, Problem> {
        let list = match request.uri().path() {
            "/v1/messages" => Some(Self::Messages),
            "/v1/queues" => Some(Self::Queues),
            "/v1/links" => Some(Self::Links),
            "/v1/status" => Some(Self::Status),
            _ => None,
        };
        list.filter(|_| request.method() == Method::GET).ok_or_else(|| {
            let what = "the header Partition is `all`, which works with GET /v1/messages, /v1/queues, /v1/links and /v1/status only: \
                        name one partition";
            Problem::new(ProblemKind::BadRequest, what)
        })
    }

    /// Name of the member with the rows in the answer.
    fn rows(self) -> &'static str {
        match self {
            Self::Messages => "messages",
            Self::Queues => "queues",
            Self::Links => "links",
            Self::Status => "statuses",
        }
    }
}

/// Description of the header `Partition`, for the operations that can cover all partitions.
pub(crate) enum PartitionHeader {}

impl IntoParams for PartitionHeader {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "In a cluster with partitions: `all` asks the leaders of all partitions. Then each row names its partition, and \
                           `missing` names the partitions whose leader did not answer. A number asks the leader of that partition. \
                           Default: the partition of the node that is asked.";
        let schema = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^(all|[0-9]|[1-9][0-9]|1[01][0-9]|12[0-7])$"));
        let header = ParameterBuilder::new()
            .name("Partition")
            .parameter_in(ParameterIn::Header)
            .description(Some(description))
            .schema(Some(schema));
        vec![header.build()]
    }
}

/// The answer of one partition, or the reason why it is missing.
type PartitionAnswer = Result<Value, String>;

/// Answers a request for a list of all partitions.
pub(crate) async fn answer(
    pass_on: Option<Arc<dyn PassOn>>,
    list: MergedList,
    request: Request,
    next: Next,
) -> Response {
    match merge(pass_on, list, request, next).await {
        Ok(answer) => Json(answer).into_response(),
        Err(response) => response,
    }
}

async fn merge(
    pass_on: Option<Arc<dyn PassOn>>,
    list: MergedList,
    mut request: Request,
    next: Next,
) -> Result<Value, Response> {
    let (own, others) = match &pass_on {
        Some(pass_on) => (pass_on.partition(), pass_on.other_partitions()),
        None => (0, Vec::new()),
    };
    let mut pages = match list {
        MergedList::Messages => {
            let pages = MessagePages::of(request.uri(), others.iter().copied().chain([own]));
            Some(pages.map_err(IntoResponse::into_response)?)
        }
        _ => None,
    };
    let head = PassedHead::of(&request).map_err(IntoResponse::into_response)?;
    let path = request.uri().path().to_owned();
    // `None`: all messages of the partition are already listed.
    let uri_for = |partition: u8| -> Option<Uri> {
        let query = pages.as_ref().map(|pages| pages.query(partition));
        let target = match query {
            Some(query) => format!("{path}?{}", query?),
            None => path.clone(),
        };
        Some(Uri::from(target.parse::<PathAndQuery>().ok()?))
    };
    let asked: Vec<_> =
        others.iter().filter_map(|partition| Some((*partition, uri_for(*partition)?))).collect();
    let there = async {
        let Some(pass_on) = &pass_on else { return Vec::new() };
        let asking = asked.into_iter().map(|(partition, uri)| ask(&**pass_on, partition, head.get(uri)));
        stream::iter(asking.collect::<Vec<_>>()).buffer_unordered(MAX_CONCURRENT).collect().await
    };
    let extensions = request.extensions().clone();
    let here = async {
        let Some(uri) = uri_for(own) else {
            authz::scope_is_checked_elsewhere(&extensions);
            return None;
        };
        *request.uri_mut() = uri;
        Some(next.run(request).await)
    };
    let (mut answered, here): (Vec<(u8, PartitionAnswer)>, _) = tokio::join!(there, here);
    if let Some(response) = here {
        if !response.status().is_success() {
            return Err(response);
        }
        answered.push((own, read(response).await));
    }
    let mut missing = Vec::new();
    let mut answers = BTreeMap::new();
    for (partition, answer) in answered {
        match answer {
            Ok(answer) => {
                answers.insert(partition, answer);
            }
            Err(reason) => missing.push(MissingPartitionView { partition, reason }),
        }
    }
    missing.sort_by_key(|one| one.partition);
    let mut merged = Map::new();
    match &mut pages {
        Some(pages) => {
            let incomplete = answers.values().find_map(|answer| answer.get("incomplete").cloned());
            merged.extend(incomplete.map(|reason| ("incomplete".to_owned(), reason)));
            merged.insert(list.rows().to_owned(), pages.merge(answers).into());
            merged.insert("next".to_owned(), pages.next().into());
        }
        None => {
            merged.insert(list.rows().to_owned(), rows(answers).into());
        }
    }
    merged.insert("missing".to_owned(), json!(missing));
    Ok(merged.into())
}

/// Queries the leader of a partition. Returns the partition with the answer.
async fn ask(
    pass_on: &dyn PassOn,
    partition: u8,
    (remote, mut request): (SocketAddr, axum::http::Request<Bytes>),
) -> (u8, PartitionAnswer) {
    request.headers_mut().insert(PARTITION, HeaderValue::from(u16::from(partition)));
    let answered = async {
        match pass_on.request(partition, PassedApi::Admin, remote, request).await {
            Ok(response) => read(response).await,
            Err(error) => Err(error.to_string()),
        }
    };
    let answer = match tokio::time::timeout(ANSWER_TIMEOUT, answered).await {
        Ok(answer) => answer,
        Err(_) => Err(format!("its leader has not answered within {} s", ANSWER_TIMEOUT.as_secs())),
    };
    if let Err(reason) = &answer {
        tracing::warn!(
            partition,
            reason,
            "the leader of a partition did not answer a query for all partitions"
        );
    }
    (partition, answer)
}

/// Reads the body of an answer.
async fn read(response: Response<Body>) -> PartitionAnswer {
    let (head, body) = response.into_parts();
    let body = to_bytes(body, ANSWER_LIMIT)
        .await
        .map_err(|_| format!("its answer was cut off, or is longer than {} MiB", ANSWER_LIMIT >> 20))?;
    let answer: Option<Value> = serde_json::from_slice(&body).ok();
    match answer {
        Some(answer) if head.status.is_success() => Ok(answer),
        Some(problem) if problem["detail"].is_string() => Err(format!(
            "its leader has answered {}: {}",
            head.status.as_u16(),
            problem["detail"].as_str().unwrap_or_default()
        )),
        _ => Err(format!("its leader has answered {}", head.status.as_u16())),
    }
}

/// The rows of all partitions, each with its partition, in the order of peers and accounts.
fn rows(answers: BTreeMap<u8, Value>) -> Vec<Value> {
    let mut rows = Vec::new();
    for (partition, answer) in answers {
        let one = match answer {
            Value::Array(rows) => rows,
            other => vec![other],
        };
        rows.extend(one.into_iter().map(|row| with_partition(row, partition)));
    }
    let name = |row: &Value| row["peer"].as_str().unwrap_or_default().to_owned();
    rows.sort_by_cached_key(name);
    rows
}

fn with_partition(mut row: Value, partition: u8) -> Value {
    if let Some(row) = row.as_object_mut() {
        row.insert("partition".to_owned(), partition.into());
    }
    row
}

#[cfg(test)]
mod tests;
