//! Accounts, peers, gateways, core networks, the local socket and the Redis listener: the options of each with
//! its queue.

use super::branch_limits::BranchLimitKeys;
use super::pace;
use super::plugins::InitialPlugin;
use super::queues::{UNASSIGNED_PEER, addressee_queue};
use super::unique_names::check_unique;
use ::pools::RedisOptions;
use business::BusinessAccountOptions;
use configuration::{KeyFormat, Keys, Section, Shape};
use engine::{PeerSettings, UncertainPolicy};
use gsm::GsmOptions;
use links::{GatewayKind, LinkAccountOptions, PeerOptions, RemotePeerOptions};
use model::{MessageChanges, PeerId};
use numbering::NumberPlans;
use plugin_peers::PluginPeerOptions;
use ports::{Protocol, default_burst};
use serde_json::json;
use shell::ShellOptions;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const DLR_GROUPS: &[(&str, bool, &str)] =
    &[("merged", false, "One DLR per message."), ("per-segment", true, "One DLR per segment.")];

/// `[[account]]`: options of its links and its queue.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "takes effect at once", check = Self::complete)]
pub(crate) struct Account {
    #[key(flatten)]
    pub(crate) links: LinkAccountOptions,
    #[key(skip = PeerSettings::new(UNASSIGNED_PEER))]
    pub(crate) queue: PeerSettings,
    /// The tenant of the account: the name of a `[[tenant]]`.
    #[key(default_as = "none: the account is the operator's own")]
    pub(crate) tenant: Option<String>,
    /// The partition of the cluster that serves the account, with its idempotency keys, balance, limits and messages.
    /// Move an account only when none of its messages wait: messages, balance and leased numbers stay in the old
    /// partition.
    #[key(range = 0..=127, default = 0, live = "its connections are closed, and passed on to its new partition from then on")]
    pub(crate) partition: u8,
    /// Other partitions in which MO messages for the account arrive, such as the home of a peer. Their leaders pass the
    /// messages on to the account's partition.
    #[key(default_as = "none: such messages have no route", live = "connections are opened and closed")]
    pub(crate) mo_partitions: Vec<u8>,
    #[key(flatten)]
    pub(crate) limits: BranchLimitKeys,
    /// Maximum number of MO messages and DLRs in the account's queue.
    #[key(range = 1.., default = 1_000_000)]
    queue_limit: u64,
    /// Whether each segment of a concatenated message gets a DLR, instead of one for the message.
    #[key(name = "dlrs", words = DLR_GROUPS, default = "merged", label = "DLRs", was = "reports")]
    segment_dlrs: bool,
    /// Memory for idempotency keys; 256MiB hold about two million. When it is full, submissions with new keys are
    /// refused until the oldest key is older than `idempotency-retention` of `[engine]`.
    #[key(size, default = "256MiB")]
    idempotency_memory: usize,
    /// Whether subscribers can opt out of the account's messages.
    #[key(default = true)]
    opt_out: bool,
    /// Pace buckets from which the account's submissions take tokens: at most 8 names of `[[pace-bucket]]`.
    #[key(default_as = "none", reference = "pace-bucket")]
    pace_buckets: Vec<String>,
    /// Send windows of the account's submissions: at most 4 names of `[[send-window]]`. A submission waits until one
    /// of them is open.
    #[key(default_as = "always", reference = "send-window")]
    send_windows: Vec<String>,
    /// How long the texts of the account's messages are kept in the archive, counted from their acceptance, for
    /// example 30d.
    #[key(default_as = "as long as the messages", live = "applies within ten minutes")]
    pub(crate) text_retention: Option<Duration>,
    /// Whether the account's texts are encrypted, with keys that are destroyed at the end of their retention. Requires
    /// `root-key-file` of `[privacy]`.
    #[key(
        default_as = "`encrypt-texts` of `[privacy]`",
        live = "applies to texts that are written from then on"
    )]
    pub(crate) encrypt_texts: Option<bool>,
    /// Attributes of the account's messages for plugins: names (a-z, 0-9, dot, hyphen and underscore) and values, for
    /// example `{ brand = "B12345" }`.
    #[key(format = Attributes, default_as = "none")]
    pub(crate) attributes: BTreeMap<String, String>,
    /// The HTTP settings of an account that is a business system.
    #[key(live = "applies to its next calls and pushes")]
    pub(crate) business: Option<BusinessAccountOptions>,
}

/// Attributes of an account: names and values.
struct Attributes;

