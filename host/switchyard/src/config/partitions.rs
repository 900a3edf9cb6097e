//! Partitions of a cluster: the accounts of this partition, and those of others.

use super::queues::{addressee_queue, remote_queue};
use super::{Account, Config, Gateway, Network, Peer, PluginPeer};
use configuration::Section;
use engine::PeerSettings;
use links::{PartitionAccountOptions, RemotePeerOptions};
use model::MessageId;
use pools::RedisAccountOptions;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// An account of another partition, for its messages to a peer whose home is this partition.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PartitionAccount {
    pub(crate) links: PartitionAccountOptions,
    pub(crate) queue: PeerSettings,
    /// The text retention of its messages.
    pub(crate) text_retention: Option<Duration>,
    pub(crate) kind: PartitionAccountKind,
}

/// The destination of the messages of another partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartitionAccountKind {
    /// A peer.
    Peer,
    /// A core network, whose alerts the partition receives.
    CoreNetwork,
    /// An account: the messages are MO messages.
    Account,
}

/// An account of another partition for which MO messages arrive here.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RemoteAccount {
    pub(crate) links: RemotePeerOptions,
    pub(crate) queue: PeerSettings,
}

/// A section of something that has a home.
struct WithHome<'a> {
    section: Section<'a>,
    /// What it is, for error texts.
    kind: &'static str,
    name: &'a str,
    default_account: Option<&'a str>,
    home: u8,
}

/// The greatest number of MO messages for a remote account without an outcome.
const MO_WINDOW: usize = 1_000;

impl PartitionAccount {
    /// The account of a partition for its messages to a peer, a core network or an account of this partition.
    fn new(partition: u8, peer: &str, text_retention: Option<Duration>, kind: PartitionAccountKind) -> Self {
        let queue = PeerSettings {
            partition_account: true,
            // No outcome or DLR may be lost.
            queue_limit: u64::MAX,
            segment_dlrs: true,
            retry: vec![NOTICE_RETRY],
            ..addressee_queue()
        };
        let links = PartitionAccountOptions {
            name: account_of(partition, peer),
            account: queue.peer,
            partition,
            peer_name: peer.to_owned(),
            peer: queue.peer,
        };
        Self { links, queue, text_retention, kind }
    }
}

/// The name of the account that a partition has at the home of a peer.
fn account_of(partition: u8, peer: &str) -> String {
    format!("partition-{partition}/{peer}")
}

/// The delay before an unconfirmed outcome or DLR is sent again.
const NOTICE_RETRY: Duration = Duration::from_secs(1);

/// The logins, accounts, pools and callbacks of other partitions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OtherPartitions {
    /// Partition by system_id.
    pub(crate) system_ids: HashMap<Vec<u8>, u8>,
    /// Partition by the login name of an SP, or of a gateway with a home. The login name of a gateway without a home is not included,
    /// even if an SP has it, too: this node decides about the login, since its listener knows whether it permits logins of the
    /// other direction.
    pub(crate) sgip: HashMap<Vec<u8>, u8>,
    pub(crate) cmpp: HashMap<Vec<u8>, u8>,
    pub(crate) smgp: HashMap<Vec<u8>, u8>,
    /// Partition by Redis account, if all configured pools of the account are in one partition.
    pub(crate) redis: HashMap<Vec<u8>, u8>,
    /// Partition by pool name.
    pub(crate) pools: HashMap<String, u8>,
    /// Home by the name of a plugin peer with callbacks.
    pub(crate) callbacks: HashMap<String, u8>,
    /// Partition by account name.
    pub(crate) names: BTreeMap<String, u8>,
    /// Tenant by account name.
    pub(crate) tenants: BTreeMap<String, String>,
}

impl Config {
    /// The partition of this process.
    pub(crate) fn partition(&self) -> u8 {
        self.cluster.as_ref().map_or(0, |cluster| cluster.partition)
    }

