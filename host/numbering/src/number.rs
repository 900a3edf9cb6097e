use model::{Address, RejectReason};
use std::fmt;

/// A number as it was dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Called<'a> {
    /// Type of number (3GPP TS 23.040 §9.1.2.5): 0 unknown, 1 international, 2 national, 3 network specific,
    /// 4 subscriber, 5 alphanumeric, 6 abbreviated.
    pub ton: u8,
    /// Numbering plan: 0 unknown, 1 E.164, 8 national, 9 private.
    pub npi: u8,
    /// What was dialled. A plus sign in front says the same as type 1.
    pub digits: &'a str,
}

impl<'a> Called<'a> {
    /// What somebody typed: of unknown type, or international after a plus sign.
    #[must_use]
    pub fn typed(digits: &'a str) -> Self {
        Self { ton: 0, npi: 1, digits }
    }

    /// The number of an address; `None` where its value is not even text.
    #[must_use]
    pub fn of(address: &'a Address) -> Option<Self> {
        let digits = std::str::from_utf8(&address.value).ok()?;
        Some(Self { ton: address.ton, npi: address.npi, digits })
    }
}

/// What kind of digits a number has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An international number, country code first: 7 to 15 digits.
    E164,
    /// Digits that mean something only here: a short code or an internal number.
    Short,
}

/// Whose number it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Class {
    /// One of our subscribers'.
    Home,
    /// A service with a short code.
    ShortCode,
    /// In a range of this peer's.
    Peer(String),
    /// In another country.
    International,
    /// In this country, in nobody's range.
    National,
}

/// Where a number leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// To a subscriber of ours.
    Home,
    /// To this peer.
    Peer(String),
    /// The routing chain decides.
    Route,
    /// Nowhere: [`Plan::normalise`](crate::Plan::normalise) refuses such a number, so no [`Number`] has this target.
    Refuse,
}

/// A number in its one form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Number {
    /// Decimal digits only.
    pub digits: String,
    /// What kind of digits.
    pub kind: Kind,
    /// Whose number it is.
    pub class: Class,
    /// Where it leads.
    pub to: Target,
    /// Which rules made it so, for the trace: plan, form, range. There is no digit of the number in it.
    pub rule: String,
}

impl Number {
    /// As an address: an international number has type 1; short forms are of unknown type, so that a phone that answers
    /// sends what it was shown.
    #[must_use]
    pub fn address(&self) -> Address {
        match self.kind {
            Kind::E164 => Address::international(&self.digits),
            Kind::Short => Address::new(0, 1, self.digits.as_bytes()),
        }
    }
}

/// Why what was dialled is no number to send to. There is no digit of it in the words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no number: too short, too long, of no form of the plan's.
    #[error("{0}")]
    Invalid(String),
    /// It is a number, and the plan refuses it.
    #[error("{0}")]
    NotAllowed(String),
}

impl Refused {
    /// In the words of routing.
    #[must_use]
    pub fn reason(&self) -> RejectReason {
        match self {
            Self::Invalid(_) => RejectReason::InvalidDestination,
            Self::NotAllowed(_) => RejectReason::Prohibited,
        }
    }
}

impl Target {
    /// The peer's name.
    #[must_use]
    pub fn peer(&self) -> Option<&str> {
        match self {
            Self::Peer(peer) => Some(peer),
            _ => None,
        }
    }

    /// Reads `home`, `route`, `refuse` or `peer:NAME`.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        match text {
            "home" => Ok(Self::Home),
            "route" => Ok(Self::Route),
            "refuse" => Ok(Self::Refuse),
            _ => match text.strip_prefix("peer:") {
                Some(peer) if !peer.is_empty() && peer.trim() == peer => Ok(Self::Peer(peer.to_owned())),
                _ => Err(format!(
                    "{text:?} is no target; it is \"home\", \"route\", \"refuse\" or \"peer:NAME\""
                )),
            },
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Home => f.write_str("home"),
            Self::Peer(peer) => write!(f, "peer:{peer}"),
            Self::Route => f.write_str("route"),
            Self::Refuse => f.write_str("refuse"),
        }
    }
}
