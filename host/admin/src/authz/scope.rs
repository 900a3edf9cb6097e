//! The scope of a caller: the accounts and peers that the caller may see.

use crate::problem::{Problem, ProblemKind};
use crate::tenants::Tenants;
use access::Caller;
use api::Role;
use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use model::{AccountScope, TenantTree};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The caller's scope, as an argument of a handler. Every handler of an operation that is open to users of tenants must
/// take it and restrict itself to it; otherwise the answer to such a user is withheld.
pub(crate) struct Scope(pub(crate) AccountScope);

/// The scope of a request, and whether its handler has taken it.
#[derive(Clone)]
pub(super) struct ScopeTicket {
    scope: AccountScope,
    taken: Arc<AtomicBool>,
}

fn scope_of(caller: &Caller, tree: impl FnOnce() -> Arc<TenantTree>) -> AccountScope {
    let Some(tenant) = &caller.tenant else { return AccountScope::Everything };
    let branch = tree().branch(tenant);
    match caller.role {
        // The account may have left the branch.
        Role::Account => {
            let account = caller.account.as_deref().unwrap_or_default();
            AccountScope::Branch(Arc::new(branch.of_account(account)))
        }
        Role::Viewer | Role::Operator | Role::Admin => AccountScope::Branch(branch),
    }
}

impl ScopeTicket {
    pub(super) fn of(caller: &Caller, tenants: &dyn Tenants) -> Self {
        Self { scope: scope_of(caller, || tenants.tree()), taken: Arc::default() }
    }

    /// The response, if the handler has taken the scope or the caller may see everything; otherwise a problem.
    pub(super) fn checked(&self, response: Response) -> Response {
        let is_checked = self.scope == AccountScope::Everything || self.taken.load(Relaxed);
        if is_checked || !response.status().is_success() {
            return response;
        }
        tracing::error!("an operation for users of tenants ignores their scope; its answer is withheld");
        Problem::new(ProblemKind::Internal, "the request failed internally; see the log").into_response()
    }
}

/// Marks the scope as taken: the answer comes from another node, which has applied the caller's scope.
pub(crate) fn scope_is_checked_elsewhere(request: &Extensions) {
    if let Some(ticket) = request.get::<ScopeTicket>() {
        ticket.taken.store(true, Relaxed);
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Scope {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let ticket = parts.extensions.get::<ScopeTicket>().ok_or_else(|| {
            Problem::new(ProblemKind::Internal, "the request failed internally; see the log")
        })?;
        ticket.taken.store(true, Relaxed);
        Ok(Self(ticket.scope.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::StatusCode;

    fn tree() -> Arc<TenantTree> {
        let accounts = [("shop".into(), Some("north".into())), ("bank".into(), Some("south".into()))];
        Arc::new(TenantTree::new([("north".into(), None), ("south".into(), None)], accounts, []))
    }

    fn caller(role: Role, account: Option<&str>, tenant: Option<&str>) -> Caller {
        Caller {
            name: "ann@north".into(),
            role,
            account: account.map(Into::into),
            tenant: tenant.map(Into::into),
            bodies: false,
        }
    }

    #[test]
    fn a_caller_with_an_account_sees_no_more_than_its_tenant() {
        let scope = |account| scope_of(&caller(Role::Account, account, Some("north")), tree);
        assert!(scope(Some("shop")).has_account("shop"));
        assert_eq!(scope(Some("bank")).accounts(), Some(Vec::new()));
        assert_eq!(scope(None).accounts(), Some(Vec::new()));
        let viewer = scope_of(&caller(Role::Viewer, None, Some("north")), tree);
        assert!(viewer.has_account("shop") && !viewer.has_account("bank"));
        assert_eq!(scope_of(&caller(Role::Viewer, None, None), tree), AccountScope::Everything);
        assert_eq!(scope_of(&caller(Role::Admin, None, Some("gone")), tree).accounts(), Some(Vec::new()));
    }

    #[test]
    fn an_answer_that_ignores_the_scope_is_withheld() {
        let ticket = |scope| ScopeTicket { scope, taken: Arc::default() };
        let branch = || ticket(AccountScope::Branch(tree().branch("north")));
        let answer = || "everything".into_response();
        assert_eq!(branch().checked(answer()).status(), StatusCode::INTERNAL_SERVER_ERROR);
        let taken = branch();
        taken.taken.store(true, Relaxed);
        assert_eq!(taken.checked(answer()).status(), StatusCode::OK);
        assert_eq!(ticket(AccountScope::Everything).checked(answer()).status(), StatusCode::OK);
        let refused = || (StatusCode::BAD_REQUEST, "no").into_response();
        assert_eq!(branch().checked(refused()).status(), StatusCode::BAD_REQUEST);
    }
}