    /// Checks that accounts which share something are in one partition, and that the partition of this process
    /// supports its sections.
    pub(super) fn check_partitions(&self, root: &Section<'_>) {
        let sections = root.sections("account");
        if self.cluster.is_none() {
            for (section, account) in sections.iter().zip(&self.accounts) {
                if account.partition != 0 {
                    let what = "must be 0: this appliance belongs to no cluster, since there is no section [cluster]";
                    section.error("partition", what);
                }
                if !account.mo_partitions.is_empty() {
                    let what = "names partitions of a cluster, but this appliance belongs to none: remove the key, or add a section [cluster]";
                    section.error("mo-partitions", what);
                }
            }
            for WithHome { section, kind, .. } in self.with_home(root) {
                let what = format!(
                    "names the home of the {kind} in a cluster, but this appliance belongs to none: remove the key, or add a section [cluster]"
                );
                section.error("partition", what);
            }
            return;
        }
        self.check_mo_partitions(root);
        self.check_inbound_logins(root);
        let accounts = self.accounts.iter().filter(|account| !account.mo_partitions.is_empty());
        let accounts = accounts.map(|account| account.links.name.as_str());
        let with_home = self.with_home(root).into_iter().map(|one| one.name);
        let with_accounts: Vec<&str> = with_home.chain(accounts).collect();
        for (kind, section, name) in self.peer_sections(root) {
            let is_taken = with_accounts.iter().any(|peer| {
                let name = name.strip_suffix(peer);
                let number = name.and_then(|name| name.strip_prefix("partition-")?.strip_suffix('/'));
                number.is_some_and(|number| number.parse::<u8>().is_ok())
            });
            if is_taken {
                let what = format!(
                    "{name:?} is reserved for the account of a partition: choose another name for this {kind}"
                );
                section.error("name", what);
            }
        }
        if self.partition() != 0 {
            for (section, network) in root.sections("gsm").iter().zip(&self.networks) {
                if network.partition.is_none() {
                    let what = "is missing: name the partition that has the links to the core network, for example partition = 0";
                    section.error("partition", what);
                }
            }
            if self.shell.is_some() {
                let own = "the process of partition 0 serves it: name the section in `own-sections` of [cluster], and leave it out of the file \
                           of this process";
                root.error("shell", own);
            }
        }
        let tree = self.tenant_tree();
        // Shared items, their descriptions for an admin, and the partitions that use them.
        let mut shared: BTreeMap<String, BTreeSet<u8>> = BTreeMap::new();
        let shares = |account: &Account| -> Vec<String> {
            let line = account.tenant.as_deref().map(|tenant| tree.line(tenant)).unwrap_or_default();
            let limited = line.iter().filter_map(|name| {
                let tenant = self.tenants.iter().find(|tenant| *tenant.name == **name)?;
                let limits = [
                    (tenant.charged, "charged"),
                    (tenant.rate.is_some(), "rate"),
                    (tenant.limits.messages_per_day.is_some(), "messages-per-day"),
                ];
                let (_, key) = limits.into_iter().find(|(is_set, _)| *is_set)?;
                Some(format!("`{key}` of the tenant {name:?}"))
            });
            let buckets = account.pace_buckets().iter().map(|name| format!("the pace bucket {name:?}"));
            limited.chain(buckets).collect()
        };
        for account in &self.accounts {
            for what in shares(account) {
                shared.entry(what).or_default().insert(account.partition);
            }
        }
        for (section, account) in sections.iter().zip(&self.accounts) {
            let torn =
                shares(account).into_iter().find(|what| shared.get(what).is_some_and(|used| used.len() > 1));
            if let Some(what) = torn {
                let partitions: Vec<String> = shared[&what].iter().map(u8::to_string).collect();
                let list = partitions.join(", ");
                section.error(
                    "partition",
                    format!(
                        "accounts of the partitions {list} share {what}, and one partition keeps it: give them all the same partition"
                    ),
                );
            }
        }
    }

    /// Everything that has a home.
    fn with_home<'a>(&'a self, root: &Section<'a>) -> Vec<WithHome<'a>> {
        let sections = |name| root.sections(name).into_iter();
        let peers = sections("peer")
            .zip(&self.peers)
            .map(|(section, peer)| (section, "peer", &*peer.links.name, &peer.keys, peer.home.partition));
        let gateways = sections("gateway").zip(&self.gateways).map(|(section, gateway)| {
            (section, "gateway", gateway.links.name(), &gateway.keys, gateway.home.partition)
        });
        let plugin_peers = sections("plugin-peer").zip(&self.plugin_peers).map(|(section, peer)| {
            (section, "plugin peer", &*peer.link.name, &peer.keys, peer.home.partition)
        });
        let networks = sections("gsm").zip(&self.networks).map(|(section, network)| {
            (section, "core network", &*network.links.name, &network.keys, network.partition)
        });
        let all = peers.chain(gateways).chain(plugin_peers).chain(networks);
        let with_home = all.filter_map(|(section, kind, name, keys, home)| {
            Some(WithHome {
                section,
                kind,
                name,
                default_account: keys.default_account.as_deref(),
                home: home?,
            })
        });
        with_home.collect()
    }

