//! The less frequent bodies.

use crate::pdu::CommandId;
use crate::pdu::sm::MAX_SHORT_MESSAGE;
use crate::wire::{BodyError, Reader, put_address, put_c_string};
use crate::{Status, Tlvs};
use bytes::{BufMut, Bytes, BytesMut};
use model::Address;

/// What a bind is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BindMode {
    /// Receives only.
    Receiver,
    /// Sends only.
    Transmitter,
    /// Both.
    Transceiver,
}

impl BindMode {
    /// The command that asks for it.
    #[must_use]
    pub fn command(self) -> CommandId {
        match self {
            Self::Receiver => CommandId::BIND_RECEIVER,
            Self::Transmitter => CommandId::BIND_TRANSMITTER,
            Self::Transceiver => CommandId::BIND_TRANSCEIVER,
        }
    }

    /// Whether the ESME may submit on it.
    #[must_use]
    pub fn transmits(self) -> bool {
        self != Self::Receiver
    }

    /// Whether the ESME receives on it.
    #[must_use]
    pub fn receives(self) -> bool {
        self != Self::Transmitter
    }

    /// The word used in configuration and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Receiver => "receiver",
            Self::Transmitter => "transmitter",
            Self::Transceiver => "transceiver",
        }
    }
}

/// bind_receiver, bind_transmitter, bind_transceiver (34 §4.1).
#[derive(Clone, PartialEq, Eq)]
pub struct Bind {
    /// Which of the three.
    pub mode: BindMode,
    /// At most 15 octets.
    pub system_id: Bytes,
    /// 8 octets by the letter; more is common, so up to 63 are read.
    pub password: Bytes,
    /// At most 12 octets.
    pub system_type: Bytes,
    /// 0x34 is 3.4.
    pub interface_version: u8,
    /// Of the addresses served.
    pub addr_ton: u8,
    /// Of the addresses served.
    pub addr_npi: u8,
    /// A UNIX regular expression of addresses served; at most 40 octets. Never evaluated here.
    pub address_range: Bytes,
}

impl std::fmt::Debug for Bind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bind")
            .field("mode", &self.mode)
            .field("system_id", &self.system_id)
            .field("password", &"(hidden)")
            .field("interface_version", &self.interface_version)
            .finish_non_exhaustive()
    }
}

impl Bind {
    pub(crate) fn decode(mode: BindMode, body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            mode,
            system_id: reader.c_string(16, Status::RINVSYSID, "system_id has more than 15 octets")?,
            password: reader.c_string(64, Status::RINVPASWD, "password has more than 63 octets")?,
            system_type: reader.c_string(13, Status::RINVSYSTYP, "system_type has more than 12 octets")?,
            interface_version: reader.u8()?,
            addr_ton: reader.u8()?,
            addr_npi: reader.u8()?,
            address_range: reader.c_string(41, Status::RBINDFAIL, "address_range has more than 40 octets")?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.system_id, 16);
        put_c_string(out, &self.password, 64);
        put_c_string(out, &self.system_type, 13);
        out.put_slice(&[self.interface_version, self.addr_ton, self.addr_npi]);
        put_c_string(out, &self.address_range, 41);
    }
}

/// outbind (34 §4.1.7).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outbind {
    /// The SMSC's name.
    pub system_id: Bytes,
    /// Its password.
    pub password: Bytes,
}

impl Outbind {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            system_id: reader.c_string(16, Status::RINVSYSID, "system_id has more than 15 octets")?,
            password: reader.c_string(64, Status::RINVPASWD, "password has more than 63 octets")?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.system_id, 16);
        put_c_string(out, &self.password, 64);
    }
}

/// data_sm (34 §4.7.1).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DataSm {
    /// At most 5 octets.
    pub service_type: Bytes,
    /// At most 64 octets.
    pub source: Address,
    /// At most 64 octets.
    pub destination: Address,
    /// As in submit_sm.
    pub esm_class: u8,
    /// As in submit_sm.
    pub registered_delivery: u8,
    /// As in submit_sm.
    pub data_coding: u8,
    /// message_payload among them.
    pub tlvs: Tlvs,
}

impl DataSm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            service_type: reader.c_string(6, Status::RINVSERTYP, "service_type has more than 5 octets")?,
            source: reader.address(65, Status::RINVSRCADR, "source_addr has more than 64 octets")?,
            destination: reader.address(
                65,
                Status::RINVDSTADR,
                "destination_addr has more than 64 octets",
            )?,
            esm_class: reader.u8()?,
            registered_delivery: reader.u8()?,
            data_coding: reader.u8()?,
            tlvs: Tlvs::decode(reader.rest())?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.service_type, 6);
        put_address(out, &self.source, 65);
        put_address(out, &self.destination, 65);
        out.put_slice(&[self.esm_class, self.registered_delivery, self.data_coding]);
        out.put_slice(self.tlvs.raw());
    }
}

