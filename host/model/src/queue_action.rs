use crate::{AddressBytes, Message, MessageId, PeerId, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The id of a queue action: from 1, ascending, never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QueueActionId(pub u32);

impl fmt::Display for QueueActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The kind of a queue action.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum QueueActionKind {
    /// Holds messages until the action is withdrawn.
    Suspend = 1,
    /// Accepts no new messages for the peer; waiting messages are sent.
    Drain = 2,
    /// Moves messages to another peer.
    Reroute = 3,
    /// Cancels messages once the undo window is over: submitters' messages, accepted before the action.
    Cancel = 4,
    /// As a cancel, and removes DLRs for submitters too.
    Purge = 5,
}

impl QueueActionKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Suspend, Self::Drain, Self::Reroute, Self::Cancel, Self::Purge];

    /// The name used in JSON, on the command line and in logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Suspend => "suspend",
            Self::Drain => "drain",
            Self::Reroute => "reroute",
            Self::Cancel => "cancel",
            Self::Purge => "purge",
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == octet)
    }

    /// Whether it cancels messages, and so has an undo window.
    #[must_use]
    pub fn cancels(self) -> bool {
        matches!(self, Self::Cancel | Self::Purge)
    }
}

/// The scope of a queue action. All conditions must hold; at least one is set.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QueueActionScope {
    /// Messages that wait for this peer.
    pub peer: Option<PeerId>,
    /// Messages that this account submitted.
    pub account: Option<PeerId>,
    /// Messages whose destination, as submitted, has this prefix; leading plus signs make no difference.
    pub prefix: Option<AddressBytes>,
    /// Messages accepted at least this long ago: at matching for standing actions, at the creation for cancelling
    /// ones. Whole seconds.
    pub older_than: Option<Duration>,
}

impl QueueActionScope {
    /// Whether only a peer is set.
    #[must_use]
    pub fn is_whole_peer(&self) -> bool {
        self.peer.is_some() && self.account.is_none() && self.prefix.is_none() && self.older_than.is_none()
    }

    /// Whether no condition is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the destination of a message has the prefix.
    #[must_use]
    pub fn matches_destination(&self, message: &Message) -> bool {
        self.prefix.as_ref().is_none_or(|prefix| bare(&message.destination.value).starts_with(bare(prefix)))
    }
}

/// A number without leading plus signs.
fn bare(number: &[u8]) -> &[u8] {
    let plus = number.iter().take_while(|octet| **octet == b'+').count();
    number.get(plus..).unwrap_or_default()
}

/// The state of a queue action.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum QueueActionState {
    /// It applies until it is withdrawn.
    Standing = 1,
    /// Its messages are held; it can be undone until a set time.
    UndoWindow = 2,
    /// Its messages are being cancelled, some in each batch.
    Running = 3,
    /// Finished.
    Done = 4,
    /// Withdrawn, or undone in time.
    Undone = 5,
}

impl QueueActionState {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Standing, Self::UndoWindow, Self::Running, Self::Done, Self::Undone];

    /// The name used in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Standing => "active",
            Self::UndoWindow => "undo-window",
            Self::Running => "running",
            Self::Done => "done",
            Self::Undone => "undone",
        }
    }

    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == octet)
    }

    /// Whether the action still applies.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Standing | Self::UndoWindow | Self::Running)
    }
}

/// A queue action: an admin's action on waiting messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueAction {
    /// Its id.
    pub id: QueueActionId,
    /// Its kind.
    pub kind: QueueActionKind,
    /// Its messages.
    pub scope: QueueActionScope,
    /// The target, for [`QueueActionKind::Reroute`].
    pub to: Option<PeerId>,
    /// The admin.
    pub by: Arc<str>,
    /// The reason; may be empty.
    pub reason: Arc<str>,
    /// The time of creation.
    pub at: Timestamp,
    /// A cancelling action applies to messages with smaller ids.
    pub before_id: MessageId,
    /// The end of the undo window, if it has one.
    pub undo_until: Option<Timestamp>,
    /// Its state.
    pub state: QueueActionState,
    /// The number of messages moved or cancelled. The engine counts the held ones; they are not stored.
    pub affected: u64,
}
