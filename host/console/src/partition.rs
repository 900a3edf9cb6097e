//! The partition of a cluster that the console shows.

use crate::api_caller::{ApiCaller, ApiRequest};
use crate::form::Form;
use crate::request_context::{RequestContext, cookie, local_path};
use api::ClusterView;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

/// The cookie with the chosen partition.
const COOKIE: &str = "switchyard-partition";

/// The partitions that a user can choose from.
#[derive(Debug, Default)]
pub(crate) struct Partitions {
    /// All partitions; empty if there is no choice.
    all: Vec<u8>,
    shown: Option<u8>,
}

/// The partition that the user has chosen; `None`: that of the node.
pub(crate) fn chosen(headers: &HeaderMap) -> Option<u8> {
    cookie(headers, COOKIE)?.parse().ok()
}

impl Partitions {
    /// The partitions of the cluster; none without a cluster.
    pub(crate) async fn of(api: &ApiCaller) -> Self {
        let answer = api.call(Method::GET, "/v1/cluster", ApiRequest::default()).await;
        let cluster = answer.and_then(|answer| answer.read::<ClusterView>());
        let Ok(ClusterView { partition, partitions, .. }) = cluster else { return Self::default() };
        let all: Vec<u8> = partitions.iter().map(|one| one.partition).collect();
        if all.len() < 2 {
            return Self::default();
        }
        let chosen = api.partition.filter(|chosen| all.contains(chosen));
        Self { all, shown: Some(chosen.unwrap_or(partition)) }
    }

    /// The partition that the console shows; `None`: that of the node, without a choice.
    pub(crate) fn shown(&self) -> Option<u8> {
        self.shown
    }
}

/// The choice of the partition, if there is one.
pub(crate) fn choice(context: &RequestContext) -> Markup {
    let Partitions { all, shown } = &context.partitions;
    html! {
        @if !all.is_empty() {
            form.inline method="post" action="/partition" {
                input type="hidden" name="back" value=(context.path);
                label for="partition" { "Partition" }
                select #partition name="partition" aria-label="Partition" {
                    @for partition in all { option value=(partition) selected[Some(*partition) == *shown] { (partition) } }
                }
                button.quiet type="submit" { "Show" }
            }
        }
    }
}

/// Stores the choice.
pub(crate) async fn choose(form: Form) -> Response {
    let mut response = Redirect::to(local_path(form.text("back")).unwrap_or("/")).into_response();
    if let Ok(partition) = form.text("partition").parse::<u8>() {
        let cookie = format!("{COOKIE}={partition}; Path=/; HttpOnly; SameSite=Strict");
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().append(header::SET_COOKIE, cookie);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_a_number() {
        let of = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::COOKIE, text.parse().unwrap());
            chosen(&headers)
        };
        assert_eq!(of("a=b; switchyard-partition=1"), Some(1));
        assert_eq!(of("switchyard-partition=all"), None);
        assert_eq!(of("switchyard-partition=300"), None);
    }
}
