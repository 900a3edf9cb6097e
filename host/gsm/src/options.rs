use configuration::{HostPort, KeyFormat, Keys, Section, Shape, Word};
use model::{Address, PeerId};
use ports::ConnectionLimits;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tpdu::Language;

/// `[[gsm]]`: a GSM core network with one HLR and its MSCs.
#[derive(Debug, Clone, Keys)]
#[keys(check = Self::check)]
pub struct GsmOptions {
    /// The core network's name.
    #[key(example = "home")]
    pub name: String,
    /// Its peer id.
    #[key(skip = PeerId(u32::MAX))]
    pub peer: PeerId,
    /// Role of the appliance in the network.
    #[key(default = "proxy")]
    pub role: GsmRole,
    /// The listening address for MSCs (proxy only).
    #[key(default = "0.0.0.0:4222")]
    pub listen: SocketAddr,
    /// The HLR's address.
    #[key(format = HostPort, example = "hlr.example.net:4222")]
    pub hlr: String,
    /// The address of the HLR's CTRL interface. Without it, only subscribers learnt from signalling are known.
    #[key(format = HostPort)]
    pub ctrl: Option<String>,
    /// Maximum time for a response of the CTRL interface.
    #[key(default = "3s")]
    pub ctrl_timeout: Duration,
    /// The IPA name of the appliance, ASCII without spaces, with a proxy at most 22 characters; also the prefix of the
    /// source names of its requests.
    #[key(length = 1..=31, default = "SMSC-1")]
    pub ipa_name: String,
    /// The number of the appliance's service centre, as configured on SIMs.
    #[key(format = ServiceCentre, required)]
    pub service_centre: Address,
    /// Refuses MO messages that are addressed to another service centre. SIMs of roaming subscribers name their home
    /// network's.
    #[key(default = false)]
    pub only_our_service_centre: bool,
    /// Refuses MO messages whose sender is not registered at the MSC that forwards them; the sender's number is then
    /// taken from the HLR.
    #[key(default_with = ctrl.is_some() && role == GsmRole::Proxy, default_as = "true for a proxy with `ctrl`")]
    pub check_sender: bool,
    /// Maximum number of subscribers with a message in flight.
    #[key(range = 1..=100_000, default = 1000)]
    pub window: u32,
    /// Maximum time for an MSC's response to an MT message; it covers paging and two radio timers.
    #[key(default = "90s", was = "guard")]
    pub response_timeout: Duration,
    /// The validity of MO messages.
    #[key(default = "3d")]
    pub mo_validity: Duration,
    /// How long a repeated MO message is recognised.
    #[key(default = "10m", was = "repetition")]
    pub repetition_window: Duration,
    /// The UTC offset of timestamps shown by handsets, for example `-08:00`; kept in quarters of an hour.
    #[key(name = "utc-offset", format = UtcOffset, default = "+00:00")]
    pub zone: i8,
    /// Languages whose national tables (3GPP TS 23.038 annex A) the handsets support. A UCS-2 text is sent with such a
    /// table if that saves segments.
    #[key(format = Languages, default_as = "none")]
    pub languages: Vec<Language>,
    /// The number plan for dialled numbers; without one, numbers are not changed.
    #[key(skip)]
    pub plan: Option<Arc<numbering::NumberPlan>>,
    /// Maximum number of MSC connections (proxy only).
    #[key(range = 1..=10_000, default = 256)]
    pub connections: usize,
    /// Maximum number of MSC connections per IP address.
    #[key(range = 1..=10_000, default = 64)]
    pub connections_per_address: usize,
    /// Maximum number of unidentified MSC connections; a new one replaces the oldest.
    #[key(range = 1..=10_000, at_most = connections, default_as = "a quarter of `connections`",
        default_with = ConnectionLimits::default_unidentified(connections))]
    pub unidentified_connections: usize,
    /// Maximum time to connect to the HLR, and for an MSC to identify itself.
    #[key(default = "5s")]
    pub connect_timeout: Duration,
    /// How long MSCs stay connected while the HLR is unreachable (proxy only). During that time, messages between known
    /// subscribers are delivered.
    #[key(default = "1h")]
    pub hlr_outage: Duration,
    /// The interval of keep-alives to a silent HLR; after three intervals without any message the connection is closed.
    #[key(default = "20s")]
    pub keep_alive: Duration,
}

