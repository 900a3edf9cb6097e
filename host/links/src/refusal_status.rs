#[cfg(test)]
mod reference;

use model::{Refusal, RejectReason};
use smpp::CommandStatus;

/// The status for a submission (or query, cancel, replace) that the engine refused.
pub(crate) fn submit_status(refusal: Refusal) -> CommandStatus {
    match refusal {
        // A shutdown is temporary: the ESME should retry, and clients interpret 0x14 as "later".
        Refusal::QueueFull | Refusal::ShuttingDown => CommandStatus::RMSGQFUL,
        Refusal::Throttled
        | Refusal::QuotaExceeded
        | Refusal::KeysFull { .. }
        | Refusal::Rejected(RejectReason::TryLater) => CommandStatus::RTHROTTLED,
        Refusal::Rejected(RejectReason::NoRoute | RejectReason::InvalidDestination) => {
            CommandStatus::RINVDSTADR
        }
        Refusal::Rejected(RejectReason::InvalidSource) => CommandStatus::RINVSRCADR,
        Refusal::Rejected(
            RejectReason::Prohibited
            | RejectReason::NotAuthorised
            | RejectReason::OptedOut
            | RejectReason::NoCredit
            | RejectReason::PriceTooHigh,
        )
        | Refusal::KeyReused => CommandStatus::RSUBMITFAIL,
        Refusal::Rejected(RejectReason::Fault) | Refusal::Internal => CommandStatus::RSYSERR,
        Refusal::BadSchedule => CommandStatus::RINVSCHED,
        Refusal::Expired => CommandStatus::RINVEXPIRY,
        Refusal::UnknownMessage => CommandStatus::RINVMSGID,
        Refusal::WrongState => CommandStatus::RSUBMITFAIL,
    }
}

/// The status for an MO message or DLR that the engine refused. After 0x64, the SMSC retries; after 0x65 and 0x66, it
/// gives up.
pub(crate) fn deliver_status(refusal: Refusal) -> CommandStatus {
    match refusal {
        Refusal::QueueFull
        | Refusal::Throttled
        | Refusal::QuotaExceeded
        | Refusal::KeysFull { .. }
        | Refusal::ShuttingDown
        | Refusal::Internal
        | Refusal::Rejected(RejectReason::TryLater | RejectReason::Fault) => CommandStatus::RX_T_APPN,
        Refusal::Rejected(
            RejectReason::Prohibited
            | RejectReason::NotAuthorised
            | RejectReason::OptedOut
            | RejectReason::NoCredit
            | RejectReason::PriceTooHigh,
        )
        | Refusal::KeyReused => CommandStatus::RX_R_APPN,
        _ => CommandStatus::RX_P_APPN,
    }
}

/// The refusal code of a submission that is refused before the engine sees it.
pub(crate) fn refusal_code(status: CommandStatus) -> &'static str {
    match status {
        CommandStatus::RTHROTTLED => Refusal::Throttled.name(),
        CommandStatus::RINVDSTADR => RejectReason::InvalidDestination.name(),
        CommandStatus::RINVSRCADR => RejectReason::InvalidSource.name(),
        CommandStatus::RINVSCHED => Refusal::BadSchedule.name(),
        CommandStatus::RINVEXPIRY => Refusal::Expired.name(),
        _ => "invalid",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_090_a_full_queue_is_0x14_to_esmes_and_0x64_to_smscs() {
        assert_eq!(submit_status(Refusal::QueueFull), CommandStatus(0x14));
        assert_eq!(deliver_status(Refusal::QueueFull), CommandStatus(0x64));
    }

    #[test]
    fn check_129_an_mo_without_route_is_refused() {
        assert_eq!(deliver_status(Refusal::Rejected(RejectReason::NoRoute)), CommandStatus(0x65));
        assert_eq!(deliver_status(Refusal::Rejected(RejectReason::Prohibited)), CommandStatus(0x66));
    }
}
