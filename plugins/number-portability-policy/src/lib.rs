//! The policy document of `number-portability`, and the conversion of results from tables, ENUM and HTTP services to
//! attributes.
//!
//! | attribute | value |
//! |---|---|
//! | `mcc`, `mnc` | mobile country and network code |
//! | `ported` | `yes` or `no` |
//! | `line-type` | as the document or the source has it, such as `mobile` or `fixed` |
//! | `rn`, `spn` | routing number and service provider of an ENUM record |

mod document;
mod enum_record;
mod json_reply;
mod source;

pub use enum_record::{Naptr, TelUri};
pub use source::Request;

use document::{Document, Network};
use policy_values::{check_prefix, line, read};
use resolver_policy::Numbers;
use source::Source;
use std::time::Duration;

/// The longest value of an attribute, in octets.
const MAX_VALUE: usize = 255;
const HOUR: Duration = Duration::from_secs(3_600);

/// A number to be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number<'a> {
    /// Its digits.
    pub digits: &'a str,
    /// It begins with a country code.
    pub international: bool,
}

/// The facts about a number: attributes by name.
pub type Attributes = Vec<(String, String)>;

/// A lookup's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The number is known; valid for this time.
    Found(Attributes, Duration),
    /// The number is not known; valid for this time.
    Unknown(Duration),
    /// The lookup fails for now.
    TryLater,
}

/// An answer with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The answer.
    pub answer: Answer,
    /// For the traces of the messages.
    pub note: String,
}

/// The reason why a source has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nothing {
    /// It does not know the number; valid for this time, or the document's.
    Unknown(Option<Duration>),
    /// It fails for now, for this reason.
    Failed(String),
}

/// The sources, as the host makes them available.
pub trait Sources {
    /// The value of the best-matching row for the number in the table of a source.
    fn row(&self, source: usize, number: &str) -> Option<String>;
    /// The records of a name, sorted by order and preference, and their time to live in seconds.
    ///
    /// # Errors
    /// There are no records, or the query fails.
    fn naptrs(&self, name: &str) -> Result<(Vec<Naptr>, u32), Nothing>;
    /// The status and the body of a response.
    ///
    /// # Errors
    /// There is no response.
    fn fetch(&self, request: Request) -> Result<(u16, Vec<u8>), String>;
}

/// The checked document.
#[derive(Debug, Clone)]
pub struct Policy {
    valid: Duration,
    unknown_valid: Duration,
    only: Option<Vec<String>>,
    numbers: Numbers,
    sources: Vec<Source>,
    networks: Vec<Network>,
}

impl Policy {
    /// Parses and checks a document.
    ///
    /// # Errors
    /// The mistake, its position, and the correction.
    pub fn parse(text: &str) -> Result<Self, String> {
        let document: Document = read(text)?;
        if document.only.as_ref().is_some_and(Vec::is_empty) {
            return Err(
                "`only` is empty, so that no number would be looked up; leave it out for all numbers"
                    .to_owned(),
            );
        }
        for prefix in document.only.iter().flatten() {
            check_prefix(prefix).map_err(|what| format!("`only`: {what}"))?;
        }
        document.numbers.check()?;
        let mut networks: Vec<Network> = Vec::new();
        for written in document.network {
            let at = line(text, written.span());
            let network = written.into_inner();
            check_network(&network, &networks).map_err(|what| format!("line {at}: {what}"))?;
            networks.push(network);
        }
        if !(1..=8).contains(&document.source.len()) {
            return Err(format!("there are {} [[source]] entries; write 1 to 8", document.source.len()));
        }
        let mut sources = Vec::new();
        for written in document.source {
            let at = line(text, written.span());
            let source = Source::check(written.into_inner());
            sources.push(source.map_err(|what| format!("line {at}: {what}"))?);
        }
        Ok(Self {
            valid: document.valid.map_or(HOUR, |time| time.0),
            unknown_valid: document.unknown_valid.map_or(HOUR / 6, |time| time.0),
            only: document.only,
            numbers: document.numbers,
            sources,
            networks,
        })
    }

