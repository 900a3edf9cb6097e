use crate::{AddressBytes, Message, MessageId, PeerId, Timestamp};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// An order's number: from 1, growing, never given out twice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct OrderId(pub u32);

impl fmt::Display for OrderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What an admin wants done with messages that wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum OrderKind {
    /// They are not handed over until the order is withdrawn.
    Suspend = 1,
    /// Nothing new is taken for the peer; what waits goes out.
    Drain = 2,
    /// They go to another peer.
    Rebind = 3,
    /// They end as cancelled once the time to undo it is over: what submitters have sent, up to the moment of the order.
    Cancel = 4,
    /// The same, and receipts of ours on their way to submitters go too.
    Purge = 5,
}

impl OrderKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Suspend, Self::Drain, Self::Rebind, Self::Cancel, Self::Purge];

    /// The word used in JSON, on the command line and in logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Suspend => "suspend",
            Self::Drain => "drain",
            Self::Rebind => "rebind",
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

    /// Whether it ends messages, and so has a time within which it can be undone.
    #[must_use]
    pub fn ends(self) -> bool {
        matches!(self, Self::Cancel | Self::Purge)
    }
}

/// Which messages an order is about: all conditions hold, and at least one is given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scope {
    /// Those that wait for this peer.
    pub peer: Option<PeerId>,
    /// Those that this account has submitted.
    pub account: Option<PeerId>,
    /// Those whose destination, as submitted, begins so; plus signs in front make no difference.
    pub prefix: Option<AddressBytes>,
    /// Those accepted so long ago: when they are looked at for orders that stand, when the order was given for those that
    /// end messages. Whole seconds.
    pub older_than: Option<Duration>,
}

impl Scope {
    /// Whether nothing but a peer is named.
    #[must_use]
    pub fn is_whole_peer(&self) -> bool {
        self.peer.is_some() && self.account.is_none() && self.prefix.is_none() && self.older_than.is_none()
    }

    /// Whether no condition is given at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a destination begins as it must.
    #[must_use]
    pub fn fits_destination(&self, message: &Message) -> bool {
        self.prefix.as_ref().is_none_or(|prefix| bare(&message.destination.value).starts_with(bare(prefix)))
    }
}

/// A number without plus signs in front.
fn bare(number: &[u8]) -> &[u8] {
    let plus = number.iter().take_while(|octet| **octet == b'+').count();
    number.get(plus..).unwrap_or_default()
}

/// Where an order stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum OrderState {
    /// It holds until it is withdrawn.
    Standing = 1,
    /// Its messages are held; until a set time it can be undone.
    UndoWindow = 2,
    /// Its messages are being ended, some in each batch.
    UnderWay = 3,
    /// It is done with.
    Done = 4,
    /// It was withdrawn, or undone in time.
    Undone = 5,
}

impl OrderState {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Standing, Self::UndoWindow, Self::UnderWay, Self::Done, Self::Undone];

    /// The word used in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Standing => "standing",
            Self::UndoWindow => "undo-window",
            Self::UnderWay => "under-way",
            Self::Done => "done",
            Self::Undone => "undone",
        }
    }

    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|state| *state as u8 == octet)
    }

    /// Whether the order still has a say.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Standing | Self::UndoWindow | Self::UnderWay)
    }
}

/// An admin's standing will about messages that wait.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// Its number.
    pub id: OrderId,
    /// What is to be done.
    pub kind: OrderKind,
    /// With which messages.
    pub scope: Scope,
    /// Where they go, for [`OrderKind::Rebind`].
    pub to: Option<PeerId>,
    /// Who gave it.
    pub by: Arc<str>,
    /// Why; may be empty.
    pub why: Arc<str>,
    /// When.
    pub at: Timestamp,
    /// An order that ends messages is about those with smaller ids.
    pub upto: MessageId,
    /// Until when it can be undone, where it can.
    pub undo_until: Option<Timestamp>,
    /// Where it stands.
    pub state: OrderState,
    /// Messages that it has moved or ended. What a suspension holds back is counted by the engine and not written down.
    pub touched: u64,
}

/// What was done to one message by hand, or by an order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Deed {
    /// Held back until now.
    Resumed = 1,
    /// Sent another way.
    Rebound = 2,
    /// Taken back.
    Cancelled = 3,
    /// To be sent again, to settle a doubt.
    SentAgain = 4,
    /// A doubt was given up.
    GivenUp = 5,
    /// To be tried now, and not at its time.
    Retried = 6,
}

impl Deed {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Resumed, Self::Rebound, Self::Cancelled, Self::SentAgain, Self::GivenUp, Self::Retried];

    /// The word used in the archive's traces.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Resumed => "resumed",
            Self::Rebound => "rebound",
            Self::Cancelled => "cancelled",
            Self::SentAgain => "sent_again",
            Self::GivenUp => "given_up",
            Self::Retried => "retried",
        }
    }

    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|deed| *deed as u8 == octet)
    }
}
