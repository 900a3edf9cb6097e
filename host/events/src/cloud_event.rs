//! Events in the JSON format of CloudEvents 1.0.

use crate::event_data::EventData;
use model::Timestamp;
use serde::Serialize;
use time::OffsetDateTime;

/// The types of events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventType {
    /// A message was accepted: it is durable.
    Accepted,
    /// A message was submitted to a peer.
    Attempt,
    /// A peer has reported on a message.
    Dlr,
    /// A message has its final state.
    Ended,
    /// A number of a pool was changed.
    Pool,
    /// A plugin failed too often.
    Fault,
    /// The plugins of a hook were changed.
    Exchange,
    /// A version of the configuration came into force.
    Configuration,
    /// Records of the journal were removed before the sink got them.
    Gap,
}

impl EventType {
    /// All types.
    pub const ALL: [Self; 9] = [
        Self::Accepted,
        Self::Attempt,
        Self::Dlr,
        Self::Ended,
        Self::Pool,
        Self::Fault,
        Self::Exchange,
        Self::Configuration,
        Self::Gap,
    ];

    /// The name in the configuration: `accepted`, `attempt`, …
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Attempt => "attempt",
            Self::Dlr => "dlr",
            Self::Ended => "ended",
            Self::Pool => "pool",
            Self::Fault => "fault",
            Self::Exchange => "exchange",
            Self::Configuration => "configuration",
            Self::Gap => "gap",
        }
    }

    /// The type with that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The attribute `type` of the event.
    const fn attribute(self) -> &'static str {
        match self {
            Self::Accepted => "switchyard.message.accepted",
            Self::Attempt => "switchyard.message.attempt",
            Self::Dlr => "switchyard.message.dlr",
            Self::Ended => "switchyard.message.ended",
            Self::Pool => "switchyard.pool.changed",
            Self::Fault => "switchyard.plugin.fault",
            Self::Exchange => "switchyard.hook.exchanged",
            Self::Configuration => "switchyard.configuration.changed",
            Self::Gap => "switchyard.gap",
        }
    }
}

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CloudEvent {
    /// Unique among the events of this appliance; a repetition has the same id.
    pub(crate) id: String,
    pub(crate) kind: EventType,
    /// The subject of the event, for example `messages/1000000042`.
    pub(crate) subject: Option<String>,
    pub(crate) time: Timestamp,
    pub(crate) data: EventData,
}

/// The attributes in the order of the specification, with the data.
#[derive(Serialize)]
struct JsonFormat<'a> {
    specversion: &'static str,
    id: &'a str,
    source: &'a str,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    time: String,
    datacontenttype: &'static str,
    data: &'a EventData,
}

impl CloudEvent {
    /// Appends the event as JSON.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>, source: &str) {
        let format = JsonFormat {
            specversion: "1.0",
            id: &self.id,
            source,
            r#type: self.kind.attribute(),
            subject: self.subject.as_deref(),
            time: rfc3339(self.time),
            datacontenttype: "application/json",
            data: &self.data,
        };
        let start = out.len();
        if let Err(error) = serde_json::to_writer(&mut *out, &format) {
            // Serialising into memory does not fail.
            tracing::error!(%error, "serialising an event failed");
            out.truncate(start);
            out.extend_from_slice(b"{}");
        }
    }
}

/// A time in RFC 3339, in UTC, with milliseconds; the length is fixed.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    let nanoseconds = i128::from(at.0) * 1_000_000;
    match OffsetDateTime::from_unix_timestamp_nanos(nanoseconds) {
        Ok(at) => {
            let (date, month) = (at.date(), u8::from(at.month()));
            let (hour, minute, second, millisecond) = at.time().as_hms_milli();
            let (year, day) = (date.year(), date.day());
            format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millisecond:03}Z")
        }
        // Beyond the year 9999, which the format cannot write.
        Err(_) => "9999-12-31T23:59:59.999Z".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_data::GapData;

    #[test]
    fn the_json_has_the_attributes_of_cloudevents() {
        let event = CloudEvent {
            id: "gap-7".to_owned(),
            kind: EventType::Gap,
            subject: None,
            time: Timestamp(1_795_564_800_250),
            data: EventData::Gap(GapData { first: 7, last: 9, reason: "journal" }),
        };
        let mut json = Vec::new();
        event.write_json(&mut json, "/switchyard/A");
        assert_eq!(
            String::from_utf8(json).unwrap(),
            concat!(
                r#"{"specversion":"1.0","id":"gap-7","source":"/switchyard/A","type":"switchyard.gap","#,
                r#""time":"2026-11-25T00:00:00.250Z","datacontenttype":"application/json","#,
                r#""data":{"first":7,"last":9,"reason":"journal"}}"#
            )
        );
    }
}
