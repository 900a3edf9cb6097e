use super::{HostInterface, InstanceState, recorded_answers};
use crate::bindings::host::switchyard::hooks::dns::{Failure, Host, Naptr, Naptrs, Texts};
use crate::host_call_log::HostCallKind;
use capabilities::{DnsAnswer, DnsFailure, DnsRecord, DnsRecordType};

/// Maximum number of queries in one call.
pub(crate) const MAX_QUERIES_PER_CALL: u32 = 16;

impl InstanceState {
    fn query_dns(&mut self, name: &str, record_type: DnsRecordType) -> Result<DnsAnswer, Failure> {
        self.count_call(HostInterface::Dns);
        if !self.may_fetch || self.configuring {
            return Err(Failure::NotNow);
        }
        if self.dns_queries_left == 0 {
            return Err(Failure::NotAllowed(format!(
                "more than {MAX_QUERIES_PER_CALL} DNS queries in one call"
            )));
        }
        self.dns_queries_left -= 1;
        let kind: &[u8] = match record_type {
            DnsRecordType::Naptr => b"NAPTR",
            DnsRecordType::Txt => b"TXT",
        };
        if let Some(recorded) = self.call_log.recall(HostCallKind::Dns, &[kind, name.as_bytes()]) {
            return recorded_answers::read_dns(&recorded);
        }
        if self.call_log.is_replay() {
            return Err(Failure::NotNow);
        }
        let services = self.services.clone();
        let grant = self.context.grants.dns.clone().unwrap_or_default();
        let result = services.dns.query(&grant, name, record_type).map_err(|failure| match failure {
            DnsFailure::NotAllowed(why) => Failure::NotAllowed(why),
            DnsFailure::None { ttl } => Failure::None(ttl),
            DnsFailure::TimedOut => Failure::TimedOut,
            DnsFailure::Failed(why) => Failure::Failed(why),
        });
        let recorded = recorded_answers::write_dns(&result);
        self.call_log.append(HostCallKind::Dns, &[kind, name.as_bytes()], &recorded);
        result
    }
}

impl Host for InstanceState {
    fn query_naptr(&mut self, name: String) -> Result<Naptrs, Failure> {
        let DnsAnswer { records, ttl } = self.query_dns(&name, DnsRecordType::Naptr)?;
        let records = records.into_iter().filter_map(|record| match record {
            DnsRecord::Naptr(found) => Some(Naptr {
                order: found.order,
                preference: found.preference,
                flags: found.flags,
                services: found.services,
                regexp: found.regexp,
                replacement: found.replacement,
            }),
            DnsRecord::Text(_) => None,
        });
        Ok(Naptrs { records: records.collect(), ttl })
    }

    fn query_txt(&mut self, name: String) -> Result<Texts, Failure> {
        let DnsAnswer { records, ttl } = self.query_dns(&name, DnsRecordType::Txt)?;
        let records = records.into_iter().filter_map(|record| match record {
            DnsRecord::Text(text) => Some(text),
            DnsRecord::Naptr(_) => None,
        });
        Ok(Texts { records: records.collect(), ttl })
    }
}
