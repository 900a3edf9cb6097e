//! Delivery receipts: a gateway's Report is read as a DLR, and a DLR for an SP is written as a Report.

use super::options::SgipQuirks;
use crate::content_coding::user_number;
use model::{DlrContent, DlrState, Message};
use sgip::{Report, SgipFields};

/// Makes the Report of a DLR for an SP; `None` if the message was not submitted by SGIP.
pub(super) fn report_from_dlr(message: &Message, dlr: &DlrContent, quirks: &SgipQuirks) -> Option<Report> {
    let submit = SgipFields::read(&message.protocol_fields).sequence?;
    let state = match dlr.state {
        DlrState::Delivered | DlrState::Accepted => 0,
        DlrState::Scheduled | DlrState::Enroute => 1,
        _ => 2,
    };
    let error_code = u8::try_from(dlr.error).ok().filter(|error| *error != 0);
    let error = match (state, dlr.state) {
        (0 | 1, _) => 0,
        (_, DlrState::Expired) => error_code.unwrap_or(25),
        (_, DlrState::Rejected) => error_code.unwrap_or(30),
        (_, DlrState::Undeliverable) => error_code.unwrap_or(28),
        _ => error_code.unwrap_or(32),
    };
    // The user number in the form that the SP used in its Submit.
    let user = user_number(&message.source.value, quirks.add_86);
    Some(Report { submit, report_type: 0, user, state, error, reserve: [0; 8] })
}

/// Reads the DLR of a gateway's Report.
pub(super) fn dlr_from_report(report: &Report) -> model::Dlr {
    let (state, intermediate) = match (report.state, report.error) {
        (0, _) => (DlrState::Delivered, false),
        (1, _) => (DlrState::Enroute, true),
        (_, 61 | 62) => (DlrState::Expired, false),
        (_, 30) => (DlrState::Rejected, false),
        _ => (DlrState::Undeliverable, false),
    };
    model::Dlr {
        id: sgip::peer_message_id(report.submit, &report.user),
        state,
        intermediate,
        error: u16::from(report.error),
        network_error: None,
        done_at: None,
        from: model::AddressBytes::from_slice(&report.user),
        to: model::AddressBytes::new(),
    }
}
