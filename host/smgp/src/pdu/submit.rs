use super::{STATUS_STRUCTURE, WITHOUT_FIXED_FEE, read_content};
use crate::SmgpTlvs;
use bytes::Bytes;
use sp_session::{DecodeError, PduReader, PduWriter};

/// Maximum number of users in a Submit (SMGP 3.0.3 §6.2.22).
pub const MAX_USERS: usize = 100;

/// Octets of a number.
pub(super) const NUMBER: usize = 21;

/// Submit: an SP submits a message (SMGP 3.0.3 §5.2.2.2). Octets are as on the wire.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Submit {
    /// 6 MT, 7 point-to-point, 0 MO.
    pub kind: u8,
    /// 0 no report, 1 a report.
    pub need_report: u8,
    /// The priority, 0 (low) to 3.
    pub priority: u8,
    /// The business code.
    pub service: Bytes,
    /// 00 free, 01 per message, 02 monthly, 03 capped.
    pub fee_type: Bytes,
    /// The price of the message in fen.
    pub fee_code: Bytes,
    /// The price of a month in fen; not in version 1.3.
    pub fixed_fee: Bytes,
    /// The coding.
    pub format: u8,
    /// A time in SMPP's form, absolute or relative, or empty.
    pub valid_until: Bytes,
    /// A time in SMPP's form, absolute or relative, or empty.
    pub deliver_at: Bytes,
    /// The number that the handset shows.
    pub source: Bytes,
    /// The number that pays; empty: the destination.
    pub payer: Bytes,
    /// The subscribers' numbers, 1 to 100.
    pub destinations: Vec<Bytes>,
    /// The content, including its user data header.
    pub content: Bytes,
    /// Reserved, preserved.
    pub reserve: Bytes,
    /// The optional fields.
    pub tlvs: SmgpTlvs,
}

impl Submit {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>, version: u8) {
        writer.octets(&[self.kind, self.need_report, self.priority]);
        writer.text(&self.service, 10, "ServiceID");
        writer.text(&self.fee_type, 2, "FeeType").text(&self.fee_code, 6, "FeeCode");
        if version != WITHOUT_FIXED_FEE {
            writer.text(&self.fixed_fee, 6, "FixedFee");
        }
        writer.u8(self.format).text(&self.valid_until, 17, "ValidTime").text(&self.deliver_at, 17, "AtTime");
        writer.text(&self.source, NUMBER, "SrcTermID").text(&self.payer, NUMBER, "ChargeTermID");
        writer.count(self.destinations.len(), MAX_USERS, "DestTermIDCount");
        for destination in &self.destinations {
            writer.text(destination, NUMBER, "DestTermID");
        }
        writer.count(self.content.len(), 255, "MsgContent").octets(&self.content);
        writer.text(&self.reserve, 8, "Reserve").octets(&self.tlvs.to_bytes());
    }

    pub(super) fn decode(reader: &mut PduReader<'_>, version: u8) -> Result<Self, DecodeError> {
        let mut submit = Self {
            kind: reader.u8("MsgType")?,
            need_report: reader.u8("NeedReport")?,
            priority: reader.u8("Priority")?,
            service: reader.text(10, "ServiceID")?,
            fee_type: reader.text(2, "FeeType")?,
            fee_code: reader.text(6, "FeeCode")?,
            fixed_fee: if version == WITHOUT_FIXED_FEE {
                Bytes::new()
            } else {
                reader.text(6, "FixedFee")?
            },
            format: reader.u8("MsgFormat")?,
            valid_until: reader.text(17, "ValidTime")?,
            deliver_at: reader.text(17, "AtTime")?,
            source: reader.text(NUMBER, "SrcTermID")?,
            payer: reader.text(NUMBER, "ChargeTermID")?,
            ..Self::default()
        };
        let count = usize::from(reader.u8("DestTermIDCount")?);
        if count == 0 || count > MAX_USERS || count * NUMBER > reader.remaining() {
            return Err(DecodeError::Invalid(STATUS_STRUCTURE));
        }
        for _ in 0..count {
            submit.destinations.push(reader.text(NUMBER, "DestTermID")?);
        }
        submit.content = read_content(reader)?;
        submit.reserve = reader.last_text(8);
        submit.tlvs = SmgpTlvs::decode(reader)?;
        Ok(submit)
    }
}
