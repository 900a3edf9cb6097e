use super::{read_content, submit::NUMBER};
use crate::{SmgpMsgId, SmgpTlvs};
use bytes::Bytes;
use sp_session::{DecodeError, PduReader, PduWriter};

/// SmgpForward: a gateway forwards a message to another gateway (SMGP 3.0.3 §5.3). It is only recognised, not supported.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SmgpForward {
    /// The message's id.
    pub id: SmgpMsgId,
    /// The gateway that it is for, the one that sends it, and the message centre.
    pub nodes: [Bytes; 3],
    /// As in a Submit.
    pub kind: u8,
    /// 0: this is a report; 1: a report is requested; 2: none is requested.
    pub report: u8,
    /// As in a Submit.
    pub priority: u8,
    /// As in a Submit.
    pub service: Bytes,
    /// As in a Submit.
    pub fee_type: Bytes,
    /// As in a Submit.
    pub fee_code: Bytes,
    /// As in a Submit.
    pub fixed_fee: Bytes,
    /// The coding.
    pub format: u8,
    /// As in a Submit.
    pub valid_until: Bytes,
    /// As in a Submit.
    pub deliver_at: Bytes,
    /// As in a Submit.
    pub source: Bytes,
    /// The subscriber.
    pub destination: Bytes,
    /// As in a Submit.
    pub payer: Bytes,
    /// The content.
    pub content: Bytes,
    /// Reserved, preserved.
    pub reserve: Bytes,
    /// The optional fields.
    pub tlvs: SmgpTlvs,
}

impl SmgpForward {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>) {
        writer.octets(&self.id.0);
        for node in &self.nodes {
            writer.text(node, 6, "DestSMGWNo");
        }
        writer.octets(&[self.kind, self.report, self.priority]).text(&self.service, 10, "ServiceID");
        writer.text(&self.fee_type, 2, "FeeType").text(&self.fee_code, 6, "FeeCode");
        writer.text(&self.fixed_fee, 6, "FixedFee").u8(self.format);
        writer.text(&self.valid_until, 17, "ValidTime").text(&self.deliver_at, 17, "AtTime");
        writer.text(&self.source, NUMBER, "SrcTermID").text(&self.destination, NUMBER, "DestTermID");
        writer.text(&self.payer, NUMBER, "ChargeTermID");
        writer.count(self.content.len(), 255, "MsgContent").octets(&self.content);
        writer.text(&self.reserve, 8, "Reserve").octets(&self.tlvs.to_bytes());
    }

    pub(super) fn decode(reader: &mut PduReader<'_>) -> Result<Self, DecodeError> {
        let mut forward = Self {
            id: SmgpMsgId(reader.array("MsgID")?),
            nodes: [reader.text(6, "DestSMGWNo")?, reader.text(6, "SrcSMGWNo")?, reader.text(6, "SMCNo")?],
            kind: reader.u8("MsgType")?,
            report: reader.u8("ReportFlag")?,
            priority: reader.u8("Priority")?,
            service: reader.text(10, "ServiceID")?,
            fee_type: reader.text(2, "FeeType")?,
            fee_code: reader.text(6, "FeeCode")?,
            fixed_fee: reader.text(6, "FixedFee")?,
            format: reader.u8("MsgFormat")?,
            valid_until: reader.text(17, "ValidTime")?,
            deliver_at: reader.text(17, "AtTime")?,
            source: reader.text(NUMBER, "SrcTermID")?,
            destination: reader.text(NUMBER, "DestTermID")?,
            payer: reader.text(NUMBER, "ChargeTermID")?,
            ..Self::default()
        };
        forward.content = read_content(reader)?;
        forward.reserve = reader.last_text(8);
        forward.tlvs = SmgpTlvs::decode(reader)?;
        Ok(forward)
    }
}