    /// The tables of the sources, with the index of each source.
    pub fn tables(&self) -> impl Iterator<Item = (usize, &str)> {
        self.sources.iter().enumerate().filter_map(|(index, source)| match source {
            Source::Table { table, .. } => Some((index, table.as_str())),
            Source::Enum { .. } | Source::Http(_) => None,
        })
    }

    /// Looks up a number: the first source that knows it answers.
    #[must_use]
    pub fn look_up(&self, number: Number<'_>, sources: &impl Sources) -> Outcome {
        let unknown =
            |note: &str| Outcome { answer: Answer::Unknown(self.unknown_valid), note: note.to_owned() };
        let written =
            if number.international { format!("+{}", number.digits) } else { number.digits.to_owned() };
        let Some(digits) = self.numbers.normalize(&written) else {
            return unknown("not a number of 1 to 15 digits");
        };
        if let Some(only) = &self.only
            && !only.iter().any(|prefix| digits.starts_with(prefix.as_str()))
        {
            return unknown("not among the numbers that are looked up");
        }
        let mut lifetime = self.unknown_valid;
        let mut failed: Option<String> = None;
        for (index, source) in self.sources.iter().enumerate() {
            match self.ask(index, source, &digits, sources) {
                Ok((attributes, valid)) => {
                    return Outcome { answer: Answer::Found(attributes, valid), note: source.to_string() };
                }
                Err(Nothing::Unknown(valid)) => lifetime = lifetime.min(valid.unwrap_or(self.unknown_valid)),
                Err(Nothing::Failed(why)) => failed = failed.or_else(|| Some(format!("{source}: {why}"))),
            }
        }
        match failed {
            Some(note) => Outcome { answer: Answer::TryLater, note },
            None => Outcome { answer: Answer::Unknown(lifetime), note: "in no source".to_owned() },
        }
    }

    fn ask(
        &self,
        index: usize,
        source: &Source,
        number: &str,
        sources: &impl Sources,
    ) -> Result<(Attributes, Duration), Nothing> {
        match source {
            Source::Table { ported, line_type, .. } => {
                let row = sources.row(index, number).ok_or(Nothing::Unknown(None))?;
                let found = self.row_attributes(&row, *ported, line_type.as_deref());
                Ok((found.map_err(Nothing::Failed)?, self.valid))
            }
            Source::Enum { apex } => {
                let (records, ttl) = sources.naptrs(&enum_record::domain(number, apex))?;
                let ttl = Duration::from_secs(u64::from(ttl));
                // Records of other services do not identify the network.
                let uri = enum_record::tel_uri(number, &records).ok_or(Nothing::Unknown(Some(ttl)))?;
                Ok((self.uri_attributes(uri), ttl))
            }
            Source::Http(service) => {
                let (status, body) = sources.fetch(service.request(number)).map_err(Nothing::Failed)?;
                let reply = json_reply::read(service, status, &body)?;
                let network = reply.network.map(|name| {
                    self.network(&name)
                        .ok_or_else(|| Nothing::Failed(format!("the unknown network {name:?}")))
                });
                let mut attributes = reply.attributes;
                if let Some(network) = network.transpose()? {
                    add_network(&mut attributes, network);
                }
                if attributes.is_empty() { Err(Nothing::Unknown(None)) } else { Ok((attributes, self.valid)) }
            }
        }
    }

    fn network(&self, name: &str) -> Option<&Network> {
        self.networks.iter().find(|network| network.name == name)
    }

