//! A relay that records traffic as a packet capture for Wireshark's decoder.
//!
//! A real capture would need privileges; the relay sees the same octets.

use anyhow::{Context, Result, bail};
use parking_lot::Mutex;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// The protocol of a relayed connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureProtocol {
    /// SMPP.
    Smpp,
    /// GSUP in IPA frames.
    Gsup,
    /// CMPP 3.0: the decoder knows no other version.
    Cmpp,
}

impl CaptureProtocol {
    /// The port that the decoder associates with the protocol.
    fn port(self) -> u16 {
        match self {
            Self::Smpp => 2775,
            Self::Gsup => 4222,
            Self::Cmpp => 7890,
        }
    }

    /// Display filter for errors.
    fn error_filter(self) -> &'static str {
        match self {
            Self::Smpp | Self::Cmpp => "_ws.malformed || _ws.expert.severity >= \"Error\"",
            // The decoder takes the TPDU of every MO-forwardSM for an SMS-SUBMIT, but in an error (37) it is an
            // SMS-SUBMIT-REPORT: there, only the layers below are checked.
            Self::Gsup => {
                "(_ws.malformed || _ws.expert.severity >= \"Error\") && !(gsup.msg_type == 37 && gsm_sms) \
                 || gsup.ie.len.invalid || gsup.sm_rp_da.invalid || gsup.sm_rp_oa.invalid"
            }
        }
    }

    /// The outermost decoder.
    fn decoder(self) -> &'static str {
        match self {
            Self::Smpp => "smpp",
            Self::Gsup => "gsm_ipa",
            Self::Cmpp => "cmpp",
        }
    }
}

/// Captured octets of one direction.
struct CapturedData {
    connection: u16,
    from_client: bool,
    octets: Vec<u8>,
}

/// A running relay.
pub struct Capture {
    protocol: CaptureProtocol,
    address: SocketAddr,
    captured: Arc<Mutex<Vec<CapturedData>>>,
}

impl Capture {
    /// Relays SMPP connections to `target`.
    pub fn start(target: SocketAddr) -> Result<Self> {
        Self::start_for(CaptureProtocol::Smpp, target)
    }

    /// Relays connections to `target`.
    pub fn start_for(protocol: CaptureProtocol, target: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let captured = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&captured);
        std::thread::Builder::new().name("capture".to_owned()).spawn(move || {
            for (connection, client) in (0..).zip(listener.incoming().map_while(Result::ok)) {
                // A target that refuses shows as a closed connection.
                let _ = relay(client, target, connection, &shared);
            }
        })?;
        Ok(Self { protocol, address, captured })
    }

    /// The listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Decodes everything captured so far with tshark. Fails if there is a malformed PDU, an expert error, or no SMPP.
    /// Returns the names of the PDUs.
    pub fn check(&self, folder: &Path) -> Result<Vec<String>> {
        let rows = self.decode(folder, "smpp", &["smpp.command_id"])?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    /// Decodes everything captured so far with tshark. Fails if there is a malformed PDU, an expert error, or no packet
    /// that matches the display filter `such`. Returns the values of these fields for each matching packet; a packet
    /// may contain several PDUs, and a field several values.
    pub fn decode(&self, folder: &Path, such: &str, fields: &[&str]) -> Result<Vec<Vec<Vec<String>>>> {
        let path = folder.join("capture.pcap");
        std::fs::write(&path, self.packets())?;
        let complaints = self.tshark(&path, &["-Y", self.protocol.error_filter(), "-V"])?;
        if !complaints.trim().is_empty() {
            bail!("tshark complains:\n{complaints}");
        }
        let mut arguments = vec!["-Y", such, "-T", "json"];
        arguments.extend(fields.iter().flat_map(|field| ["-e", field]));
        let json = self.tshark(&path, &arguments)?;
        let packets: Vec<Value> = serde_json::from_str(&json).context("tshark's JSON")?;
        if packets.is_empty() {
            bail!("tshark saw no {such:?} in {} octets", self.packets().len());
        }
        let values = |packet: &Value, field: &str| {
            let values = packet["_source"]["layers"][field].as_array();
            values.into_iter().flatten().filter_map(|value| Some(value.as_str()?.to_owned())).collect()
        };
        let row = |packet| fields.iter().map(|field| values(packet, field)).collect();
        Ok(packets.iter().map(row).collect())
    }

    fn tshark(&self, file: &Path, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new("tshark");
        let reading = format!("tcp.port=={},{}", self.protocol.port(), self.protocol.decoder());
        command.arg("-r").arg(file).arg("-d").arg(reading).args(arguments);
        let output = command.output().context("running tshark; if it is missing, run: cargo xtask setup")?;
        if !output.status.success() {
            bail!("tshark failed: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A pcap file of raw IPv4 packets.
    fn packets(&self) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 101] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        let mut next: std::collections::HashMap<(u16, bool), u32> = std::collections::HashMap::new();
        for (tick, data) in self.captured.lock().iter().enumerate() {
            // The decoder reassembles PDUs from several packets.
            for part in data.octets.chunks(32_000) {
                let sequence = next.entry((data.connection, data.from_client)).or_insert(1);
                let here = *sequence;
                *sequence += part.len() as u32;
                let there = *next.entry((data.connection, !data.from_client)).or_insert(1);
                let packet = self.packet(data, here, there, part);
                let length = packet.len() as u32;
                for word in [tick as u32, 0, length, length] {
                    file.extend_from_slice(&word.to_le_bytes());
                }
                file.extend_from_slice(&packet);
            }
        }
        file
    }

    /// An IPv4 packet (RFC 791 §3.1) with a TCP segment (RFC 9293 §3.1); checksums are zero, which the decoder
    /// accepts.
    fn packet(&self, data: &CapturedData, sequence: u32, acknowledged: u32, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0];
        packet.extend_from_slice(&((40 + payload.len()) as u16).to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0x40, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        let (client, server) = (20_000 + data.connection, self.protocol.port());
        let (from, to) = if data.from_client { (client, server) } else { (server, client) };
        packet.extend_from_slice(&from.to_be_bytes());
        packet.extend_from_slice(&to.to_be_bytes());
        packet.extend_from_slice(&sequence.to_be_bytes());
        packet.extend_from_slice(&acknowledged.to_be_bytes());
        // header of 5 words, PSH and ACK, window, checksum, urgent pointer
        packet.extend_from_slice(&[0x50, 0x18, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend_from_slice(payload);
        packet
    }
}

fn relay(
    client: TcpStream,
    target: SocketAddr,
    connection: u16,
    captured: &Arc<Mutex<Vec<CapturedData>>>,
) -> Result<()> {
    let server = TcpStream::connect(target)?;
    for (from, to, from_client) in [(client.try_clone()?, server.try_clone()?, true), (server, client, false)]
    {
        let captured = Arc::clone(captured);
        let body = move || copy(from, to, connection, from_client, &captured);
        std::thread::Builder::new().name("relay".to_owned()).spawn(body)?;
    }
    Ok(())
}

fn copy(
    mut from: TcpStream,
    mut to: TcpStream,
    connection: u16,
    from_client: bool,
    captured: &Mutex<Vec<CapturedData>>,
) {
    let mut buffer = vec![0; 65_536];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 {
            break;
        }
        let octets = buffer[..count].to_vec();
        // Recorded before it is forwarded, so that no answer is recorded before its request.
        captured.lock().push(CapturedData { connection, from_client, octets });
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // Ends the other direction too.
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}
