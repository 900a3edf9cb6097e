//! A plain relay of GSUP between an MSC and its HLR. It stands where the appliance's proxy stands, and does nothing by
//! itself: what it takes out and what it puts in, the test says. With it the instruments are tuned.

use anyhow::{Context, Result, ensure};
use parking_lot::{Condvar, Mutex};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

/// Extension of the stream for GSUP, after the octet that names Osmocom's.
const GSUP: [u8; 2] = [0xee, 0x05];
const IMSI: u8 = 0x01;

/// A GSUP message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its type, such as 0x24 for MO-forwardSM.
    pub kind: u8,
    /// Its elements as they came.
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

    /// With one element more.
    #[must_use]
    pub fn with(mut self, tag: u8, value: &[u8]) -> Self {
        self.elements.push((tag, value.to_owned()));
        self
    }

    /// An element's value.
    pub fn get(&self, tag: u8) -> Option<&[u8]> {
        self.elements.iter().find(|(its, _)| *its == tag).map(|(_, value)| value.as_slice())
    }

    /// The IMSI's digits.
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
    /// Towards the MSC, while it is connected.
    msc: Option<TcpStream>,
    connections: usize,
    /// Short messages' GSUP that came from the MSC.
    taken: Vec<Message>,
    /// All of the rest, from both.
    passed: Vec<Message>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    news: Condvar,
}

/// A running relay.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Relay {
    /// Relays MSCs to this HLR.
    pub fn start(hlr: SocketAddr) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let its = Arc::clone(&shared);
        std::thread::Builder::new().name("relay".to_owned()).spawn(move || {
            for msc in listener.incoming().map_while(Result::ok) {
                // An HLR that is not there shows as a closed connection.
                let _ = its.connect(msc, hlr);
            }
        })?;
        Ok(Self { address, shared })
    }

    /// Where MSCs connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends to the MSC what its HLR did not say.
    pub fn inject(&self, message: &Message) -> Result<()> {
        let state = self.shared.state.lock();
        let mut msc = state.msc.as_ref().context("no MSC is connected")?;
        Ok(msc.write_all(&message.frame())?)
    }

    /// The next message of this type from the MSC that was taken out.
    pub fn next(&self, kind: u8) -> Result<Message> {
        self.wait(&format!("GSUP {kind:#04x}"), |state| {
            let place = state.taken.iter().position(|message| message.kind == kind)?;
            Some(state.taken.remove(place))
        })
    }

    /// The taken messages that nobody asked for yet.
    pub fn taken(&self) -> Vec<Message> {
        self.shared.state.lock().taken.clone()
    }

    /// What was passed on, in both directions.
    pub fn passed(&self) -> Vec<Message> {
        self.shared.state.lock().passed.clone()
    }

    /// Cuts the connection.
    pub fn cut(&self) -> Result<()> {
        let state = self.shared.state.lock();
        Ok(state.msc.as_ref().context("no MSC is connected")?.shutdown(Shutdown::Both)?)
    }

    /// Waits until so many connections were made by MSCs.
    pub fn connections(&self, count: usize) -> Result<()> {
        self.wait(&format!("{count} connections"), |state| (state.connections >= count).then_some(()))
    }

    fn wait<T>(&self, what: &str, mut fits: impl FnMut(&mut State) -> Option<T>) -> Result<T> {
        let deadline = Instant::now() + 2 * crate::PATIENCE;
        let mut state = self.shared.state.lock();
        loop {
            if let Some(found) = fits(&mut state) {
                return Ok(found);
            }
            let seen = format!("{:02x?}", state.taken);
            ensure!(
                !self.shared.news.wait_until(&mut state, deadline).timed_out(),
                "the relay: in vain: {what}; there was: {seen}"
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
        self.news.notify_all();
        Ok(())
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream, from_msc: bool) {
        while let Some(frame) = receive(&mut from) {
            let message = frame.get(2..).filter(|rest| rest.starts_with(&GSUP));
            let message = message.and_then(|rest| Message::decode(rest.get(2..)?));
            let kind = message.as_ref().map(|message| message.kind);
            // MO- and MT-forwardSM and READY-FOR-SM, of whatever kind
            let short_message = from_msc && kind.is_some_and(|kind| (0x24..0x30).contains(&kind));
            let mut state = self.state.lock();
            if short_message {
                state.taken.extend(message);
                self.news.notify_all();
                continue;
            }
            state.passed.extend(message);
            // Under the lock: what is injected must not come between the halves of a frame.
            if to.write_all(&frame).is_err() {
                break;
            }
        }
        // The other direction ends by it too.
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    }
}

/// The next IPA frame, header included.
fn receive(socket: &mut TcpStream) -> Option<Vec<u8>> {
    let mut frame = vec![0; 3];
    socket.read_exact(&mut frame).ok()?;
    let length = usize::from(u16::from_be_bytes([frame[0], frame[1]]));
    frame.resize(3 + length, 0);
    socket.read_exact(&mut frame[3..]).ok()?;
    Some(frame)
}