    /// Checks the partitions in which MO messages for accounts arrive.
    fn check_mo_partitions(&self, root: &Section<'_>) {
        for (section, account) in root.sections("account").iter().zip(&self.accounts) {
            if let Some(other) =
                account.mo_partitions.iter().find(|partition| **partition > MessageId::LAST_PARTITION)
            {
                section.error(
                    "mo-partitions",
                    format!("contains {other}: partitions are 0 to {}", MessageId::LAST_PARTITION),
                );
            }
            if account.mo_partitions.contains(&account.partition) {
                let what = "contains the partition of the account: name other partitions only";
                section.error("mo-partitions", what);
            }
            let unique: BTreeSet<u8> = account.mo_partitions.iter().copied().collect();
            if unique.len() < account.mo_partitions.len() {
                section.error("mo-partitions", "contains a partition more than once");
            }
        }
        for WithHome { section, kind, default_account, home, .. } in self.with_home(root) {
            let Some(name) = default_account else { continue };
            let account = self.accounts.iter().find(|account| account.links.name == name);
            if let Some(account) = account
                && account.partition != home
                && !account.mo_partitions.contains(&home)
            {
                let what = format!(
                    "{name:?} is in partition {}, and the MO messages of this {kind} arrive in partition {home}: give the account `mo-partitions = [{home}]`",
                    account.partition
                );
                section.error("default-account", what);
            }
        }
    }

    /// Determines the peers whose links are elsewhere, and the accounts of other partitions here.
    fn set_homes(&mut self, partition: u8) {
        let others: BTreeSet<u8> = self.accounts.iter().map(|account| account.partition).collect();
        self.partition_accounts.clear();
        let peer = PartitionAccountKind::Peer;
        let peers = self.peers.iter_mut();
        let peers = peers.map(|one| (peer, &*one.links.name, one.home.partition, &mut one.queue));
        let gateways = self.gateways.iter_mut();
        let gateways = gateways.map(|one| (peer, one.links.name(), one.home.partition, &mut one.queue));
        let plugin_peers = self.plugin_peers.iter_mut();
        let plugin_peers =
            plugin_peers.map(|one| (peer, &*one.link.name, one.home.partition, &mut one.queue));
        let networks = self.networks.iter_mut();
        let networks = networks
            .map(|one| (PartitionAccountKind::CoreNetwork, &*one.links.name, one.partition, &mut one.queue));
        let peers = peers.chain(gateways).chain(plugin_peers);
        for (kind, name, home, queue) in peers.chain(networks) {
            let Some(home) = home else { continue };
            if home != partition {
                *queue = remote_queue(queue);
                continue;
            }
            for &other in others.iter().filter(|other| **other != partition) {
                let its_accounts = self.accounts.iter().filter(|account| account.partition == other);
                // All messages of the account have the shortest retention.
                let text_retention = its_accounts.filter_map(|account| account.text_retention).min();
                self.partition_accounts.push(PartitionAccount::new(other, name, text_retention, kind));
            }
        }
        self.remote_accounts.clear();
        for account in &self.accounts {
            let name = &account.links.name;
            if account.partition == partition {
                let created = account.mo_partitions.iter().map(|&other| {
                    let kind = PartitionAccountKind::Account;
                    PartitionAccount::new(other, name, account.text_retention, kind)
                });
                self.partition_accounts.extend(created);
            } else if account.mo_partitions.contains(&partition) {
                let queue = remote_queue(&account.queue);
                let (peer, partition) = (queue.peer, account.partition);
                let links = RemotePeerOptions {
                    name: name.clone(),
                    peer,
                    partition,
                    window: MO_WINDOW,
                    protocol: None,
                    account_attributes: HashMap::new(),
                };
                self.remote_accounts.push(RemoteAccount { links, queue });
            }
        }
    }

    /// Checks the login names that a gateway and an SP of another partition have: a Bind with it could be for each of them.
    fn check_inbound_logins(&self, root: &Section<'_>) {
        for (section, gateway) in root.sections("gateway").iter().zip(&self.gateways) {
            let (Some(home), Some(name)) = (gateway.home.partition, gateway.links.inbound_login_name())
            else {
                continue;
            };
            let is_torn = |account: &&Account| {
                let sp = account.links.sgip.as_ref();
                account.partition != home && sp.is_some_and(|sp| sp.inbound_login_name == name)
            };
            if let Some(account) = self.accounts.iter().find(is_torn) {
                let what = format!(
                    "is also that of the account {:?} in partition {}, and the home of this gateway is partition {home}: give one of them another name",
                    account.links.name, account.partition
                );
                section.error("inbound-login-name", what);
            }
        }
    }

    /// The peers with links to this partition: their home is no other one.
    pub(crate) fn peers_here(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().filter(|peer| !peer.queue.remote)
    }

    /// The gateways with links to this partition.
    pub(crate) fn gateways_here(&self) -> impl Iterator<Item = &Gateway> {
        self.gateways.iter().filter(|gateway| !gateway.queue.remote)
    }

