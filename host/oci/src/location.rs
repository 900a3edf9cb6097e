//! The location of an artifact: a registry or a folder, with a tag, a digest, or both.

use crate::{ContentDigest, OciError};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

const REGISTRY: &str = "oci://";
const LAYOUT: &str = "oci-layout:";
/// Maximum length of host, port and repository that clients accept, in octets (OCI distribution spec 1.1, "Pulling
/// manifests").
const MAX_NAME: usize = 255;
/// Maximum length of a tag, in octets (OCI distribution spec 1.1, "Pulling manifests").
const MAX_TAG: usize = 128;

/// A repository of a registry, with a tag or a digest: `oci://HOST[:PORT]/REPOSITORY[:TAG][@sha256:DIGEST]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistryReference {
    /// A DNS name, an IPv4 address, or an IPv6 address in brackets, as in a URL.
    pub(crate) host: String,
    /// `None`: the usual port of the scheme.
    pub(crate) port: Option<u16>,
    pub(crate) repository: String,
    pub(crate) tag: Option<String>,
    pub(crate) digest: Option<ContentDigest>,
}

/// A folder with an image layout, with a tag or a digest: `oci-layout:FOLDER[:TAG][@sha256:DIGEST]`.
///
/// The text after the last colon is the tag, if it is a valid tag. If the name of the folder contains such a colon, a tag is
/// required.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutReference {
    pub(crate) folder: PathBuf,
    pub(crate) tag: Option<String>,
    pub(crate) digest: Option<ContentDigest>,
}

/// The location of an artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArtifactLocation {
    /// In a registry.
    Registry(RegistryReference),
    /// In a folder.
    Layout(LayoutReference),
}

impl ArtifactLocation {
    /// Whether a text is meant as a location: whether it starts with `oci://` or `oci-layout:`.
    #[must_use]
    pub fn is_location(text: &str) -> bool {
        text.starts_with(REGISTRY) || text.starts_with(LAYOUT)
    }

    /// The tag.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        match self {
            Self::Registry(reference) => reference.tag.as_deref(),
            Self::Layout(reference) => reference.tag.as_deref(),
        }
    }

    /// The digest.
    #[must_use]
    pub fn digest(&self) -> Option<ContentDigest> {
        match self {
            Self::Registry(reference) => reference.digest,
            Self::Layout(reference) => reference.digest,
        }
    }

    /// The last part of the repository's name; `None` for a folder, whose name is independent of the plugin.
    #[must_use]
    pub fn repository_name(&self) -> Option<&str> {
        match self {
            Self::Registry(reference) => reference.repository.rsplit('/').next(),
            Self::Layout(_) => None,
        }
    }

    /// The same location with this digest and without a tag: it always identifies the same artifact.
    #[must_use]
    pub fn bound_to(&self, digest: ContentDigest) -> Self {
        let (tag, digest) = (None, Some(digest));
        match self.clone() {
            Self::Registry(reference) => Self::Registry(RegistryReference { tag, digest, ..reference }),
            Self::Layout(reference) => Self::Layout(LayoutReference { tag, digest, ..reference }),
        }
    }
}

impl FromStr for ArtifactLocation {
    type Err = OciError;

    /// # Errors
    /// [`OciError::Location`], without a quotation: a mistyped reference may contain a password.
    fn from_str(text: &str) -> Result<Self, OciError> {
        if let Some(rest) = text.strip_prefix(REGISTRY) {
            return registry(rest).map(Self::Registry);
        }
        let rest = text.strip_prefix(LAYOUT);
        let rest = rest.ok_or(OciError::Location("it starts with neither oci:// nor oci-layout:"))?;
        layout(rest).map(Self::Layout)
    }
}

fn registry(rest: &str) -> Result<RegistryReference, OciError> {
    let wrong = |why| Err(OciError::Location(why));
    let Some((authority, path)) = rest.split_once('/') else {
        return wrong("a host and a repository are needed");
    };
    if authority.contains('@') {
        return wrong("credentials have no place in a reference; see --auth-file");
    }
    let (host, port) = host_and_port(authority)?;
    let (name, digest) = split_digest(path)?;
    let (repository, tag) = match name.split_once(':') {
        Some((repository, tag)) => (repository, Some(tag)),
        None => (name, None),
    };
    if !is_repository(repository) {
        return wrong(
            "a repository has small letters and digits, with '.', '_', '-' between them, and parts separated by '/'",
        );
    }
    if authority.len() + 1 + repository.len() > MAX_NAME {
        return wrong("host and repository have more than 255 octets");
    }
    if tag.is_some_and(|tag| !is_tag(tag)) {
        return wrong(
            "a tag has up to 128 letters, digits, '.', '_' and '-', and does not start with '.' or '-'",
        );
    }
    let tag = tag.map(str::to_owned);
    Ok(RegistryReference { host: host.to_owned(), port, repository: repository.to_owned(), tag, digest })
}