/// Role of the appliance in the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Word)]
pub enum GsmRole {
    /// A proxy between the MSCs and the HLR: it intercepts short messages and relays all other signalling.
    Proxy,
    /// A client of an HLR that routes short messages by name (OsmoHLR 1.8.0 and later).
    Client,
}

impl GsmOptions {
    /// Default options: a client of an HLR on this host.
    #[must_use]
    pub fn new(name: &str, peer: PeerId) -> Self {
        Self {
            name: name.to_owned(),
            peer,
            role: GsmRole::Client,
            hlr: "127.0.0.1:4222".to_owned(),
            service_centre: Address::international("0"),
            ..Self::defaults()
        }
    }

    /// The limits of MSC connections.
    pub(crate) fn limits(&self) -> ConnectionLimits {
        ConnectionLimits {
            connections: self.connections,
            per_address: self.connections_per_address,
            unidentified: self.unidentified_connections,
            reserve: 0,
        }
    }

    fn check(&mut self, section: &Section<'_>) {
        // A proxy appends a suffix of nine octets.
        let longest = if self.role == GsmRole::Proxy { 22 } else { 31 };
        if self.ipa_name.len() > longest || !self.ipa_name.bytes().all(|c| c.is_ascii_graphic()) {
            section.error("ipa-name", format!("must be 1 to {longest} ASCII characters without spaces"));
        }
        if self.check_sender && !(self.ctrl.is_some() && self.role == GsmRole::Proxy) {
            let what = "needs role = \"proxy\" and `ctrl`: the HLR is queried for the sender's MSC";
            section.error("check-sender", what);
        }
    }
}

/// The number of a service centre: E.164 digits.
struct ServiceCentre;

impl KeyFormat<Address> for ServiceCentre {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<Address> {
        if !section.has(key) {
            section.error(key, "is missing; write for example service-centre = \"19990014444\"");
        }
        let text = section.text(key)?;
        if text.is_empty() || text.len() > 20 || !text.bytes().all(|c| c.is_ascii_digit()) {
            let what = "must be 1 to 20 digits: the number of the service centre, as configured on SIMs";
            section.error(key, what);
        }
        Some(Address::international(&text))
    }

    fn shape(&self) -> Shape {
        Shape::Value("digits", json!({ "type": "string", "pattern": "^[0-9]{1,20}$" }))
    }
}

/// An offset, for example `+02:00`, in quarters of an hour east of Greenwich.
struct UtcOffset;

impl KeyFormat<i8> for UtcOffset {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<i8> {
        let offset = quarters(&section.text(key)?);
        if offset.is_none() {
            section.error(key, "must be like \"+02:00\" or \"-08:00\", in quarters of an hour");
        }
        offset
    }

    fn shape(&self) -> Shape {
        Shape::Value("UTC offset", json!({ "type": "string", "pattern": "^[+-][0-9]{2}:[0-9]{2}$" }))
    }
}

/// Parses `+hh:mm` into quarters of an hour.
fn quarters(text: &str) -> Option<i8> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let (hours, minutes): (i8, i8) = (hours.parse().ok()?, minutes.parse().ok()?);
    let fits =
        rest.len() == 5 && (0..=14).contains(&hours) && (0..60).contains(&minutes) && minutes % 15 == 0;
    fits.then(|| sign * (hours * 4 + minutes / 15))
}

/// Languages by their English names.
struct Languages;

impl KeyFormat<Vec<Language>> for Languages {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<Vec<Language>> {
        let find = |name: &String| {
            let language = Language::from_name(name);
            if language.is_none() {
                let all = Language::ALL.map(Language::name).join(", ");
                section.invalid(key, format!("has {name:?}"), format!("any of: {all}"));
            }
            language
        };
        Some(section.texts(key)?.iter().filter_map(find).collect())
    }

    fn shape(&self) -> Shape {
        Shape::List(Box::new(Shape::Words(Language::ALL.map(|language| (language.name(), "")).to_vec())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_quarters_of_an_hour() {
        for (text, expected) in [
            ("+00:00", Some(0)),
            ("-08:00", Some(-32)),
            ("+05:45", Some(23)),
            ("+2:00", None),
            ("02:00", None),
            ("+02:10", None),
            ("+99:00", None),
            ("é", None),
            ("", None),
        ] {
            assert_eq!(quarters(text), expected, "{text}");
        }
    }
}
