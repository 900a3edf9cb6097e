use model::ErrorClass;
use std::fmt;

/// An SMPP command_status (34 §5.1.3; values from 0x100 are 5.0). Unknown values are preserved.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct CommandStatus(pub u32);

macro_rules! statuses {
    ($($value:literal $name:ident $text:literal,)*) => {
        impl CommandStatus {
            $(#[doc = $text] pub const $name: Self = Self($value);)*

            /// The name in the specification.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($value => stringify!($name),)*
                    _ => "unknown",
                }
            }
        }
    };
}

statuses! {
    0x00 ROK "No error.",
    0x01 RINVMSGLEN "Message length is invalid.",
    0x02 RINVCMDLEN "Command length is invalid.",
    0x03 RINVCMDID "Invalid command id.",
    0x04 RINVBNDSTS "Not allowed in this bind state.",
    0x05 RALYBND "Already bound.",
    0x06 RINVPRTFLG "Invalid priority flag.",
    0x07 RINVREGDLVFLG "Invalid registered delivery flag.",
    0x08 RSYSERR "System error.",
    0x0A RINVSRCADR "Invalid source address.",
    0x0B RINVDSTADR "Invalid destination address.",
    0x0C RINVMSGID "Unknown message id.",
    0x0D RBINDFAIL "Bind failed.",
    0x0E RINVPASWD "Invalid password.",
    0x0F RINVSYSID "Invalid system id.",
    0x11 RCANCELFAIL "Cancel failed.",
    0x13 RREPLACEFAIL "Replace failed.",
    0x14 RMSGQFUL "Message queue full.",
    0x15 RINVSERTYP "Invalid service type.",
    0x33 RINVNUMDESTS "Invalid number of destinations.",
    0x34 RINVDLNAME "Unknown distribution list.",
    0x40 RINVDESTFLAG "Invalid destination flag.",
    0x42 RINVSUBREP "Invalid submit with replace.",
    0x43 RINVESMCLASS "Invalid esm_class.",
    0x44 RCNTSUBDL "Cannot submit to distribution list.",
    0x45 RSUBMITFAIL "Submit failed.",
    0x48 RINVSRCTON "Invalid source type of number.",
    0x49 RINVSRCNPI "Invalid source numbering plan.",
    0x50 RINVDSTTON "Invalid destination type of number.",
    0x51 RINVDSTNPI "Invalid destination numbering plan.",
    0x53 RINVSYSTYP "Invalid system type.",
    0x54 RINVREPFLAG "Invalid replace flag.",
    0x55 RINVNUMMSGS "Invalid number of messages.",
    0x58 RTHROTTLED "Throttled.",
    0x61 RINVSCHED "Invalid scheduled delivery time.",
    0x62 RINVEXPIRY "Invalid validity period.",
    0x63 RINVDFTMSGID "Unknown predefined message.",
    0x64 RX_T_APPN "Receiver: temporary error.",
    0x65 RX_P_APPN "Receiver: permanent error.",
    0x66 RX_R_APPN "Receiver: rejected.",
    0x67 RQUERYFAIL "Query failed.",
    0xC0 RINVTLVSTREAM "Error in the optional part of the PDU.",
    0xC1 ROPTPARNOTALLWD "TLV not allowed.",
    0xC2 RINVPARLEN "Invalid TLV length.",
    0xC3 RMISSINGTLV "Expected TLV missing.",
    0xC4 RINVTLVVAL "Invalid TLV value.",
    0xFE RDELIVERYFAILURE "Delivery failure (transaction mode).",
    0xFF RUNKNOWNERR "Unknown error.",
    0x100 RSERTYPUNAUTH "Not authorised for this service type.",
    0x101 RPROHIBITED "Prohibited.",
    0x102 RSERTYPUNAVAIL "Service type unavailable.",
    0x103 RSERTYPDENIED "Service type denied.",
    0x104 RINVDCS "Invalid data coding scheme.",
    0x105 RINVSRCADDRSUBUNIT "Invalid source address subunit.",
    0x106 RINVDSTADDRSUBUNIT "Invalid destination address subunit.",
    0x107 RINVBCASTFREQINT "Invalid broadcast frequency interval.",
    0x108 RINVBCASTALIAS_NAME "Invalid broadcast alias name.",
    0x109 RINVBCASTAREAFMT "Invalid broadcast area format.",
    0x10A RINVNUMBCAST_AREAS "Invalid number of broadcast areas.",
    0x10B RINVBCASTCNTTYPE "Invalid broadcast content type.",
    0x10C RINVBCASTMSGCLASS "Invalid broadcast message class.",
    0x10D RBCASTFAIL "Broadcast failed.",
    0x10E RBCASTQUERYFAIL "Broadcast query failed.",
    0x10F RBCASTCANCELFAIL "Broadcast cancel failed.",
    0x110 RINVBCAST_REP "Invalid number of broadcast repetitions.",
    0x111 RINVBCASTSRVGRP "Invalid broadcast service group.",
    0x112 RINVBCASTCHANIND "Invalid broadcast channel indicator.",
}

impl CommandStatus {
    /// Whether the request succeeded.
    #[must_use]
    pub fn is_ok(self) -> bool {
        self == Self::ROK
    }

    /// The error class of a refusal. A link's configuration may override it for single values.
    #[must_use]
    pub fn class(self) -> ErrorClass {
        match self {
            Self::RTHROTTLED => ErrorClass::Throttled,
            Self::RMSGQFUL => ErrorClass::QueueFull,
            Self::RSYSERR | Self::RX_T_APPN | Self::RUNKNOWNERR | Self::RSERTYPUNAVAIL => {
                ErrorClass::Temporary
            }
            _ => ErrorClass::Permanent,
        }
    }
}

impl fmt::Display for CommandStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:02X} {}", self.0, self.name())
    }
}

impl fmt::Debug for CommandStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
