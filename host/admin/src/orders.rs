//! The API of orders about waiting messages, and of those of which nobody knows whether they arrived.

use crate::api::{Shared, answer};
use crate::guard::{Detailed, Noted, detailed, with_reason};
use crate::problem::Problem;
use crate::request::{At, Document, IdText, Parameters, limit};
use crate::view;
use access::{Caller, Right};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What stands behind it.
pub trait Orders: Send + Sync + 'static {
    /// All orders that have a say and the last that had, newest first.
    ///
    /// # Errors
    /// When the appliance is shutting down.
    fn orders(&self) -> Result<Vec<view::Order>, Problem>;
    /// What an order would concern; with whole numbers if `open`.
    ///
    /// # Errors
    /// When it cannot be given, or the appliance is shutting down.
    fn preview_order(&self, wanted: view::WantedOrder, open: bool) -> Result<view::OrderPreview, Problem>;
    /// Gives an order.
    ///
    /// # Errors
    /// When it cannot be given, or the appliance is shutting down.
    fn give_order(&self, wanted: view::WantedOrder, by: &str) -> Result<view::Order, Problem>;
    /// Withdraws an order.
    ///
    /// # Errors
    /// When there is none of that number, or it is too late.
    fn undo_order(&self, id: u32, by: &str) -> Result<view::Order, Problem>;
    /// Uncertain messages, oldest first; with whole numbers if `open`.
    ///
    /// # Errors
    /// When there is no such peer, or the appliance is shutting down.
    fn uncertain(
        &self,
        peer: Option<&str>,
        after: Option<&str>,
        limit: usize,
        open: bool,
    ) -> Result<view::UncertainPage, Problem>;
    /// Settles uncertain messages.
    ///
    /// # Errors
    /// When it does not say which, or the appliance is shutting down.
    fn settle_uncertain(&self, wanted: view::WantedSettlement, by: &str) -> Result<view::Settled, Problem>;
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(orders, give))
        .routes(routes!(preview))
        .routes(routes!(undo))
        .routes(routes!(uncertain))
        .routes(routes!(settle))
}

/// Orders about waiting messages: those that have a say, and the last that had; newest first.
#[utoipa::path(get, path = "/v1/orders", responses((status = 200, description = "All of them.", body = Vec<view::Order>)))]
async fn orders(State(appliance): State<Shared>) -> Result<Json<Vec<view::Order>>, Problem> {
    answer(appliance, Orders::orders).await
}

/// What an order would concern if it were given now. Nothing is done.
#[utoipa::path(
    post,
    path = "/v1/orders/preview",
    request_body = view::WantedOrder,
    responses((status = 200, description = "How many, and some of them.", body = view::OrderPreview)),
)]
async fn preview(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    Document(wanted): Document<view::WantedOrder>,
) -> Result<Json<view::OrderPreview>, Problem> {
    let open = caller.may(Right::ReadBodies);
    answer(appliance, move |appliance| appliance.preview_order(wanted, open)).await
}

/// Gives an order: it holds for what waits, in whatever state, and survives a restart.
#[utoipa::path(
    post,
    path = "/v1/orders",
    request_body = view::WantedOrder,
    responses((status = 201, description = "The order, which is on disk.", body = view::Order)),
)]
async fn give(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    Document(wanted): Document<view::WantedOrder>,
) -> Result<(StatusCode, Extension<Noted>, Json<view::Order>), Problem> {
    let Json((concerned, order)) = answer(appliance, move |appliance| {
        let concerned = appliance.preview_order(wanted.clone(), false)?;
        Ok((concerned, appliance.give_order(wanted, &caller.name)?))
    })
    .await?;
    let at_least = if concerned.complete { "" } else { "at least " };
    let detail = format!("{}; {at_least}{} messages", described(&order), concerned.messages);
    Ok((StatusCode::CREATED, Extension(Noted(with_reason(detail, Some(&order.why)))), Json(order)))
}

/// An order in words, for the audit log.
fn described(order: &view::Order) -> String {
    let scope = &order.scope;
    let parts = [
        ("peer", &scope.peer),
        ("account", &scope.account),
        ("destination", &scope.prefix),
        ("older than", &scope.older_than),
        ("to", &order.to),
    ];
    let mut detail = format!("order {}: {}", order.id, kind(order.what));
    for (name, value) in parts {
        if let Some(value) = value {
            detail.push_str(&format!(", {name} {value}"));
        }
    }
    detail
}

fn kind(what: view::OrderKind) -> &'static str {
    match what {
        view::OrderKind::Suspend => "suspend",
        view::OrderKind::Drain => "drain",
        view::OrderKind::Rebind => "rebind",
        view::OrderKind::Cancel => "cancel",
        view::OrderKind::Purge => "purge",
    }
}

/// Withdraws an order: what it holds back goes on. What it has moved stays where it is.
#[utoipa::path(
    delete,
    path = "/v1/orders/{id}",
    params(("id" = u32, Path, description = "Its number.")),
    responses((status = 200, description = "As it is now.", body = view::Order)),
)]
async fn undo(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    At(id): At<u32>,
) -> Detailed<view::Order> {
    let order = answer(appliance, move |appliance| appliance.undo_order(id, &caller.name)).await?;
    detailed(order, |order| format!("{}; withdrawn after {} messages", described(order), order.touched))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Page {
    /// Only of this peer.
    peer: Option<String>,
    /// How many; 100 otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Only those that come after the one of this id.
    #[param(value_type = Option<IdText>, inline)]
    after: Option<String>,
}

/// Messages that were written to a peer and never answered, oldest first.
#[utoipa::path(
    get,
    path = "/v1/uncertain",
    params(Page),
    responses((status = 200, description = "A page of them.", body = view::UncertainPage)),
)]
async fn uncertain(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    Parameters(page): Parameters<Page>,
) -> Result<Json<view::UncertainPage>, Problem> {
    let most = limit(page.limit, 1000)?;
    let open = caller.may(Right::ReadBodies);
    answer(appliance, move |appliance| {
        appliance.uncertain(page.peer.as_deref(), page.after.as_deref(), most, open)
    })
    .await
}

/// Settles uncertain messages: of a peer, or by their ids.
#[utoipa::path(
    post,
    path = "/v1/uncertain/settle",
    request_body = view::WantedSettlement,
    responses((status = 200, description = "How many.", body = view::Settled)),
)]
async fn settle(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    Document(wanted): Document<view::WantedSettlement>,
) -> Detailed<view::Settled> {
    let remedy = match wanted.remedy {
        view::Remedy::SendAgain => "sent again",
        view::Remedy::GiveUp => "given up",
    };
    let of = wanted.peer.as_ref().map(|peer| format!(" of peer {peer}")).unwrap_or_default();
    let settled =
        answer(appliance, move |appliance| appliance.settle_uncertain(wanted, &caller.name)).await?;
    detailed(settled, |settled| {
        format!("{} messages{of} {remedy}, {} passed over", settled.settled, settled.passed_over)
    })
}
