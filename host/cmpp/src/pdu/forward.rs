use super::{RESULT_STRUCTURE, link_width, read_content};
use crate::CmppMsgId;
use bytes::Bytes;
use sp_session::{DecodeError, PduReader, PduWriter};

/// FWD: a gateway forwards a message to another gateway (CMPP 3.0 §8.5.4). It is only recognised, not supported.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CmppForward {
    /// The gateway that sends it.
    pub from: Bytes,
    /// The gateway that it is for.
    pub to: Bytes,
    /// The gateways that it has passed.
    pub nodes: u8,
    /// 0 MT, 1 MO, 2 report of an MT, 3 report of an MO.
    pub kind: u8,
    /// The message's id.
    pub id: CmppMsgId,
    /// `Pk_total` and `Pk_number`: number of segments, and number of this segment.
    pub part: (u8, u8),
    /// As in a Submit.
    pub registered_delivery: u8,
    /// As in a Submit.
    pub level: u8,
    /// As in a Submit.
    pub service: Bytes,
    /// As in a Submit.
    pub payer_type: u8,
    /// As in a Submit.
    pub payer: Bytes,
    /// 3.0: the pseudo code of the payer, and its type.
    pub payer_pseudo: (Bytes, u8),
    /// TP-PID, TP-UDHI, coding.
    pub text: [u8; 3],
    /// As in a Submit.
    pub sp: Bytes,
    /// As in a Submit.
    pub fee_type: Bytes,
    /// As in a Submit.
    pub fee_code: Bytes,
    /// As in a Submit.
    pub valid_until: Bytes,
    /// As in a Submit.
    pub deliver_at: Bytes,
    /// As in a Submit.
    pub source: Bytes,
    /// 3.0: the pseudo code of the source, and two types.
    pub source_pseudo: (Bytes, [u8; 2]),
    /// The numbers; one in practice.
    pub destinations: Vec<Bytes>,
    /// 3.0: the pseudo code of the destination, and its type.
    pub destination_pseudo: (Bytes, u8),
    /// The content.
    pub content: Bytes,
    /// The LinkID.
    pub link_id: Bytes,
}

/// Numbers have 21 octets in both versions; pseudo codes have 32.
const NUMBER: usize = 21;
const PSEUDO: usize = 32;

impl CmppForward {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>, wide: bool) {
        writer.text(&self.from, 6, "Source_Id").text(&self.to, 6, "Destination_Id");
        writer.octets(&[self.nodes, self.kind]).u64(self.id.0);
        writer.octets(&[self.part.0, self.part.1, self.registered_delivery, self.level]);
        writer.text(&self.service, 10, "Service_Id").u8(self.payer_type);
        writer.text(&self.payer, NUMBER, "Fee_terminal_Id");
        if wide {
            writer.text(&self.payer_pseudo.0, PSEUDO, "Fee_terminal_Pseudo").u8(self.payer_pseudo.1);
        }
        writer.octets(&self.text).text(&self.sp, 6, "Msg_src");
        writer.text(&self.fee_type, 2, "FeeType").text(&self.fee_code, 6, "FeeCode");
        writer.text(&self.valid_until, 17, "Valid_Time").text(&self.deliver_at, 17, "At_Time");
        writer.text(&self.source, NUMBER, "Src_Id");
        if wide {
            writer.text(&self.source_pseudo.0, PSEUDO, "Src_Pseudo").octets(&self.source_pseudo.1);
        }
        writer.count(self.destinations.len(), 100, "DestUsr_tl");
        for destination in &self.destinations {
            writer.text(destination, NUMBER, "Dest_Id");
        }
        if wide {
            writer.text(&self.destination_pseudo.0, PSEUDO, "Dest_Pseudo").u8(self.destination_pseudo.1);
        }
        writer.count(self.content.len(), 255, "Msg_Content").octets(&self.content);
        writer.text(&self.link_id, link_width(wide), "LinkID");
    }

    pub(super) fn decode(reader: &mut PduReader<'_>, wide: bool) -> Result<Self, DecodeError> {
        let mut forward = Self {
            from: reader.text(6, "Source_Id")?,
            to: reader.text(6, "Destination_Id")?,
            nodes: reader.u8("NodesCount")?,
            kind: reader.u8("Msg_Fwd_Type")?,
            id: CmppMsgId(reader.u64("Msg_Id")?),
            part: (reader.u8("Pk_total")?, reader.u8("Pk_number")?),
            registered_delivery: reader.u8("Registered_Delivery")?,
            level: reader.u8("Msg_level")?,
            service: reader.text(10, "Service_Id")?,
            payer_type: reader.u8("Fee_UserType")?,
            payer: reader.text(NUMBER, "Fee_terminal_Id")?,
            ..Self::default()
        };
        if wide {
            forward.payer_pseudo =
                (reader.text(PSEUDO, "Fee_terminal_Pseudo")?, reader.u8("Fee_terminal_UserType")?);
        }
        forward.text = reader.array("TP_pid")?;
        forward.sp = reader.text(6, "Msg_src")?;
        forward.fee_type = reader.text(2, "FeeType")?;
        forward.fee_code = reader.text(6, "FeeCode")?;
        forward.valid_until = reader.text(17, "Valid_Time")?;
        forward.deliver_at = reader.text(17, "At_Time")?;
        forward.source = reader.text(NUMBER, "Src_Id")?;
        if wide {
            forward.source_pseudo = (reader.text(PSEUDO, "Src_Pseudo")?, reader.array("Src_UserType")?);
        }
        let count = usize::from(reader.u8("DestUsr_tl")?);
        if count * NUMBER > reader.remaining() {
            return Err(DecodeError::Invalid(RESULT_STRUCTURE));
        }
        for _ in 0..count {
            forward.destinations.push(reader.text(NUMBER, "Dest_Id")?);
        }
        if wide {
            forward.destination_pseudo = (reader.text(PSEUDO, "Dest_Pseudo")?, reader.u8("Dest_UserType")?);
        }
        forward.content = read_content(reader)?;
        forward.link_id = reader.last_text(link_width(wide));
        Ok(forward)
    }
}
