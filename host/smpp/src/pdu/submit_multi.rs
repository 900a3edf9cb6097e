//! submit_multi, a submission to several destinations, and its response.

use super::Sm;
use crate::wire::{BodyError, Reader, fits, put_address, put_c_string};
use crate::{CommandStatus, Tlvs};
use bytes::{BufMut, Bytes, BytesMut};
use model::Address;

/// The most destinations of a submit_multi (34 §5.2.24).
const MAX_DESTINATIONS: usize = 254;

/// One destination of submit_multi.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Destination {
    /// An address.
    Address(Address),
    /// A distribution list.
    List(Bytes),
}

/// submit_multi (34 §4.5.1).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SubmitMulti {
    /// The destinations, up to 254.
    pub destinations: Vec<Destination>,
    /// All other fields; its own destination is empty.
    pub sm: Sm,
}

impl SubmitMulti {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        let service_type =
            reader.c_string(6, CommandStatus::RINVSERTYP, "service_type has more than 5 octets")?;
        let source = reader.address(21, CommandStatus::RINVSRCADR, "source_addr has more than 20 octets")?;
        let count = reader.u8()?;
        if count == 0 || usize::from(count) > MAX_DESTINATIONS {
            return Err(BodyError::new(CommandStatus::RINVNUMDESTS, "number_of_dests is not 1 to 254"));
        }
        let mut destinations = Vec::new();
        for _ in 0..count {
            destinations.push(match reader.u8()? {
                1 => Destination::Address(reader.address(
                    21,
                    CommandStatus::RINVDSTADR,
                    "a destination has more than 20 octets",
                )?),
                2 => Destination::List(reader.c_string(
                    21,
                    CommandStatus::RINVDLNAME,
                    "dl_name has more than 20 octets",
                )?),
                _ => return Err(BodyError::new(CommandStatus::RINVDESTFLAG, "dest_flag is neither 1 nor 2")),
            });
        }
        let sm = Sm::decode_from_esm_class(reader, service_type, source, Address::default())?;
        Ok(Self { destinations, sm })
    }

    pub(crate) fn fits(&self) -> Result<(), BodyError> {
        if self.destinations.is_empty() || self.destinations.len() > MAX_DESTINATIONS {
            return Err(BodyError::new(CommandStatus::RINVNUMDESTS, "number_of_dests is not 1 to 254"));
        }
        for destination in &self.destinations {
            match destination {
                Destination::Address(address) => {
                    fits(
                        &address.value,
                        21,
                        CommandStatus::RINVDSTADR,
                        "a destination has more than 20 octets",
                    )?;
                }
                Destination::List(name) => {
                    fits(name, 21, CommandStatus::RINVDLNAME, "dl_name has more than 20 octets")?;
                }
            }
        }
        self.sm.fits_without_destination()
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.sm.service_type, 6);
        put_address(out, &self.sm.source, 21);
        let destinations = self.destinations.get(..MAX_DESTINATIONS).unwrap_or(&self.destinations);
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
        self.sm.encode_from_esm_class(out);
    }
}

/// A destination to which the message was not submitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsuccess {
    /// The address.
    pub address: Address,
    /// The reason.
    pub status: CommandStatus,
}

/// submit_multi_resp (34 §4.5.2).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SubmitMultiResp {
    /// The message id of all destinations.
    pub message_id: Bytes,
    /// The refused destinations.
    pub unsuccess: Vec<Unsuccess>,
    /// TLVs.
    pub tlvs: Tlvs,
}

impl SubmitMultiResp {
    /// Decodes as far as possible: a short response still has an id.
    pub(crate) fn decode(mut reader: Reader) -> Self {
        let message_id = reader.lenient_c_string();
        let mut unsuccess = Vec::new();
        for _ in 0..reader.u8().unwrap_or_default() {
            let address = reader.address(21, CommandStatus::RINVDSTADR, "an address has more than 20 octets");
            let (Ok(address), Ok(status)) = (address, reader.u32()) else {
                return Self { message_id, unsuccess, tlvs: Tlvs::default() };
            };
            unsuccess.push(Unsuccess { address, status: CommandStatus(status) });
        }
        Self { message_id, unsuccess, tlvs: Tlvs::from_raw(reader.rest()) }
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
