//! Delivery receipts that an SMSC sends in deliver_sm or data_sm.

use crate::PeerOptions;
use engine::{Event, ReplyTo};
use smpp::delivery_receipt;
use smpp::{DataSm, Sm, tag};

/// Reads the DLR of a deliver_sm.
pub(crate) fn from_deliver_sm(sm: &Sm, peer: &PeerOptions, reply: ReplyTo) -> Event {
    let (source, destination) = (&sm.source.value, &sm.destination.value);
    let form = peer.message_id;
    let read =
        delivery_receipt::read(sm.esm_class, sm.data_coding, source, destination, &sm.text(), &sm.tlvs, form);
    event(peer, read, reply)
}

/// Reads the DLR of a data_sm.
pub(crate) fn from_data_sm(data: &DataSm, peer: &PeerOptions, reply: ReplyTo) -> Event {
    let text = data.tlvs.get(tag::MESSAGE_PAYLOAD).unwrap_or_default();
    let (source, destination) = (&data.source.value, &data.destination.value);
    let form = peer.message_id;
    let read = delivery_receipt::read(
        data.esm_class,
        data.data_coding,
        source,
        destination,
        &text,
        &data.tlvs,
        form,
    );
    event(peer, read, reply)
}

/// `differs`: text and `message_state` contain different states; `message_state` takes precedence.
fn event(peer: &PeerOptions, (dlr, differs): (model::Dlr, bool), reply: ReplyTo) -> Event {
    if differs {
        tracing::info!(
            peer = %peer.name,
            state = ?dlr.state,
            "DLR text and message_state differ; message_state is used"
        );
    }
    Event::Dlr { peer: peer.peer, dlr, reply }
}