impl KeyFormat<BTreeMap<String, String>> for Attributes {
    fn read(&self, section: &Section<'_>, key: &'static str) -> Option<BTreeMap<String, String>> {
        let mut attributes = BTreeMap::new();
        for (name, value) in section.section(key).pairs() {
            if !MessageChanges::is_attribute_name(name) {
                let what = "a name has 1 to 64 of a-z, 0-9, dot, hyphen and underscore";
                section.error(key, format!("has the name {name:?}: {what}"));
            } else if value.len() > MessageChanges::MAX_ATTRIBUTE {
                let most = MessageChanges::MAX_ATTRIBUTE;
                section.error(key, format!("has more than {most} octets for {name:?}"));
            } else {
                attributes.insert(name.to_owned(), value.to_owned());
            }
        }
        Some(attributes)
    }

    fn shape(&self) -> Shape {
        Shape::Map(Box::new(Shape::Value("string", json!({ "type": "string" }))))
    }
}

impl Account {
    /// The pace buckets of its submissions.
    pub(super) fn pace_buckets(&self) -> &[String] {
        &self.pace_buckets
    }

    fn complete(&mut self, _: &Section<'_>) {
        self.queue = PeerSettings {
            queue_limit: self.queue_limit,
            segment_dlrs: self.segment_dlrs,
            opt_out: self.opt_out,
            submit_pace: pace::names(&self.pace_buckets, &self.send_windows),
            idempotency_key_memory: self.idempotency_memory,
            ..addressee_queue()
        };
        if let Some(business) = self.business.take() {
            let links = &self.links;
            self.business = Some(BusinessAccountOptions {
                name: links.name.clone(),
                password_hash: links.password_hash.clone(),
                networks: links.networks.clone(),
                rate: links.rate,
                burst: links.burst,
                source: links.source.clone(),
                tlv_rules: links.tlv_rules.clone(),
                validity: links.validity,
                ..business
            });
        }
    }
}

/// The keys of a queue.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "takes effect at once; its links stay up")]
pub(crate) struct QueueKeys {
    /// Maximum number of messages per second to the peer, over all its links.
    #[key(default_as = "no limit", label = "Rate")]
    rate: Option<f64>,
    /// Maximum number of messages in a burst.
    #[key(range = 1..=10_000_000, default_as = "a tenth of `rate`", default_with = default_burst(rate))]
    burst: u32,
    /// Maximum number of queued messages; further ones are refused.
    #[key(range = 1.., default = 20_000_000)]
    queue_limit: u64,
    /// Whether the peer sends DLRs.
    #[key(default = true, label = "Requests DLRs", was = "receipts")]
    dlrs: bool,
    /// How long the appliance waits for a DLR.
    #[key(default = "3d", was = "receipt-limit")]
    dlr_timeout: Duration,
    /// Maximum time for which a message stays uncertain.
    #[key(default = "1h", was = "uncertain-limit")]
    uncertain_timeout: Duration,
    /// Delays between attempts; the last one is repeated.
    #[key(default = ["10s", "30s", "1m", "5m", "15m", "1h"], label = "Retry schedule")]
    retry: Vec<Duration>,
    /// Maximum number of attempts; 0: unlimited during the validity.
    #[key(range = 0..=10_000, default = 0)]
    max_attempts: u16,
    /// Pace buckets from which messages to the peer take tokens: at most 8 names of `[[pace-bucket]]`.
    #[key(default_as = "none", reference = "pace-bucket")]
    pace_buckets: Vec<String>,
    /// Send windows of messages to the peer: at most 4 names of `[[send-window]]`. A message waits until one of them
    /// is open.
    #[key(default_as = "always", reference = "send-window")]
    send_windows: Vec<String>,
    /// The account that receives MO messages of the peer that no route matches.
    #[key(label = "Default account", reference = "account")]
    pub(crate) default_account: Option<String>,
}

impl QueueKeys {
    fn settings(&self, uncertainty: UncertainPolicy) -> PeerSettings {
        PeerSettings {
            rate: self.rate,
            burst: self.burst,
            queue_limit: self.queue_limit,
            sends_dlrs: self.dlrs,
            dlr_timeout: self.dlr_timeout,
            uncertainty,
            uncertain_limit: self.uncertain_timeout,
            retry: self.retry.clone(),
            max_attempts: self.max_attempts,
            send_pace: pace::names(&self.pace_buckets, &self.send_windows),
            ..PeerSettings::new(UNASSIGNED_PEER)
        }
    }
}

type UncertainWord = (&'static str, UncertainPolicy, &'static str);
const RESUBMIT: UncertainWord =
    ("send-again", UncertainPolicy::SendAgain, "The message is sent again; the subscriber may get it twice.");
const AWAIT_DLR: UncertainWord = ("await-dlr", UncertainPolicy::AwaitDlr, "The message waits for a DLR.");
const QUERY: UncertainWord = ("query", UncertainPolicy::Query, "The peer is asked with query_sm.");

