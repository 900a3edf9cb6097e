use model::{ErrorClass, Refusal, RejectReason};
use std::fmt;

/// The list of result codes that a peer follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// SGIP 1.2 §5.2.
    #[default]
    V12,
    /// SGIP 1.3 §5.2: group sending is forbidden; 32 and 33 have another meaning.
    V13,
}

/// The result of a command or the error of a message: `Result` of an answer, `ErrorCode` of a Report.
///
/// Operators have lists of their own, so every value is possible.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct ResultCode(pub u8);

impl ResultCode {
    /// Success.
    pub const OK: Self = Self(0);
    /// Wrong login name or password.
    pub const LOGIN: Self = Self(1);
    /// The connection is bound already.
    pub const REPEATED_LOGIN: Self = Self(2);
    /// Too many connections from one node.
    pub const CONNECTIONS: Self = Self(3);
    /// The login type does not match this node.
    pub const LOGIN_TYPE: Self = Self(4);
    /// A parameter has a wrong form or range.
    pub const PARAMETER: Self = Self(5);
    /// Not a mobile number that is served.
    pub const NUMBER: Self = Self(6);
    /// Wrong message id.
    pub const MESSAGE_ID: Self = Self(7);
    /// Wrong length.
    pub const LENGTH: Self = Self(8);
    /// The sequence number was used before for another command.
    pub const SEQUENCE: Self = Self(9);
    /// The node is busy, for example because its queue is full.
    pub const BUSY: Self = Self(11);
    /// The function is not offered.
    pub const NOT_OFFERED: Self = Self(30);
    /// System failure (1.2).
    pub const SYSTEM: Self = Self(32);
    /// The agreed rate is exceeded (from vendors' lists; the number of SMPP's ESME_RTHROTTLED).
    pub const FLOW: Self = Self(88);

    /// Whether the code means success.
    #[must_use]
    pub fn is_ok(self) -> bool {
        self == Self::OK
    }

    /// The error class of a Submit refused with this code.
    #[must_use]
    pub fn class(self, dialect: Dialect) -> ErrorClass {
        match (self.0, dialect) {
            (88, _) | (33, Dialect::V13) => ErrorClass::Throttled,
            (11, _) | (33, Dialect::V12) => ErrorClass::QueueFull,
            (25, _) => ErrorClass::Absent,
            (26, _) => ErrorClass::MemoryFull,
            (1 | 3 | 21, _) => ErrorClass::Temporary,
            _ => ErrorClass::Permanent,
        }
    }

    /// The code for a submission that the engine refused.
    #[must_use]
    pub fn of(refusal: Refusal) -> Self {
        match refusal {
            Refusal::QueueFull | Refusal::ShuttingDown => Self::BUSY,
            Refusal::Throttled
            | Refusal::QuotaExceeded
            | Refusal::KeysFull { .. }
            | Refusal::Rejected(RejectReason::TryLater) => Self::FLOW,
            Refusal::Rejected(RejectReason::InvalidDestination) => Self::NUMBER,
            Refusal::Rejected(RejectReason::NoRoute) => Self(23),
            Refusal::Rejected(RejectReason::InvalidSource) | Refusal::BadSchedule | Refusal::Expired => {
                Self::PARAMETER
            }
            Refusal::Rejected(
                RejectReason::Prohibited
                | RejectReason::NotAuthorised
                | RejectReason::NoCredit
                | RejectReason::PriceTooHigh,
            ) => Self::NOT_OFFERED,
            // Vendors' lists call this "on the blacklist".
            Refusal::Rejected(RejectReason::OptedOut) => Self(69),
            Refusal::KeyReused => Self::SEQUENCE,
            Refusal::UnknownMessage | Refusal::WrongState => Self::MESSAGE_ID,
            Refusal::Rejected(RejectReason::Fault) | Refusal::Internal => Self::SYSTEM,
        }
    }

    /// The meaning, for people (SGIP 1.2 §5.2, SGIP 1.3 §5.2, and the vendors' list at the end of the latter).
    #[must_use]
    pub fn meaning(self, dialect: Dialect) -> &'static str {
        if dialect == Dialect::V13 {
            match self.0 {
                32 => return "packet format: a number, corporation, service or LinkID is missing",
                33 => return "over the rate per second",
                _ => {}
            }
        }
        match self.0 {
            0 => "ok",
            1 => "login refused: name or password wrong",
            2 => "repeated login on one connection",
            3 => "too many connections from one node",
            4 => "login type wrong",
            5 => "parameter format or range",
            6 => "illegal mobile number",
            7 => "message id wrong",
            8 => "length wrong",
            9 => "illegal sequence number",
            10 => "illegal GNS operation",
            11 => "node busy",
            13 => "access number and service code not registered",
            14 => "fee larger than registered",
            17 => "LinkID does not match",
            18 => "user has not subscribed",
            19 => "group sending forbidden",
            21 => "destination node cannot be reached",
            22 => "routing error",
            23 => "no such route",
            24 => "charge number not valid",
            25 => "user cannot be reached",
            26 => "handset memory full",
            27 => "handset takes no short messages",
            28 => "handset reported an error",
            29 => "unknown user",
            30 => "function not offered",
            31 => "illegal device",
            32 => "system failure",
            33 => "short message centre's queue full",
            34 => "too many logins in a minute",
            38 => "too many messages for one LinkID",
            39 => "third-party payment not allowed",
            40 => "MorelatetoMTFlag 3 not allowed",
            43 => "order keyword not registered",
            44 => "notice intercepted on purpose",
            50 => "content not allowed",
            51 => "not connected",
            52 => "not logged in",
            53 => "send failed",
            54 => "response timeout (often TP_udhi set without a header)",
            55 => "waited too long for the status report",
            56 => "user state abnormal",
            61 => "validity over",
            62 => "schedule time over",
            63 => "unknown fee type",
            64..=68 => "source, destination or user check failed",
            69 => "user on the blacklist",
            70 => "network broken",
            71 => "too many nodes",
            72 => "no route",
            73 => "response wait timeout",
            74 | 75 => "charging point failed",
            76 => "content check failed",
            77 => "too many submissions",
            78 => "SP id empty",
            79 => "service empty",
            80 => "CP code wrong",
            81 => "duplicate interface",
            82 => "routing loop",
            83 => "longer than the receiver's limit",
            84..=87 => "service platform busy",
            88 => "flow limit exceeded",
            90 => "message waiting, or packet length wrong",
            91 => "bad status report flag",
            92 => "bad MT flag",
            93 => "SP node id wrong",
            94 => "account not configured",
            95 => "monthly fee record not allowed now",
            100..=124 => "refused by the subscription platform",
            182 => "daily limit",
            _ => "not defined",
        }
    }
}

impl fmt::Debug for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.0, self.meaning(Dialect::V12))
    }
}

impl fmt::Display for ResultCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0, self.meaning(Dialect::V12))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn result_codes_that_may_be_retried() {
        let later: Vec<u8> = (0..=255)
            .filter(|code| *code != 0 && ResultCode(*code).class(Dialect::V12) != ErrorClass::Permanent)
            .collect();
        assert_eq!(later, [1, 3, 11, 21, 25, 26, 33, 88]);
        assert_eq!(ResultCode(33).class(Dialect::V13), ErrorClass::Throttled);
        assert_eq!(ResultCode(200).meaning(Dialect::V12), "not defined");
        assert_ne!(ResultCode(32).meaning(Dialect::V13), ResultCode(32).meaning(Dialect::V12));
    }
}
