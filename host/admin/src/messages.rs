//! The API of messages: search, and actions on one message.

use crate::all_partitions::PartitionHeader;
use crate::authz::Scope;
use crate::problem::{Problem, ProblemKind};
use crate::request::{PathParams, QueryParams, page_limit};
use crate::service::{Provides, Service, call, call_json};

use access::Caller;
use api::Permission;
use api::name_schemas::{IdText, TimeText};
use axum::http::StatusCode;
use axum::{Extension, Json};
use model::{AccountScope, NumberDisplay};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// An admin's action on one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageAction {
    /// Submit an uncertain message again.
    SendAgain,
    /// End an uncertain message as unknown.
    GiveUp,
    /// End the message as cancelled.
    Cancel,
    /// Retry the message now.
    Retry,
}

/// The message backend.
pub trait Messages: Send + Sync + 'static {
    /// A page of the scope's messages, newest first. `numbers`: how numbers are shown.
    ///
    /// # Errors
    /// If the query is invalid, or the store or archive cannot be read.
    fn find_messages(
        &self,
        filter: &api::MessageFilter,
        numbers: NumberDisplay,
        scope: &AccountScope,
    ) -> Result<api::MessagePageView, Problem>;
    /// Applies an action to a message that an account of the scope submitted.
    ///
    /// # Errors
    /// If there is no such message, or its state does not allow the action.
    fn apply_message_action(
        &self,
        id: &str,
        action: MessageAction,
        by: &str,
        scope: &AccountScope,
    ) -> Result<(), Problem>;
}

pub(crate) fn routes<S: Provides<dyn Messages>>() -> OpenApiRouter<S> {
    OpenApiRouter::new()
        .routes(routes!(list_messages))
        .routes(routes!(cancel_message))
        .routes(routes!(retry_message))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct MessagesQuery {
    /// Source or destination, with or without a leading plus.
    number: Option<String>,
    /// The id of the whole submission, if it has several destinations (SMPP submit_multi).
    #[param(value_type = Option<IdText>, inline)]
    submission: Option<String>,
    /// The IMSI of the sender or recipient; not together with `number`.
    #[param(min_length = 6, max_length = 15, pattern = "^[0-9]+$")]
    imsi: Option<String>,
    /// The account that submitted the message.
    account: Option<String>,
    /// The peer whose queue, link or DLR the message waits for, or that accepted it.
    peer: Option<String>,
    /// The current state (queued, suspended, submitted, deferred, held, quarantined, resolving, deciding, uncertain, responded) or the final
    /// state (delivered, relayed, failed, expired, cancelled, rejected, unknown).
    state: Option<String>,
    /// Accepted at or after this time: milliseconds since the epoch, or RFC 3339.
    #[param(value_type = Option<TimeText>, inline)]
    from: Option<String>,
    /// Accepted before this time.
    #[param(value_type = Option<TimeText>, inline)]
    until: Option<String>,
    /// Maximum number of messages; default 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The `next` of the previous page.
    cursor: Option<String>,
    /// Approximate time limit of the archive search, in milliseconds; default 2000. When it expires, the page ends with
    /// the messages found so far. Searches by number, time and id use an index; searches by account, peer or state scan
    /// from the newest message on.
    #[param(minimum = 10, maximum = 5000)]
    timeout_ms: Option<u64>,
}

/// Searches waiting and finished messages, newest first.
#[utoipa::path(
    get,
    path = "/v1/messages",
    params(PartitionHeader, MessagesQuery),
    responses((status = 200, description = "A page of messages.", body = api::MessagePageView)),
)]
async fn list_messages(
    backend: Service<dyn Messages>,
    Extension(caller): Extension<Caller>,
    Scope(scope): Scope,
    QueryParams(filter): QueryParams<MessagesQuery>,
) -> Result<Json<api::MessagePageView>, Problem> {
    let MessagesQuery {
        number,
        submission,
        imsi,
        account,
        peer,
        state,
        from,
        until,
        limit: most,
        cursor,
        timeout_ms,
    } = filter;
    if imsi.is_some() && (!caller.has(Permission::Read) || scope != AccountScope::Everything) {
        // An IMSI search would reveal which numbers belong to one subscriber.
        return Err(Problem::new(
            ProblemKind::Forbidden,
            "imsi: needs the permission `read`, of a user without a tenant",
        ));
    }
    let limit = page_limit(most, 1000)?;
    let timeout_ms = timeout_ms.unwrap_or(2000);
    if !(10..=5000).contains(&timeout_ms) {
        let detail = format!("timeout_ms: is {timeout_ms}, and must be 10 to 5000");
        return Err(Problem::new(ProblemKind::BadRequest, detail));
    }
    let filter = api::MessageFilter {
        number,
        submission,
        imsi,
        account,
        peer,
        state,
        from,
        until,
        limit,
        cursor,
        timeout_ms,
    };
    let numbers = caller.number_display();
    call_json(backend, move |backend| backend.find_messages(&filter, numbers, &scope)).await
}

async fn apply_message_action(
    backend: Service<dyn Messages>,
    (caller, Scope(scope)): (Caller, Scope),
    id: String,
    action: MessageAction,
) -> Result<StatusCode, Problem> {
    call(backend, move |backend| backend.apply_message_action(&id, action, &caller.name, &scope)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Cancels a waiting message: it ends as cancelled, and the submitter gets a DLR if one was requested.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/cancel",
    params(("id" = inline(IdText), Path, description = "The message id.")),
    responses((status = 204, description = "The message has ended.")),
)]
async fn cancel_message(
    backend: Service<dyn Messages>,
    Extension(caller): Extension<Caller>,
    scope: Scope,
    PathParams(id): PathParams<String>,
) -> Result<StatusCode, Problem> {
    apply_message_action(backend, (caller, scope), id, MessageAction::Cancel).await
}

/// Retries a message now that waits for its next attempt, its scheduled time or its next routing.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/retry",
    params(("id" = inline(IdText), Path, description = "The message id.")),
    responses((status = 204, description = "The message is queued again.")),
)]
async fn retry_message(
    backend: Service<dyn Messages>,
    Extension(caller): Extension<Caller>,
    scope: Scope,
    PathParams(id): PathParams<String>,
) -> Result<StatusCode, Problem> {
    apply_message_action(backend, (caller, scope), id, MessageAction::Retry).await
}