fn layout(rest: &str) -> Result<LayoutReference, OciError> {
    // A folder may contain '@'.
    let (name, digest) = if rest.contains("@sha256:") { split_digest(rest)? } else { (rest, None) };
    let (folder, tag) = match name.rsplit_once(':') {
        Some((folder, tag)) if is_tag(tag) => (folder, Some(tag.to_owned())),
        Some((_, tag)) if !tag.contains('/') => {
            return Err(OciError::Location(
                "a tag has up to 128 letters, digits, '.', '_' and '-', and does not start with '.' or '-'",
            ));
        }
        _ => (name, None),
    };
    if folder.is_empty() {
        return Err(OciError::Location("a folder is needed"));
    }
    Ok(LayoutReference { folder: Path::new(folder).to_owned(), tag, digest })
}

fn split_digest(text: &str) -> Result<(&str, Option<ContentDigest>), OciError> {
    match text.rsplit_once('@') {
        Some((name, digest)) => match digest.parse() {
            Ok(digest) => Ok((name, Some(digest))),
            Err(_) => Err(OciError::Location(
                "after '@' there must be sha256: and 64 hexadecimal digits in lower case",
            )),
        },
        None => Ok((text, None)),
    }
}

fn host_and_port(authority: &str) -> Result<(&str, Option<u16>), OciError> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let end = rest.find(']').ok_or(OciError::Location("an IPv6 address ends with ']'"))?;
            let (address, port) = rest.split_at(end);
            if address.parse::<Ipv6Addr>().is_err() {
                return Err(OciError::Location("the address in brackets is not an IPv6 address"));
            }
            // With both brackets.
            let (host, _) = authority.split_at(end + 2);
            let port = port.strip_prefix(']').unwrap_or_default();
            match port.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if port.is_empty() => (host, None),
                None => return Err(OciError::Location("after ']' there must be ':' and a port, or nothing")),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if !host.starts_with('[') && !is_dns_name(host) {
        return Err(OciError::Location("the host is neither a DNS name nor an IP address"));
    }
    let port = match port {
        // `parse` would accept a sign.
        Some(port) if port.bytes().all(|digit| digit.is_ascii_digit()) => {
            Some(port.parse().ok().filter(|port| *port != 0))
        }
        Some(_) => Some(None),
        None => None,
    };
    match port {
        Some(None) => Err(OciError::Location("the port is not a number from 1 to 65535")),
        port => Ok((host, port.flatten())),
    }
}

fn is_dns_name(host: &str) -> bool {
    host.split('.').all(|label| {
        let fits = (1..=63).contains(&label.len());
        fits && label.bytes().all(|octet| octet.is_ascii_alphanumeric() || octet == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    })
}

/// `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`, with more such parts after each `/` (OCI distribution spec 1.1, "Pulling
/// manifests").
fn is_repository(name: &str) -> bool {
    name.split('/').all(|part| {
        let is_word = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit();
        let separators = part.split(|character: char| character.is_ascii() && is_word(character as u8));
        let separators = separators.filter(|separator| !separator.is_empty());
        let valid = |separator: &str| {
            matches!(separator, "." | "_" | "__") || separator.bytes().all(|octet| octet == b'-')
        };
        let ends = [part.bytes().next(), part.bytes().last()];
        ends.into_iter().all(|octet| octet.is_some_and(is_word)) && separators.into_iter().all(valid)
    })
}

/// Whether a text is a tag: `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}` (OCI distribution spec 1.1, "Pulling manifests").
#[must_use]
pub fn is_tag(tag: &str) -> bool {
    let is_word = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'_';
    tag.len() <= MAX_TAG
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|octet| is_word(octet) || matches!(octet, b'.' | b'-'))
}

impl RegistryReference {
    /// Host and port, as in a URL.
    pub(crate) fn authority(&self) -> String {
        self.port.map_or_else(|| self.host.clone(), |port| format!("{}:{port}", self.host))
    }

    /// Whether the host is this machine: such a registry is accessed without TLS.
    pub(crate) fn is_loopback(&self) -> bool {
        let address = self.host.trim_matches(['[', ']']);
        self.host == "localhost"
            || address.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
            || address.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback())
    }
}

fn write_ending(
    out: &mut fmt::Formatter<'_>,
    tag: Option<&str>,
    digest: Option<ContentDigest>,
) -> fmt::Result {
    if let Some(tag) = tag {
        write!(out, ":{tag}")?;
    }
    digest.map_or(Ok(()), |digest| write!(out, "@{digest}"))
}

impl fmt::Display for RegistryReference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{REGISTRY}{}/{}", self.authority(), self.repository)?;
        write_ending(out, self.tag.as_deref(), self.digest)
    }
}

impl fmt::Display for LayoutReference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{LAYOUT}{}", self.folder.display())?;
        write_ending(out, self.tag.as_deref(), self.digest)
    }
}

impl fmt::Display for ArtifactLocation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(reference) => reference.fmt(out),
            Self::Layout(reference) => reference.fmt(out),
        }
    }
}

#[cfg(test)]
mod tests;
