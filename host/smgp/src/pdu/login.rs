use bytes::Bytes;
use sp_session::{DecodeError, PduReader, PduWriter};

/// Login (SMGP 3.0.3 §5.2.2.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Login {
    /// The SP's code, at most eight characters.
    pub client: Bytes,
    /// The proof of the secret.
    pub authenticator: [u8; 16],
    /// 0 sends, 1 receives, 2 does both.
    pub mode: u8,
    /// The time that the proof contains, `MMDDHHMMSS` as a number.
    pub timestamp: u32,
    /// The version: major in the high four bits, minor in the low ones.
    pub version: u8,
}

impl Login {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>) {
        writer.text(&self.client, 8, "ClientID").octets(&self.authenticator);
        writer.u8(self.mode).u32(self.timestamp).u8(self.version);
    }

    pub(super) fn decode(reader: &mut PduReader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            client: reader.text(8, "ClientID")?,
            authenticator: reader.array("AuthenticatorClient")?,
            mode: reader.u8("LoginMode")?,
            timestamp: reader.u32("TimeStamp")?,
            version: reader.u8("ClientVersion")?,
        })
    }
}

/// `Login_Resp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LoginAnswer {
    /// 0: accepted.
    pub status: u32,
    /// The proof of the gateway; zeros if refused.
    pub authenticator: [u8; 16],
    /// The highest version that the gateway speaks.
    pub version: u8,
}

impl LoginAnswer {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>) {
        writer.u32(self.status).octets(&self.authenticator).u8(self.version);
    }

    pub(super) fn decode(reader: &mut PduReader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            status: reader.u32("Status")?,
            authenticator: reader.array("AuthenticatorServer")?,
            version: reader.u8("ServerVersion")?,
        })
    }
}
