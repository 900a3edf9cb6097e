//! TP-Status and TP-Failure-Cause (3GPP TS 23.040 §9.2.3.15, §9.2.3.22).

use std::fmt;

/// TP-Status of a status report.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TpStatus(pub u8);

/// The class of a TP-Status.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StatusClass {
    /// Completed: the message was delivered, or at least forwarded.
    Completed,
    /// Temporary failure; the service centre keeps trying.
    Trying,
    /// Permanent failure.
    Permanent,
    /// Temporary failure; the service centre has given up.
    GivenUp,
}

impl TpStatus {
    /// Received by the handset.
    pub const DELIVERED: Self = Self(0x00);
    /// Forwarded; delivery is not confirmed.
    pub const FORWARDED: Self = Self(0x01);
    /// Congestion; still trying.
    pub const TRYING_CONGESTION: Self = Self(0x20);
    /// The handset is busy; still trying.
    pub const TRYING_BUSY: Self = Self(0x21);
    /// No response from the handset; still trying.
    pub const TRYING_NO_RESPONSE: Self = Self(0x22);
    /// Connection rejected by the handset.
    pub const REFUSED: Self = Self(0x42);
    /// Not obtainable.
    pub const NOT_OBTAINABLE: Self = Self(0x43);
    /// The validity period has expired.
    pub const EXPIRED: Self = Self(0x46);
    /// Deleted by service centre administration.
    pub const DELETED_BY_ADMIN: Self = Self(0x48);
    /// Congestion; given up.
    pub const CONGESTION: Self = Self(0x60);
    /// The handset was busy; given up.
    pub const BUSY: Self = Self(0x61);
    /// No response from the handset; given up.
    pub const NO_RESPONSE: Self = Self(0x62);
    /// Service rejected; given up.
    pub const REJECTED: Self = Self(0x63);
    /// Error in the handset; given up.
    pub const ERROR: Self = Self(0x65);

    /// The class. Values from 0x80 are reserved; like all unknown values, they count as "service rejected", given up
    /// (§9.2.3.15).
    #[must_use]
    pub fn class(self) -> StatusClass {
        match self.0 {
            0x00..=0x1F => StatusClass::Completed,
            0x20..=0x3F => StatusClass::Trying,
            0x40..=0x5F => StatusClass::Permanent,
            _ => StatusClass::GivenUp,
        }
    }

    /// Whether no further status report about the message follows.
    #[must_use]
    pub fn is_final(self) -> bool {
        self.class() != StatusClass::Trying
    }
}

/// TP-Failure-Cause of a report inside an RP-ERROR.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FailureCause(pub u8);

/// The meaning of a handset's refusal for the message and for later messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FailureClass {
    /// This message will never be accepted; the next one may be.
    Permanent,
    /// The memory is full; no message is accepted until the handset has space again.
    MemoryFull,
    /// The message may be accepted later.
    Temporary,
}

impl FailureCause {
    /// Telematic interworking not supported.
    pub const TELEMATIC_NOT_SUPPORTED: Self = Self(0x80);
    /// Short message type 0 not supported.
    pub const TYPE_0_NOT_SUPPORTED: Self = Self(0x81);
    /// Cannot replace the short message.
    pub const CANNOT_REPLACE: Self = Self(0x82);
    /// Unspecified TP-PID error.
    pub const PROTOCOL_OTHER: Self = Self(0x8F);
    /// Alphabet not supported.
    pub const ALPHABET_NOT_SUPPORTED: Self = Self(0x90);
    /// Message class not supported.
    pub const CLASS_NOT_SUPPORTED: Self = Self(0x91);
    /// Unspecified TP-DCS error.
    pub const CODING_OTHER: Self = Self(0x9F);
    /// The command cannot be executed.
    pub const COMMAND_NOT_ACTIONED: Self = Self(0xA0);
    /// The command is not supported.
    pub const COMMAND_NOT_SUPPORTED: Self = Self(0xA1);
    /// Unspecified TP-Command error.
    pub const COMMAND_OTHER: Self = Self(0xAF);
    /// The TPDU type is not supported.
    pub const TPDU_NOT_SUPPORTED: Self = Self(0xB0);
    /// The service centre is busy.
    pub const SC_BUSY: Self = Self(0xC0);
    /// No subscription to the service centre.
    pub const NO_SC_SUBSCRIPTION: Self = Self(0xC1);
    /// Failure of the service centre.
    pub const SC_FAILURE: Self = Self(0xC2);
    /// The address is invalid.
    pub const INVALID_SME_ADDRESS: Self = Self(0xC3);
    /// The destination is barred.
    pub const DESTINATION_BARRED: Self = Self(0xC4);
    /// A duplicate, and TP-RD was set.
    pub const DUPLICATE_REJECTED: Self = Self(0xC5);
    /// The format of the validity period is not supported.
    pub const VALIDITY_FORMAT_NOT_SUPPORTED: Self = Self(0xC6);
    /// The validity period is not supported.
    pub const VALIDITY_PERIOD_NOT_SUPPORTED: Self = Self(0xC7);
    /// The SIM storage is full.
    pub const SIM_FULL: Self = Self(0xD0);
    /// The SIM cannot store short messages.
    pub const SIM_NO_STORAGE: Self = Self(0xD1);
    /// Error in the handset.
    pub const MS_ERROR: Self = Self(0xD2);
    /// The memory of the handset is full.
    pub const MEMORY_EXCEEDED: Self = Self(0xD3);
    /// The SIM application toolkit is busy.
    pub const TOOLKIT_BUSY: Self = Self(0xD4);
    /// Error in a data download to the SIM.
    pub const SIM_DOWNLOAD_ERROR: Self = Self(0xD5);
    /// Unspecified error.
    pub const UNSPECIFIED: Self = Self(0xFF);

