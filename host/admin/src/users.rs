//! The API of access: sessions, users, tokens, and the audit log.

mod audit;
mod sessions;
mod tokens;
mod user;

use crate::authenticator::Authenticator;
use crate::problem::{Problem, ProblemKind};
use access::{Access, AccessError};
use api::{FieldProblem, ProblemReason};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;

/// The login operation, which requires no authentication.
pub(crate) fn public_routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    sessions::open_routes()
}

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    sessions::routes().merge(user::routes()).merge(tokens::routes()).merge(audit::routes())
}

/// Calls the access store on a blocking thread.
async fn with_access<T: Send + 'static>(
    authenticator: &Arc<Authenticator>,
    operation: impl FnOnce(&Access) -> Result<T, AccessError> + Send + 'static,
) -> Result<T, Problem> {
    let access = authenticator.access().clone();
    let joined = tokio::task::spawn_blocking(move || operation(&access)).await;
    let failed = || Problem::new(ProblemKind::Internal, "the request failed internally; see the log");
    joined.map_err(|_| failed())?.map_err(Problem::from)
}

impl From<AccessError> for Problem {
    fn from(error: AccessError) -> Self {
        let detail = error.to_string();
        match error {
            AccessError::Invalid { field, what } => {
                let mut problem = Self::new(ProblemKind::Unprocessable, detail);
                problem.problems.push(FieldProblem { pointer: format!("/{field}"), what, allowed: None });
                problem
            }
            AccessError::Missing { .. } => Self::new(ProblemKind::NotFound, detail),
            AccessError::Taken { .. } => {
                Self::new(ProblemKind::Conflict, detail).with_reason(ProblemReason::of("taken"))
            }
            AccessError::LastAdmin(_) => {
                Self::new(ProblemKind::Conflict, detail).with_reason(ProblemReason::of("last-admin"))
            }
            AccessError::Outdated { .. } => Self::new(ProblemKind::PreconditionFailed, detail),
            AccessError::Store { .. } | AccessError::Damaged { .. } | AccessError::Random(_) => {
                tracing::error!(error = detail, "access store failed");
                Self::new(ProblemKind::Internal, "users and audit log are not available; see the log")
            }
        }
    }
}
