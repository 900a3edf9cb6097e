//! bind_* and outbind.

use crate::CommandStatus;
use crate::pdu::CommandId;
use crate::wire::{BodyError, Reader, fits, put_c_string};
use bytes::{BufMut, Bytes, BytesMut};

/// The mode of a bind.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BindMode {
    /// The ESME only receives.
    Receiver,
    /// The ESME only submits.
    Transmitter,
    /// The ESME submits and receives.
    Transceiver,
}

impl BindMode {
    /// The bind command of this mode.
    #[must_use]
    pub fn command(self) -> CommandId {
        match self {
            Self::Receiver => CommandId::BIND_RECEIVER,
            Self::Transmitter => CommandId::BIND_TRANSMITTER,
            Self::Transceiver => CommandId::BIND_TRANSCEIVER,
        }
    }

    /// The mode of a bind command; `None` for other commands.
    #[must_use]
    pub fn of(command: CommandId) -> Option<Self> {
        match command {
            CommandId::BIND_RECEIVER => Some(Self::Receiver),
            CommandId::BIND_TRANSMITTER => Some(Self::Transmitter),
            CommandId::BIND_TRANSCEIVER => Some(Self::Transceiver),
            _ => None,
        }
    }

    /// Whether the ESME may submit.
    #[must_use]
    pub fn transmits(self) -> bool {
        self != Self::Receiver
    }

    /// Whether the ESME receives.
    #[must_use]
    pub fn receives(self) -> bool {
        self != Self::Transmitter
    }

    /// The name in configuration and JSON.
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
    /// The bind mode.
    pub mode: BindMode,
    /// At most 15 octets.
    pub system_id: Bytes,
    /// 8 octets by the specification; longer ones are common, so up to 63 are read.
    pub password: Bytes,
    /// At most 12 octets.
    pub system_type: Bytes,
    /// 0x34 is 3.4.
    pub interface_version: u8,
    /// TON of the addresses served.
    pub addr_ton: u8,
    /// NPI of the addresses served.
    pub addr_npi: u8,
    /// A UNIX regular expression of addresses served; at most 40 octets. It is not evaluated.
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
            system_id: reader.c_string(16, CommandStatus::RINVSYSID, "system_id has more than 15 octets")?,
            password: reader.c_string(64, CommandStatus::RINVPASWD, "password has more than 63 octets")?,
            system_type: reader.c_string(
                13,
                CommandStatus::RINVSYSTYP,
                "system_type has more than 12 octets",
            )?,
            interface_version: reader.u8()?,
            addr_ton: reader.u8()?,
            addr_npi: reader.u8()?,
            address_range: reader.c_string(
                41,
                CommandStatus::RBINDFAIL,
                "address_range has more than 40 octets",
            )?,
        })
    }

    pub(crate) fn fits(&self) -> Result<(), BodyError> {
        fits(&self.system_id, 16, CommandStatus::RINVSYSID, "system_id has more than 15 octets")?;
        fits(&self.password, 64, CommandStatus::RINVPASWD, "password has more than 63 octets")?;
        fits(&self.system_type, 13, CommandStatus::RINVSYSTYP, "system_type has more than 12 octets")?;
        fits(&self.address_range, 41, CommandStatus::RBINDFAIL, "address_range has more than 40 octets")
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
#[derive(Clone, PartialEq, Eq)]
pub struct Outbind {
    /// The system_id of the SMSC.
    pub system_id: Bytes,
    /// The password of the SMSC.
    pub password: Bytes,
}

impl std::fmt::Debug for Outbind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Outbind").field("system_id", &self.system_id).field("password", &"(hidden)").finish()
    }
}

impl Outbind {
    pub(crate) fn decode(body: Bytes) -> Result<Self, BodyError> {
        let mut reader = Reader::new(body);
        Ok(Self {
            system_id: reader.c_string(16, CommandStatus::RINVSYSID, "system_id has more than 15 octets")?,
            password: reader.c_string(64, CommandStatus::RINVPASWD, "password has more than 63 octets")?,
        })
    }

    pub(crate) fn fits(&self) -> Result<(), BodyError> {
        fits(&self.system_id, 16, CommandStatus::RINVSYSID, "system_id has more than 15 octets")?;
        fits(&self.password, 64, CommandStatus::RINVPASWD, "password has more than 63 octets")
    }

    pub(crate) fn encode(&self, out: &mut BytesMut) {
        put_c_string(out, &self.system_id, 16);
        put_c_string(out, &self.password, 64);
    }
}
