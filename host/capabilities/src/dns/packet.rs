//! DNS packets (RFC 1035).

use super::{DnsAnswer, DnsFailure, DnsRecord, DnsRecordType, NaptrRecord};
use simple_dns::rdata::RData;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, ResourceRecord, TYPE};

/// Maximum number of records that a plugin gets.
const MAX_RECORDS: usize = 32;
/// Maximum number of aliases that are followed within an answer.
const MAX_ALIASES: usize = 8;

/// A query to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsQuestion {
    /// The id, which the response repeats; random.
    pub id: u16,
    /// The name, in lower case and without a trailing dot.
    pub name: String,
    /// The type of the records.
    pub record_type: DnsRecordType,
}

impl DnsQuestion {
    fn qtype(&self) -> QTYPE {
        QTYPE::TYPE(match self.record_type {
            DnsRecordType::Naptr => TYPE::NAPTR,
            DnsRecordType::Txt => TYPE::TXT,
        })
    }

    /// The packet of the query; `None` if the name is not valid.
    pub(super) fn octets(&self) -> Option<Vec<u8>> {
        let mut packet = Packet::new_query(self.id);
        packet.set_flags(PacketFlag::RECURSION_DESIRED);
        let name = Name::new(&self.name).ok()?;
        packet.questions.push(Question::new(name, self.qtype(), QCLASS::CLASS(CLASS::IN), false));
        packet.build_bytes_vec().ok()
    }
}

/// A packet, read as the response to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsResponse {
    /// It is the response.
    Answer(Result<DnsAnswer, DnsFailure>),
    /// The response did not fit: repeat the query over TCP.
    Truncated,
    /// It does not belong to the query.
    Foreign,
}

/// Reads a packet as the response to a query. Never panics.
#[must_use]
pub fn parse_dns_response(question: &DnsQuestion, octets: &[u8]) -> DnsResponse {
    let Ok(packet) = Packet::parse(octets) else { return DnsResponse::Foreign };
    let Ok(name) = Name::new(&question.name) else { return DnsResponse::Foreign };
    let is_response = packet.id() == question.id && packet.has_flags(PacketFlag::RESPONSE);
    // Some servers leave the question out of a truncated response. Accepting it is safe: it only causes a query over TCP.
    if is_response && packet.has_flags(PacketFlag::TRUNCATION) && packet.questions.is_empty() {
        return DnsResponse::Truncated;
    }
    let belongs = is_response
        && matches!(&packet.questions[..], [asked] if asked.qname == name
            && asked.qtype == question.qtype()
            && asked.qclass == QCLASS::CLASS(CLASS::IN));
    if !belongs {
        return DnsResponse::Foreign;
    }
    if packet.has_flags(PacketFlag::TRUNCATION) {
        return DnsResponse::Truncated;
    }
    DnsResponse::Answer(match packet.rcode() {
        RCODE::NoError => read_answer(question.record_type, &packet, &name),
        RCODE::NameError => Err(DnsFailure::None { ttl: negative_ttl(&packet) }),
        other => Err(DnsFailure::Failed(format!("the server answers {other:?}"))),
    })
}

fn read_answer(
    record_type: DnsRecordType,
    packet: &Packet<'_>,
    name: &Name<'_>,
) -> Result<DnsAnswer, DnsFailure> {
    let mut owner = name;
    let mut ttl = u32::MAX;
    let of =
        |owner: &Name<'_>, record: &&ResourceRecord<'_>| record.class == CLASS::IN && record.name == *owner;
    for _ in 0..MAX_ALIASES {
        let alias = packet.answers.iter().filter(|record| of(owner, record)).find_map(|record| {
            let RData::CNAME(target) = &record.rdata else { return None };
            Some((record.ttl, &target.0))
        });
        let Some((alias_ttl, target)) = alias else { break };
        (ttl, owner) = (ttl.min(alias_ttl), target);
    }
    let mut records = Vec::new();
    for record in packet.answers.iter().filter(|record| of(owner, record)) {
        let read = match (&record.rdata, record_type) {
            (RData::NAPTR(found), DnsRecordType::Naptr) => read_naptr(found).map(DnsRecord::Naptr),
            (RData::TXT(found), DnsRecordType::Txt) => found.clone().try_into().ok().map(DnsRecord::Text),
            _ => None,
        };
        if let Some(read) = read.filter(|_| records.len() < MAX_RECORDS) {
            records.push(read);
            ttl = ttl.min(record.ttl);
        }
    }
    if records.is_empty() {
        return Err(DnsFailure::None { ttl: negative_ttl(packet) });
    }
    records.sort_by_key(|record| match record {
        DnsRecord::Naptr(record) => (record.order, record.preference),
        DnsRecord::Text(_) => (0, 0),
    });
    Ok(DnsAnswer { records, ttl })
}

fn read_naptr(found: &simple_dns::rdata::NAPTR<'_>) -> Option<NaptrRecord> {
    let text = |value: &simple_dns::CharacterString<'_>| String::try_from(value.clone()).ok();
    Some(NaptrRecord {
        order: found.order,
        preference: found.preference,
        flags: text(&found.flags)?,
        services: text(&found.services)?,
        regexp: text(&found.regexp)?,
        replacement: found.replacement.to_string(),
    })
}

