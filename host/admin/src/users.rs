//! The API of access: sessions, users, tokens, and the audit log.

mod audit;
mod sessions;
mod tokens;
mod user;

use crate::authenticator::Authenticator;
use crate::problem::{Problem, ProblemKind};
use crate::service::Provides;
use crate::tenants::Tenants;
use access::{Access, AccessError};
use api::{FieldProblem, ProblemReason};
use model::{AccountScope, TenantTree};
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;

/// The login operation, which requires no authentication.
pub(crate) fn public_routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    sessions::open_routes()
}

pub(crate) fn routes<S: Provides<dyn Tenants>>() -> OpenApiRouter<S> {
    sessions::routes().merge(user::routes()).merge(tokens::routes()).merge(audit::routes())
}

/// The problem that there is no such user or token, or that it belongs to another tenant.
fn missing(what: &'static str, name: String) -> Problem {
    AccessError::Missing { what, name }.into()
}

/// Checks the tenant of a user or token; its account must belong to the tenant's branch.
///
/// # Errors
/// The scope has no such tenant, the tenant's branch has no such account, or the name does not fit the tenant.
fn check_tenant_of(
    tree: &TenantTree,
    scope: &AccountScope,
    (name, tenant): (&str, Option<&str>),
    account: Option<&str>,
) -> Result<(), Problem> {
    let invalid = |field, what: String| Err(AccessError::Invalid { field, what }.into());
    let Some(tenant) = tenant else {
        return match name.rsplit_once('@') {
            Some((_, suffix)) if tree.has_tenant(suffix) => {
                invalid("name", format!("names with @{suffix} are for users of the tenant {suffix}"))
            }
            _ => Ok(()),
        };
    };
    if !tree.has_tenant(tenant) || !scope.has_tenant(Some(tenant)) {
        return invalid("tenant", format!("there is no tenant {tenant:?}"));
    }
    match account {
        Some(account) if !tree.branch(tenant).accounts.contains(account) => {
            invalid("account", format!("{account:?} is not an account of the tenant {tenant}"))
        }
        _ => Ok(()),
    }
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
            AccessError::NameInUse { .. } => {
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
