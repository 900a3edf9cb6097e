use bytes::Bytes;
use sp_session::{DecodeError, PduReader, PduWriter};

/// QUERY: an SP requests the counts of a day (CMPP 3.0 §8.4.4.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CmppQuery {
    /// The day, `YYYYMMDD`.
    pub day: Bytes,
    /// 0 all, 1 one service.
    pub query_type: u8,
    /// The service.
    pub code: Bytes,
}

impl CmppQuery {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>) {
        self.encode_key(writer);
        writer.octets(&[0; 8]);
    }

    fn encode_key(&self, writer: &mut PduWriter<'_>) {
        writer.text(&self.day, 8, "Time").u8(self.query_type).text(&self.code, 10, "Query_Code");
    }

    pub(super) fn decode(reader: &mut PduReader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            day: reader.text(8, "Time")?,
            query_type: reader.u8("Query_Type")?,
            code: reader.text(10, "Query_Code")?,
        })
    }
}

/// `QUERY_RESP` (CMPP 3.0 §8.4.4.2).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CmppQueryAnswer {
    /// The query that is answered.
    pub query: CmppQuery,
    /// From SPs: messages, users, sent, waiting, failed; for SPs: delivered, waiting, failed.
    pub counts: [u32; 8],
}

impl CmppQueryAnswer {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>) {
        self.query.encode_key(writer);
        for count in self.counts {
            writer.u32(count);
        }
    }

    pub(super) fn decode(reader: &mut PduReader<'_>) -> Result<Self, DecodeError> {
        let mut answer = Self { query: CmppQuery::decode(reader)?, ..Self::default() };
        for count in &mut answer.counts {
            *count = reader.u32("MT_TLMsg")?;
        }
        Ok(answer)
    }
}
