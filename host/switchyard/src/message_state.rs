//! API names of the states of unfinished messages.

use api::MessageStateView;
use engine::MessageState;

/// The state of an unfinished message, as shown by the API.
pub(crate) fn message_state(state: MessageState) -> MessageStateView {
    match state {
        MessageState::Queued | MessageState::SubscriberLocked => MessageStateView::Queued,
        MessageState::Suspended => MessageStateView::Suspended,
        MessageState::Paced => MessageStateView::Paced,
        MessageState::Submitted => MessageStateView::Submitted,
        MessageState::Deferred => MessageStateView::Deferred,
        MessageState::Held => MessageStateView::Held,
        MessageState::Quarantined => MessageStateView::Quarantined,
        MessageState::AwaitingLookup => MessageStateView::AwaitingLookup,
        MessageState::Resolving => MessageStateView::Resolving,
        MessageState::Deciding => MessageStateView::Deciding,
        MessageState::Uncertain => MessageStateView::Uncertain,
        MessageState::AwaitingDlr => MessageStateView::Responded,
        MessageState::Ending => MessageStateView::Ending,
    }
}
