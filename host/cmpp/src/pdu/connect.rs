use bytes::Bytes;
use sp_session::{DecodeError, PduReader, PduWriter};

/// CONNECT: an SP logs in (CMPP 3.0 §8.4.1.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Connect {
    /// `Source_Addr`: the SP's id, at most six characters.
    pub source: Bytes,
    /// `AuthenticatorSource`: the proof of the password.
    pub authenticator: [u8; 16],
    /// The version: major in the high four bits, minor in the low ones.
    pub version: u8,
    /// The time that the proof contains, `MMDDHHMMSS` as a number.
    pub timestamp: u32,
}

impl Connect {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>) {
        writer
            .text(&self.source, 6, "Source_Addr")
            .octets(&self.authenticator)
            .u8(self.version)
            .u32(self.timestamp);
    }

    pub(super) fn decode(reader: &mut PduReader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            source: reader.text(6, "Source_Addr")?,
            authenticator: reader.array("AuthenticatorSource")?,
            version: reader.u8("Version")?,
            timestamp: reader.u32("Timestamp")?,
        })
    }
}

/// `CONNECT_RESP` (CMPP 3.0 §8.4.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConnectAnswer {
    /// 0: accepted.
    pub status: u32,
    /// `AuthenticatorISMG`: the proof of the gateway; zeros if refused.
    pub authenticator: [u8; 16],
    /// The highest version that the gateway speaks.
    pub version: u8,
}

/// Octets of the body in 3.0, whose status is wider.
const WIDE: usize = 21;

impl ConnectAnswer {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>, wide: bool) {
        super::write_result(writer, wide, self.status);
        writer.octets(&self.authenticator).u8(self.version);
    }

    /// The length of the body determines the width of the status, regardless of the offered version.
    pub(super) fn decode(reader: &mut PduReader<'_>) -> Result<Self, DecodeError> {
        let wide = reader.remaining() >= WIDE;
        Ok(Self {
            status: super::read_result(reader, wide, "Status")?,
            authenticator: reader.array("AuthenticatorISMG")?,
            version: reader.u8("Version")?,
        })
    }
}
