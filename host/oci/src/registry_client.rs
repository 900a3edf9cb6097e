mod transport;

use crate::content_store::{read_verified, verify};
use crate::location::{RegistryReference, is_tag};
use crate::manifest::{decode, encode};
use crate::{
    ContentDigest, ContentStore, Descriptor, ImageIndex, ImageManifest, MAX_MANIFEST_OCTETS, MAX_TAGS,
    OciError, RegistryCredentials, ResolvedManifest, TagList, media_type,
};
use serde::Deserialize;
use std::cell::RefCell;
use std::time::{Duration, Instant};
use transport::without_query;
use ureq::Body;
use ureq::http::{HeaderValue, Method, Response, StatusCode, header};
use ureq::tls::{RootCerts, TlsConfig};

/// Timeout of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a request with its response: enough for the largest component over a slow line.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);
/// The header with the digest of a response's manifest (OCI distribution spec 1.1, "Pulling manifests").
const DIGEST_HEADER: &str = "docker-content-digest";
/// The response header of a registry that maintains the list of referrers (OCI distribution spec 1.1, "Pushing Manifests
/// with Subject").
const SUBJECT_HEADER: &str = "oci-subject";

/// Number of tags in one request to a registry.
const TAGS_PER_PAGE: usize = 1000;
/// Maximum number of requests for tags. Some tags are not listed, so a list may need several requests.
const MAX_TAG_PAGES: usize = 10;

/// A response with tags (OCI distribution spec 1.1, "Listing Tags"). Some registries have `null` in place of an empty list.
#[derive(Deserialize)]
struct TagPage {
    #[serde(default)]
    tags: Option<Vec<String>>,
}

/// Options for access to a registry.
#[derive(Debug)]
pub struct RegistryOptions {
    /// Credentials, if the registry requires them.
    pub credentials: Option<RegistryCredentials>,
    /// Whether a registry on another machine is accessed without TLS. A registry on this machine (`localhost`, a loopback
    /// address) is always accessed without TLS.
    pub plain_http: bool,
    /// The trusted certificate authorities.
    pub roots: RootCerts,
    /// Time limit for all requests of the client together, from its creation on; `None`: each request has a timeout of ten
    /// minutes.
    pub time_limit: Option<Duration>,
}

/// A client of one repository of a registry (OCI distribution spec 1.1). It blocks.
///
/// Credentials go only to the registry, or to the token server that it names, over TLS unless plain HTTP is enabled. A
/// redirection to another host gets no credentials.
#[derive(Debug)]
pub struct RegistryClient {
    agent: ureq::Agent,
    reference: RegistryReference,
    /// Scheme, host and port.
    base: String,
    location: String,
    credentials: Option<RegistryCredentials>,
    plain_http: bool,
    deadline: Option<Instant>,
    /// The last value of `Authorization` that the registry accepted.
    authorization: RefCell<Option<HeaderValue>>,
}

impl RegistryClient {
    /// A client for the repository of this reference. Sends no request.
    #[must_use]
    pub fn new(reference: RegistryReference, options: RegistryOptions) -> Self {
        let RegistryOptions { credentials, plain_http, roots, time_limit } = options;
        let is_plain = plain_http || reference.is_loopback();
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .https_only(!is_plain)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .tls_config(TlsConfig::builder().root_certs(roots).build())
            .user_agent(concat!("switchyard/", env!("CARGO_PKG_VERSION")));
        let scheme = if is_plain { "http" } else { "https" };
        let base = format!("{scheme}://{}", reference.authority());
        let location = format!("oci://{}/{}", reference.authority(), reference.repository);
        Self {
            agent: config.build().new_agent(),
            reference,
            base,
            location,
            credentials,
            plain_http,
            deadline: time_limit.and_then(|limit| Instant::now().checked_add(limit)),
            authorization: RefCell::new(None),
        }
    }

    fn url(&self, rest: &str) -> String {
        format!("{}/v2/{}/{rest}", self.base, self.reference.repository)
    }

    /// The timeout of the next request.
    fn timeout(&self) -> Duration {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // A timeout of zero would mean no timeout.
        left.map_or(ANSWER_TIMEOUT, |left| left.clamp(Duration::from_millis(1), ANSWER_TIMEOUT))
    }

