//! The API of the ledger: balances and operations on them.

use crate::authz::Scope;
use crate::problem::{Problem, ProblemKind};
use crate::request::{JsonBody, PathParams, QueryParams, page_limit};
use crate::request_audit::{AuditedResult, append_reason, with_audit_detail};
use crate::service::{Provides, Service, call_json};
use api::{BalanceChangeView, BalanceView, BalancesView, LedgerChangeRequest, LedgerOperationView};
use axum::Json;
use axum::http::HeaderMap;
use model::AccountScope;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The ledger backend. Amounts are millionths of the operator's currency.
pub trait Ledger: Send + Sync + 'static {
    /// The accounts of the scope with their balances.
    ///
    /// # Errors
    /// If the daemon is shutting down.
    fn balances(&self, scope: &AccountScope) -> Result<BalancesView, Problem>;
    /// One account.
    ///
    /// # Errors
    /// If there is no such account.
    fn balance(&self, account: &str) -> Result<BalanceView, Problem>;
    /// Changes a balance: `fund` or `credit`, with a reason. Idempotent for the same `key`.
    ///
    /// # Errors
    /// If the request is invalid, exceeds the limit, or the key was used for another change.
    fn change(
        &self,
        account: &str,
        key: &str,
        request: LedgerChangeRequest,
    ) -> Result<BalanceChangeView, Problem>;
    /// The operations on an account, newest first: at most `most`, with serials before `before`.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn operations(
        &self,
        account: &str,
        most: usize,
        before: Option<u64>,
    ) -> Result<Vec<LedgerOperationView>, Problem>;
}

pub(crate) fn routes<S: Provides<dyn Ledger>>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(balances))
        .routes(routes!(balance, change))
        .routes(routes!(operations))
}

/// Lists all ledger accounts with their balances, in millionths of the currency.
#[utoipa::path(
    get,
    path = "/v1/ledger",
    responses((status = 200, description = "The accounts, sorted by name.", body = BalancesView)),
)]
async fn balances(backend: Service<dyn Ledger>, Scope(scope): Scope) -> Result<Json<BalancesView>, Problem> {
    call_json(backend, move |backend| backend.balances(&scope)).await
}

/// The problem that there is no such ledger account.
#[must_use]
pub fn unknown_ledger_account(name: &str) -> Problem {
    let what = format!("ledger account {name:?} does not exist; setting its `credit` creates it");
    Problem::new(ProblemKind::NotFound, what)
}

/// # Errors
/// The scope does not contain the ledger account.
fn require_ledger_account(scope: &AccountScope, name: &str) -> Result<(), Problem> {
    if scope.has_ledger_account(name) { Ok(()) } else { Err(unknown_ledger_account(name)) }
}

/// Shows one ledger account.
#[utoipa::path(
    get,
    path = "/v1/ledger/{account}",
    params(("account" = String, Path, description = "The account's name.")),
    responses((status = 200, description = "The account.", body = BalanceView)),
)]
async fn balance(
    backend: Service<dyn Ledger>,
    Scope(scope): Scope,
    PathParams(account): PathParams<String>,
) -> Result<Json<BalanceView>, Problem> {
    require_ledger_account(&scope, &account)?;
    call_json(backend, move |backend| backend.balance(&account)).await
}

/// A change to a balance.
#[derive(ToSchema)]
#[schema(as = LedgerChange)]
#[serde(untagged)]
#[expect(dead_code, reason = "only a schema: the parser of the body reports errors more precisely")]
enum LedgerChangeSchema {
    Fund(FundSchema),
    Limit(CreditLimitSchema),
}

/// Adds funds, or removes them.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Fund)]
#[expect(dead_code, reason = "only a schema")]
struct FundSchema {
    /// Millionths to add; negative to remove.
    fund: i64,
    /// The author of the change, for the audit log.
    #[schema(max_length = 64)]
    actor: Option<String>,
    /// Reason for the change, for the audit log.
    #[schema(max_length = 256, pattern = r"\S")]
    reason: String,
}

/// Sets the credit limit.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LedgerLimit)]
#[expect(dead_code, reason = "only a schema")]
struct CreditLimitSchema {
    /// Credit limit: the maximum negative balance, in millionths.
    #[schema(maximum = 9_223_372_036_854_775_807_i64)]
    credit: u64,
    /// The author of the change, for the audit log.
    #[schema(max_length = 64)]
    actor: Option<String>,
    /// Reason for the change, for the audit log.
    #[schema(max_length = 256, pattern = r"\S")]
    reason: String,
}

/// Changes a balance.
///
/// Requests with the same `Idempotency-Key` are applied once.
#[utoipa::path(
    post,
    path = "/v1/ledger/{account}",
    params(
        ("account" = String, Path, description = "The account's name. Setting the `credit` of a new account creates it.", min_length = 1, max_length = 64),
        ("Idempotency-Key" = String, Header, description = "A key chosen by the client. A repeated request with the same key is not applied again.", pattern = "^[!-~]([ -~]{0,62}[!-~])?$"),
    ),
    request_body = LedgerChangeSchema,
    responses((status = 200, description = "The account after the change.", body = BalanceChangeView)),
)]
async fn change(
    backend: Service<dyn Ledger>,
    PathParams(account): PathParams<String>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<LedgerChangeRequest>,
) -> AuditedResult<BalanceChangeView> {
    let key = headers.get("idempotency-key").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let Some(key) = key.filter(|key| (1..=64).contains(&key.len())) else {
        let detail = "send the header `Idempotency-Key` with 1 to 64 octets of your own: with it the request can be \
                      repeated safely";
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    };
    let why = request.reason.clone();
    let what = match (request.fund, request.credit) {
        (Some(fund), _) => format!("fund {fund} millionths"),
        (None, Some(credit)) => format!("credit {credit} millionths"),
        (None, None) => "nothing".to_owned(),
    };
    let changed = call_json(backend, move |backend| backend.change(&account, &key, request)).await?;
    with_audit_detail(changed, |changed| {
        let repeated = if changed.repeated { ", done before under the same key" } else { "" };
        append_reason(format!("{what}; balance {}{repeated}", changed.account.balance), why.as_deref())
    })
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct OperationsQuery {
    /// Maximum number of operations; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only operations with serials before this one.
    before: Option<u64>,
}

/// Lists the operations on an account, newest first.
#[utoipa::path(
    get,
    path = "/v1/ledger/{account}/operations",
    params(("account" = String, Path, description = "The account's name."), OperationsQuery),
    responses((status = 200, description = "A page of operations.", body = Vec<LedgerOperationView>)),
)]
async fn operations(
    backend: Service<dyn Ledger>,
    Scope(scope): Scope,
    PathParams(account): PathParams<String>,
    QueryParams(OperationsQuery { limit, before }): QueryParams<OperationsQuery>,
) -> Result<Json<Vec<LedgerOperationView>>, Problem> {
    require_ledger_account(&scope, &account)?;
    let most = page_limit(limit, 1_000)?;
    call_json(backend, move |backend| backend.operations(&account, most, before)).await
}
