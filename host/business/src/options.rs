use doors::{Network, SourceRules};
use model::PeerId;
use std::fmt;
use std::time::Duration;

/// What all accounts share.
#[derive(Clone, Debug)]
pub struct BusinessOptions {
    /// The largest request that is taken, in octets.
    pub request_limit: usize,
    /// How long a call waits for the engine before it is told to repeat itself.
    pub patience: Duration,
    /// Password verifications that may run at a time.
    pub verifications: usize,
}

impl Default for BusinessOptions {
    fn default() -> Self {
        Self { request_limit: 4 << 20, patience: Duration::from_secs(30), verifications: 1 }
    }
}

/// In which form replies and reports are pushed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PushFormat {
    /// One JSON document.
    #[default]
    Json,
    /// A method call, `sms.reply` or `sms.report`, with one struct.
    XmlRpc,
}

/// Where an account's replies and reports are pushed.
#[derive(Clone, PartialEq)]
pub struct PushOptions {
    /// An http or https URL.
    pub url: String,
    /// In which form.
    pub format: PushFormat,
    /// The key of the signature.
    pub secret: String,
    /// Pushes at a time; 1 keeps the order of all of them, more keep it per message.
    pub window: usize,
    /// How long one push may take.
    pub timeout: Duration,
}

impl PushOptions {
    /// Whether its URL is one that can be pushed to.
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

/// One business system.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountOptions {
    /// Its name, which is its login.
    pub name: String,
    /// Its number.
    pub peer: PeerId,
    /// The argon2 hash of its password, in PHC form.
    pub password_hash: String,
    /// Where it may call from; empty: from anywhere.
    pub networks: Vec<Network>,
    /// Messages a second; `None`: no limit.
    pub rate: Option<f64>,
    /// How many may come at once.
    pub burst: u32,
    /// Source addresses.
    pub source: SourceRules,
    /// The validity of submissions that name none.
    pub validity: Duration,
    /// Parts that a text may take.
    pub parts: usize,
    /// Messages that one call may submit.
    pub batch: usize,
    /// How long fetched items wait to be acknowledged before they are offered again.
    pub lease: Duration,
    /// Where replies and reports are pushed, if they are.
    pub push: Option<PushOptions>,
}

impl AccountOptions {
    /// An account with the defaults: no rate, ten parts, a thousand messages a call, leases of a minute, no pushes.
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
            parts: 10,
            batch: 1000,
            lease: Duration::from_secs(60),
            push: None,
        }
    }
}
