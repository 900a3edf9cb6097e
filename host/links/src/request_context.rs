use ports::link::{Link, PduKind};
use smpp::{CommandId, CommandStatus, Response, Session};

/// The state that the handling of one request may change.
pub(crate) struct RequestContext<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) link: &'a mut Link,
}

impl RequestContext<'_> {
    pub(crate) fn respond(
        &mut self,
        command: CommandId,
        sequence: u32,
        status: CommandStatus,
        response: &Response,
    ) {
        self.link.record.outbound.count_answer(status.0);
        self.session.respond(command, sequence, status, response);
    }
}

/// The counter of a request.
pub(crate) fn pdu_kind(command: CommandId) -> PduKind {
    match command.request() {
        CommandId::SUBMIT_SM => PduKind::SubmitSm,
        CommandId::DELIVER_SM => PduKind::DeliverSm,
        CommandId::DATA_SM => PduKind::DataSm,
        CommandId::SUBMIT_MULTI => PduKind::SubmitMulti,
        CommandId::QUERY_SM => PduKind::QuerySm,
        CommandId::CANCEL_SM => PduKind::CancelSm,
        CommandId::REPLACE_SM => PduKind::ReplaceSm,
        _ => PduKind::Other,
    }
}
