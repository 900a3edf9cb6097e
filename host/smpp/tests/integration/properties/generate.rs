//! Generates requests and responses of every kind, with arbitrary fields.

use bytes::Bytes;
use model::Address;
use proptest::collection::vec;
use proptest::prelude::*;
use smpp::{
    AlertNotification, Bind, BindMode, BroadcastSm, CancelBroadcastSm, CancelSm, CommandId, CommandStatus,
    DataSm, Destination, Outbind, QueryBroadcastSm, QuerySm, QuerySmResp, ReplaceSm, Request, Response, Sm,
    SubmitMulti, SubmitMultiResp, Tlvs, Unsuccess, tag,
};

/// The range of the generated values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flavour {
    /// All values that the wire can carry.
    Anything,
    /// Values that a strict decoder accepts: ASCII, known values, known TLVs with their lengths.
    Pure,
}

/// A C-octet string of less than `limit` octets.
fn string(flavour: Flavour, limit: usize) -> BoxedStrategy<Bytes> {
    let octet = match flavour {
        Flavour::Anything => (1..=255_u8).boxed(),
        Flavour::Pure => (0x20..0x7F_u8).boxed(),
    };
    vec(octet, 0..limit).prop_map(Bytes::from).boxed()
}

fn address(flavour: Flavour, limit: usize) -> impl Strategy<Value = Address> {
    let kind = match flavour {
        Flavour::Anything => any::<(u8, u8)>().boxed(),
        Flavour::Pure => (0..=6_u8, prop::sample::select(vec![0_u8, 1, 3, 4, 6, 8, 9, 10, 14, 18])).boxed(),
    };
    (kind, string(flavour, limit)).prop_map(|((ton, npi), value)| Address::new(ton, npi, &value))
}

fn time() -> impl Strategy<Value = Bytes> {
    let digits = vec(b'0'..=b'9', 15).prop_map(|mut digits| {
        digits.push(b'+');
        Bytes::from(digits)
    });
    prop_oneof![Just(Bytes::new()), digits]
}

/// At most two to four TLVs; `payload` among them only if the text is not elsewhere.
fn tlvs(flavour: Flavour, payload: bool) -> impl Strategy<Value = Tlvs> {
    let one = match flavour {
        Flavour::Anything => (any::<u16>(), vec(any::<u8>(), 0..40)).boxed(),
        Flavour::Pure => {
            let fixed =
                |tag: u16, length: usize| vec(any::<u8>(), length).prop_map(move |value| (tag, value));
            prop_oneof![
                fixed(tag::USER_MESSAGE_REFERENCE, 2),
                fixed(tag::SOURCE_PORT, 2),
                (0x1400..=0x3FFF_u16, vec(any::<u8>(), 0..40)),
            ]
            .boxed()
        }
    };
    let text = vec(any::<u8>(), 1..400).prop_map(Some);
    let text = if payload { prop_oneof![Just(None), text].boxed() } else { Just(None).boxed() };
    (vec(one, 0..4), text).prop_map(|(rows, text)| {
        let rows = rows.into_iter().filter(|(tag, _)| *tag != tag::MESSAGE_PAYLOAD);
        let tlvs = rows.fold(Tlvs::default(), |tlvs, (tag, value)| tlvs.with(tag, &value));
        text.map_or_else(|| tlvs.clone(), |text| tlvs.with(tag::MESSAGE_PAYLOAD, &text))
    })
}

/// As [`tlvs`], but with [`Flavour::Pure`] at most one TLV, with this tag and length.
fn at_most(flavour: Flavour, tag: u16, length: usize) -> BoxedStrategy<Tlvs> {
    match flavour {
        Flavour::Anything => tlvs(flavour, false).boxed(),
        Flavour::Pure => vec(vec(any::<u8>(), length), 0..=1)
            .prop_map(move |values| values.iter().fold(Tlvs::default(), |tlvs, value| tlvs.with(tag, value)))
            .boxed(),
    }
}

/// A text in one of its two places, and the TLVs.
fn text(flavour: Flavour) -> impl Strategy<Value = (Bytes, Tlvs)> {
    prop_oneof![
        (vec(any::<u8>(), 0..=254).prop_map(Bytes::from), tlvs(flavour, false)),
        (Just(Bytes::new()), tlvs(flavour, true)),
    ]
}

/// esm_class, protocol_id, priority_flag, registered_delivery, replace_if_present, data_coding, sm_default_msg_id.
fn flags(flavour: Flavour) -> BoxedStrategy<[u8; 7]> {
    match flavour {
        Flavour::Anything => any::<[u8; 7]>().boxed(),
        Flavour::Pure => (
            prop::sample::select(vec![0_u8, 1, 2, 3, 4, 0x20, 0x40, 0x80, 0xC0, 0x43]),
            any::<u8>(),
            0..=4_u8,
            prop::sample::select(vec![0_u8, 1, 2, 3, 0x04, 0x08, 0x10, 0x11]),
            0..=1_u8,
            prop::sample::select(vec![0_u8, 1, 2, 3, 4, 8, 0xF0]),
            any::<u8>(),
        )
            .prop_map(|(a, b, c, d, e, f, g)| [a, b, c, d, e, f, g])
            .boxed(),
    }
}

