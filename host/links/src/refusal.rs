use model::{Refusal, RejectReason};
use smpp::Status;

/// The answer to a submission (or query, cancel, replace) that the engine refused.
pub(crate) fn of_submission(refusal: Refusal) -> Status {
    match refusal {
        // A shutdown passes: the ESME is to come back, and 0x14 is what clients take for "later".
        Refusal::QueueFull | Refusal::ShuttingDown => Status::RMSGQFUL,
        Refusal::Throttled | Refusal::KeysFull { .. } | Refusal::Rejected(RejectReason::TryLater) => {
            Status::RTHROTTLED
        }
        Refusal::Rejected(RejectReason::NoRoute | RejectReason::InvalidDestination) => Status::RINVDSTADR,
        Refusal::Rejected(RejectReason::InvalidSource) => Status::RINVSRCADR,
        Refusal::Rejected(
            RejectReason::Prohibited
            | RejectReason::NotAuthorised
            | RejectReason::OptedOut
            | RejectReason::NoCredit,
        )
        | Refusal::KeyReused => Status::RSUBMITFAIL,
        Refusal::Rejected(RejectReason::Fault) | Refusal::Internal => Status::RSYSERR,
        Refusal::BadSchedule => Status::RINVSCHED,
        Refusal::Expired => Status::RINVEXPIRY,
        Refusal::UnknownMessage => Status::RINVMSGID,
        Refusal::WrongState => Status::RSUBMITFAIL,
    }
}

/// The answer to an MO (or a receipt) of a peer's that the engine refused: the SMSC is to keep it where a later attempt
/// may succeed (0x64), and to give it up where none will (0x65, 0x66).
pub(crate) fn of_delivery(refusal: Refusal) -> Status {
    match refusal {
        Refusal::QueueFull
        | Refusal::Throttled
        | Refusal::KeysFull { .. }
        | Refusal::ShuttingDown
        | Refusal::Internal
        | Refusal::Rejected(RejectReason::TryLater | RejectReason::Fault) => Status::RX_T_APPN,
        Refusal::Rejected(
            RejectReason::Prohibited
            | RejectReason::NotAuthorised
            | RejectReason::OptedOut
            | RejectReason::NoCredit,
        )
        | Refusal::KeyReused => Status::RX_R_APPN,
        _ => Status::RX_P_APPN,
    }
}

/// The code of a submission that is refused here, before the engine sees it.
pub(crate) fn code_of(status: Status) -> &'static str {
    match status {
        Status::RTHROTTLED => Refusal::Throttled.name(),
        Status::RINVDSTADR => RejectReason::InvalidDestination.name(),
        Status::RINVSRCADR => RejectReason::InvalidSource.name(),
        Status::RINVSCHED => Refusal::BadSchedule.name(),
        Status::RINVEXPIRY => Refusal::Expired.name(),
        _ => "invalid",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_090_a_full_queue_is_0x14_to_esmes_and_0x64_to_smscs() {
        assert_eq!(of_submission(Refusal::QueueFull), Status(0x14));
        assert_eq!(of_delivery(Refusal::QueueFull), Status(0x64));
    }

    #[test]
    fn check_129_no_route_for_an_mo_is_never_a_yes() {
        assert_eq!(of_delivery(Refusal::Rejected(RejectReason::NoRoute)), Status(0x65));
        assert_eq!(of_delivery(Refusal::Rejected(RejectReason::Prohibited)), Status(0x66));
    }
}
