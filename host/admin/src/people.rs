//! The API of those who use the API: sessions, users, tokens, the audit log.

mod audit;
mod sessions;
mod tokens;
mod users;

use crate::api::Shared;
use crate::porter::Porter;
use crate::problem::{Kind, Misplaced, Problem, Reason};
use access::{Access, AccessError};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;

/// To log in, which is for everybody.
pub(crate) fn open() -> OpenApiRouter<Shared> {
    sessions::open()
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    sessions::routes().merge(users::routes()).merge(tokens::routes()).merge(audit::routes())
}

/// Asks the people's store off the network's threads.
async fn ask<T: Send + 'static>(
    porter: &Arc<Porter>,
    ask: impl FnOnce(&Access) -> Result<T, AccessError> + Send + 'static,
) -> Result<T, Problem> {
    let access = porter.access().clone();
    let asked = tokio::task::spawn_blocking(move || ask(&access)).await;
    let gone = || Problem::new(Kind::Internal, "the request failed inside; the log says more");
    asked.map_err(|_| gone())?.map_err(Problem::from)
}

impl From<AccessError> for Problem {
    fn from(error: AccessError) -> Self {
        let detail = error.to_string();
        match error {
            AccessError::Invalid { field, what } => {
                let mut problem = Self::new(Kind::Refused, detail);
                problem.problems.push(Misplaced { pointer: format!("/{field}"), what, allowed: None });
                problem
            }
            AccessError::Missing { .. } => Self::new(Kind::NotFound, detail),
            AccessError::Taken { .. } => Self::new(Kind::Conflict, detail).because(Reason::of("taken")),
            AccessError::LastAdmin(_) => Self::new(Kind::Conflict, detail).because(Reason::of("last-admin")),
            AccessError::Outdated { .. } => Self::new(Kind::Outdated, detail),
            AccessError::Store { .. } | AccessError::Damaged { .. } | AccessError::Random(_) => {
                tracing::error!(error = detail, "users and audit log");
                Self::new(Kind::Internal, "users and audit log cannot be used; the log says more")
            }
        }
    }
}
