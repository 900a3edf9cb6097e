use std::fmt;

/// Why a phone or its MSC refuses on the relay layer (04.11, 8.2.5.4).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RpCause(pub u8);

/// Why the network refuses (24.008, 10.5.5.14; OsmoHLR and OsmoMSC use it for everything).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GmmCause(pub u8);

macro_rules! causes {
    ($type:ident { $($(#[$meaning:meta])* $name:ident = $code:literal, $words:literal;)* }) => {
        impl $type {
            $($(#[$meaning])* pub const $name: Self = Self($code);)*

            /// In words; `None` for a code that is not known here.
            #[must_use]
            pub fn words(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some($words),)*
                    _ => None,
                }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.words() {
                    Some(words) => write!(formatter, "{words} ({})", self.0),
                    None => write!(formatter, "cause {}", self.0),
                }
            }
        }
    };
}

causes!(RpCause {
    /// The called number, or the service centre's, is nobody's.
    UNASSIGNED_NUMBER = 1, "unassigned number";
    /// The operator bars it.
    OPERATOR_BARRING = 8, "operator determined barring";
    /// Calls of this subscriber are barred.
    CALL_BARRED = 10, "call barred";
    /// Refused, without more words.
    REJECTED = 21, "short message transfer rejected";
    /// The phone is full; a READY-FOR-SM will come. Only on the way to a phone.
    MEMORY_CAPACITY_EXCEEDED = 22, "memory capacity exceeded";
    /// The destination cannot be reached now.
    DESTINATION_OUT_OF_ORDER = 27, "destination out of order";
    /// The subscriber is not registered.
    UNIDENTIFIED_SUBSCRIBER = 28, "unidentified subscriber";
    /// The facility is refused.
    FACILITY_REJECTED = 29, "facility rejected";
    /// The subscriber is in no directory.
    UNKNOWN_SUBSCRIBER = 30, "unknown subscriber";
    /// The network is out of order, and will be for long.
    NETWORK_OUT_OF_ORDER = 38, "network out of order";
    /// A failure that will soon be over.
    TEMPORARY_FAILURE = 41, "temporary failure";
    /// Too much to do.
    CONGESTION = 42, "congestion";
    /// No resources, without more words.
    RESOURCES_UNAVAILABLE = 47, "resources unavailable";
    /// The subscriber does not have this facility.
    NOT_SUBSCRIBED = 50, "requested facility not subscribed";
    /// Nobody has this facility.
    NOT_IMPLEMENTED = 69, "requested facility not implemented";
    /// The message reference is of no message.
    INVALID_REFERENCE = 81, "invalid short message reference value";
    /// The message makes no sense.
    SEMANTICALLY_INCORRECT = 95, "semantically incorrect message";
    /// Something that must be in the message is broken.
    INVALID_MANDATORY = 96, "invalid mandatory information";
    /// The message's type is unknown.
    UNKNOWN_TYPE = 97, "message type not implemented";
    /// The message does not come at this time.
    WRONG_STATE = 98, "message not compatible with the protocol state";
    /// An information element is unknown.
    UNKNOWN_ELEMENT = 99, "information element not implemented";
    /// Against the protocol, without more words.
    PROTOCOL_ERROR = 111, "protocol error";
    /// Something behind another network.
    INTERWORKING = 127, "interworking";
});

causes!(GmmCause {
    /// The HLR does not know the subscriber, or an MSC does not have it.
    IMSI_UNKNOWN = 2, "IMSI unknown";
    /// The phone is not to be served.
    ILLEGAL_MS = 3, "illegal mobile station";
    /// The device is not to be served.
    ILLEGAL_ME = 6, "illegal mobile equipment";
    /// Nobody does this here: an MSC without "sms-over-gsup" says so.
    NOT_ALLOWED = 7, "services not allowed";
    /// The HLR knows of no MSC for the subscriber.
    IMPLICITLY_DETACHED = 10, "implicitly detached";
    /// The HLR does not serve this network.
    PLMN_NOT_ALLOWED = 11, "network not allowed";
    /// Nobody answers on the radio side.
    MSC_NOT_REACHABLE = 16, "MSC temporarily not reachable";
    /// Paging failed, or the phone did not answer in time.
    NETWORK_FAILURE = 17, "network failure";
    /// Too much to do.
    CONGESTION = 22, "congestion";
    /// The message makes no sense.
    SEMANTICALLY_INCORRECT = 95, "semantically incorrect message";
    /// Something that must be in the message is missing or broken.
    INVALID_MANDATORY = 96, "invalid mandatory information";
    /// The message's type is unknown.
    UNKNOWN_TYPE = 97, "message type not implemented";
    /// The message does not come at this time.
    WRONG_STATE = 98, "message not compatible with the protocol state";
    /// An information element is unknown.
    UNKNOWN_ELEMENT = 99, "information element not implemented";
    /// An information element does not go with the others.
    CONDITIONAL_ELEMENT = 100, "conditional information element error";
    /// Against the protocol, without more words.
    PROTOCOL_ERROR = 111, "protocol error";
});
