use serde::{Deserialize, Serialize};

/// A hook: a question that plugins answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Hook {
    /// Routes a message.
    Router = 1,
    /// Finds the subscriber behind a number.
    Resolver = 2,
    /// Decides on a failed attempt.
    DeliveryPolicy = 3,
    /// Prices a message.
    Biller = 4,
    /// Decides whether a message may pass, before it is routed.
    Screen = 5,
    /// Finds facts about a message's number, before it is routed.
    Lookup = 6,
    /// Decides the next step after a DLR, or after its absence.
    Receipt = 7,
    /// Submits messages to a peer.
    Peer = 8,
    /// Translates the requests of another product's HTTP API.
    FrontEnd = 9,
}

impl Hook {
    /// All hooks.
    pub const ALL: [Self; 9] = [
        Self::Screen,
        Self::Lookup,
        Self::Router,
        Self::Resolver,
        Self::DeliveryPolicy,
        Self::Receipt,
        Self::Biller,
        Self::Peer,
        Self::FrontEnd,
    ];

    /// The name used in paths, metrics and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Router => "router",
            Self::Resolver => "resolver",
            Self::DeliveryPolicy => "delivery-policy",
            Self::Biller => "biller",
            Self::Screen => "screen",
            Self::Lookup => "lookup",
            Self::Peer => "peer",
            Self::Receipt => "receipt",
            Self::FrontEnd => "front-end",
        }
    }

    /// The hook of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.name() == name)
    }

    /// From the octet on disk.
    #[must_use]
    pub fn from_octet(octet: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| *hook as u8 == octet)
    }
}

/// A plugin version: name and version (the first twelve hex digits of the component's SHA-256).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct PluginVersion {
    /// The plugin's name, as bound.
    pub plugin: String,
    /// Its version.
    pub version: String,
}
