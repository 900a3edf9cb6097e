//! A client of an HLR that routes short messages by name.

use crate::ccm::{Ccm, Identity};
use crate::ipa::{self, FrameError, IpaFrame};
use crate::{DecodeError, GsupMessage};
use bytes::BytesMut;
use std::collections::VecDeque;

/// Timeouts of a connection in milliseconds; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientTimeouts {
    /// Timeout for the HLR's identity request.
    pub greeting_timeout: u64,
    /// Interval of keep-alive requests.
    pub keep_alive_interval: u64,
    /// Maximum time without any message; should exceed `keep_alive_interval`.
    pub silence_timeout: u64,
}

impl Default for ClientTimeouts {
    /// As OsmoMSC: a ping every 20 seconds.
    fn default() -> Self {
        Self { greeting_timeout: 10_000, keep_alive_interval: 20_000, silence_timeout: 60_000 }
    }
}

/// An event for the owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The identity exchange is complete: messages can be sent. It is unknown whether the HLR routes to this
    /// connection: if two have the same name, the second gets no messages.
    Ready,
    /// A received message.
    Message(GsupMessage),
    /// An undecodable message; it is dropped, and the connection continues.
    Undecodable(DecodeError),
    /// The connection is unusable. This is the last event.
    Lost(ConnectionLoss),
}

/// Reason why a connection is unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionLoss {
    /// The HLR did not request the identity.
    #[error("the HLR did not request the identity; is this the GSUP port of an HLR?")]
    NoGreeting,
    /// The HLR was silent for too long.
    #[error("the HLR is silent and does not answer pings")]
    Silence,
    /// The input is not a valid frame.
    #[error(transparent)]
    Frame(FrameError),
}

/// Reason why a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The connection is not ready, or is lost.
    #[error("the GSUP connection is not ready")]
    NotReady,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Waiting for the identity request.
    Greeting,
    Ready,
    Lost,
}

/// The client side of a connection to an HLR.
///
/// Feed it received octets and the time; it returns events for the owner and octets for the HLR. It does no I/O and
/// reads no clock: `now` is milliseconds from any fixed point.
#[derive(Debug)]
pub struct GsupClient {
    identity: Identity,
    timeouts: ClientTimeouts,
    state: State,
    input: BytesMut,
    output: BytesMut,
    events: VecDeque<Event>,
    started_at: u64,
    last_received_at: u64,
    last_ping_at: u64,
}

impl GsupClient {
    /// Creates a client for a new connection.
    #[must_use]
    pub fn new(now: u64, identity: Identity, timeouts: ClientTimeouts) -> Self {
        Self {
            identity,
            timeouts,
            state: State::Greeting,
            input: BytesMut::new(),
            output: BytesMut::new(),
            events: VecDeque::new(),
            started_at: now,
            last_received_at: now,
            last_ping_at: now,
        }
    }

    /// Feeds received octets, split anywhere.
    pub fn receive(&mut self, now: u64, octets: &[u8]) {
        if self.state == State::Lost {
            return;
        }
        self.last_received_at = now;
        self.input.extend_from_slice(octets);
        loop {
            match IpaFrame::take(&mut self.input, ipa::DEFAULT_MAX_PAYLOAD) {
                Ok(None) => return,
                Ok(Some(frame)) => self.handle(now, frame),
                Err(error) => return self.fail(ConnectionLoss::Frame(error)),
            }
        }
    }

    fn handle(&mut self, now: u64, frame: IpaFrame) {
        match frame {
            IpaFrame::Ccm(payload) => match Ccm::decode(&payload) {
                Ccm::Ping => Ccm::Pong.put(&mut self.output),
                Ccm::IdGet(requested) => {
                    Ccm::IdResponse(self.identity.response(&requested)).put(&mut self.output);
                    Ccm::IdAck.put(&mut self.output);
                    if self.state == State::Greeting {
                        self.state = State::Ready;
                        self.last_ping_at = now;
                        self.events.push_back(Event::Ready);
                    }
                }
                Ccm::Pong | Ccm::IdAck | Ccm::IdResponse(_) | Ccm::Other(_) => {}
            },
            IpaFrame::Gsup(payload) => self.events.push_back(match GsupMessage::decode(&payload) {
                Ok(message) => Event::Message(message),
                Err(error) => Event::Undecodable(error),
            }),
            // Protocols that a service centre does not use, for example OAP.
            IpaFrame::Ctrl(_) | IpaFrame::Other { .. } => {}
        }
    }

    /// Appends a message to the output.
    ///
    /// # Errors
    /// If the connection is not ready.
    pub fn send(&mut self, message: &GsupMessage) -> Result<(), SendError> {
        if self.state != State::Ready {
            return Err(SendError::NotReady);
        }
        message.put(&mut self.output);
        Ok(())
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Octets for the HLR: complete frames. The owner may write them in parts.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Whether messages can be sent.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == State::Ready
    }

    /// The latest time for the next call of [`GsupClient::tick`].
    #[must_use]
    pub fn next_tick(&self) -> Option<u64> {
        let after = |from: u64, wait: u64| (wait > 0).then(|| from.saturating_add(wait));
        match self.state {
            State::Greeting => after(self.started_at, self.timeouts.greeting_timeout),
            State::Ready => {
                let ping = after(self.last_ping_at, self.timeouts.keep_alive_interval);
                let silence_timeout = after(self.last_received_at, self.timeouts.silence_timeout);
                [ping, silence_timeout].into_iter().flatten().min()
            }
            State::Lost => None,
        }
    }

    /// Handles elapsed timers.
    pub fn tick(&mut self, now: u64) {
        let is_due = |from: u64, wait: u64| wait > 0 && now >= from.saturating_add(wait);
        match self.state {
            State::Greeting if is_due(self.started_at, self.timeouts.greeting_timeout) => {
                self.fail(ConnectionLoss::NoGreeting);
            }
            State::Ready if is_due(self.last_received_at, self.timeouts.silence_timeout) => {
                self.fail(ConnectionLoss::Silence);
            }
            State::Ready if is_due(self.last_ping_at, self.timeouts.keep_alive_interval) => {
                self.last_ping_at = now;
                Ccm::Ping.put(&mut self.output);
            }
            State::Greeting | State::Ready | State::Lost => {}
        }
    }

    fn fail(&mut self, loss: ConnectionLoss) {
        self.state = State::Lost;
        self.events.push_back(Event::Lost(loss));
    }
}
