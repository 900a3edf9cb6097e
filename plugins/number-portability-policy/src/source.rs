use crate::document;
use std::fmt::{self, Display, Formatter};

/// The placeholder for the number in a URL.
const NUMBER: &str = "{number}";

/// A checked source.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Table { table: String, ported: Option<bool>, line_type: Option<String> },
    Enum { apex: String },
    Http(Service),
}

/// A service over HTTP.
#[derive(Debug, Clone)]
pub(crate) struct Service {
    url: String,
    headers: Vec<(String, String)>,
    /// Attribute and JSON pointer.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) network: Option<String>,
    pub(crate) unknown_status: Vec<u16>,
}

/// A request that is ready to be sent, by GET.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// With the number inserted.
    pub url: String,
    /// Names and values.
    pub headers: Vec<(String, String)>,
}

impl Service {
    pub(crate) fn request(&self, number: &str) -> Request {
        Request { url: self.url.replace(NUMBER, number), headers: self.headers.clone() }
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Table { table, .. } => write!(f, "table {table}"),
            Self::Enum { apex } => write!(f, "ENUM in {apex}"),
            Self::Http(service) => {
                let host = service.url.split('/').nth(2).unwrap_or_default();
                write!(f, "HTTP service at {host}")
            }
        }
    }
}

impl Source {
    /// # Errors
    /// The mistake and the correction.
    pub(crate) fn check(written: document::Source) -> Result<Self, String> {
        let document::Source {
            table,
            ported,
            line_type,
            apex,
            http,
            headers,
            fields,
            network,
            unknown_status,
        } = written;
        let only = |of: &str, is_set: bool, key: &str| {
            if is_set {
                Err(format!("`{key}` goes with `{of}`, which this source does not have"))
            } else {
                Ok(())
            }
        };
        if table.is_none() {
            only("table", ported.is_some(), "ported")?;
            only("table", line_type.is_some(), "line-type")?;
        }
        if http.is_none() {
            only("http", !headers.is_empty(), "headers")?;
            only("http", !fields.is_empty(), "fields")?;
            only("http", network.is_some(), "network")?;
            only("http", unknown_status.is_some(), "unknown-status")?;
        }
        match (table, apex, http) {
            (Some(table), None, None) if table.is_empty() => {
                Err("`table` is empty; it is to name an appliance table".to_owned())
            }
            (Some(table), None, None) => Ok(Self::Table { table, ported, line_type }),
            (None, Some(apex), None) => check_apex(&apex).map(|()| Self::Enum { apex }),
            (None, None, Some(url)) => {
                let unknown_status = unknown_status.unwrap_or_else(|| vec![404]);
                let service = Service {
                    url,
                    headers: headers.into_iter().collect(),
                    fields: fields.into_iter().collect(),
                    network,
                    unknown_status,
                };
                check_service(&service).map(|()| Self::Http(service))
            }
            _ => Err("a source has exactly one of `table`, `enum` and `http`".to_owned()),
        }
    }
}

fn check_apex(apex: &str) -> Result<(), String> {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|octet| octet.is_ascii_alphanumeric() || b"-_".contains(&octet))
    };
    // With 15 digits before it, a name has at most 253 octets.
    if apex.len() <= 200 && apex.split('.').all(is_label) {
        return Ok(());
    }
    Err(format!(
        "`enum` = {apex:?}; write the apex of a tree without a dot at its end, such as \"e164.arpa\""
    ))
}

fn check_service(service: &Service) -> Result<(), String> {
    let Service { url, headers, fields, network, unknown_status } = service;
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    let place = rest.and_then(|rest| rest.split_once('/'));
    match place {
        Some((host, path)) if !host.is_empty() && !host.contains(NUMBER) && path.contains(NUMBER) => {}
        _ => {
            return Err(format!(
                "`http` must be a URL like https://HOST/PATH with {NUMBER} in place of the number, after the host"
            ));
        }
    }
    let token = |octet: u8| octet.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&octet);
    let is_header = |(name, value): &&(String, String)| {
        !name.is_empty() && name.bytes().all(token) && !value.chars().any(char::is_control)
    };
    if let Some((name, _)) = headers.iter().find(|header| !is_header(header)) {
        return Err(format!(
            "`headers` has {name:?}, which is not a header name, or whose value has control characters"
        ));
    }
    if fields.is_empty() && network.is_none() {
        return Err("an HTTP source needs `fields` or `network`".to_owned());
    }
    let is_attribute = |name: &str| {
        (1..=64).contains(&name.len())
            && name
                .bytes()
                .all(|octet| octet.is_ascii_lowercase() || octet.is_ascii_digit() || b".-_".contains(&octet))
    };
    if let Some((name, _)) = fields.iter().find(|(name, _)| !is_attribute(name)) {
        return Err(format!(
            "`fields` has {name:?}; an attribute has 1 to 64 of a-z, 0-9, dot, hyphen and underscore"
        ));
    }
    if fields.len() > 28 {
        return Err(format!("`fields` has {} entries; the maximum is 28", fields.len()));
    }
    let mut pointers = fields.iter().map(|(_, pointer)| pointer).chain(network);
    if let Some(pointer) = pointers.find(|pointer| !pointer.starts_with('/')) {
        return Err(format!(
            "{pointer:?} is not a JSON pointer; write \"/network/mcc\" for a field within a field"
        ));
    }
    match unknown_status.iter().find(|status| !(200..600).contains(*status)) {
        Some(status) => Err(format!("`unknown-status` has {status}; a status is 200 to 599, mostly 404")),
        None => Ok(()),
    }
}