/// `[[peer]]`: options of its links and its queue. Its peer id is assigned later.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "takes effect at once; its links stay up", check = Self::complete)]
pub(crate) struct Peer {
    #[key(flatten)]
    pub(crate) links: PeerOptions,
    #[key(flatten)]
    pub(crate) keys: QueueKeys,
    /// The treatment of a message without a response.
    #[key(words = &[AWAIT_DLR, RESUBMIT, QUERY], default = "await-dlr", label = "Uncertain messages")]
    uncertain: UncertainPolicy,
    /// The peer group. The peers of a group share their DLRs.
    #[key(label = "Group")]
    pub(crate) group: Option<String>,
    #[key(flatten)]
    pub(crate) home: HomePartitionKey,
    #[key(skip = PeerSettings::new(UNASSIGNED_PEER))]
    pub(crate) queue: PeerSettings,
}

/// The key of peers, gateways and plugin peers that names their home.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "its links are closed, and its new home opens them")]
pub(crate) struct HomePartitionKey {
    /// The home of the peer: the partition of the cluster that has the links to it. The other partitions submit to its leader.
    #[key(range = 0..=127, default_as = "none: each partition has its own links", label = "Home partition")]
    pub(crate) partition: Option<u8>,
}

impl Peer {
    fn complete(&mut self, _: &Section<'_>) {
        self.queue = self.keys.settings(self.uncertain);
    }

    /// The options of the link to its home, if that is another partition.
    pub(super) fn remote_options(&self) -> Option<RemotePeerOptions> {
        let links = &self.links;
        let window = links.links * links.window;
        remote_options(&links.name, self.home.partition, &self.queue, (Protocol::Smpp, window))
    }
}

/// The options of the link to the home of a peer, if that is another partition: of a peer with this protocol and window at its
/// home.
fn remote_options(
    name: &str,
    home: Option<u8>,
    queue: &PeerSettings,
    (protocol, window): (Protocol, usize),
) -> Option<RemotePeerOptions> {
    let partition = home.filter(|_| queue.remote)?;
    // Twice the window, since an outcome takes two commits and the way back.
    let window = (2 * window).clamp(100, 10_000);
    let account_attributes = HashMap::new();
    let (name, peer, protocol) = (name.to_owned(), queue.peer, Some(protocol));
    Some(RemotePeerOptions { name, peer, partition, window, protocol, account_attributes })
}

/// `[[plugin-peer]]`: options of its link, its initial binding and its queue.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "takes effect at once; its link stays up", check = Self::complete)]
pub(crate) struct PluginPeer {
    #[key(flatten)]
    pub(crate) link: PluginPeerOptions,
    #[key(flatten)]
    pub(super) plugin: InitialPlugin,
    #[key(flatten)]
    pub(crate) keys: QueueKeys,
    /// The treatment of a message without an answer of the peer.
    #[key(words = &[AWAIT_DLR, RESUBMIT], default = "await-dlr", label = "Uncertain messages")]
    uncertain: UncertainPolicy,
    #[key(flatten)]
    pub(crate) home: HomePartitionKey,
    #[key(skip = PeerSettings::new(UNASSIGNED_PEER))]
    pub(crate) queue: PeerSettings,
}

impl PluginPeer {
    fn complete(&mut self, _: &Section<'_>) {
        self.queue = self.keys.settings(self.uncertain);
    }

    /// The options of the link to its home, if that is another partition. Its plugin may read the attributes of accounts.
    pub(super) fn remote_options(
        &self,
        account_attributes: HashMap<PeerId, BTreeMap<String, String>>,
    ) -> Option<RemotePeerOptions> {
        let (name, window) = (&self.link.name, self.link.window);
        let options = remote_options(name, self.home.partition, &self.queue, (Protocol::Http, window))?;
        Some(RemotePeerOptions { account_attributes, ..options })
    }
}

/// `[[gateway]]`: options of its links and its queue.
#[derive(Debug, Clone, PartialEq, Keys)]
#[keys(live = "takes effect at once; its links stay up", check = Self::complete)]
pub(crate) struct Gateway {
    #[key(flatten)]
    pub(crate) links: GatewayKind,
    #[key(flatten)]
    pub(crate) keys: QueueKeys,
    /// The treatment of a message without a response. Over SGIP, a repeated Submit has the same sequence number, by
    /// which the gateway recognises it. Over CMPP and SMGP, a repetition is another message.
    #[key(words = &[RESUBMIT, AWAIT_DLR], default = "send-again", default_as = "send-again with SGIP, otherwise await-dlr",
        label = "Uncertain messages")]
    uncertain: UncertainPolicy,
    #[key(flatten)]
    pub(crate) home: HomePartitionKey,
    #[key(skip = PeerSettings::new(UNASSIGNED_PEER))]
    pub(crate) queue: PeerSettings,
}

