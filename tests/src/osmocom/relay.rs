//! A GSUP relay between an MSC and its HLR, at the place of the appliance's proxy. It only forwards; the test decides
//! which frames it drops and injects. It verifies the test instruments.

use anyhow::{Context, Result, ensure};
use parking_lot::{Condvar, Mutex};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

/// IPA stream extension of GSUP, after the octet for Osmocom.
const GSUP: [u8; 2] = [0xee, 0x05];
const IMSI: u8 = 0x01;

/// A GSUP message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The message type, for example 0x24 for MO-forwardSM.
    pub kind: u8,
    /// Its information elements, encoded.
    pub elements: Vec<(u8, Vec<u8>)>,
}

impl Message {
    /// A message about a subscriber.
    pub fn about(kind: u8, imsi: &str) -> Self {
        let mut digits: Vec<_> = imsi.bytes().map(|digit| digit - b'0').collect();
        if digits.len() % 2 == 1 {
            digits.push(0xf);
        }
        let imsi = digits.chunks(2).map(|pair| pair[0] | pair[1] << 4).collect();
        Self { kind, elements: vec![(IMSI, imsi)] }
    }

    /// Adds an information element.
    #[must_use]
    pub fn with(mut self, tag: u8, value: &[u8]) -> Self {
        self.elements.push((tag, value.to_owned()));
        self
    }

    /// The value of an information element.
    pub fn get(&self, tag: u8) -> Option<&[u8]> {
        self.elements.iter().find(|(its, _)| *its == tag).map(|(_, value)| value.as_slice())
    }

    /// The digits of the IMSI.
    pub fn imsi(&self) -> String {
        let halves = self.get(IMSI).unwrap_or_default().iter().flat_map(|octet| [octet & 0xf, octet >> 4]);
        halves.filter(|half| *half < 10).map(|half| char::from(b'0' + half)).collect()
    }

    fn decode(octets: &[u8]) -> Option<Self> {
        let (kind, mut rest) = octets.split_first()?;
        let mut elements = Vec::new();
        while let [tag, length, more @ ..] = rest {
            let (value, after) = more.split_at_checked(usize::from(*length))?;
            elements.push((*tag, value.to_owned()));
            rest = after;
        }
        Some(Self { kind: *kind, elements })
    }

    fn frame(&self) -> Vec<u8> {
        let mut body = vec![GSUP[1], self.kind];
        for (tag, value) in &self.elements {
            body.extend_from_slice(&[*tag, value.len() as u8]);
            body.extend_from_slice(value);
        }
        let mut frame = (body.len() as u16).to_be_bytes().to_vec();
        frame.push(GSUP[0]);
        frame.extend_from_slice(&body);
        frame
    }
}

#[derive(Debug, Default)]
struct State {
    /// The connection to the MSC, if any.
    msc: Option<TcpStream>,
    connections: usize,
    /// Messages about short messages from the MSC.
    intercepted: Vec<Message>,
    /// All other messages, from both sides.
    forwarded: Vec<Message>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// A running relay.
#[derive(Debug)]
pub struct GsupRelay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl GsupRelay {
    /// Relays MSCs to this HLR.
    pub fn start(hlr: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let its = Arc::clone(&shared);
        std::thread::Builder::new().name("relay".to_owned()).spawn(move || {
            for msc in listener.incoming().map_while(Result::ok) {
                // A missing HLR shows as a closed connection.
                let _ = its.connect(msc, hlr);
            }
        })?;
        Ok(Self { address, shared })
    }

    /// The address for MSCs.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends a message to the MSC.
    pub fn inject(&self, message: &Message) -> Result<()> {
        let state = self.shared.state.lock();
        let mut msc = state.msc.as_ref().context("no MSC is connected")?;
        Ok(msc.write_all(&message.frame())?)
    }

    /// The next removed message of this type from the MSC.
    pub fn next(&self, kind: u8) -> Result<Message> {
        self.wait(&format!("GSUP {kind:#04x}"), |state| {
            let index = state.intercepted.iter().position(|message| message.kind == kind)?;
            Some(state.intercepted.remove(index))
        })
    }

    /// Removed messages that were not consumed yet.
    pub fn intercepted(&self) -> Vec<Message> {
        self.shared.state.lock().intercepted.clone()
    }

    /// Forwarded messages of both directions.
    pub fn forwarded(&self) -> Vec<Message> {
        self.shared.state.lock().forwarded.clone()
    }

    /// Closes the connection.
    pub fn cut(&self) -> Result<()> {
        let state = self.shared.state.lock();
        Ok(state.msc.as_ref().context("no MSC is connected")?.shutdown(Shutdown::Both)?)
    }

    /// Waits until MSCs have connected this many times.
    pub fn connections(&self, count: usize) -> Result<()> {
        self.wait(&format!("{count} connections"), |state| (state.connections >= count).then_some(()))
    }

    fn wait<T>(&self, what: &str, mut fits: impl FnMut(&mut State) -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + 2 * crate::TIMEOUT;
        let mut state = self.shared.state.lock();
        loop {
            if let Some(found) = fits(&mut state) {
                return Ok(found);
            }
            let seen = format!("{:02x?}", state.intercepted);
            ensure!(
                !self.shared.changed.wait_until(&mut state, deadline).timed_out(),
                "relay: {what} did not occur; received: {seen}"
            );
        }
    }
}

impl Shared {
    fn connect(self: &Arc<Self>, msc: TcpStream, hlr: SocketAddr) -> Result<()> {
        let hlr = TcpStream::connect(hlr)?;
        let directions =
            [(msc.try_clone()?, hlr.try_clone()?, true), (hlr.try_clone()?, msc.try_clone()?, false)];
        for (from, to, from_msc) in directions {
            let shared = Arc::clone(self);
            let body = move || shared.copy(from, to, from_msc);
            std::thread::Builder::new().name("relay".to_owned()).spawn(body)?;
        }
        let mut state = self.state.lock();
        state.msc = Some(msc);
        state.connections += 1;
        self.changed.notify_all();
        Ok(())
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream, from_msc: bool) {
        while let Some(frame) = receive(&mut from) {
            let message = frame.get(2..).filter(|rest| rest.starts_with(&GSUP));
            let message = message.and_then(|rest| Message::decode(rest.get(2..)?));
            let kind = message.as_ref().map(|message| message.kind);
            // MO- and MT-forwardSM and READY-FOR-SM: requests, results and errors
            let short_message = from_msc && kind.is_some_and(|kind| (0x24..0x30).contains(&kind));
            let mut state = self.state.lock();
            if short_message {
                state.intercepted.extend(message);
                self.changed.notify_all();
                continue;
            }
            state.forwarded.extend(message);
            // Under the lock: an injected frame must not split another one.
            if to.write_all(&frame).is_err() {
                break;
            }
        }
        // Ends the other direction too.
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }
}

/// The next IPA frame, with its header.
fn receive(socket: &mut TcpStream) -> Option<Vec<u8>> {
    let mut frame = vec![0; 3];
    socket.read_exact(&mut frame).ok()?;
    let length = usize::from(u16::from_be_bytes([frame[0], frame[1]]));
    frame.resize(3 + length, 0);
    socket.read_exact(&mut frame[3..]).ok()?;
    Some(frame)
}