    /// The attributes of a row: `NETWORK or MCC-MNC[,ported|,not-ported][,LINE TYPE]`.
    fn row_attributes(
        &self,
        row: &str,
        ported: Option<bool>,
        line_type: Option<&str>,
    ) -> Result<Attributes, String> {
        let mut words = row.split(',').map(str::trim);
        let name = words.next().unwrap_or_default();
        let mut attributes = Attributes::new();
        if let Some(network) = self.network(name) {
            add_network(&mut attributes, network);
        } else {
            let codes = name.split_once('-').filter(|(mcc, mnc)| is_code(mcc, 3..=3) && is_code(mnc, 2..=3));
            let (mcc, mnc) = codes.ok_or("the row has neither the name of a network nor MCC-MNC")?;
            set(&mut attributes, "mcc", mcc);
            set(&mut attributes, "mnc", mnc);
        }
        let mut ported = ported;
        let mut own_type = None;
        for word in words {
            match word {
                "" => {}
                "ported" => ported = Some(true),
                "not-ported" => ported = Some(false),
                other => own_type = Some(other),
            }
        }
        if let Some(ported) = ported {
            set(&mut attributes, "ported", yes_or_no(ported));
        }
        if let Some(own) = own_type {
            set(&mut attributes, "line-type", own);
        } else if let Some(line_type) = line_type
            && !attributes.iter().any(|(name, _)| name == "line-type")
        {
            set(&mut attributes, "line-type", line_type);
        }
        Ok(attributes)
    }

    /// The attributes of an ENUM record. A routing number means that the number is ported.
    fn uri_attributes(&self, uri: TelUri) -> Attributes {
        let mut attributes = Attributes::new();
        if uri.rn.is_some() || uri.is_dipped {
            set(&mut attributes, "ported", yes_or_no(uri.rn.is_some()));
        }
        let by_provider = |network: &&Network| uri.spn.as_ref().is_some_and(|spn| network.spn.contains(spn));
        let by_number = |network: &Network| {
            let rn = uri.rn.as_deref()?;
            let fits = network.rn.iter().filter(|beginning| rn.starts_with(beginning.as_str()));
            fits.map(String::len).max()
        };
        let network = self
            .networks
            .iter()
            .filter_map(|network| Some((by_number(network)?, network)))
            .max_by_key(|(length, _)| *length)
            .map(|(_, network)| network)
            .or_else(|| self.networks.iter().find(by_provider));
        if let Some(network) = network {
            add_network(&mut attributes, network);
        }
        for (name, value) in [("rn", uri.rn), ("spn", uri.spn)] {
            if let Some(value) = value {
                set(&mut attributes, name, &value);
            }
        }
        attributes
    }
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

/// Sets an attribute; a value longer than [`MAX_VALUE`] is truncated.
fn set(attributes: &mut Attributes, name: &str, value: &str) {
    let mut end = value.len().min(MAX_VALUE);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    attributes.retain(|(known, _)| known != name);
    attributes.push((name.to_owned(), value.get(..end).unwrap_or_default().to_owned()));
}

fn add_network(attributes: &mut Attributes, network: &Network) {
    let values = [("mcc", &network.mcc), ("mnc", &network.mnc), ("line-type", &network.line_type)];
    for (name, value) in values {
        if let Some(value) = value {
            set(attributes, name, value);
        }
    }
}

fn is_code(text: &str, length: std::ops::RangeInclusive<usize>) -> bool {
    length.contains(&text.len()) && text.bytes().all(|octet| octet.is_ascii_digit())
}

fn check_network(network: &Network, others: &[Network]) -> Result<(), String> {
    let Network { name, mcc, mnc, rn, .. } = network;
    if name.is_empty() || name.contains(',') || name.trim() != name {
        return Err(format!("`name` = {name:?}; a network has a name without commas and outer blanks"));
    }
    if others.iter().any(|other| other.name == *name) {
        return Err(format!("there are two networks {name:?}"));
    }
    if mcc.as_ref().is_some_and(|mcc| !is_code(mcc, 3..=3)) {
        return Err(format!("network {name:?}: `mcc` has three digits"));
    }
    if mnc.as_ref().is_some_and(|mnc| !is_code(mnc, 2..=3)) {
        return Err(format!("network {name:?}: `mnc` has two or three digits"));
    }
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|octet| octet.is_ascii_hexdigit());
    match rn.iter().find(|beginning| !is_number(beginning)) {
        Some(odd) => Err(format!(
            "network {name:?}: `rn` has {odd:?}; write the beginning of a routing number in hexadecimal digits, without a plus sign"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
