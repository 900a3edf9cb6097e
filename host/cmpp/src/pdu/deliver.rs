use super::{RESULT_STRUCTURE, end, link_width, number_width, read_content};
use crate::CmppMsgId;
use bytes::{Bytes, BytesMut};
use sp_session::{DecodeError, PduReader, PduWriter};

/// DELIVER: a gateway delivers a message or a report (CMPP 3.0 §8.4.5.1). Octets are as on the wire.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Deliver {
    /// The id of this Deliver.
    pub id: CmppMsgId,
    /// `Dest_Id`: the SP's number with extension.
    pub destination: Bytes,
    /// The business code.
    pub service: Bytes,
    /// TP-PID.
    pub tp_pid: u8,
    /// 1: the content begins with a user data header.
    pub tp_udhi: u8,
    /// The coding; without meaning in a report.
    pub format: u8,
    /// `Src_terminal_Id`: the subscriber.
    pub source: Bytes,
    /// 3.0: 0 a true number, 1 a pseudo code.
    pub source_type: u8,
    /// 0 a message, 1 a report.
    pub registered_delivery: u8,
    /// The text, or the octets of a [`ReportContent`].
    pub content: Bytes,
    /// The LinkID of an on-demand service.
    pub link_id: Bytes,
}

impl Deliver {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>, wide: bool) {
        writer.u64(self.id.0).text(&self.destination, 21, "Dest_Id").text(&self.service, 10, "Service_Id");
        writer.octets(&[self.tp_pid, self.tp_udhi, self.format]);
        writer.text(&self.source, number_width(wide), "Src_terminal_Id");
        if wide {
            writer.u8(self.source_type);
        }
        writer.u8(self.registered_delivery);
        writer.count(self.content.len(), 255, "Msg_Content").octets(&self.content);
        writer.text(&self.link_id, link_width(wide), "LinkID");
    }

    pub(super) fn decode(reader: &mut PduReader<'_>, wide: bool) -> Result<Self, DecodeError> {
        let mut deliver = Self {
            id: CmppMsgId(reader.u64("Msg_Id")?),
            destination: reader.text(21, "Dest_Id")?,
            service: reader.text(10, "Service_Id")?,
            tp_pid: reader.u8("TP_pid")?,
            tp_udhi: reader.u8("TP_udhi")?,
            format: reader.u8("Msg_Fmt")?,
            source: reader.text(number_width(wide), "Src_terminal_Id")?,
            source_type: if wide { reader.u8("Src_terminal_type")? } else { 0 },
            registered_delivery: reader.u8("Registered_Delivery")?,
            ..Self::default()
        };
        deliver.content = read_content(reader)?;
        deliver.link_id = reader.last_text(link_width(wide));
        end(reader)?;
        if deliver.registered_delivery == 1 && deliver.content.len() < ReportContent::FIXED {
            return Err(DecodeError::Invalid(RESULT_STRUCTURE));
        }
        Ok(deliver)
    }
}

/// The content of a Deliver that is a report (CMPP 3.0 §8.4.5.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReportContent {
    /// The id in the Submit's answer.
    pub id: CmppMsgId,
    /// `Stat`: seven characters.
    pub word: Bytes,
    /// `YYMMDDhhmm` in China.
    pub submitted: Bytes,
    /// `YYMMDDhhmm` in China.
    pub done: Bytes,
    /// The destination number of the Submit; empty if the octets do not contain it.
    pub destination: Bytes,
    /// The message centre's own number of the report.
    pub sequence: u32,
}

impl ReportContent {
    /// Octets before the number, which every report has.
    const FIXED: usize = 35;

    /// Reads a report. Its length determines the width of its number; the version does not, since both widths occur
    /// with both versions. In a report of another length, only the first fields are read. `None` if it is too short for
    /// them.
    #[must_use]
    pub fn read(content: &[u8]) -> Option<Self> {
        let mut reader = PduReader::new(content);
        let mut report = Self {
            id: CmppMsgId(reader.u64("Msg_Id").ok()?),
            word: reader.text(7, "Stat").ok()?,
            submitted: reader.text(10, "Submit_time").ok()?,
            done: reader.text(10, "Done_time").ok()?,
            ..Self::default()
        };
        let width = match content.len() {
            60 => 21,
            71 => 32,
            _ => return Some(report),
        };
        report.destination = reader.text(width, "Dest_terminal_Id").ok()?;
        report.sequence = reader.u32("SMSC_sequence").ok()?;
        Some(report)
    }

    /// Writes a report: 71 octets in 3.0, 60 in 2.0. A text that does not fit its field is cut, so that the report can
    /// be sent.
    #[must_use]
    pub fn write(&self, wide: bool) -> Bytes {
        let mut out = BytesMut::new();
        let mut text = |text: &[u8], width: usize| {
            let text = text.get(..width).unwrap_or(text);
            out.extend_from_slice(text);
            out.resize(out.len() + width - text.len(), 0);
        };
        text(&self.id.octets(), 8);
        text(&self.word, 7);
        text(&self.submitted, 10);
        text(&self.done, 10);
        text(&self.destination, number_width(wide));
        text(&self.sequence.to_be_bytes(), 4);
        out.freeze()
    }
}
