//! Services as arguments of handlers: each handler takes the service that it needs.

use crate::problem::{Problem, ProblemKind};
use axum::Json;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::Serialize;
use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;

/// A service of the appliance, as an argument of a handler. Its methods may block: call them with [`call`], on a
/// blocking thread.
pub(crate) struct Service<T: ?Sized>(pub(crate) Arc<T>);

impl<T: ?Sized> Clone for Service<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: ?Sized> Deref for Service<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// The state of a router whose handlers take this service.
pub(crate) trait Provides<T: ?Sized>: Clone + Send + Sync + 'static {
    fn service(&self) -> Arc<T>;
}

impl<T: ?Sized + Send + Sync, S: Provides<T>> FromRequestParts<S> for Service<T> {
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Ok(Self(state.service()))
    }
}

/// Calls a service on a blocking thread.
pub(crate) async fn call<T: ?Sized + Send + Sync + 'static, A: Send + 'static>(
    service: Service<T>,
    request: impl FnOnce(&T) -> Result<A, Problem> + Send + 'static,
) -> Result<A, Problem> {
    let joined = tokio::task::spawn_blocking(move || request(&service)).await;
    joined.unwrap_or_else(|_| {
        Err(Problem::new(ProblemKind::Internal, "the request failed internally; see the log"))
    })
}

/// Like [`call`], with the answer as JSON.
pub(crate) async fn call_json<T: ?Sized + Send + Sync + 'static, A: Serialize + Send + 'static>(
    service: Service<T>,
    request: impl FnOnce(&T) -> Result<A, Problem> + Send + 'static,
) -> Result<Json<A>, Problem> {
    call(service, request).await.map(Json)
}
