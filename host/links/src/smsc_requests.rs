//! The requests of an SMSC: DLRs, MOs, alerts.

use crate::request_context::RequestContext;
use crate::request_token::{RequestKind, pack};
use crate::{PeerOptions, dlr, pdu_to_message, refusal_status};
use engine::{EngineAnswer, Event};
use smpp::delivery_receipt::is_receipt;
use smpp::{AlertNotification, CommandStatus, Request, Response};
use std::sync::Arc;

/// One bound link to a peer.
#[derive(Debug)]
pub(crate) struct SmscRequests {
    pub(crate) options: Arc<PeerOptions>,
}

impl SmscRequests {
    pub(crate) fn request(&self, context: &mut RequestContext<'_>, sequence: u32, request: Request) {
        let command = request.command();
        let peer = self.options.peer;
        let expires_at = context.link.wall + self.options.mo_validity;
        let outcome = match request {
            Request::DeliverSm(sm) if is_receipt(sm.esm_class) => {
                let reply = context.link.reply(pack(RequestKind::DeliverSm, 0, sequence));
                context.link.events.push(dlr::from_deliver_sm(&sm, &self.options, reply));
                Ok(())
            }
            Request::DataSm(data) if is_receipt(data.esm_class) => {
                let reply = context.link.reply(pack(RequestKind::DataSm, 0, sequence));
                context.link.events.push(dlr::from_data_sm(&data, &self.options, reply));
                Ok(())
            }
            Request::DeliverSm(sm) => pdu_to_message::mo_from_deliver_sm(sm, peer, expires_at)
                .map(|message| context.link.accept(message, pack(RequestKind::DeliverSm, 0, sequence))),
            Request::DataSm(data) => pdu_to_message::mo_from_data_sm(data, peer, expires_at)
                .map(|message| context.link.accept(message, pack(RequestKind::DataSm, 0, sequence))),
            _ => Err(CommandStatus::RINVCMDID),
        };
        if let Err(status) = outcome {
            context.respond(command, sequence, status, &Response::Empty);
        }
    }

    /// Sends the engine's answer to the SMSC. Success is sent only for durable changes.
    pub(crate) fn answer(
        context: &mut RequestContext<'_>,
        kind: RequestKind,
        sequence: u32,
        answer: &EngineAnswer,
    ) {
        let status = match answer {
            EngineAnswer::Refused(refusal) => refusal_status::deliver_status(*refusal),
            _ => CommandStatus::ROK,
        };
        context.respond(kind.command(), sequence, status, &Response::Empty);
    }

    /// Handles an alert_notification: waiting messages to the subscriber are retried.
    pub(crate) fn alert(&self, alert: AlertNotification) -> Event {
        tracing::debug!(peer = %self.options.name, subscriber = ?alert.source, "alert_notification");
        Event::Alert { msisdn: alert.source.value }
    }
}