/// One destination of submit_multi.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    /// A number.
    Address(Address),
    /// A distribution list.
    List(Bytes),
}

/// submit_multi (34 §4.5.1).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SubmitMulti {
    /// Up to 254.
    pub destinations: Vec<Destination>,
    /// Everything else; its own destination is empty.
    pub sm: super::Sm,
}

impl SubmitMulti {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        let service_type = reader.c_string(6, Status::RINVSERTYP, "service_type has more than 5 octets")?;
        let source = reader.address(21, Status::RINVSRCADR, "source_addr has more than 20 octets")?;
        let count = reader.u8()?;
        if count == 0 || count == u8::MAX {
            return Err(BodyError::new(Status::RINVNUMDESTS, "number_of_dests is not 1 to 254"));
        }
        let mut destinations = Vec::new();
        for _ in 0..count {
            destinations.push(match reader.u8()? {
                1 => Destination::Address(reader.address(
                    21,
                    Status::RINVDSTADR,
                    "a destination has more than 20 octets",
                )?),
                2 => Destination::List(reader.c_string(
                    21,
                    Status::RINVDLNAME,
                    "dl_name has more than 20 octets",
                )?),
                _ => return Err(BodyError::new(Status::RINVDESTFLAG, "dest_flag is neither 1 nor 2")),
            });
        }
        // What follows is laid out as in submit_sm from esm_class on.
        let rest = reader.rest();
        let mut whole = BytesMut::with_capacity(rest.len() + 7);
        whole.put_slice(&[0; 7]);
        whole.put_slice(&rest);
        let mut sm = super::Sm::decode(whole.freeze())?;
        sm.service_type = service_type;
        sm.source = source;
        Ok(Self { destinations, sm })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.sm.service_type, 6);
        put_address(out, &self.sm.source, 21);
        let destinations = self.destinations.get(..254).unwrap_or(&self.destinations);
        out.put_u8(destinations.len() as u8);
        for destination in destinations {
            match destination {
                Destination::Address(address) => {
                    out.put_u8(1);
                    put_address(out, address, 21);
                }
                Destination::List(name) => {
                    out.put_u8(2);
                    put_c_string(out, name, 21);
                }
            }
        }
        let sm = &self.sm;
        out.put_slice(&[sm.esm_class, sm.protocol_id, sm.priority_flag]);
        put_c_string(out, &sm.schedule_delivery_time, 17);
        put_c_string(out, &sm.validity_period, 17);
        out.put_slice(&[sm.registered_delivery, sm.replace_if_present, sm.data_coding, sm.sm_default_msg_id]);
        let text = sm.short_message.get(..MAX_SHORT_MESSAGE).unwrap_or(&sm.short_message);
        out.put_u8(text.len() as u8);
        out.put_slice(text);
        out.put_slice(sm.tlvs.raw());
    }
}

/// A destination that submit_multi did not reach.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsuccess {
    /// Which.
    pub address: Address,
    /// Why.
    pub status: Status,
}

/// submit_multi_resp (34 §4.5.2).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SubmitMultiResp {
    /// One id for all.
    pub message_id: Bytes,
    /// Those that were refused.
    pub unsuccess: Vec<Unsuccess>,
    /// The optional part.
    pub tlvs: Tlvs,
}

impl SubmitMultiResp {
    pub(crate) fn decode(mut reader: Reader) -> Result<Self, BodyError> {
        let message_id = reader.c_string(65, Status::RINVMSGID, "message_id has more than 64 octets")?;
        let mut unsuccess = Vec::new();
        if reader.remaining() > 0 {
            for _ in 0..reader.u8()? {
                let address = reader.address(21, Status::RINVDSTADR, "an address has more than 20 octets")?;
                unsuccess.push(Unsuccess { address, status: Status(reader.u32()?) });
            }
        }
        Ok(Self { message_id, unsuccess, tlvs: Tlvs::from_raw(reader.rest()) })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.message_id, 65);
        let unsuccess = self.unsuccess.get(..255).unwrap_or(&self.unsuccess);
        out.put_u8(unsuccess.len() as u8);
        for entry in unsuccess {
            put_address(out, &entry.address, 21);
            out.put_u32(entry.status.0);
        }
        out.put_slice(self.tlvs.raw());
    }
}

