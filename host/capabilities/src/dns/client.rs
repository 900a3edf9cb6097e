//! The client: UDP, and TCP for responses that do not fit.

use super::dns_grant::{is_granted, normalised_name, parse_server};
use super::packet::{DnsQuestion, DnsResponse, parse_dns_response};
use super::{Dns, DnsAnswer, DnsFailure, DnsRecordType};
use api::DnsGrant;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// The largest UDP packet that is read. Servers send at most 512 octets in response to a query without EDNS (RFC 1035
/// §4.2.1).
const MAX_UDP: usize = 4096;
/// The largest answer over TCP.
const MAX_TCP: usize = 16 << 10;

/// Queries servers over UDP. Each query has a random id and its own socket, whose port the system chooses at random.
#[derive(Debug, Default)]
pub struct DnsClient(());

impl DnsClient {
    /// A client.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Dns for DnsClient {
    fn query(
        &self,
        grant: &DnsGrant,
        name: &str,
        record_type: DnsRecordType,
    ) -> Result<DnsAnswer, DnsFailure> {
        let shown = || name.chars().take(80).collect::<String>();
        let normalised = normalised_name(name)
            .ok_or_else(|| DnsFailure::NotAllowed(format!("{:?} is not a domain name", shown())))?;
        if !is_granted(grant, &normalised) {
            return Err(DnsFailure::NotAllowed(format!("{:?} is in no granted zone (grants.dns)", shown())));
        }
        let timeout = Duration::from_millis(grant.timeout_ms);
        let mut last = DnsFailure::NotAllowed("no server is granted (grants.dns)".to_owned());
        for server in grant.servers.iter().filter_map(|server| parse_server(server)) {
            let question = DnsQuestion { id: random_id()?, name: normalised.clone(), record_type };
            match ask(server, &question, Instant::now() + timeout) {
                Ok(answer @ (Ok(_) | Err(DnsFailure::None { .. }))) => return answer,
                Ok(Err(failure)) => last = failure,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    last = DnsFailure::TimedOut;
                }
                Err(error) => last = DnsFailure::Failed(format!("{server}: {error}")),
            }
        }
        Err(last)
    }
}

fn random_id() -> Result<u16, DnsFailure> {
    let mut octets = [0; 2];
    getrandom::fill(&mut octets)
        .map_err(|error| DnsFailure::Failed(format!("no random numbers: {error}")))?;
    Ok(u16::from_ne_bytes(octets))
}

