use bytes::Bytes;
use sp_session::{DecodeError, PduReader, PduWriter};

/// SmgpQuery: an SP requests the counts of a day (SMGP 3.0.3 §5.2.2.6).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SmgpQuery {
    /// The day, `YYYYMMDD`.
    pub day: Bytes,
    /// 0 all, 1 one service.
    pub query_type: u8,
    /// The service.
    pub code: Bytes,
}

impl SmgpQuery {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>) {
        writer.text(&self.day, 8, "QueryTime").u8(self.query_type).text(&self.code, 10, "QueryCode");
    }

    pub(super) fn decode(reader: &mut PduReader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            day: reader.text(8, "QueryTime")?,
            query_type: reader.u8("QueryType")?,
            code: reader.text(10, "QueryCode")?,
        })
    }
}

/// `Query_Resp`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SmgpQueryAnswer {
    /// The query that is answered.
    pub query: SmgpQuery,
    /// From SPs: messages, users, sent, waiting, failed; for SPs: delivered, waiting, failed.
    pub counts: [u32; 8],
}

impl SmgpQueryAnswer {
    pub(super) fn encode(&self, writer: &mut PduWriter<'_>) {
        self.query.encode(writer);
        for count in self.counts {
            writer.u32(count);
        }
        writer.octets(&[0; 8]);
    }

    pub(super) fn decode(reader: &mut PduReader<'_>) -> Result<Self, DecodeError> {
        let mut answer = Self { query: SmgpQuery::decode(reader)?, ..Self::default() };
        for count in &mut answer.counts {
            *count = reader.u32("MT_TLMsg")?;
        }
        Ok(answer)
    }
}
