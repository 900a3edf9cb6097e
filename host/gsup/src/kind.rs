use std::fmt;

/// What a GSUP message is: an operation, and in the lowest two bits whether it asks, refuses or answers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageType(pub u8);

impl MessageType {
    /// An MSC has a subscriber new.
    pub const UPDATE_LOCATION_REQUEST: Self = Self(0x04);
    /// It must not.
    pub const UPDATE_LOCATION_ERROR: Self = Self(0x05);
    /// The subscriber is there now.
    pub const UPDATE_LOCATION_RESULT: Self = Self(0x06);
    /// Wanted: authentication vectors.
    pub const SEND_AUTH_INFO_REQUEST: Self = Self(0x08);
    /// An MSC has forgotten a subscriber.
    pub const PURGE_MS_REQUEST: Self = Self(0x0c);
    /// It may not.
    pub const PURGE_MS_ERROR: Self = Self(0x0d);
    /// The HLR knows.
    pub const PURGE_MS_RESULT: Self = Self(0x0e);
    /// The HLR tells an MSC about a subscriber, the number among it.
    pub const INSERT_DATA_REQUEST: Self = Self(0x10);
    /// The MSC knows.
    pub const INSERT_DATA_RESULT: Self = Self(0x12);
    /// The HLR takes a subscriber from an MSC.
    pub const LOCATION_CANCEL_REQUEST: Self = Self(0x1c);
    /// The MSC has forgotten it.
    pub const LOCATION_CANCEL_RESULT: Self = Self(0x1e);
    /// A short message from a phone.
    pub const MO_FORWARD_SM_REQUEST: Self = Self(0x24);
    /// It is refused.
    pub const MO_FORWARD_SM_ERROR: Self = Self(0x25);
    /// It is taken.
    pub const MO_FORWARD_SM_RESULT: Self = Self(0x26);
    /// A short message for a phone.
    pub const MT_FORWARD_SM_REQUEST: Self = Self(0x28);
    /// The phone does not have it.
    pub const MT_FORWARD_SM_ERROR: Self = Self(0x29);
    /// The phone has it.
    pub const MT_FORWARD_SM_RESULT: Self = Self(0x2a);
    /// A phone can take short messages again.
    pub const READY_FOR_SM_REQUEST: Self = Self(0x2c);
    /// Nobody wants to know.
    pub const READY_FOR_SM_ERROR: Self = Self(0x2d);
    /// It is known.
    pub const READY_FOR_SM_RESULT: Self = Self(0x2e);
    /// The HLR has no connection to whom a message was for.
    pub const ROUTING_ERROR: Self = Self(0x4e);

    const REQUEST: u8 = 0;
    const ERROR: u8 = 1;
    const RESULT: u8 = 2;

    /// Whether it asks for something.
    #[must_use]
    pub fn is_request(self) -> bool {
        self.0 & 3 == Self::REQUEST
    }

    /// Whether it refuses something.
    #[must_use]
    pub fn is_error(self) -> bool {
        self.0 & 3 == Self::ERROR
    }

    /// Whether it answers well.
    #[must_use]
    pub fn is_result(self) -> bool {
        self.0 & 3 == Self::RESULT && self != Self::ROUTING_ERROR
    }

    /// The refusal of this operation.
    #[must_use]
    pub fn to_error(self) -> Self {
        Self(self.0 & !3 | Self::ERROR)
    }

    /// The good answer of this operation.
    #[must_use]
    pub fn to_result(self) -> Self {
        Self(self.0 & !3 | Self::RESULT)
    }

    /// The operation's name, without what the lowest bits say; `None` for one that is not known here.
    #[must_use]
    pub fn operation(self) -> Option<&'static str> {
        Some(match self.0 & !3 {
            0x04 => "update location",
            0x08 => "send authentication info",
            0x0c => "purge",
            0x10 => "insert data",
            0x14 => "delete data",
            0x1c => "cancel location",
            0x20 => "process supplementary service",
            0x24 => "MO forward short message",
            0x28 => "MT forward short message",
            0x2c => "ready for short message",
            0x30 => "check IMEI",
            _ => return None,
        })
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = match self.0 & 3 {
            Self::REQUEST => "request",
            Self::ERROR => "error",
            Self::RESULT => "result",
            _ => "report",
        };
        match (*self, self.operation()) {
            (Self::ROUTING_ERROR, _) => formatter.write_str("routing error"),
            (_, Some(operation)) => write!(formatter, "{operation} {direction}"),
            (Self(code), None) => write!(formatter, "message type {code:#04x}"),
        }
    }
}

impl fmt::Debug for MessageType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}
