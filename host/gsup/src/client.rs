//! A client of an HLR that routes short messages by name.

use crate::ccm::{Ccm, Identity};
use crate::ipa::{self, Frame, FrameError};
use crate::{DecodeError, Message};
use bytes::BytesMut;
use std::collections::VecDeque;

/// How patient a connection is. Milliseconds; 0 means without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// How long the far end may take to ask who we are.
    pub greeting: u64,
    /// How often we ask whether it is there.
    pub keep_alive: u64,
    /// How long it may say nothing at all before it is given up. More than `keep_alive`.
    pub silence: u64,
}

impl Default for Patience {
    /// What OsmoMSC does: a question every 20 seconds.
    fn default() -> Self {
        Self { greeting: 10_000, keep_alive: 20_000, silence: 60_000 }
    }
}

/// What the owner must know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The far end knows us: messages may flow. It is not said whether it routes to us: of two connections with one name
    /// the second gets nothing.
    Ready,
    /// A message.
    Message(Message),
    /// A message that makes no sense; it was dropped, and the connection stays.
    Broken(DecodeError),
    /// The connection is of no more use. The last event.
    Lost(Loss),
}

/// Why a connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Loss {
    /// Nobody asked who we are.
    #[error("the far end did not ask for our identity; is this the GSUP port of an HLR?")]
    NoGreeting,
    /// Nothing came for too long.
    #[error("the far end has said nothing for too long, not even to a ping")]
    Silence,
    /// What came are no frames.
    #[error(transparent)]
    Frame(FrameError),
}

/// A message that was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The connection is not ready yet, or lost.
    #[error("the GSUP connection is not ready")]
    NotReady,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The far end is to ask who we are.
    Greeting,
    Ready,
    Lost,
}

/// One connection to an HLR, whose client we are.
///
/// Feed it octets and the time; it answers with events for the owner and octets for the far end. It never blocks and never
/// reads a clock: `now` is milliseconds from any fixed point.
#[derive(Debug)]
pub struct Client {
    identity: Identity,
    patience: Patience,
    state: State,
    input: BytesMut,
    output: BytesMut,
    events: VecDeque<Event>,
    begun: u64,
    heard: u64,
    pinged: u64,
}

impl Client {
    /// A connection that was made now.
    #[must_use]
    pub fn new(now: u64, identity: Identity, patience: Patience) -> Self {
        Self {
            identity,
            patience,
            state: State::Greeting,
            input: BytesMut::new(),
            output: BytesMut::new(),
            events: VecDeque::new(),
            begun: now,
            heard: now,
            pinged: now,
        }
    }

    /// Takes octets as they came off the socket, in any split.
    pub fn receive(&mut self, now: u64, octets: &[u8]) {
        if self.state == State::Lost {
            return;
        }
        self.heard = now;
        self.input.extend_from_slice(octets);
        loop {
            match Frame::take(&mut self.input, ipa::LIMIT) {
                Ok(None) => return,
                Ok(Some(frame)) => self.handle(now, frame),
                Err(error) => return self.lose(Loss::Frame(error)),
            }
        }
    }

    fn handle(&mut self, now: u64, frame: Frame) {
        match frame {
            Frame::Ccm(payload) => match Ccm::decode(&payload) {
                Ccm::Ping => Ccm::Pong.put(&mut self.output),
                Ccm::IdGet(wanted) => {
                    Ccm::IdResponse(self.identity.response(&wanted)).put(&mut self.output);
                    Ccm::IdAck.put(&mut self.output);
                    if self.state == State::Greeting {
                        self.state = State::Ready;
                        self.pinged = now;
                        self.events.push_back(Event::Ready);
                    }
                }
                Ccm::Pong | Ccm::IdAck | Ccm::IdResponse(_) | Ccm::Other(_) => {}
            },
            Frame::Gsup(payload) => self.events.push_back(match Message::decode(&payload) {
                Ok(message) => Event::Message(message),
                Err(error) => Event::Broken(error),
            }),
            // Nothing that a service centre has to do with (OAP, say).
            Frame::Ctrl(_) | Frame::Other { .. } => {}
        }
    }

    /// Writes a message into the output.
    ///
    /// # Errors
    /// When the connection is not ready.
    pub fn send(&mut self, message: &Message) -> Result<(), SendError> {
        if self.state != State::Ready {
            return Err(SendError::NotReady);
        }
        message.put(&mut self.output);
        Ok(())
    }

    /// The next thing that the owner must know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Octets for the far end; whole frames, however much of them the owner writes at a time.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Whether messages may flow.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// When [`Client::tick`] wants to be called, at the latest.
    #[must_use]
    pub fn next_tick(&self) -> Option<u64> {
        let after = |from: u64, wait: u64| (wait > 0).then(|| from.saturating_add(wait));
        match self.state {
            State::Greeting => after(self.begun, self.patience.greeting),
            State::Ready => {
                let ping = after(self.pinged, self.patience.keep_alive);
                let silence = after(self.heard, self.patience.silence);
                [ping, silence].into_iter().flatten().min()
            }
            State::Lost => None,
        }
    }

    /// Does what is due.
    pub fn tick(&mut self, now: u64) {
        let is_due = |from: u64, wait: u64| wait > 0 && now >= from.saturating_add(wait);
        match self.state {
            State::Greeting if is_due(self.begun, self.patience.greeting) => self.lose(Loss::NoGreeting),
            State::Ready if is_due(self.heard, self.patience.silence) => self.lose(Loss::Silence),
            State::Ready if is_due(self.pinged, self.patience.keep_alive) => {
                self.pinged = now;
                Ccm::Ping.put(&mut self.output);
            }
            State::Greeting | State::Ready | State::Lost => {}
        }
    }

    fn lose(&mut self, loss: Loss) {
        self.state = State::Lost;
        self.events.push_back(Event::Lost(loss));
    }
}