fn sm(flavour: Flavour) -> impl Strategy<Value = Sm> {
    let addresses = (address(flavour, 21), address(flavour, 21));
    (string(flavour, 6), addresses, flags(flavour), time(), time(), text(flavour)).prop_map(
        |(service_type, (source, destination), flags, schedule, validity, (short_message, tlvs))| Sm {
            service_type,
            source,
            destination,
            esm_class: flags[0],
            protocol_id: flags[1],
            priority_flag: flags[2],
            schedule_delivery_time: schedule,
            validity_period: validity,
            registered_delivery: flags[3],
            replace_if_present: flags[4],
            data_coding: flags[5],
            sm_default_msg_id: flags[6],
            short_message,
            tlvs,
        },
    )
}

fn bind(flavour: Flavour) -> impl Strategy<Value = Bind> {
    let mode = prop::sample::select(vec![BindMode::Receiver, BindMode::Transmitter, BindMode::Transceiver]);
    let password = string(flavour, if flavour == Flavour::Pure { 9 } else { 64 });
    let version = prop::sample::select(vec![0x33_u8, 0x34, 0x50]);
    let range = (address(flavour, 1), string(flavour, 41));
    (mode, string(flavour, 16), password, string(flavour, 13), version, range).prop_map(
        |(mode, system_id, password, system_type, interface_version, (kind, address_range))| Bind {
            mode,
            system_id,
            password,
            system_type,
            interface_version,
            addr_ton: kind.ton,
            addr_npi: kind.npi,
            address_range,
        },
    )
}

fn destination(flavour: Flavour) -> impl Strategy<Value = Destination> {
    prop_oneof![
        address(flavour, 21).prop_map(Destination::Address),
        string(flavour, 21).prop_map(Destination::List),
    ]
}

fn multi(flavour: Flavour) -> impl Strategy<Value = SubmitMulti> {
    (vec(destination(flavour), 1..20), sm(flavour)).prop_map(|(destinations, sm)| {
        let sm = Sm { destination: Address::default(), ..sm };
        SubmitMulti { destinations, sm }
    })
}

fn broadcast(flavour: Flavour) -> impl Strategy<Value = BroadcastSm> {
    (
        string(flavour, 6),
        address(flavour, 21),
        string(flavour, 65),
        flags(flavour),
        time(),
        time(),
        tlvs(flavour, true),
    )
        .prop_map(|(service_type, source, message_id, flags, schedule, validity, tlvs)| BroadcastSm {
            service_type,
            source,
            message_id,
            priority_flag: flags[2],
            schedule_delivery_time: schedule,
            validity_period: validity,
            replace_if_present: flags[4],
            data_coding: flags[5],
            sm_default_msg_id: flags[6],
            tlvs,
        })
}

fn replace(flavour: Flavour) -> impl Strategy<Value = ReplaceSm> {
    (string(flavour, 65), address(flavour, 21), time(), time(), flags(flavour), text(flavour)).prop_map(
        move |(message_id, source, schedule, validity, flags, (short_message, tlvs))| ReplaceSm {
            message_id,
            source,
            schedule_delivery_time: schedule,
            validity_period: validity,
            registered_delivery: flags[3],
            sm_default_msg_id: flags[6],
            short_message,
            tlvs: if flavour == Flavour::Pure {
                tlvs.without(|tag| tag != tag::MESSAGE_PAYLOAD)
            } else {
                tlvs
            },
        },
    )
}