/// How long a negative answer is valid (RFC 2308 §5), in seconds; 0 without an SOA record.
fn negative_ttl(packet: &Packet<'_>) -> u32 {
    let soa = packet.name_servers.iter().find_map(|record| match &record.rdata {
        RData::SOA(soa) => Some(record.ttl.min(soa.minimum)),
        _ => None,
    });
    soa.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use simple_dns::rdata::{CNAME, NAPTR, SOA, TXT};

    const NAME: &str = "4.3.2.1.e164.arpa";

    fn question(record_type: DnsRecordType) -> DnsQuestion {
        DnsQuestion { id: 7, name: NAME.to_owned(), record_type }
    }

    fn reply(question: &DnsQuestion) -> Packet<'_> {
        let mut packet = Packet::new_reply(question.id);
        let name = Name::new(&question.name).unwrap();
        packet.questions.push(Question::new(name, question.qtype(), QCLASS::CLASS(CLASS::IN), false));
        packet
    }

    fn record<'a>(name: &'a str, ttl: u32, rdata: RData<'a>) -> ResourceRecord<'a> {
        ResourceRecord::new(Name::new(name).unwrap(), CLASS::IN, ttl, rdata)
    }

    fn naptr(order: u16, regexp: &str) -> RData<'_> {
        RData::NAPTR(NAPTR {
            order,
            preference: 1,
            flags: "u".try_into().unwrap(),
            services: "E2U+pstn:tel".try_into().unwrap(),
            regexp: regexp.try_into().unwrap(),
            replacement: Name::new("").unwrap(),
        })
    }

    fn parsed(question: &DnsQuestion, packet: &Packet<'_>) -> DnsResponse {
        parse_dns_response(question, &packet.build_bytes_vec().unwrap())
    }

    #[test]
    fn records_come_in_order_with_the_shortest_ttl() {
        let question = question(DnsRecordType::Naptr);
        let mut packet = reply(&question);
        packet.answers.push(record(NAME, 300, naptr(20, "!^.*$!tel:+2!")));
        packet.answers.push(record(NAME, 60, naptr(10, "!^.*$!tel:+1!")));
        packet.answers.push(record("other.e164.arpa", 1, naptr(1, "!^.*$!tel:+3!")));
        let DnsResponse::Answer(Ok(answer)) = parsed(&question, &packet) else { panic!("no answer") };
        assert_eq!(answer.ttl, 60);
        let found: Vec<&str> = answer
            .records
            .iter()
            .map(|record| match record {
                DnsRecord::Naptr(record) => &*record.regexp,
                DnsRecord::Text(_) => panic!("a text"),
            })
            .collect();
        assert_eq!(found, ["!^.*$!tel:+1!", "!^.*$!tel:+2!"]);
    }

    #[test]
    fn an_alias_is_followed_within_the_answer() {
        let question = question(DnsRecordType::Txt);
        let mut packet = reply(&question);
        packet.answers.push(record(NAME, 9, RData::CNAME(CNAME(Name::new("there.example").unwrap()))));
        let text = TXT::new().with_string("mcc=262").unwrap().with_string(" mnc=01").unwrap();
        packet.answers.push(record("there.example", 60, RData::TXT(text)));
        let expected = DnsAnswer { records: vec![DnsRecord::Text("mcc=262 mnc=01".to_owned())], ttl: 9 };
        assert_eq!(parsed(&question, &packet), DnsResponse::Answer(Ok(expected)));
    }

    #[test]
    fn a_missing_name_holds_as_long_as_its_zone_says() {
        let question = question(DnsRecordType::Naptr);
        let mut packet = reply(&question);
        *packet.rcode_mut() = RCODE::NameError;
        let soa = SOA {
            mname: Name::new("ns.example").unwrap(),
            rname: Name::new("admin.example").unwrap(),
            serial: 1,
            refresh: 1,
            retry: 1,
            expire: 1,
            minimum: 30,
        };
        packet.name_servers.push(record("e164.arpa", 600, RData::SOA(soa)));
        assert_eq!(parsed(&question, &packet), DnsResponse::Answer(Err(DnsFailure::None { ttl: 30 })));
        *packet.rcode_mut() = RCODE::ServerFailure;
        assert!(matches!(parsed(&question, &packet), DnsResponse::Answer(Err(DnsFailure::Failed(_)))));
    }

    #[test]
    fn a_packet_that_does_not_match_the_question_is_foreign() {
        let asked = question(DnsRecordType::Naptr);
        for change in [
            |question: &mut DnsQuestion| question.id = 8,
            |question: &mut DnsQuestion| question.name = "5.3.2.1.e164.arpa".to_owned(),
            |question: &mut DnsQuestion| question.record_type = DnsRecordType::Txt,
        ] {
            let mut other = asked.clone();
            change(&mut other);
            assert_eq!(parsed(&asked, &reply(&other)), DnsResponse::Foreign);
        }
        let mut query = reply(&asked);
        query.remove_flags(PacketFlag::RESPONSE);
        assert_eq!(parsed(&asked, &query), DnsResponse::Foreign);
        let mut long = reply(&asked);
        long.set_flags(PacketFlag::TRUNCATION);
        assert_eq!(parsed(&asked, &long), DnsResponse::Truncated);
        long.questions.clear();
        assert_eq!(parsed(&asked, &long), DnsResponse::Truncated);
        long.set_id(8);
        assert_eq!(parsed(&asked, &long), DnsResponse::Foreign);
    }

    proptest! {
        #[test]
        fn no_packet_panics(octets in proptest::collection::vec(any::<u8>(), 0..600), start in any::<bool>()) {
            let question = question(DnsRecordType::Naptr);
            let mut packet = if start { reply(&question).build_bytes_vec().unwrap() } else { Vec::new() };
            if start {
                // More answers than questions, so that the random octets are read as records.
                packet[7] = 3;
            }
            packet.extend(octets);
            let _ = parse_dns_response(&question, &packet);
        }
    }
}