/// The time until a deadline; an error if it has passed.
fn time_left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn ask(
    server: SocketAddr,
    question: &DnsQuestion,
    deadline: Instant,
) -> io::Result<Result<DnsAnswer, DnsFailure>> {
    let packet = question.octets().ok_or(ErrorKind::InvalidInput)?;
    let any = match server {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind((any, 0))?;
    // From here on the system discards packets of other senders.
    socket.connect(server)?;
    socket.send(&packet)?;
    let mut buffer = [0; MAX_UDP];
    loop {
        socket.set_read_timeout(Some(time_left(deadline)?))?;
        let length = socket.recv(&mut buffer)?;
        match parse_dns_response(question, buffer.get(..length).unwrap_or_default()) {
            DnsResponse::Answer(answer) => return Ok(answer),
            DnsResponse::Truncated => return ask_by_tcp(server, question, &packet, deadline),
            // A forged or foreign packet: the response may still come.
            DnsResponse::Foreign => {}
        }
    }
}

/// Queries over TCP: each packet follows its length in two octets (RFC 1035 §4.2.2).
fn ask_by_tcp(
    server: SocketAddr,
    question: &DnsQuestion,
    packet: &[u8],
    deadline: Instant,
) -> io::Result<Result<DnsAnswer, DnsFailure>> {
    let mut stream = TcpStream::connect_timeout(&server, time_left(deadline)?)?;
    stream.set_write_timeout(Some(time_left(deadline)?))?;
    let length = u16::try_from(packet.len()).map_err(|_| ErrorKind::InvalidInput)?;
    stream.write_all(&[&length.to_be_bytes(), packet].concat())?;
    let mut length = [0; 2];
    read_until(&mut stream, &mut length, deadline)?;
    let length = usize::from(u16::from_be_bytes(length));
    if length > MAX_TCP {
        return Ok(Err(DnsFailure::Failed(format!(
            "{server}: an answer of {length} octets; the limit is {MAX_TCP}"
        ))));
    }
    let mut answer = vec![0; length];
    read_until(&mut stream, &mut answer, deadline)?;
    Ok(match parse_dns_response(question, &answer) {
        DnsResponse::Answer(answer) => answer,
        DnsResponse::Truncated | DnsResponse::Foreign => {
            Err(DnsFailure::Failed(format!("{server}: the answer over TCP does not belong to the question")))
        }
    })
}

/// Fills a buffer before a deadline.
fn read_until(stream: &mut TcpStream, mut buffer: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !buffer.is_empty() {
        stream.set_read_timeout(Some(time_left(deadline)?))?;
        let read = stream.read(buffer)?;
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        buffer = buffer.get_mut(read..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DnsRecord;
    use simple_dns::rdata::{RData, TXT};
    use simple_dns::{CLASS, Packet, PacketFlag, ResourceRecord};
    use std::net::TcpListener;
    use std::thread;

    const NAME: &str = "1.e164.arpa";

    fn grant(servers: &[SocketAddr]) -> DnsGrant {
        DnsGrant {
            servers: servers.iter().map(ToString::to_string).collect(),
            zones: vec!["e164.arpa".to_owned()],
            timeout_ms: 20_000,
        }
    }

    /// The reply to a query, with one text.
    fn reply(query: &[u8], text: &str) -> Vec<u8> {
        let query = Packet::parse(query).unwrap();
        let mut packet = Packet::new_reply(query.id());
        let name = query.questions[0].qname.clone();
        packet.questions = query.questions;
        let text = TXT::new().with_string(text).unwrap();
        packet.answers.push(ResourceRecord::new(name, CLASS::IN, 60, RData::TXT(text)));
        packet.build_bytes_vec().unwrap()
    }

    fn answered(text: &str) -> Result<DnsAnswer, DnsFailure> {
        Ok(DnsAnswer { records: vec![DnsRecord::Text(text.to_owned())], ttl: 60 })
    }

    #[test]
    fn packets_that_do_not_match_are_ignored() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let serve = thread::spawn(move || {
            let mut buffer = [0; 512];
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            let mut forged = reply(&buffer[..length], "forged");
            forged[1] ^= 1;
            server.send_to(&forged, from).unwrap();
            server.send_to(b"noise", from).unwrap();
            server.send_to(&reply(&buffer[..length], "true"), from).unwrap();
        });
        let answer = DnsClient::new().query(&grant(&[address]), NAME, DnsRecordType::Txt);
        assert_eq!(answer, answered("true"));
        serve.join().unwrap();
    }

    #[test]
    fn a_truncated_answer_is_fetched_by_tcp_and_the_next_server_is_asked_after_a_failure() {
        // No socket listens there: the system refuses at once.
        let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let stream = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = stream.local_addr().unwrap();
        let server = UdpSocket::bind(address).unwrap();
        let serve = thread::spawn(move || {
            let mut buffer = [0; 512];
            let (length, from) = server.recv_from(&mut buffer).unwrap();
            let octets = reply(&buffer[..length], "cut");
            let mut truncated = Packet::parse(&octets).unwrap();
            truncated.set_flags(PacketFlag::TRUNCATION);
            server.send_to(&truncated.build_bytes_vec().unwrap(), from).unwrap();
            let (mut peer, _) = stream.accept().unwrap();
            let mut query = vec![0; length + 2];
            peer.read_exact(&mut query).unwrap();
            let answer = reply(&query[2..], "whole");
            let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
            // In two pieces.
            peer.write_all(&[&length[..], &answer[..5]].concat()).unwrap();
            peer.write_all(&answer[5..]).unwrap();
        });
        let answer = DnsClient::new().query(&grant(&[closed, address]), NAME, DnsRecordType::Txt);
        assert_eq!(answer, answered("whole"));
        serve.join().unwrap();
    }

    #[test]
    fn a_silent_server_costs_its_timeout_and_foreign_names_cost_nothing() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut grant = grant(&[silent.local_addr().unwrap()]);
        grant.timeout_ms = 50;
        let client = DnsClient::new();
        assert_eq!(client.query(&grant, NAME, DnsRecordType::Txt), Err(DnsFailure::TimedOut));
        for name in ["example.org", "..", "e164.arpa.example.org"] {
            let refused = client.query(&grant, name, DnsRecordType::Txt);
            assert!(matches!(refused, Err(DnsFailure::NotAllowed(_))), "{name}: {refused:?}");
        }
        let nothing = client.query(&DnsGrant::default(), NAME, DnsRecordType::Txt);
        assert!(matches!(nothing, Err(DnsFailure::NotAllowed(_))), "{nothing:?}");
    }
}
