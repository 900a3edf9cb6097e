use crate::{GmmCause, GsupMessage, MessageType, RpCause};

/// The meaning of a refused delivery for the message and its subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Failure {
    /// A temporary failure: retry with back-off.
    Temporary,
    /// The subscriber is absent: wait for a location update.
    Absent,
    /// The memory of the handset is full: wait for READY-FOR-SM.
    MemoryFull,
    /// The handset refuses this message, for an unknown time: deliver others first, and retry a few times.
    ThisMessage,
    /// This message will never be accepted; the subscriber's next one may be.
    PermanentMessage,
    /// The HLR does not know the subscriber: resolve the number again, once.
    UnknownSubscriber,
    /// The MSC does not support short messages over GSUP: "sms-over-gsup" is missing in its configuration. The message
    /// is held.
    Configuration,
    /// The peer could not decode the request. The message fails; this is an error of the appliance.
    LocalError,
    /// MSC and HLR have no connection to each other. The failure does not concern message or subscriber.
    Link,
}

/// The node that reported a failure. Cause 2 means "not in the VLR" from an MSC, and "unknown subscriber" from an HLR.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reporter {
    /// The MSC, on its own connection.
    Msc,
    /// The HLR, or an MSC behind it. They are distinguished by the source name, which only an MSC writes. (MSCs before
    /// 1.11.1 write none, but their answers never pass through an HLR.)
    Hlr,
}

impl Failure {
    /// Classifies a message; `None` if it is not a refused delivery.
    ///
    /// `failure_cause` is the TP-FCS in the handset's report, if any.
    #[must_use]
    pub fn of(message: &GsupMessage, reporter: Reporter, failure_cause: Option<u8>) -> Option<Self> {
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

/// Classifies the causes of a refused delivery.
///
/// The handset's causes (`rp_cause`, and `failure_cause`, the TP-FCS of its report) take precedence over the network's
/// (`cause`).
#[must_use]
pub fn classify(
    reporter: Reporter,
    rp_cause: Option<RpCause>,
    cause: Option<GmmCause>,
    failure_cause: Option<u8>,
) -> Failure {
    match (rp_cause, cause) {
        (Some(RpCause::MEMORY_CAPACITY_EXCEEDED), _) => Failure::MemoryFull,
        (Some(rp_cause), _) => by_handset(Some(rp_cause), failure_cause),
        (None, Some(cause)) => by_network(reporter, cause),
        (None, None) => by_handset(None, failure_cause),
    }
}

/// Classifies the handset's causes: TP-Failure-Cause (23.040, 9.2.3.22) if present. OsmoMSC before 1.13 does not
/// forward it; then only the RP cause is known. For an MT this is 22 or one of the message error causes (04.11, table
/// 8.4).
fn by_handset(rp_cause: Option<RpCause>, failure_cause: Option<u8>) -> Failure {
    match failure_cause {
        // (U)SIM storage full; memory capacity exceeded.
        Some(0xd0 | 0xd3) => Failure::MemoryFull,
        // Protocol identifier, coding scheme or TPDU not supported; no storage on the SIM.
        Some(0x80 | 0x81 | 0x8f | 0x90 | 0x91 | 0x9f | 0xb0 | 0xd1) => Failure::PermanentMessage,
        // Error in the handset.
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
        (GmmCause::INVALID_MANDATORY | GmmCause::UNKNOWN_TYPE, _) => Failure::LocalError,
        _ => Failure::Temporary,
    }
}
