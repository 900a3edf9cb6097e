//! A screen with rules on senders, texts, links and volumes; `policies/firewall.toml` is an example of its policy document.

use firewall_policy::{Host, Outcome, Policy, Question, Reason, Report, Verdict};
use std::time::Duration;
use switchyard_sdk::screen::{Decision, drop_as, pass, quarantine, reject};
use switchyard_sdk::{DroppedAs, Message, RejectReason, Screen, counters, details, tables};

struct Firewall {
    policy: Policy,
    /// The appliance's tables, in the order of the policy.
    tables: Vec<u32>,
}

/// The details of the current message.
struct CurrentMessage<'a> {
    tables: &'a [u32],
}

impl Host for CurrentMessage<'_> {
    fn text(&self) -> Option<String> {
        details::text()
    }

    fn urls(&self) -> Vec<String> {
        details::urls()
    }

    fn near_duplicate(&self) -> Option<u64> {
        details::near_duplicate()
    }

    fn tlv(&self, tag: u16) -> Option<Vec<u8>> {
        details::tlv_value(tag)
    }

    fn look_up(&self, table: usize, key: &str) -> Option<String> {
        tables::get(*self.tables.get(table)?, key)
    }

    fn count(&self, name: &str, key: &str, window: Duration) -> u64 {
        counters::add(name, key, 1, u64::try_from(window.as_millis()).unwrap_or(u64::MAX))
    }
}

impl Screen for Firewall {
    fn configure(document: &str) -> Result<Self, String> {
        let policy = Policy::parse(document)?;
        let tables = policy.tables().iter().map(|name| tables::open(name)).collect::<Result<_, _>>()?;
        Ok(Self { policy, tables })
    }

    fn screen(&self, message: &Message) -> Decision {
        let question = Question {
            account: &message.origin,
            source: &message.source.value,
            destination: &message.destination.value,
            data_coding: message.data_coding,
            segments: message.parts,
            header: message.udhi,
        };
        let host = CurrentMessage { tables: &self.tables };
        let Outcome { verdict, tags, buckets, windows, text, note } = self.policy.evaluate(&question, &host);
        let mut decision = match verdict {
            Verdict::Pass => pass(),
            Verdict::Reject(reason) => reject(reject_reason(reason)),
            Verdict::Quarantine => quarantine(),
            Verdict::Drop(report) => drop_as(dropped_as(report)),
        };
        for (name, value) in &tags {
            decision = decision.tag(name, value);
        }
        for bucket in buckets {
            decision = decision.use_pace_bucket((&bucket).into());
        }
        for window in windows {
            decision = decision.use_send_window((&window).into());
        }
        Decision { text, note, ..decision }
    }
}

fn reject_reason(reason: Reason) -> RejectReason {
    match reason {
        Reason::Prohibited => RejectReason::Prohibited,
        Reason::InvalidSource => RejectReason::InvalidSource,
        Reason::InvalidDestination => RejectReason::InvalidDestination,
        Reason::NotAuthorised => RejectReason::NotAuthorised,
        Reason::NoRoute => RejectReason::NoRoute,
        Reason::TryLater => RejectReason::TryLater,
    }
}

fn dropped_as(report: Report) -> DroppedAs {
    match report {
        Report::Delivered => DroppedAs::Delivered,
        Report::Undeliverable => DroppedAs::Undeliverable,
        Report::Rejected => DroppedAs::Rejected,
    }
}

switchyard_sdk::export_screen!(Firewall);