    fn is_registry(&self, url: &str) -> bool {
        url.strip_prefix(&self.base).is_some_and(|rest| rest.starts_with('/'))
    }

    /// The manifest or index of a tag or digest, and its digest; `None` if there is none.
    fn get_manifest(&self, name: &str) -> Result<Option<(ContentDigest, Vec<u8>)>, OciError> {
        let url = self.url(&format!("manifests/{name}"));
        let accept = format!("{}, {}", media_type::MANIFEST, media_type::INDEX);
        let answer = self.fetch(&Method::GET, &url, &[("accept", &accept)])?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let answer = self.check_success(&url, answer)?;
        let claimed = answer.headers().get(DIGEST_HEADER).and_then(|value| value.to_str().ok()?.parse().ok());
        let octets = self.read_body(&url, answer, MAX_MANIFEST_OCTETS, "the manifest")?;
        let digest = ContentDigest::of(&octets);
        for expected in claimed.into_iter().chain(name.parse().ok()) {
            verify(&self.location, expected, &octets)?;
        }
        Ok(Some((digest, octets)))
    }

    fn put_manifest(&self, name: &str, kind: &str, octets: &[u8]) -> Result<Response<Body>, OciError> {
        let url = self.url(&format!("manifests/{name}"));
        let answer = self.send(&Method::PUT, &url, &[("content-type", kind)], Some(octets))?;
        self.check_success(&url, answer)
    }

    /// The tag of the list of referrers for registries that do not maintain the list (OCI distribution spec 1.1, "Referrers
    /// Tag Schema").
    fn referrers_tag(subject: ContentDigest) -> String {
        format!("sha256-{}", subject.digits())
    }

    fn tagged_referrers(&self, subject: ContentDigest) -> Result<Option<ImageIndex>, OciError> {
        let found = self.get_manifest(&Self::referrers_tag(subject))?;
        found.map(|(_, octets)| decode(&self.location, "the list of referrers", &octets)).transpose()
    }

    /// The URL to which the octets of a blob are uploaded.
    fn upload_url(&self, answer: &Response<Body>, digest: ContentDigest) -> Result<String, OciError> {
        let url = self.next_url(answer)?;
        let separator = if url.contains('?') { '&' } else { '?' };
        Ok(format!("{url}{separator}digest={digest}"))
    }
}

impl ContentStore for RegistryClient {
    fn location(&self) -> String {
        self.location.clone()
    }

    fn resolve(&self) -> Result<ResolvedManifest, OciError> {
        let RegistryReference { tag, digest, .. } = &self.reference;
        let digest = digest.map(|digest| digest.to_string());
        let name = digest.or_else(|| tag.clone()).ok_or_else(|| OciError::Usage {
            location: self.location.clone(),
            why: "a tag or a digest is needed: REPOSITORY:TAG or REPOSITORY@sha256:DIGEST",
        })?;
        let found = self.get_manifest(&name)?;
        let (digest, octets) = found.ok_or_else(|| OciError::not_found(&self.location, &name))?;
        Ok(ResolvedManifest { digest, manifest: ImageManifest::decode(&self.location, &octets)? })
    }

    fn tags(&self) -> Result<TagList, OciError> {
        let mut tags: Vec<String> = Vec::new();
        for _ in 0..MAX_TAG_PAGES {
            // The parameter `last` is equivalent to the header `Link` of the previous response, and cannot lead to another
            // host.
            let last = tags.last().map(|last| format!("&last={last}"));
            let url = self.url(&format!("tags/list?n={TAGS_PER_PAGE}{}", last.unwrap_or_default()));
            let answer = self.fetch(&Method::GET, &url, &[])?;
            if answer.status() == StatusCode::NOT_FOUND {
                return Err(OciError::not_found(&self.location, &"tags"));
            }
            let answer = self.check_success(&url, answer)?;
            let has_more = answer.headers().contains_key(header::LINK);
            let octets = self.read_body(&url, answer, MAX_MANIFEST_OCTETS, "the list of tags")?;
            let page: TagPage = decode(&self.location, "the list of tags", &octets)?;
            let before = tags.len();
            tags.extend(page.tags.unwrap_or_default().into_iter().filter(|tag| is_tag(tag)));
            if !has_more {
                return Ok(TagList::of(tags, true));
            }
            if tags.len() == before || tags.len() > 2 * MAX_TAGS {
                break;
            }
        }
        Ok(TagList::of(tags, false))
    }

