use super::SmppOptions;
use super::timer::after;
use std::time::Instant;

/// An enquire_link that we have sent.
#[derive(Clone, Copy, Debug)]
struct Enquiry {
    sequence: u32,
    at: Instant,
    /// Whether no PDU has been received since it was sent.
    silent: bool,
}

/// The action when the enquire timer fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EnquireAction {
    /// The peer is alive, or may still answer: check again at this time.
    CheckAgain(Instant),
    /// Send an enquire_link.
    SendEnquireLink,
    /// The peer has not answered: close the session.
    PeerDead,
}

/// Monitors signs of life of the peer. Any PDU counts (34 §4.11.2).
#[derive(Debug)]
pub(super) struct EnquireLinkMonitor {
    last_pdu_at: Instant,
    enquiry: Option<Enquiry>,
    misses: u32,
}

impl EnquireLinkMonitor {
    pub(super) fn new(now: Instant) -> Self {
        Self { last_pdu_at: now, enquiry: None, misses: 0 }
    }

    pub(super) fn on_pdu(&mut self, now: Instant) {
        self.last_pdu_at = now;
        self.misses = 0;
        if let Some(enquiry) = &mut self.enquiry {
            enquiry.silent = false;
        }
    }

    pub(super) fn last_pdu_at(&self) -> Instant {
        self.last_pdu_at
    }

    pub(super) fn on_enquire_link_sent(&mut self, now: Instant, sequence: u32) {
        self.enquiry = Some(Enquiry { sequence, at: now, silent: true });
    }

    /// Whether the sequence number is that of our enquire_link; if so, the enquire_link counts as answered.
    pub(super) fn is_answered_by(&mut self, sequence: u32) -> bool {
        self.enquiry.take_if(|enquiry| enquiry.sequence == sequence).is_some()
    }

    pub(super) fn check(&mut self, now: Instant, options: &SmppOptions) -> EnquireAction {
        if let Some(enquiry) = self.enquiry.filter(|enquiry| enquiry.silent) {
            let answer_by = after(enquiry.at, options.enquire_timeout);
            if answer_by > now {
                return EnquireAction::CheckAgain(answer_by);
            }
            self.misses += 1;
            return if self.misses >= options.enquire_misses {
                EnquireAction::PeerDead
            } else {
                EnquireAction::SendEnquireLink
            };
        }
        let quiet_until = after(self.last_pdu_at, options.enquire_interval);
        if quiet_until > now {
            EnquireAction::CheckAgain(quiet_until)
        } else {
            EnquireAction::SendEnquireLink
        }
    }
}
