//! The states of unfinished messages, in the words of the API.

use api::MessageStateView;
use engine::MessageState;

/// The state of an unfinished message.
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