    /// The class. Unknown and application-specific causes count as temporary; the number of attempts is limited
    /// elsewhere.
    #[must_use]
    pub fn class(self) -> FailureClass {
        match self.0 {
            0xD0 | 0xD3 => FailureClass::MemoryFull,
            0x80..=0xBF | 0xC1 | 0xC3..=0xC7 | 0xD1 => FailureClass::Permanent,
            _ => FailureClass::Temporary,
        }
    }
}

impl fmt::Debug for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FailureCause({:#04X})", self.0)
    }
}

impl fmt::Display for FailureCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match *self {
            Self::TELEMATIC_NOT_SUPPORTED => "telematic interworking not supported",
            Self::TYPE_0_NOT_SUPPORTED => "type 0 not supported",
            Self::CANNOT_REPLACE => "cannot replace the message",
            Self::PROTOCOL_OTHER => "protocol identifier error",
            Self::ALPHABET_NOT_SUPPORTED => "alphabet not supported",
            Self::CLASS_NOT_SUPPORTED => "message class not supported",
            Self::CODING_OTHER => "data coding error",
            Self::COMMAND_NOT_ACTIONED => "command cannot be carried out",
            Self::COMMAND_NOT_SUPPORTED => "command not supported",
            Self::COMMAND_OTHER => "command error",
            Self::TPDU_NOT_SUPPORTED => "TPDU not supported",
            Self::SC_BUSY => "service centre busy",
            Self::NO_SC_SUBSCRIPTION => "no subscription with the service centre",
            Self::SC_FAILURE => "service centre failure",
            Self::INVALID_SME_ADDRESS => "invalid address",
            Self::DESTINATION_BARRED => "destination barred",
            Self::DUPLICATE_REJECTED => "duplicate rejected",
            Self::VALIDITY_FORMAT_NOT_SUPPORTED => "validity period format not supported",
            Self::VALIDITY_PERIOD_NOT_SUPPORTED => "validity period not supported",
            Self::SIM_FULL => "SIM storage full",
            Self::SIM_NO_STORAGE => "no storage in the SIM",
            Self::MS_ERROR => "error in the telephone",
            Self::MEMORY_EXCEEDED => "memory exceeded",
            Self::TOOLKIT_BUSY => "SIM toolkit busy",
            Self::SIM_DOWNLOAD_ERROR => "SIM download error",
            Self::UNSPECIFIED => "unspecified error",
            Self(0xE0..=0xFE) => "error of an application",
            Self(_) => "reserved",
        };
        write!(f, "{words} (TP-FCS {:02X})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_a_class() {
        assert_eq!(TpStatus::DELIVERED.class(), StatusClass::Completed);
        assert_eq!(TpStatus::TRYING_BUSY.class(), StatusClass::Trying);
        assert_eq!(TpStatus::EXPIRED.class(), StatusClass::Permanent);
        assert_eq!(TpStatus::NO_RESPONSE.class(), StatusClass::GivenUp);
        assert_eq!(TpStatus(0x80).class(), StatusClass::GivenUp);
        let going_on = (0..=255).map(TpStatus).filter(|status| !status.is_final()).count();
        assert_eq!(going_on, 32);
    }

    #[test]
    fn handset_failure_causes() {
        let of = |class| (0..=255).filter(move |cause| FailureCause(*cause).class() == class);
        assert_eq!(of(FailureClass::MemoryFull).collect::<Vec<_>>(), [0xD0, 0xD3]);
        for cause in [0x80, 0x81, 0x8F, 0x90, 0x91, 0x9F, 0xB0, 0xD1] {
            assert_eq!(FailureCause(cause).class(), FailureClass::Permanent, "{cause:02x}");
        }
        for cause in [0xC0, 0xC2, 0xD2, 0xD4, 0xD5, 0xE0, 0xFE, 0xFF, 0x00] {
            assert_eq!(FailureCause(cause).class(), FailureClass::Temporary, "{cause:02x}");
        }
        assert_eq!(FailureCause::MEMORY_EXCEEDED.to_string(), "memory exceeded (TP-FCS D3)");
    }
}
