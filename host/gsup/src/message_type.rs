use std::fmt;

/// A message type: an operation; the lowest two bits distinguish request, error and result.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MessageType(pub u8);

impl MessageType {
    /// An MSC registers a subscriber.
    pub const UPDATE_LOCATION_REQUEST: Self = Self(0x04);
    /// The registration is refused.
    pub const UPDATE_LOCATION_ERROR: Self = Self(0x05);
    /// The subscriber is registered.
    pub const UPDATE_LOCATION_RESULT: Self = Self(0x06);
    /// An MSC requests authentication vectors.
    pub const SEND_AUTH_INFO_REQUEST: Self = Self(0x08);
    /// An MSC has purged a subscriber.
    pub const PURGE_MS_REQUEST: Self = Self(0x0c);
    /// The HLR sends subscriber data to an MSC, including the MSISDN.
    pub const INSERT_DATA_REQUEST: Self = Self(0x10);
    /// The HLR cancels the registration at an MSC.
    pub const LOCATION_CANCEL_REQUEST: Self = Self(0x1c);
    /// A short message from a handset.
    pub const MO_FORWARD_SM_REQUEST: Self = Self(0x24);
    /// The MO is refused.
    pub const MO_FORWARD_SM_ERROR: Self = Self(0x25);
    /// A short message for a handset.
    pub const MT_FORWARD_SM_REQUEST: Self = Self(0x28);
    /// The MT failed.
    pub const MT_FORWARD_SM_ERROR: Self = Self(0x29);
    /// The MT was delivered.
    pub const MT_FORWARD_SM_RESULT: Self = Self(0x2a);
    /// A handset can receive short messages again.
    pub const READY_FOR_SM_REQUEST: Self = Self(0x2c);
    /// The alert is acknowledged.
    pub const READY_FOR_SM_RESULT: Self = Self(0x2e);
    /// The HLR has no connection to the destination.
    pub const ROUTING_ERROR: Self = Self(0x4e);

    const REQUEST: u8 = 0;
    const ERROR: u8 = 1;
    const RESULT: u8 = 2;

    /// Whether it is an error.
    #[must_use]
    pub fn is_error(self) -> bool {
        self.0 & 3 == Self::ERROR
    }

    /// Whether it is a result.
    #[must_use]
    pub fn is_result(self) -> bool {
        self.0 & 3 == Self::RESULT && self != Self::ROUTING_ERROR
    }

    /// The error type of this operation.
    #[must_use]
    pub fn to_error(self) -> Self {
        Self(self.0 & !3 | Self::ERROR)
    }

    /// The result type of this operation.
    #[must_use]
    pub fn to_result(self) -> Self {
        Self(self.0 & !3 | Self::RESULT)
    }

    /// Name of the operation, without the lowest two bits; `None` if it is unknown.
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