    fn read_manifest(&self, descriptor: &Descriptor) -> Result<ImageManifest, OciError> {
        let found = self.get_manifest(&descriptor.digest.to_string())?;
        let (_, octets) = found.ok_or_else(|| OciError::not_found(&self.location, &descriptor.digest))?;
        ImageManifest::decode(&self.location, &octets)
    }

    fn read_blob(&self, descriptor: &Descriptor, limit: u64) -> Result<Vec<u8>, OciError> {
        let url = self.url(&format!("blobs/{}", descriptor.digest));
        if descriptor.size > limit {
            return Err(OciError::too_large(&self.location, &descriptor.digest, limit));
        }
        let answer = self.fetch(&Method::GET, &url, &[])?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Err(OciError::not_found(&self.location, &descriptor.digest));
        }
        let body = self.check_success(&url, answer)?.into_body().into_reader();
        read_verified(&self.location, descriptor, limit, body, |error| OciError::Unreachable {
            url: without_query(&url),
            why: error.to_string(),
        })
    }

    fn write_blob(&self, descriptor: &Descriptor, octets: &[u8]) -> Result<(), OciError> {
        let url = self.url(&format!("blobs/{}", descriptor.digest));
        let answer = self.fetch(&Method::HEAD, &url, &[])?;
        if answer.status().is_success() {
            return Ok(());
        }
        if answer.status() != StatusCode::NOT_FOUND {
            self.check_success(&url, answer)?;
        }
        // "Pushing a blob monolithically", POST then PUT.
        let url = self.url("blobs/uploads/");
        let answer = self.check_success(&url, self.send(&Method::POST, &url, &[], Some(&[]))?)?;
        let url = self.upload_url(&answer, descriptor.digest)?;
        let kind = [("content-type", "application/octet-stream")];
        let answer = self.send(&Method::PUT, &url, &kind, Some(octets))?;
        self.check_success(&url, answer).map(drop)
    }

    fn write_manifest(&self, manifest: &ImageManifest, tag: Option<&str>) -> Result<Descriptor, OciError> {
        let (descriptor, octets) = manifest.encode(&self.location)?;
        let digest = descriptor.digest.to_string();
        let answer = self.put_manifest(tag.unwrap_or(&digest), media_type::MANIFEST, &octets)?;
        if let Some(subject) = manifest.subject.as_ref().map(|subject| subject.digest)
            && !answer.headers().contains_key(SUBJECT_HEADER)
        {
            let mut index = self.tagged_referrers(subject)?.unwrap_or_default();
            index.manifests.retain(|entry| entry.digest != descriptor.digest);
            index.manifests.push(descriptor.clone());
            let octets = encode(&self.location, "the list of referrers", &index)?;
            self.put_manifest(&Self::referrers_tag(subject), media_type::INDEX, &octets)?;
        }
        Ok(descriptor)
    }

    fn referrers(&self, subject: ContentDigest) -> Result<Vec<Descriptor>, OciError> {
        let url = self.url(&format!("referrers/{subject}"));
        let answer = self.fetch(&Method::GET, &url, &[("accept", media_type::INDEX)])?;
        // The specification requires 404; older registries answer with other statuses for an unknown path.
        let unknown = [StatusCode::NOT_FOUND, StatusCode::BAD_REQUEST, StatusCode::METHOD_NOT_ALLOWED];
        let index = if unknown.contains(&answer.status()) {
            self.tagged_referrers(subject)?
        } else {
            let answer = self.check_success(&url, answer)?;
            let octets = self.read_body(&url, answer, MAX_MANIFEST_OCTETS, "the list of referrers")?;
            Some(decode(&self.location, "the list of referrers", &octets)?)
        };
        Ok(index.unwrap_or_default().manifests)
    }
}