    /// The plugin peers with links to this partition.
    pub(crate) fn plugin_peers_here(&self) -> impl Iterator<Item = &PluginPeer> {
        self.plugin_peers.iter().filter(|peer| !peer.queue.remote)
    }

    /// The options of the links to other partitions: to the homes of peers, and to the partitions of accounts.
    pub(crate) fn remote_peer_options(&self) -> Vec<RemotePeerOptions> {
        let attributes = self.account_attributes();
        let peers = self.peers.iter().filter_map(Peer::remote_options);
        let gateways = self.gateways.iter().filter_map(Gateway::remote_options);
        let plugin_peers =
            self.plugin_peers.iter().filter_map(|peer| peer.remote_options(attributes.clone()));
        let networks = self.networks.iter().filter_map(Network::remote_options);
        let accounts = self.remote_accounts.iter().map(|account| account.links.clone());
        peers.chain(gateways).chain(plugin_peers).chain(networks).chain(accounts).collect()
    }

    /// Takes the accounts of other partitions from `new`, except accounts for core networks without links here: these links are
    /// opened and closed at a start only.
    pub(crate) fn take_partition_accounts(&mut self, new: &Self) {
        self.partition_accounts.clone_from(&new.partition_accounts);
        let networks = &self.networks;
        let has_links =
            |name: &str| networks.iter().any(|network| network.links.name == name && !network.queue.remote);
        self.partition_accounts.retain(|account| {
            account.kind != PartitionAccountKind::CoreNetwork || has_links(&account.links.peer_name)
        });
    }

    /// The options of the accounts that other partitions have here.
    pub(crate) fn partition_account_options(&self) -> Vec<PartitionAccountOptions> {
        self.partition_accounts.iter().map(|account| account.links.clone()).collect()
    }

    /// Moves the accounts of other partitions to `elsewhere`, and finds the logins, pools and callbacks there.
    pub(super) fn move_remote_accounts(&mut self) {
        let partition = self.partition();
        self.set_homes(partition);
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            self.accounts.drain(..).partition(|account| account.partition == partition);
        self.accounts = here;
        self.elsewhere = OtherPartitions::default();
        let inbound = self.gateways.iter();
        let inbound: HashMap<&[u8], Option<u8>> = inbound
            .filter_map(|gateway| Some((&**gateway.links.inbound_login_name()?, gateway.home.partition)))
            .collect();
        let homes = inbound.iter().filter_map(|(name, home)| Some((name.to_vec(), (*home)?)));
        self.elsewhere.sgip = homes.filter(|(_, home)| *home != partition).collect();
        for account in elsewhere {
            let Account { links, partition, tenant, .. } = account;
            let name = links.name;
            self.elsewhere.system_ids.insert(links.system_id.to_vec(), partition);
            let sgip_name = links.sgip.map(|sp| sp.inbound_login_name.to_vec());
            let sgip_name = sgip_name.filter(|name| !name.is_empty() && !inbound.contains_key(&**name));
            self.elsewhere.sgip.extend(sgip_name.map(|name| (name, partition)));
            let sp_names = [(&mut self.elsewhere.cmpp, links.cmpp), (&mut self.elsewhere.smgp, links.smgp)];
            for (names, sp) in sp_names {
                names.extend(sp.map(|sp| (sp.inbound_login_name.to_vec(), partition)));
            }
            self.elsewhere.names.insert(name.clone(), partition);
            if let Some(tenant) = tenant {
                self.elsewhere.tenants.insert(name, tenant);
            }
        }
        let pools = self.pool.iter().filter(|pool| pool.partition != partition);
        self.elsewhere.pools = pools.map(|pool| (pool.name.clone(), pool.partition)).collect();
        let peers = self.plugin_peers.iter().filter(|peer| peer.queue.remote && peer.link.callbacks);
        self.elsewhere.callbacks =
            peers.filter_map(|peer| Some((peer.link.name.clone(), peer.home.partition?))).collect();
        self.elsewhere.redis = self.remote_redis_accounts();
    }

    /// The partition of each Redis account whose configured pools are all in the same other partition.
    fn remote_redis_accounts(&self) -> HashMap<Vec<u8>, u8> {
        let accounts = self.redis.iter().flat_map(|redis| &redis.options.accounts);
        let partition_of = |account: &RedisAccountOptions| {
            let visible = self.pool.iter().filter(|pool| account.can_see(&pool.name));
            let mut partitions = visible.map(|pool| pool.partition);
            let first = partitions.next()?;
            (first != self.partition() && partitions.all(|other| other == first)).then_some(first)
        };
        accounts
            .filter_map(|account| Some((account.name.clone().into_bytes(), partition_of(account)?)))
            .collect()
    }
}
