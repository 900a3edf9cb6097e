//! What an SMSC sends us: receipts, MOs, alerts.

use crate::PeerOptions;
use crate::refusal;
use crate::reply::{Asked, pack};
use crate::scope::Scope;
use crate::submission;
use engine::{Answer, Event};
use smpp::receipt::{self, ESM_INTERMEDIATE, ESM_RECEIPT, ESM_TYPE};
use smpp::{AlertNotification, Request, Response, Status, tag};
use std::sync::Arc;

/// One bound link to a peer.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) options: Arc<PeerOptions>,
}

/// Whether esm_class says receipt or intermediate notification. Text that only looks like a receipt is an MO.
fn is_receipt(esm_class: u8) -> bool {
    matches!(esm_class & ESM_TYPE, ESM_RECEIPT | ESM_INTERMEDIATE)
}

impl Upstream {
    pub(crate) fn request(&self, scope: &mut Scope<'_>, sequence: u32, request: Request) {
        let command = request.command();
        let peer = self.options.peer;
        let expires_at = scope.wall + self.options.mo_validity;
        let taken = match request {
            Request::DeliverSm(sm) if is_receipt(sm.esm_class) => {
                let text = sm.text();
                let (from, to) = (&sm.source.value, &sm.destination.value);
                let told = {
                    let form = self.options.message_id;
                    receipt::read(sm.esm_class, sm.data_coding, from, to, &text, &sm.tlvs, form)
                };
                self.receipt(scope, told, pack(Asked::DeliverSm, 0, sequence));
                Ok(())
            }
            Request::DataSm(data) if is_receipt(data.esm_class) => {
                let text = data.tlvs.get(tag::MESSAGE_PAYLOAD).unwrap_or_default();
                let (from, to) = (&data.source.value, &data.destination.value);
                let told = {
                    let form = self.options.message_id;
                    receipt::read(data.esm_class, data.data_coding, from, to, &text, &data.tlvs, form)
                };
                self.receipt(scope, told, pack(Asked::DataSm, 0, sequence));
                Ok(())
            }
            Request::DeliverSm(sm) => submission::delivered(sm, peer, expires_at)
                .map(|message| scope.accept(message, pack(Asked::DeliverSm, 0, sequence))),
            Request::DataSm(data) => submission::delivered_data(data, peer, expires_at)
                .map(|message| scope.accept(message, pack(Asked::DataSm, 0, sequence))),
            _ => Err(Status::RINVCMDID),
        };
        if let Err(status) = taken {
            scope.respond(command, sequence, status, &Response::Empty);
        }
    }

    fn receipt(&self, scope: &mut Scope<'_>, told: (model::Receipt, bool), token: u64) {
        let (receipt, differs) = told;
        if differs {
            tracing::info!(
                peer = %self.options.name,
                state = ?receipt.state,
                "a receipt's text and its message_state disagree; message_state counts"
            );
        }
        let reply = scope.reply(token);
        scope.events.push(Event::Receipt { peer: self.options.peer, receipt, reply });
    }

    /// Brings the engine's answer to the SMSC: a yes only for what is durable.
    pub(crate) fn answer(scope: &mut Scope<'_>, asked: Asked, sequence: u32, answer: &Answer) {
        let status = match answer {
            Answer::Refused(refusal) => refusal::of_delivery(*refusal),
            _ => Status::ROK,
        };
        scope.respond(asked.command(), sequence, status, &Response::Empty);
    }

    /// A subscriber can be reached again: what waits for that is tried.
    pub(crate) fn alert(&self, alert: AlertNotification) -> Event {
        tracing::debug!(peer = %self.options.name, subscriber = ?alert.source, "alert_notification");
        Event::Alert { msisdn: alert.source.value }
    }
}
