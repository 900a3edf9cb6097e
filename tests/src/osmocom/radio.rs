//! The simulated radio side: an MME with handsets.

use super::handset::{Handset, State};
use super::sgsap::{Packet, element, kind};
use anyhow::{Context, Result, ensure};
use parking_lot::{Condvar, Mutex};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};
use testkit::load::StopFlag;

/// The MME's name (TS 23.003 §19.4.2.4); SGsAP requires exactly 55 octets.
const LABELS: [&str; 8] = ["mmec01", "mmegi0001", "mme", "epc", "mnc001", "mcc001", "3gppnetwork", "org"];

/// 001-01, area 1.
const AREA: [u8; 5] = [0x00, 0xf1, 0x10, 0x00, 0x01];

/// A simulated radio side, connected to an MSC.
#[derive(Debug, Clone)]
pub struct Radio {
    link: Arc<Link>,
}

/// State shared by the handsets and the reader.
#[derive(Debug)]
pub(crate) struct Link {
    writer: Mutex<TcpStream>,
    pub(crate) handsets: Mutex<HashMap<String, State>>,
    /// Signalled when something happened to a handset.
    pub(crate) changed: Condvar,
}

impl Radio {
    /// Connects to the SGs port of an MSC.
    pub fn connect(msc: SocketAddr) -> Result<Self> {
        let (pause, deadline) = (StopFlag::default(), Instant::now() + crate::TIMEOUT);
        let socket = loop {
            match TcpStream::connect(msc) {
                Ok(socket) => break socket,
                Err(error) => {
                    ensure!(Instant::now() < deadline, "SGs at {msc}: {error}");
                    pause.pause(Duration::from_millis(20));
                }
            }
        };
        socket.set_nodelay(true)?;
        let reader = socket.try_clone()?;
        let link = Arc::new(Link {
            writer: Mutex::new(socket),
            handsets: Mutex::default(),
            changed: Condvar::default(),
        });
        let weak = Arc::downgrade(&link);
        std::thread::Builder::new().name("radio".to_owned()).spawn(move || {
            let mut reader = reader;
            while let Some(packet) = receive(&mut reader) {
                let Some(link) = weak.upgrade() else { break };
                // A lost link shows at the waiting handset.
                let _ = link.take(&packet);
            }
        })?;
        Ok(Self { link })
    }

    /// A handset with this SIM; switched off.
    pub fn handset(&self, imsi: &str) -> Handset {
        self.link.handsets.lock().entry(imsi.to_owned()).or_default();
        Handset::new(Arc::clone(&self.link), imsi)
    }
}

impl Link {
    pub(crate) fn send(&self, packet: &Packet) -> Result<()> {
        let octets = packet.encode();
        // The length stands for the bounds of an SCTP message; see sctp_over_tcp.c.
        let mut framed = (octets.len() as u32).to_be_bytes().to_vec();
        framed.extend_from_slice(&octets);
        self.writer.lock().write_all(&framed).context("the link to the MSC")
    }

    fn take(&self, packet: &Packet) -> Result<()> {
        if packet.kind == kind::RESET_INDICATION {
            return self.send(&Packet::new(kind::RESET_ACK).with(element::MME_NAME, &mme_name()));
        }
        let imsi = packet.imsi().context("a message without an IMSI")?;
        let mut handsets = self.handsets.lock();
        let Some(state) = handsets.get_mut(&imsi) else { return Ok(()) };
        let answers = state.take(&imsi, packet);
        drop(handsets);
        for answer in answers {
            self.send(&answer)?;
        }
        // After the answers: a waiting test may rely on them.
        self.changed.notify_all();
        Ok(())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Ends the reader; it may have ended already.
        let _ = self.writer.lock().shutdown(Shutdown::Both);
    }
}

pub(crate) fn mme_name() -> Vec<u8> {
    LABELS.iter().flat_map(|label| std::iter::once(label.len() as u8).chain(label.bytes())).collect()
}

/// SGsAP-LOCATION-UPDATE-REQUEST (TS 29.118 §8.11), as after switching on.
pub(crate) fn location_update(imsi: &str) -> Packet {
    Packet::about(kind::LOCATION_UPDATE_REQUEST, imsi)
        .with(element::MME_NAME, &mme_name())
        .with(element::LOCATION_UPDATE_TYPE, &[1])
        .with(element::LOCATION_AREA, &AREA)
}

/// SGsAP-IMSI-DETACH-INDICATION (§8.9), as when switching off.
pub(crate) fn detach(imsi: &str) -> Packet {
    Packet::about(kind::IMSI_DETACH_INDICATION, imsi)
        .with(element::MME_NAME, &mme_name())
        .with(element::DETACH_TYPE, &[1])
}

fn receive(socket: &mut TcpStream) -> Option<Packet> {
    let mut length = [0; 4];
    socket.read_exact(&mut length).ok()?;
    let mut octets =
        vec![0; usize::try_from(u32::from_be_bytes(length)).ok().filter(|length| *length < 4096)?];
    socket.read_exact(&mut octets).ok()?;
    Packet::decode(&octets)
}
