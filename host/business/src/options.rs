use configuration::{Keys, Section, Word};
use model::PeerId;
use ports::{IpNetwork, SourceRules, TlvRules};
use std::fmt;
use std::time::Duration;

/// Options shared by all accounts.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(live = "applies to the next calls")]
pub struct BusinessOptions {
    /// Maximum size of a request.
    #[key(size, default = "4MiB", restart = "the routes of the listener are built with it")]
    pub request_limit: usize,
    /// Maximum time that a request waits for the commit.
    #[key(default = "30s", was = "patience")]
    pub submit_timeout: Duration,
    /// Paths that plugins of the hook `front-end` serve, such as those of another product's API.
    #[key(name = "front-end")]
    pub front_ends: Vec<FrontEndPath>,
    /// Maximum number of concurrent password verifications.
    #[key(skip = 1)]
    pub verifications: usize,
}

impl Default for BusinessOptions {
    fn default() -> Self {
        Self::defaults()
    }
}

/// A path that a plugin of the hook `front-end` serves.
#[derive(Clone, Debug, PartialEq, Keys)]
#[keys(check = Self::check)]
pub struct FrontEndPath {
    /// The path, which includes all paths below it. The longest matching path applies.
    #[key(example = "/cgi-bin/sendsms")]
    pub path: String,
    /// The plugin, by the name of its binding.
    #[key(example = "kannel-front-end")]
    pub plugin: String,
}

impl FrontEndPath {
    fn check(&mut self, section: &Section<'_>) {
        let own = ["/v1", "/xmlrpc", "/RPC2"].iter().any(|own| is_below(&self.path, own));
        if !self.path.starts_with('/') || self.path.len() < 2 || self.path.ends_with('/') {
            section.error("path", "must begin with a slash, and end without one");
        } else if own {
            section.error("path", "is a path of the business API itself");
        }
        if self.plugin.is_empty() {
            section.error("plugin", "is missing");
        }
    }

    /// Whether a request with this path is served.
    pub(crate) fn matches(&self, path: &str) -> bool {
        is_below(path, &self.path)
    }
}

/// Whether a path is `base`, or below it.
fn is_below(path: &str, base: &str) -> bool {
    path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The format of pushes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Word)]
pub enum PushFormat {
    /// A JSON document.
    #[default]
    Json,
    /// An XML-RPC call of `sms.reply` or `sms.dlr` with one struct.
    XmlRpc,
}

/// The push target of MO messages and DLRs.
#[derive(Clone, PartialEq, Keys)]
#[keys(check = Self::check)]
pub struct PushOptions {
    /// An http or https URL.
    #[key(example = "https://shop.example/sms")]
    pub url: String,
    /// The format.
    #[key(default = "json")]
    pub format: PushFormat,
    /// The key of the signature; either this or `secret-file` is mandatory.
    #[key(secret, or_file)]
    pub secret: String,
    /// Maximum number of concurrent pushes. 1 preserves the order of all items, more preserve it per message.
    #[key(range = 1..=1000, default = 1)]
    pub window: usize,
    /// Maximum duration of a push.
    #[key(default = "10s")]
    pub timeout: Duration,
    /// Patterns of URLs that requests to front ends may name for their DLRs, such as `https://shop.example/dlr*`. `*.DOMAIN`
    /// or `*` in place of the host allows hosts with a public address. Without patterns, URLs in requests are ignored, and
    /// DLRs go to `url`.
    #[key(default_as = "none")]
    pub dlr_urls: Vec<String>,
}

impl PushOptions {
    fn check(&mut self, section: &Section<'_>) {
        if self.secret.is_empty() {
            section.error("secret", "is missing; pushes are signed with it");
        }
        if !self.url.is_empty() && !self.has_url() {
            section.error("url", "must be an http or https URL");
        }
        if self.dlr_urls.iter().any(|pattern| !crate::dlr_urls::is_pattern(pattern)) {
            let form =
                "must have patterns of the form https://HOST[:PORT]/PATH; a host may begin with *., or be *";
            section.error("dlr-urls", form);
        }
    }

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
            .field("dlr_urls", &self.dlr_urls)
            .finish_non_exhaustive()
    }
}

/// The options of a business system's account.
#[derive(Clone, Debug, PartialEq, Keys)]
pub struct BusinessAccountOptions {
    /// The name, which is also the login.
    #[key(skip)]
    pub name: String,
    /// The peer id.
    #[key(skip = PeerId(u32::MAX))]
    pub peer: PeerId,
    /// The argon2 hash of the password, in PHC format.
    #[key(skip)]
    pub password_hash: String,
    /// Networks from which it may call; empty: any network.
    #[key(skip)]
    pub networks: Vec<IpNetwork>,
    /// Maximum messages per second; `None`: no limit.
    #[key(skip)]
    pub rate: Option<f64>,
    /// Maximum burst.
    #[key(skip = 1)]
    pub burst: u32,
    /// The source addresses that it may use.
    #[key(skip)]
    pub source: SourceRules,
    /// TLVs that its messages must have, and TLVs that are added.
    #[key(skip)]
    pub tlv_rules: TlvRules,
    /// The validity of submissions that do not specify one.
    #[key(skip = Duration::from_secs(2 * 86_400))]
    pub validity: Duration,
    /// Maximum number of segments of a text.
    #[key(range = 1..=255, default = 10, was = "parts")]
    pub max_segments: usize,
    /// Maximum number of messages per request.
    #[key(range = 1..=60_000, default = 1000)]
    pub batch: usize,
    /// Lease of fetched items: the time within which they must be acknowledged.
    #[key(default = "60s")]
    pub lease: Duration,
    /// URL to which MO messages and DLRs are pushed. Without it they must be fetched.
    pub push: Option<PushOptions>,
}

impl BusinessAccountOptions {
    /// An account with defaults: no rate limit, ten segments, a thousand messages per call, leases of a minute, no
    /// pushes.
    #[must_use]
    pub fn new(name: &str, peer: PeerId, password_hash: &str) -> Self {
        Self { name: name.to_owned(), peer, password_hash: password_hash.to_owned(), ..Self::defaults() }
    }
}