/// query_sm (34 §4.8.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QuerySm {
    /// The id.
    pub message_id: Bytes,
    /// The source of the submission.
    pub source: Address,
}

impl QuerySm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            message_id: reader.c_string(65, Status::RINVMSGID, "message_id has more than 64 octets")?,
            source: reader.address(21, Status::RINVSRCADR, "source_addr has more than 20 octets")?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.message_id, 65);
        put_address(out, &self.source, 21);
    }
}

/// query_sm_resp (34 §4.8.2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct QuerySmResp {
    /// The id.
    pub message_id: Bytes,
    /// Empty while the message is not final.
    pub final_date: Bytes,
    /// message_state (34 §5.2.28).
    pub message_state: u8,
    /// The network's error code; 0 for none.
    pub error_code: u8,
}

impl QuerySmResp {
    pub(crate) fn decode(mut reader: Reader) -> Result<Self, BodyError> {
        Ok(Self {
            message_id: reader.c_string(65, Status::RINVMSGID, "message_id has more than 64 octets")?,
            final_date: reader.c_string(18, Status::RQUERYFAIL, "final_date has more than 17 octets")?,
            message_state: reader.u8()?,
            error_code: if reader.is_empty() { 0 } else { reader.u8()? },
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.message_id, 65);
        put_c_string(out, &self.final_date, 17);
        out.put_slice(&[self.message_state, self.error_code]);
    }
}

/// cancel_sm (34 §4.9.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CancelSm {
    /// Limits a cancel without id.
    pub service_type: Bytes,
    /// The id; empty: all from source to destination.
    pub message_id: Bytes,
    /// The source of the submission.
    pub source: Address,
    /// The destination of the submission.
    pub destination: Address,
}

impl CancelSm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            service_type: reader.c_string(6, Status::RINVSERTYP, "service_type has more than 5 octets")?,
            message_id: reader.c_string(65, Status::RINVMSGID, "message_id has more than 64 octets")?,
            source: reader.address(21, Status::RINVSRCADR, "source_addr has more than 20 octets")?,
            destination: reader.address(
                21,
                Status::RINVDSTADR,
                "destination_addr has more than 20 octets",
            )?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.service_type, 6);
        put_c_string(out, &self.message_id, 65);
        put_address(out, &self.source, 21);
        put_address(out, &self.destination, 21);
    }
}

/// replace_sm (34 §4.10.1).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ReplaceSm {
    /// The id.
    pub message_id: Bytes,
    /// The source of the submission.
    pub source: Address,
    /// Empty, or a time.
    pub schedule_delivery_time: Bytes,
    /// Empty, or a time.
    pub validity_period: Bytes,
    /// As in submit_sm.
    pub registered_delivery: u8,
    /// As in submit_sm.
    pub sm_default_msg_id: u8,
    /// The new text.
    pub short_message: Bytes,
    /// 5.0: message_payload.
    pub tlvs: Tlvs,
}

impl ReplaceSm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        let message_id = reader.c_string(65, Status::RINVMSGID, "message_id has more than 64 octets")?;
        let source = reader.address(21, Status::RINVSRCADR, "source_addr has more than 20 octets")?;
        let schedule_delivery_time =
            reader.c_string(17, Status::RINVSCHED, "schedule_delivery_time has more than 16 octets")?;
        let validity_period =
            reader.c_string(17, Status::RINVEXPIRY, "validity_period has more than 16 octets")?;
        let registered_delivery = reader.u8()?;
        let sm_default_msg_id = reader.u8()?;
        let length = usize::from(reader.u8()?);
        if length > MAX_SHORT_MESSAGE {
            return Err(BodyError::new(Status::RINVMSGLEN, "sm_length is above 254"));
        }
        let short_message = reader
            .take(length)
            .map_err(|_| BodyError::new(Status::RINVMSGLEN, "short_message ends before sm_length"))?;
        let tlvs = Tlvs::decode(reader.rest())?;
        Ok(Self {
            message_id,
            source,
            schedule_delivery_time,
            validity_period,
            registered_delivery,
            sm_default_msg_id,
            short_message,
            tlvs,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.message_id, 65);
        put_address(out, &self.source, 21);
        put_c_string(out, &self.schedule_delivery_time, 17);
        put_c_string(out, &self.validity_period, 17);
        out.put_slice(&[self.registered_delivery, self.sm_default_msg_id]);
        let text = self.short_message.get(..MAX_SHORT_MESSAGE).unwrap_or(&self.short_message);
        out.put_u8(text.len() as u8);
        out.put_slice(text);
        out.put_slice(self.tlvs.raw());
    }
}

