use model::PeerId;
use ports::{IpNetwork, SourceRules};
use std::fmt;
use std::time::Duration;

/// Options shared by all accounts.
#[derive(Clone, Debug)]
pub struct BusinessOptions {
    /// Maximum size of a request, in octets.
    pub request_limit: usize,
    /// Maximum time that a call waits for the engine.
    pub submit_timeout: Duration,
    /// Maximum number of concurrent password verifications.
    pub verifications: usize,
}

impl Default for BusinessOptions {
    fn default() -> Self {
        Self { request_limit: 4 << 20, submit_timeout: Duration::from_secs(30), verifications: 1 }
    }
}

/// The format of pushes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PushFormat {
    /// A JSON document.
    #[default]
    Json,
    /// An XML-RPC call of `sms.reply` or `sms.dlr` with one struct.
    XmlRpc,
}

/// The push target of MO messages and DLRs.
#[derive(Clone, PartialEq)]
pub struct PushOptions {
    /// An http or https URL.
    pub url: String,
    /// The format.
    pub format: PushFormat,
    /// The key of the signature.
    pub secret: String,
    /// Maximum number of concurrent pushes. 1 preserves the order of all items, more preserve it per message.
    pub window: usize,
    /// Maximum duration of a push.
    pub timeout: Duration,
}

impl PushOptions {
    /// Whether the URL is a valid push target.
    #[must_use]
    pub fn has_url(&self) -> bool {
        let http = |url: &reqwest::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        reqwest::Url::parse(&self.url).is_ok_and(|url| http(&url))
    }
}

impl fmt::Debug for PushOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushOptions")
            .field("url", &self.url)
            .field("format", &self.format)
            .field("window", &self.window)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// The options of a business system's account.
#[derive(Clone, Debug, PartialEq)]
pub struct BusinessAccountOptions {
    /// The name, which is also the login.
    pub name: String,
    /// The peer id.
    pub peer: PeerId,
    /// The argon2 hash of the password, in PHC format.
    pub password_hash: String,
    /// Networks that it may call from; empty: any.
    pub networks: Vec<IpNetwork>,
    /// Maximum messages per second; `None`: no limit.
    pub rate: Option<f64>,
    /// Maximum burst.
    pub burst: u32,
    /// The source addresses that it may use.
    pub source: SourceRules,
    /// The validity of submissions that specify none.
    pub validity: Duration,
    /// Maximum number of segments of a text.
    pub max_segments: usize,
    /// Maximum number of messages per call.
    pub batch: usize,
    /// How long fetched items are leased until they must be acknowledged.
    pub lease: Duration,
    /// The push target, if any.
    pub push: Option<PushOptions>,
}

impl BusinessAccountOptions {
    /// An account with defaults: no rate limit, ten segments, a thousand messages per call, leases of a minute, no
    /// pushes.
    #[must_use]
    pub fn new(name: &str, peer: PeerId, password_hash: &str) -> Self {
        Self {
            name: name.to_owned(),
            peer,
            password_hash: password_hash.to_owned(),
            networks: Vec::new(),
            rate: None,
            burst: 1,
            source: SourceRules::default(),
            validity: Duration::from_secs(2 * 86_400),
            max_segments: 10,
            batch: 1000,
            lease: Duration::from_secs(60),
            push: None,
        }
    }
}
