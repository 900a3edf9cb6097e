use crate::{GmmCause, Message, MessageType, RpCause};

/// What a refused delivery means for the message and its subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// It may work in a while: the usual waits, and not for ever.
    Temporary,
    /// The subscriber is not there now: wait for a location update.
    Absent,
    /// The phone is full: wait for its READY-FOR-SM.
    MemoryFull,
    /// The phone refuses this message and does not say for how long: the others go first, and it is tried a few times.
    ThisMessage,
    /// This message will never be taken; the subscriber's next one may be.
    PermanentMessage,
    /// The HLR does not know the subscriber: ask for the number's subscriber anew, once.
    UnknownSubscriber,
    /// The MSC does not do short messages over GSUP: "sms-over-gsup" is missing in its configuration. The message is held.
    Configuration,
    /// We wrote something that the far end cannot read. The message fails, and we have a fault.
    OurFault,
    /// MSC or HLR have no connection with each other. It says nothing about message and subscriber.
    Link,
}

/// Who said it. Cause 2 means "not in my VLR" from an MSC and "nobody" from an HLR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reporter {
    /// The MSC, on a connection of its own.
    Msc,
    /// The HLR, or an MSC behind it: who, the source name tells that an MSC writes and an HLR does not. (An MSC before 1.11.1
    /// writes none, but its answers do not come through an HLR at all.)
    Hlr,
}

impl Failure {
    /// What a refusal means; `None` for a message that is no refusal of a delivery.
    ///
    /// `failure_cause` is the TP-FCS in the report of the phone, where there is one.
    #[must_use]
    pub fn of(message: &Message, reporter: Reporter, failure_cause: Option<u8>) -> Option<Self> {
        match message.kind {
            MessageType::ROUTING_ERROR => Some(Self::Link),
            MessageType::MT_FORWARD_SM_ERROR => {
                let by_msc = reporter == Reporter::Msc || message.source_name().is_some();
                let reporter = if by_msc { Reporter::Msc } else { Reporter::Hlr };
                Some(classify(reporter, message.rp_cause(), message.cause(), failure_cause))
            }
            _ => None,
        }
    }
}

/// What the causes in a refused delivery mean.
///
/// A phone's word (`rp_cause`, and `failure_cause`, the TP-FCS of its report) goes before the network's (`cause`).
#[must_use]
pub fn classify(
    reporter: Reporter,
    rp_cause: Option<RpCause>,
    cause: Option<GmmCause>,
    failure_cause: Option<u8>,
) -> Failure {
    match (rp_cause, cause) {
        (Some(RpCause::MEMORY_CAPACITY_EXCEEDED), _) => Failure::MemoryFull,
        (Some(rp_cause), _) => by_phone(Some(rp_cause), failure_cause),
        (None, Some(cause)) => by_network(reporter, cause),
        (None, None) => by_phone(None, failure_cause),
    }
}

/// The phone's own word: TP-Failure-Cause (23.040, 9.2.3.22). OsmoMSC before 1.13 does not pass it on; then there is only the
/// RP cause. On the way to a phone that is 22 or one of the causes of errors in a message (04.11, table 8.4).
fn by_phone(rp_cause: Option<RpCause>, failure_cause: Option<u8>) -> Failure {
    match failure_cause {
        // (U)SIM storage full; memory capacity exceeded.
        Some(0xd0 | 0xd3) => Failure::MemoryFull,
        // Protocol identifier, coding scheme or TPDU not supported; no storage on the SIM.
        Some(0x80 | 0x81 | 0x8f | 0x90 | 0x91 | 0x9f | 0xb0 | 0xd1) => Failure::PermanentMessage,
        // Error in the phone.
        Some(0xd2) => Failure::Temporary,
        _ if rp_cause.is_some_and(|cause| matches!(cause.0, 81 | 95..=99 | 111 | 127)) => {
            Failure::ThisMessage
        }
        _ => Failure::Temporary,
    }
}

fn by_network(reporter: Reporter, cause: GmmCause) -> Failure {
    match (cause, reporter) {
        (GmmCause::IMSI_UNKNOWN, Reporter::Hlr) => Failure::UnknownSubscriber,
        (GmmCause::IMSI_UNKNOWN, Reporter::Msc) => Failure::Absent,
        (GmmCause::IMPLICITLY_DETACHED | GmmCause::NETWORK_FAILURE, _) => Failure::Absent,
        (GmmCause::NOT_ALLOWED, _) => Failure::Configuration,
        (GmmCause::INVALID_MANDATORY | GmmCause::UNKNOWN_TYPE, _) => Failure::OurFault,
        _ => Failure::Temporary,
    }
}
