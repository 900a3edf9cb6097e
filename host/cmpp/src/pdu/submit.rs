use super::{RESULT_STRUCTURE, end, link_width, number_width, read_content};
use crate::CmppMsgId;
use bytes::Bytes;
use sp_session::{DecodeError, PduReader, PduWriter};

/// SUBMIT: an SP submits a message (CMPP 3.0 §8.4.3.1). Octets are as on the wire.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Submit {
    /// 0 from an SP.
    pub id: CmppMsgId,
    /// `Pk_total` and `Pk_number`: number of segments, and number of this segment, both from 1.
    pub part: (u8, u8),
    /// 0 no report, 1 a report; in 2.0 also 2: a billing record that no handset gets.
    pub registered_delivery: u8,
    /// The priority, 0 (low) to 9.
    pub level: u8,
    /// The business code.
    pub service: Bytes,
    /// 0 the destination pays, 1 the source, 2 the SP, 3 `payer`.
    pub payer_type: u8,
    /// The number that pays.
    pub payer: Bytes,
    /// 3.0: 0 a true number, 1 a pseudo code.
    pub payer_number_type: u8,
    /// TP-PID.
    pub tp_pid: u8,
    /// 1: the content begins with a user data header. Some peers write 0x40.
    pub tp_udhi: u8,
    /// The coding.
    pub format: u8,
    /// `Msg_src`: the SP's id.
    pub sp: Bytes,
    /// 01 free, 02 per message, 03 monthly; in 2.0 also 04 and 05.
    pub fee_type: Bytes,
    /// The price in fen.
    pub fee_code: Bytes,
    /// `YYMMDDhhmmsstnnp`, or empty.
    pub valid_until: Bytes,
    /// `YYMMDDhhmmsstnnp`, or empty.
    pub deliver_at: Bytes,
    /// `Src_Id`: the number that the handset shows.
    pub source: Bytes,
    /// The subscribers' numbers; fewer than 100, and 100 from some peers.
    pub destinations: Vec<Bytes>,
    /// 3.0: 0 true numbers, 1 pseudo codes.
    pub destination_type: u8,
    /// The content, including its user data header.
    pub content: Bytes,
    /// The LinkID of an on-demand service.
    pub link_id: Bytes,
}

/// Maximum number of users in a received Submit; the specification allows one fewer.
pub const MAX_USERS: usize = 100;

impl Submit {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>, wide: bool) {
        let number = number_width(wide);
        writer.u64(self.id.0).octets(&[self.part.0, self.part.1, self.registered_delivery, self.level]);
        writer.text(&self.service, 10, "Service_Id").u8(self.payer_type);
        writer.text(&self.payer, number, "Fee_terminal_Id");
        if wide {
            writer.u8(self.payer_number_type);
        }
        writer.octets(&[self.tp_pid, self.tp_udhi, self.format]);
        writer.text(&self.sp, 6, "Msg_src").text(&self.fee_type, 2, "FeeType").text(
            &self.fee_code,
            6,
            "FeeCode",
        );
        writer.text(&self.valid_until, 17, "ValId_Time").text(&self.deliver_at, 17, "At_Time");
        writer.text(&self.source, 21, "Src_Id");
        writer.count(self.destinations.len(), MAX_USERS, "DestUsr_tl");
        for destination in &self.destinations {
            writer.text(destination, number, "Dest_terminal_Id");
        }
        if wide {
            writer.u8(self.destination_type);
        }
        writer.count(self.content.len(), 255, "Msg_Content").octets(&self.content);
        writer.text(&self.link_id, link_width(wide), "LinkID");
    }

    pub(super) fn decode(reader: &mut PduReader<'_>, wide: bool) -> Result<Self, DecodeError> {
        let number = number_width(wide);
        let mut submit = Self {
            id: CmppMsgId(reader.u64("Msg_Id")?),
            part: (reader.u8("Pk_total")?, reader.u8("Pk_number")?),
            registered_delivery: reader.u8("Registered_Delivery")?,
            level: reader.u8("Msg_level")?,
            service: reader.text(10, "Service_Id")?,
            payer_type: reader.u8("Fee_UserType")?,
            payer: reader.text(number, "Fee_terminal_Id")?,
            payer_number_type: if wide { reader.u8("Fee_terminal_type")? } else { 0 },
            tp_pid: reader.u8("TP_pid")?,
            tp_udhi: reader.u8("TP_udhi")?,
            format: reader.u8("Msg_Fmt")?,
            sp: reader.text(6, "Msg_src")?,
            fee_type: reader.text(2, "FeeType")?,
            fee_code: reader.text(6, "FeeCode")?,
            valid_until: reader.text(17, "ValId_Time")?,
            deliver_at: reader.text(17, "At_Time")?,
            source: reader.text(21, "Src_Id")?,
            ..Self::default()
        };
        let count = usize::from(reader.u8("DestUsr_tl")?);
        if count == 0 || count > MAX_USERS || count * number > reader.remaining() {
            return Err(DecodeError::Invalid(RESULT_STRUCTURE));
        }
        for _ in 0..count {
            submit.destinations.push(reader.text(number, "Dest_terminal_Id")?);
        }
        submit.destination_type = if wide { reader.u8("Dest_terminal_type")? } else { 0 };
        submit.content = read_content(reader)?;
        submit.link_id = reader.last_text(link_width(wide));
        end(reader)?;
        Ok(submit)
    }
}
