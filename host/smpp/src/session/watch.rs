use super::Options;
use super::timer::after;
use std::time::Instant;

/// An enquire_link of ours.
#[derive(Clone, Copy, Debug)]
struct Enquiry {
    sequence: u32,
    at: Instant,
    /// Nothing at all has been heard since.
    silent: bool,
}

/// What the watch says when its timer fires.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sign {
    /// All is well, or not yet known: look again then.
    LookAgain(Instant),
    /// Ask the peer whether it lives.
    Ask,
    /// It does not.
    Dead,
}

/// Signs of life of the peer. Any PDU is one (34 §4.11.2).
#[derive(Debug)]
pub(super) struct Watch {
    heard_at: Instant,
    enquiry: Option<Enquiry>,
    misses: u32,
}

impl Watch {
    pub(super) fn new(now: Instant) -> Self {
        Self { heard_at: now, enquiry: None, misses: 0 }
    }

    pub(super) fn heard(&mut self, now: Instant) {
        self.heard_at = now;
        self.misses = 0;
        if let Some(enquiry) = &mut self.enquiry {
            enquiry.silent = false;
        }
    }

    pub(super) fn heard_at(&self) -> Instant {
        self.heard_at
    }

    pub(super) fn asked(&mut self, now: Instant, sequence: u32) {
        self.enquiry = Some(Enquiry { sequence, at: now, silent: true });
    }

    /// Whether this number is that of our enquiry, which is answered herewith.
    pub(super) fn is_answered_by(&mut self, sequence: u32) -> bool {
        self.enquiry.take_if(|enquiry| enquiry.sequence == sequence).is_some()
    }

    pub(super) fn look(&mut self, now: Instant, options: &Options) -> Sign {
        if let Some(enquiry) = self.enquiry.filter(|enquiry| enquiry.silent) {
            let answer_by = after(enquiry.at, options.enquire_timeout);
            if answer_by > now {
                return Sign::LookAgain(answer_by);
            }
            self.misses += 1;
            return if self.misses >= options.enquire_misses { Sign::Dead } else { Sign::Ask };
        }
        let quiet_until = after(self.heard_at, options.enquire_interval);
        if quiet_until > now { Sign::LookAgain(quiet_until) } else { Sign::Ask }
    }
}
