//! The API of messages as a list, whether they wait or have ended, and of what an admin does with one.

use crate::api::{Shared, answer, call};
use crate::problem::{Kind, Problem};
use crate::request::{At, IdText, Parameters, TimeText, limit};
use crate::view;
use access::{Caller, Right};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What an admin does with one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hand {
    /// It is sent once more, being uncertain.
    SendAgain,
    /// It ends as unknown, being uncertain.
    GiveUp,
    /// It ends as cancelled.
    Cancel,
    /// It is tried now, and not at its time.
    Retry,
}

/// What stands behind it.
pub trait Messages: Send + Sync + 'static {
    /// A page of messages, newest first; with whole numbers if `open`.
    ///
    /// # Errors
    /// When the query is wrong, or store or archive cannot be read.
    fn find_messages(&self, wanted: &view::WantedMessages, open: bool) -> Result<view::MessagePage, Problem>;
    /// Does something with one message.
    ///
    /// # Errors
    /// When there is no such message, or its state does not allow it.
    fn by_hand(&self, id: &str, hand: Hand, by: &str) -> Result<(), Problem>;
}

pub(crate) fn routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(find)).routes(routes!(cancel)).routes(routes!(retry))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// Source or destination, with or without a plus in front.
    number: Option<String>,
    /// The id that stands for all destinations of its submission (SMPP submit_multi).
    #[param(value_type = Option<IdText>, inline)]
    submission: Option<String>,
    /// The IMSI of the subscriber that it comes from or goes to; not together with `number`.
    #[param(min_length = 6, max_length = 15, pattern = "^[0-9]+$")]
    imsi: Option<String>,
    /// Who submitted it.
    account: Option<String>,
    /// Whose queue, link or receipt it waits for, or who took it.
    peer: Option<String>,
    /// What it does (queued, suspended, submitted, deferred, held, resolving, deciding, uncertain, responded), or how it
    /// ended (delivered, relayed, failed, expired, cancelled, rejected, unknown).
    state: Option<String>,
    /// Accepted at this time or later: milliseconds since the epoch, or RFC 3339.
    #[param(value_type = Option<TimeText>, inline)]
    from: Option<String>,
    /// Accepted before this time.
    #[param(value_type = Option<TimeText>, inline)]
    until: Option<String>,
    /// How many; 100 otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where the page before ended: its `next`.
    cursor: Option<String>,
    /// How long the archive is searched, about, before the page ends with what was found; 2000 otherwise. Numbers, times and
    /// ids are found at once; what is asked by account, peer or state is looked for from the newest message on.
    #[param(minimum = 10, maximum = 5000)]
    patience_ms: Option<u64>,
}

/// Messages, those that wait and those that have ended in one list, newest first.
#[utoipa::path(
    get,
    path = "/v1/messages",
    params(Wanted),
    responses((status = 200, description = "A page of them.", body = view::MessagePage)),
)]
async fn find(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    Parameters(wanted): Parameters<Wanted>,
) -> Result<Json<view::MessagePage>, Problem> {
    let Wanted {
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
        patience_ms,
    } = wanted;
    if imsi.is_some() && !caller.may(Right::Read) {
        // It would tell an account's people which numbers are one subscriber's.
        return Err(Problem::new(Kind::Forbidden, "imsi: needs the right `read`"));
    }
    let limit = limit(most, 1000)?;
    let patience_ms = patience_ms.unwrap_or(2000);
    if !(10..=5000).contains(&patience_ms) {
        let detail = format!("patience_ms: is {patience_ms}, and must be 10 to 5000");
        return Err(Problem::new(Kind::BadRequest, detail));
    }
    let wanted = view::WantedMessages {
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
        patience_ms,
    };
    let open = caller.may(Right::ReadBodies);
    answer(appliance, move |appliance| appliance.find_messages(&wanted, open)).await
}

async fn by_hand(appliance: Shared, caller: Caller, id: String, hand: Hand) -> Result<StatusCode, Problem> {
    call(appliance, move |appliance| appliance.by_hand(&id, hand, &caller.name)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes back a message that waits: it ends as cancelled, and its submitter is told as he asked to be.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/cancel",
    params(("id" = inline(IdText), Path, description = "Its id.")),
    responses((status = 204, description = "It has ended.")),
)]
async fn cancel(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    At(id): At<String>,
) -> Result<StatusCode, Problem> {
    by_hand(appliance, caller, id, Hand::Cancel).await
}

/// Tries a message now that waits for its next attempt, its schedule or its next routing.
#[utoipa::path(
    post,
    path = "/v1/messages/{id}/retry",
    params(("id" = inline(IdText), Path, description = "Its id.")),
    responses((status = 204, description = "It is on its way again.")),
)]
async fn retry(
    State(appliance): State<Shared>,
    Extension(caller): Extension<Caller>,
    At(id): At<String>,
) -> Result<StatusCode, Problem> {
    by_hand(appliance, caller, id, Hand::Retry).await
}
