use model::{Address, RejectReason};
use std::fmt;

/// A dialled number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DialledNumber<'a> {
    /// Type of number (3GPP TS 23.040 §9.1.2.5): 0 unknown, 1 international, 2 national, 3 network specific,
    /// 4 subscriber, 5 alphanumeric, 6 abbreviated.
    pub ton: u8,
    /// Numbering plan: 0 unknown, 1 E.164, 8 national, 9 private.
    pub npi: u8,
    /// The dialled digits. A leading plus sign has the same meaning as type 1.
    pub digits: &'a str,
}

impl<'a> DialledNumber<'a> {
    /// A typed number: unknown type, or international with a plus sign.
    #[must_use]
    pub fn typed(digits: &'a str) -> Self {
        Self { ton: 0, npi: 1, digits }
    }

    /// The number of an address; `None` if its value is not UTF-8.
    #[must_use]
    pub fn of(address: &'a Address) -> Option<Self> {
        let digits = std::str::from_utf8(&address.value).ok()?;
        Some(Self { ton: address.ton, npi: address.npi, digits })
    }
}

/// Kind of a normalised number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumberKind {
    /// An international number, country code first: 7 to 15 digits.
    E164,
    /// Digits with a meaning only in this network: a short code or an internal number.
    Short,
}

/// Class of a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NumberClass {
    /// A subscriber of this network.
    Home,
    /// A service with a short code.
    ShortCode,
    /// In a range of this peer.
    Peer(String),
    /// In another country.
    International,
    /// In this country, in no range.
    National,
}

/// Routing target of a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum NumberTarget {
    /// A subscriber of this network.
    Home,
    /// This peer.
    Peer(String),
    /// The routing chain decides.
    Route,
    /// Refused: [`NumberPlan::normalise`](crate::NumberPlan::normalise) refuses such numbers, so no
    /// [`NormalisedNumber`] has this target.
    Refuse,
}

/// A normalised number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NormalisedNumber {
    /// Decimal digits only.
    pub digits: String,
    /// Kind of the digits.
    pub kind: NumberKind,
    /// Class of the number.
    pub class: NumberClass,
    /// Routing target.
    pub to: NumberTarget,
    /// The matching rules for the trace: plan, form, range. Contains no digit of the number.
    pub rule: String,
}

impl NormalisedNumber {
    /// The number as an address. An international number has type 1. A short form has the unknown type, so that a
    /// handset that replies dials the number that it displays.
    #[must_use]
    pub fn address(&self) -> Address {
        match self.kind {
            NumberKind::E164 => Address::international(&self.digits),
            NumberKind::Short => Address::new(0, 1, self.digits.as_bytes()),
        }
    }
}

/// Reason why a dialled number is refused. The text contains none of its digits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumberRefusal {
    /// Not a valid number in the plan: wrong length or form.
    #[error("{0}")]
    Invalid(String),
    /// A valid number that the plan refuses.
    #[error("{0}")]
    NotAllowed(String),
}

impl NumberRefusal {
    /// The corresponding reject reason.
    #[must_use]
    pub fn reason(&self) -> RejectReason {
        match self {
            Self::Invalid(_) => RejectReason::InvalidDestination,
            Self::NotAllowed(_) => RejectReason::Prohibited,
        }
    }
}

impl NumberTarget {
    /// The name of the peer.
    #[must_use]
    pub fn peer(&self) -> Option<&str> {
        match self {
            Self::Peer(peer) => Some(peer),
            _ => None,
        }
    }

    /// Parses `home`, `route`, `refuse` or `peer:NAME`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        match text {
            "home" => Ok(Self::Home),
            "route" => Ok(Self::Route),
            "refuse" => Ok(Self::Refuse),
            _ => match text.strip_prefix("peer:") {
                Some(peer) if !peer.is_empty() && peer.trim() == peer => Ok(Self::Peer(peer.to_owned())),
                _ => Err(format!(
                    "{text:?} is not a target; it must be \"home\", \"route\", \"refuse\" or \"peer:NAME\""
                )),
            },
        }
    }
}

impl fmt::Display for NumberTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Home => f.write_str("home"),
            Self::Peer(peer) => write!(f, "peer:{peer}"),
            Self::Route => f.write_str("route"),
            Self::Refuse => f.write_str("refuse"),
        }
    }
}
