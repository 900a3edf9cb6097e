use super::{STATUS_STRUCTURE, read_content, submit::NUMBER};
use crate::{ReportText, SmgpMsgId, SmgpTlvs};
use bytes::Bytes;
use sp_session::{DecodeError, PduReader, PduWriter};

/// Deliver: a gateway delivers a message or a status report (SMGP 3.0.3 §5.2.2.3). Octets are as on the wire.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Deliver {
    /// The id of this Deliver.
    pub id: SmgpMsgId,
    /// 0 a message, 1 a report.
    pub is_report: u8,
    /// The coding; without meaning in a report.
    pub format: u8,
    /// `YYYYMMDDhhmmss` in China.
    pub received: Bytes,
    /// The subscriber.
    pub source: Bytes,
    /// The SP's number with extension.
    pub destination: Bytes,
    /// The text, or that of a [`crate::ReportText`].
    pub content: Bytes,
    /// Reserved, preserved.
    pub reserve: Bytes,
    /// The optional fields.
    pub tlvs: SmgpTlvs,
}

impl Deliver {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>) {
        writer.octets(&self.id.0).u8(self.is_report).u8(self.format);
        writer.text(&self.received, 14, "RecvTime");
        writer.text(&self.source, NUMBER, "SrcTermID").text(&self.destination, NUMBER, "DestTermID");
        writer.count(self.content.len(), 255, "MsgContent").octets(&self.content);
        writer.text(&self.reserve, 8, "Reserve").octets(&self.tlvs.to_bytes());
    }

    pub(super) fn decode(reader: &mut PduReader<'_>) -> Result<Self, DecodeError> {
        let mut deliver = Self {
            id: SmgpMsgId(reader.array("MsgID")?),
            is_report: reader.u8("IsReport")?,
            format: reader.u8("MsgFormat")?,
            received: reader.text(14, "RecvTime")?,
            source: reader.text(NUMBER, "SrcTermID")?,
            destination: reader.text(NUMBER, "DestTermID")?,
            ..Self::default()
        };
        deliver.content = read_content(reader)?;
        deliver.reserve = reader.last_text(8);
        deliver.tlvs = SmgpTlvs::decode(reader)?;
        if deliver.is_report == 1 && ReportText::read(&deliver.content).is_none() {
            return Err(DecodeError::Invalid(STATUS_STRUCTURE));
        }
        Ok(deliver)
    }
}