/// A request of any kind.
pub(crate) fn request(flavour: Flavour) -> impl Strategy<Value = Request> {
    let id = move || string(flavour, 65);
    let near = move || address(flavour, 21);
    // 3.4 allows 65 octets in a data_sm; the oracle accepts only the 21 of a submit_sm.
    let far = move || address(flavour, if flavour == Flavour::Pure { 21 } else { 65 });
    let data = (string(flavour, 6), far(), far(), flags(flavour), tlvs(flavour, true)).prop_map(
        |(service_type, source, destination, flags, tlvs)| DataSm {
            service_type,
            source,
            destination,
            esm_class: flags[0],
            registered_delivery: flags[3],
            data_coding: flags[5],
            tlvs,
        },
    );
    let cancel = (string(flavour, 6), id(), near(), near()).prop_map(
        |(service_type, message_id, source, destination)| CancelSm {
            service_type,
            message_id,
            source,
            destination,
        },
    );
    let outbind = (string(flavour, 16), string(flavour, 9))
        .prop_map(|(system_id, password)| Outbind { system_id, password });
    let query_broadcast = (id(), near(), at_most(flavour, tag::USER_MESSAGE_REFERENCE, 2))
        .prop_map(|(message_id, source, tlvs)| QueryBroadcastSm { message_id, source, tlvs });
    let cancel_broadcast = (string(flavour, 6), id(), near(), tlvs(flavour, false)).prop_map(
        |(service_type, message_id, source, tlvs)| CancelBroadcastSm {
            service_type,
            message_id,
            source,
            tlvs,
        },
    );
    prop_oneof![
        4 => sm(flavour).prop_map(Request::SubmitSm),
        2 => sm(flavour).prop_map(Request::DeliverSm),
        1 => data.prop_map(Request::DataSm),
        1 => multi(flavour).prop_map(Request::SubmitMulti),
        1 => replace(flavour).prop_map(Request::ReplaceSm),
        1 => (id(), near()).prop_map(|(message_id, source)| Request::QuerySm(QuerySm { message_id, source })),
        1 => cancel.prop_map(Request::CancelSm),
        1 => bind(flavour).prop_map(Request::Bind),
        1 => outbind.prop_map(Request::Outbind),
        1 => (far(), far(), at_most(flavour, tag::MS_AVAILABILITY_STATUS, 1)).prop_map(|(source, esme, tlvs)| {
            Request::AlertNotification(AlertNotification { source, esme, tlvs })
        }),
        1 => broadcast(flavour).prop_map(Request::BroadcastSm),
        1 => query_broadcast.prop_map(Request::QueryBroadcastSm),
        1 => cancel_broadcast.prop_map(Request::CancelBroadcastSm),
        1 => Just(Request::Unbind),
        1 => Just(Request::EnquireLink),
    ]
}

/// A response of any kind, with its command and its status.
pub(crate) fn response(flavour: Flavour) -> impl Strategy<Value = (CommandId, CommandStatus, Response)> {
    let id = move || string(flavour, 65);
    let identified = [CommandId::SUBMIT_SM, CommandId::DATA_SM, CommandId::BROADCAST_SM];
    let binds = [CommandId::BIND_RECEIVER, CommandId::BIND_TRANSMITTER, CommandId::BIND_TRANSCEIVER];
    let bare = [CommandId::ENQUIRE_LINK, CommandId::UNBIND, CommandId::CANCEL_SM, CommandId::REPLACE_SM];
    let unsuccess = (address(flavour, 21), 1..0x15_u32)
        .prop_map(|(address, status)| Unsuccess { address, status: CommandStatus(status) });
    let ok = prop_oneof![
        (prop::sample::select(identified.to_vec()), id(), tlvs(flavour, false))
            .prop_map(|(command, id, tlvs)| (command, Response::MessageId { id, tlvs })),
        tlvs(flavour, false)
            .prop_map(|tlvs| { (CommandId::DELIVER_SM, Response::MessageId { id: Bytes::new(), tlvs }) }),
        (
            prop::sample::select(binds.to_vec()),
            string(flavour, 16),
            at_most(flavour, tag::SC_INTERFACE_VERSION, 1)
        )
            .prop_map(|(command, system_id, tlvs)| (command, Response::Bind { system_id, tlvs })),
        (id(), vec(unsuccess, 0..20), tlvs(flavour, false)).prop_map(|(message_id, unsuccess, tlvs)| {
            let multi = SubmitMultiResp { message_id, unsuccess, tlvs };
            (CommandId::SUBMIT_MULTI, Response::SubmitMulti(multi))
        }),
        (id(), time(), 0..=9_u8, any::<u8>()).prop_map(
            |(message_id, final_date, message_state, error_code)| {
                let query = QuerySmResp { message_id, final_date, message_state, error_code };
                (CommandId::QUERY_SM, Response::Query(query))
            }
        ),
        (id(), tlvs(flavour, false)).prop_map(|(id, tlvs)| {
            (CommandId::QUERY_BROADCAST_SM, Response::QueryBroadcast { id, tlvs })
        }),
        prop::sample::select(bare.to_vec()).prop_map(|command| (command, Response::Empty)),
    ]
    .prop_map(|(command, response)| (command.response(), CommandStatus::ROK, response));
    let refused = (
        prop::sample::select(vec![0x8000_0000_u32, 0x8000_0004, 0x8000_0005, 0x8000_0009, 0x8000_0103]),
        prop::sample::select(vec![1_u32, 0x0B, 0x14, 0x45, 0x58, 0x0401]),
    )
        .prop_map(|(command, status)| (CommandId(command), CommandStatus(status), Response::Empty));
    prop_oneof![5 => ok, 1 => refused]
}
