use std::fmt;

/// SM-RP cause: why a handset or its MSC refuses on the relay layer (04.11, 8.2.5.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RpCause(pub u8);

/// GMM cause: why the network refuses (24.008, 10.5.5.14). OsmoHLR and OsmoMSC use it for all procedures.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GmmCause(pub u8);

macro_rules! causes {
    ($type:ident { $($(#[$meaning:meta])* $name:ident = $code:literal, $words:literal;)* }) => {
        impl $type {
            $($(#[$meaning])* pub const $name: Self = Self($code);)*

            /// A description; `None` for an unknown code.
            #[must_use]
            pub fn description(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some($words),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.description() {
                    Some(words) => write!(formatter, "{words} ({})", self.0),
                    None => write!(formatter, "cause {}", self.0),
                }
            }
        }
    };
}

causes!(RpCause {
    /// The called number, or the service centre's, is not assigned.
    UNASSIGNED_NUMBER = 1, "unassigned number";
    /// Barred by the operator.
    OPERATOR_BARRING = 8, "operator determined barring";
    /// Calls of this subscriber are barred.
    CALL_BARRED = 10, "call barred";
    /// Rejected without a further reason.
    REJECTED = 21, "short message transfer rejected";
    /// The memory of the handset is full; it will send READY-FOR-SM. Only for MTs.
    MEMORY_CAPACITY_EXCEEDED = 22, "memory capacity exceeded";
    /// The destination is currently unreachable.
    DESTINATION_OUT_OF_ORDER = 27, "destination out of order";
    /// The subscriber is not registered.
    UNIDENTIFIED_SUBSCRIBER = 28, "unidentified subscriber";
    /// The facility is rejected.
    FACILITY_REJECTED = 29, "facility rejected";
    /// The subscriber is not in the directory.
    UNKNOWN_SUBSCRIBER = 30, "unknown subscriber";
    /// The network is out of order for a longer time.
    NETWORK_OUT_OF_ORDER = 38, "network out of order";
    /// A short-term failure.
    TEMPORARY_FAILURE = 41, "temporary failure";
    /// Congestion.
    CONGESTION = 42, "congestion";
    /// No resources, without a further reason.
    RESOURCES_UNAVAILABLE = 47, "resources unavailable";
    /// The subscriber has not subscribed to the facility.
    NOT_SUBSCRIBED = 50, "requested facility not subscribed";
    /// The facility is not implemented.
    NOT_IMPLEMENTED = 69, "requested facility not implemented";
    /// The message reference is unknown.
    INVALID_REFERENCE = 81, "invalid short message reference value";
    /// The content of the message is inconsistent.
    SEMANTICALLY_INCORRECT = 95, "semantically incorrect message";
    /// A mandatory information element is invalid.
    INVALID_MANDATORY = 96, "invalid mandatory information";
    /// The message type is unknown.
    UNKNOWN_TYPE = 97, "message type not implemented";
    /// The message is not allowed in the current state.
    WRONG_STATE = 98, "message not compatible with the protocol state";
    /// An information element is unknown.
    UNKNOWN_ELEMENT = 99, "information element not implemented";
    /// Protocol error without a further reason.
    PROTOCOL_ERROR = 111, "protocol error";
    /// An error in interworking with another network.
    INTERWORKING = 127, "interworking";
});

causes!(GmmCause {
    /// Unknown to the HLR, or not in the VLR of the MSC.
    IMSI_UNKNOWN = 2, "IMSI unknown";
    /// The subscriber must not be served.
    ILLEGAL_MS = 3, "illegal mobile station";
    /// The device must not be served.
    ILLEGAL_ME = 6, "illegal mobile equipment";
    /// Not supported; sent by an MSC without "sms-over-gsup".
    NOT_ALLOWED = 7, "services not allowed";
    /// The HLR knows no MSC for the subscriber.
    IMPLICITLY_DETACHED = 10, "implicitly detached";
    /// The HLR does not serve this network.
    PLMN_NOT_ALLOWED = 11, "network not allowed";
    /// No answer from the radio side.
    MSC_NOT_REACHABLE = 16, "MSC temporarily not reachable";
    /// Paging failed, or the handset did not answer in time.
    NETWORK_FAILURE = 17, "network failure";
    /// Congestion.
    CONGESTION = 22, "congestion";
    /// The content of the message is inconsistent.
    SEMANTICALLY_INCORRECT = 95, "semantically incorrect message";
    /// A mandatory information element is missing or invalid.
    INVALID_MANDATORY = 96, "invalid mandatory information";
    /// The message type is unknown.
    UNKNOWN_TYPE = 97, "message type not implemented";
    /// The message is not allowed in the current state.
    WRONG_STATE = 98, "message not compatible with the protocol state";
    /// An information element is unknown.
    UNKNOWN_ELEMENT = 99, "information element not implemented";
    /// An information element is not allowed with the others.
    CONDITIONAL_ELEMENT = 100, "conditional information element error";
    /// Protocol error without a further reason.
    PROTOCOL_ERROR = 111, "protocol error";
});
