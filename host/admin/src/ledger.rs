//! The API of the ledger: balances, and what is done to them.

use crate::api::{Shared, answer};
use crate::guard::{Detailed, detailed, with_reason};
use crate::problem::{Kind, Problem};
use crate::request::{At, Document, Parameters, limit};
use crate::view;
use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What stands behind it.
pub trait Ledger: Send + Sync + 'static {
    /// All accounts with their balances.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn balances(&self) -> Result<Value, Problem>;
    /// One account.
    ///
    /// # Errors
    /// When there is none of that name.
    fn balance(&self, account: &str) -> Result<Value, Problem>;
    /// A balance operation: `fund` or `credit`, with a reason. Done once, however often it comes with the same `key`.
    ///
    /// # Errors
    /// When it cannot be understood, would go beyond the limit, or its key was used for another one.
    fn change(&self, account: &str, key: &str, request: Value) -> Result<Value, Problem>;
    /// What was done to an account, newest first: at most so many, those before the one of this serial.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn operations(&self, account: &str, most: usize, before: Option<u64>) -> Result<Value, Problem>;
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(balances))
        .routes(routes!(balance, change))
        .routes(routes!(operations))
}

type Answer = Result<Json<Value>, Problem>;

/// All ledger accounts with their balances, in millionths of the currency.
#[utoipa::path(
    get,
    path = "/v1/ledger",
    responses((status = 200, description = "By name.", body = view::Balances)),
)]
async fn balances(State(appliance): State<Shared>) -> Answer {
    answer(appliance, Ledger::balances).await
}

/// One ledger account.
#[utoipa::path(
    get,
    path = "/v1/ledger/{account}",
    params(("account" = String, Path, description = "Its name.")),
    responses((status = 200, description = "As it is now.", body = view::Balance)),
)]
async fn balance(State(appliance): State<Shared>, At(account): At<String>) -> Answer {
    answer(appliance, move |appliance| appliance.balance(&account)).await
}

/// What is done to a balance: either `fund` or `credit`, and why.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    #[serde(skip_serializing_if = "Option::is_none")]
    fund: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    credit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// What is done to a balance.
#[derive(ToSchema)]
#[schema(as = LedgerChange)]
#[serde(untagged)]
#[expect(dead_code, reason = "it only describes: from a struct, what is wrong can be told better")]
enum Changes {
    Fund(Fund),
    Limit(Limit),
}

/// Money comes in, or is taken back.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "it only describes")]
struct Fund {
    /// Millionths that are put in; negative: taken back.
    fund: i64,
    /// Who does it, for the audit.
    #[schema(max_length = 64)]
    actor: Option<String>,
    /// Why, for the audit.
    #[schema(max_length = 256, pattern = r"\S")]
    reason: String,
}

/// A limit is set.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LedgerLimit)]
#[expect(dead_code, reason = "it only describes")]
struct Limit {
    /// How far below zero the balance may go, in millionths.
    #[schema(maximum = 9_223_372_036_854_775_807_i64)]
    credit: u64,
    /// Who does it, for the audit.
    #[schema(max_length = 64)]
    actor: Option<String>,
    /// Why, for the audit.
    #[schema(max_length = 256, pattern = r"\S")]
    reason: String,
}

/// A balance operation, done once for its header `Idempotency-Key`.
#[utoipa::path(
    post,
    path = "/v1/ledger/{account}",
    params(
        ("account" = String, Path, description = "Its name. To set its `credit` opens it.", min_length = 1, max_length = 64),
        ("Idempotency-Key" = String, Header, description = "Of the caller's own: with it the request can be repeated safely.", pattern = "^[!-~]([ -~]{0,62}[!-~])?$"),
    ),
    request_body = Changes,
    responses((status = 200, description = "As it is after that.", body = view::ChangedBalance)),
)]
async fn change(
    State(appliance): State<Shared>,
    At(account): At<String>,
    headers: HeaderMap,
    Document(request): Document<Change>,
) -> Detailed<Value> {
    let key = headers.get("idempotency-key").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let Some(key) = key.filter(|key| (1..=64).contains(&key.len())) else {
        let detail = "send the header `Idempotency-Key` with 1 to 64 octets of your own: with it the request can be \
                      repeated safely";
        return Err(Problem::new(Kind::BadRequest, detail));
    };
    let why = request.reason.clone();
    let what = match (request.fund, request.credit) {
        (Some(fund), _) => format!("fund {fund} millionths"),
        (None, Some(credit)) => format!("credit {credit} millionths"),
        (None, None) => "nothing".to_owned(),
    };
    let changed =
        answer(appliance, move |appliance| appliance.change(&account, &key, json!(request))).await?;
    detailed(changed, |changed| {
        let repeated = if changed["repeated"] == true { ", done before under the same key" } else { "" };
        with_reason(format!("{what}; balance {}{repeated}", changed["balance"]), why.as_deref())
    })
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Page {
    /// How many; 100 otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only those before the one of this serial.
    before: Option<u64>,
}

/// What was done to an account, newest first.
#[utoipa::path(
    get,
    path = "/v1/ledger/{account}/operations",
    params(("account" = String, Path, description = "Its name."), Page),
    responses((status = 200, description = "A page of it.", body = Vec<view::LedgerOperation>)),
)]
async fn operations(
    State(appliance): State<Shared>,
    At(account): At<String>,
    Parameters(Page { limit: given, before }): Parameters<Page>,
) -> Answer {
    let most = limit(given, 1_000)?;
    answer(appliance, move |appliance| appliance.operations(&account, most, before)).await
}