impl Gateway {
    fn complete(&mut self, section: &Section<'_>) {
        if !section.has("uncertain") && !self.links.recognizes_repetitions() {
            self.uncertain = UncertainPolicy::AwaitDlr;
        }
        self.queue = self.keys.settings(self.uncertain);
    }

    /// The options of the link to its home, if that is another partition.
    pub(super) fn remote_options(&self) -> Option<RemotePeerOptions> {
        let links = &self.links;
        let window = links.connections() * links.window();
        remote_options(links.name(), self.home.partition, &self.queue, (links.protocol(), window))
    }
}

/// `[[gsm]]`: a core network, with the options of its links and its queue.
#[derive(Debug, Clone, Keys)]
#[keys(check = Self::complete)]
pub(crate) struct Network {
    #[key(flatten)]
    pub(crate) links: GsmOptions,
    #[key(flatten)]
    pub(crate) keys: QueueKeys,
    /// The treatment of a message without a response. A handset recognises a repeated message.
    #[key(words = &[RESUBMIT, AWAIT_DLR], default = "send-again", live = "takes effect at once; its links stay up")]
    uncertain: UncertainPolicy,
    /// The name of the number plan.
    #[key(default_as = "the document's default plan")]
    number_plan: Option<String>,
    /// The home of the core network: the partition of the cluster that has the links to it. The other partitions submit to its
    /// leader, and look up subscribers over `ctrl`.
    #[key(range = 0..=127, default_as = "none: the section is in the file of one process", label = "Home partition")]
    pub(crate) partition: Option<u8>,
    #[key(skip = PeerSettings::new(UNASSIGNED_PEER))]
    pub(crate) queue: PeerSettings,
}

impl Network {
    fn complete(&mut self, _: &Section<'_>) {
        let queue = self.keys.settings(self.uncertain);
        self.queue = PeerSettings { serial: true, sends_dlrs: false, addressee: true, ..queue };
    }

    /// The options of the link to its home, if that is another partition.
    pub(super) fn remote_options(&self) -> Option<RemotePeerOptions> {
        let (name, window) = (&self.links.name, self.links.window as usize);
        remote_options(name, self.partition, &self.queue, (Protocol::Gsup, window))
    }

    /// Finds its number plan.
    pub(super) fn find_plan(&mut self, section: &Section<'_>, plans: Option<&NumberPlans>) {
        let Some(plans) = plans else {
            if self.number_plan.is_some() {
                section.error("number-plan", "needs [numbering] document = \"policies/numbering.toml\"");
            }
            return;
        };
        let name = self.number_plan.as_deref().unwrap_or_else(|| plans.default_name());
        self.links.plan = plans.get(name).map(|plan| Arc::new(plan.clone()));
        if self.links.plan.is_none() {
            let known: Vec<&str> = plans.iter().map(|(name, _)| name).collect();
            let what = format!("is {name:?}, and the document of [numbering] has: {}", known.join(", "));
            section.error("number-plan", what);
        }
    }
}

/// The name of the local socket's peer in routes, queues and the archive.
pub(crate) const SHELL: &str = "shell";

/// `[shell]`: the local socket of the `switchyard sms` command.
#[derive(Debug, Clone, Keys)]
#[keys(check = Self::complete)]
pub(crate) struct ShellSettings {
    #[key(flatten)]
    pub(crate) options: ShellOptions,
    /// Maximum number of messages queued for inboxes.
    #[key(range = 1.., default = 1_000_000, live = "takes effect at once")]
    queue_limit: u64,
    #[key(skip = PeerSettings::new(UNASSIGNED_PEER))]
    pub(crate) queue: PeerSettings,
}

impl ShellSettings {
    fn complete(&mut self, _: &Section<'_>) {
        self.queue = PeerSettings { queue_limit: self.queue_limit, ..addressee_queue() };
    }
}

/// `[redis]`: the listener for Redis clients.
#[derive(Debug, Clone, Keys)]
#[keys(check = Self::check)]
pub(crate) struct RedisListener {
    /// The addresses and ports to listen on; without `accounts`, loopback addresses only.
    #[key(example = ["127.0.0.1:6379"], restart = "the listener is opened at the start")]
    pub(crate) listen: Vec<SocketAddr>,
    #[key(flatten)]
    pub(crate) options: RedisOptions,
}

impl RedisListener {
    fn check(&mut self, section: &Section<'_>) {
        let accounts = &self.options.accounts;
        check_unique(&section.sections("account"), accounts.iter().map(|one| &*one.name), "account");
        if accounts.is_empty()
            && let Some(open) = self.listen.iter().find(|address| !address.ip().is_loopback())
        {
            let what = format!(
                "{open} is reachable from other machines, and without [[redis.account]] all clients have all permissions: \
                 add accounts, or listen on 127.0.0.1"
            );
            section.error("listen", what);
        }
    }
}