/// alert_notification (34 §4.12.1).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AlertNotification {
    /// The handset that has become available.
    pub source: Address,
    /// Who is told.
    pub esme: Address,
    /// ms_availability_status.
    pub tlvs: Tlvs,
}

impl AlertNotification {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            source: reader.address(65, Status::RINVSRCADR, "source_addr has more than 64 octets")?,
            esme: reader.address(65, Status::RINVDSTADR, "esme_addr has more than 64 octets")?,
            tlvs: Tlvs::decode(reader.rest())?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_address(out, &self.source, 65);
        put_address(out, &self.esme, 65);
        out.put_slice(self.tlvs.raw());
    }
}

/// broadcast_sm (5.0).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct BroadcastSm {
    /// At most 5 octets.
    pub service_type: Bytes,
    /// At most 20 octets.
    pub source: Address,
    /// Of a message to be replaced.
    pub message_id: Bytes,
    /// 0 to 4.
    pub priority_flag: u8,
    /// Empty, or a time.
    pub schedule_delivery_time: Bytes,
    /// Empty, or a time.
    pub validity_period: Bytes,
    /// As in submit_sm.
    pub replace_if_present: u8,
    /// As in submit_sm.
    pub data_coding: u8,
    /// As in submit_sm.
    pub sm_default_msg_id: u8,
    /// Areas, content type, repetitions, frequency, text.
    pub tlvs: Tlvs,
}

impl BroadcastSm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            service_type: reader.c_string(6, Status::RINVSERTYP, "service_type has more than 5 octets")?,
            source: reader.address(21, Status::RINVSRCADR, "source_addr has more than 20 octets")?,
            message_id: reader.c_string(65, Status::RINVMSGID, "message_id has more than 64 octets")?,
            priority_flag: reader.u8()?,
            schedule_delivery_time: reader.c_string(
                17,
                Status::RINVSCHED,
                "schedule_delivery_time has more than 16 octets",
            )?,
            validity_period: reader.c_string(
                17,
                Status::RINVEXPIRY,
                "validity_period has more than 16 octets",
            )?,
            replace_if_present: reader.u8()?,
            data_coding: reader.u8()?,
            sm_default_msg_id: reader.u8()?,
            tlvs: Tlvs::decode(reader.rest())?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.service_type, 6);
        put_address(out, &self.source, 21);
        put_c_string(out, &self.message_id, 65);
        out.put_u8(self.priority_flag);
        put_c_string(out, &self.schedule_delivery_time, 17);
        put_c_string(out, &self.validity_period, 17);
        out.put_slice(&[self.replace_if_present, self.data_coding, self.sm_default_msg_id]);
        out.put_slice(self.tlvs.raw());
    }
}

/// query_broadcast_sm (5.0).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct QueryBroadcastSm {
    /// The id.
    pub message_id: Bytes,
    /// The source of the submission.
    pub source: Address,
    /// user_message_reference.
    pub tlvs: Tlvs,
}

impl QueryBroadcastSm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            message_id: reader.c_string(65, Status::RINVMSGID, "message_id has more than 64 octets")?,
            source: reader.address(21, Status::RINVSRCADR, "source_addr has more than 20 octets")?,
            tlvs: Tlvs::decode(reader.rest())?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.message_id, 65);
        put_address(out, &self.source, 21);
        out.put_slice(self.tlvs.raw());
    }
}

/// cancel_broadcast_sm (5.0).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CancelBroadcastSm {
    /// Limits a cancel without id.
    pub service_type: Bytes,
    /// The id.
    pub message_id: Bytes,
    /// The source of the submission.
    pub source: Address,
    /// broadcast_content_type, user_message_reference.
    pub tlvs: Tlvs,
}

impl CancelBroadcastSm {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            service_type: reader.c_string(6, Status::RINVSERTYP, "service_type has more than 5 octets")?,
            message_id: reader.c_string(65, Status::RINVMSGID, "message_id has more than 64 octets")?,
            source: reader.address(21, Status::RINVSRCADR, "source_addr has more than 20 octets")?,
            tlvs: Tlvs::decode(reader.rest())?,
        })
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.service_type, 6);
        put_c_string(out, &self.message_id, 65);
        put_address(out, &self.source, 21);
        out.put_slice(self.tlvs.raw());
    }
}
