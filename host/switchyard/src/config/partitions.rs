//! Partitions of a cluster: the accounts of this partition, and those of others.

use super::queues::{addressee_queue, remote_queue};
use super::{Account, Config};
use configuration::Section;
use engine::PeerSettings;
use links::{GatewayKind, PartitionAccountOptions, RemotePeerOptions};
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

/// The logins, accounts and pools of other partitions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct OtherPartitions {
    /// Partition by system_id.
    pub(crate) system_ids: HashMap<Vec<u8>, u8>,
    /// Partition by the login name of an SP. A login name of SGIP that a gateway has, too, is not included: this node decides about
    /// the login, since its listener knows whether it permits logins of the other direction.
    pub(crate) sgip: HashMap<Vec<u8>, u8>,
    pub(crate) cmpp: HashMap<Vec<u8>, u8>,
    pub(crate) smgp: HashMap<Vec<u8>, u8>,
    /// Partition by Redis account, if all configured pools of the account are in one partition.
    pub(crate) redis: HashMap<Vec<u8>, u8>,
    /// Partition by pool name.
    pub(crate) pools: HashMap<String, u8>,
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
            for (section, kind, _, _) in self.with_home(root) {
                let what = format!(
                    "names the home of the {kind} in a cluster, but this appliance belongs to none: remove the key, or add a section [cluster]"
                );
                section.error("partition", what);
            }
            return;
        }
        self.check_mo_partitions(root);
        let accounts = self.accounts.iter().filter(|account| !account.mo_partitions.is_empty());
        let accounts = accounts.map(|account| account.links.name.as_str());
        let with_home = self.with_home(root).into_iter().map(|(_, _, name, _)| name);
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

    /// The peers and core networks that have a home: section, kind, name and home.
    fn with_home<'a>(&'a self, root: &Section<'a>) -> Vec<(Section<'a>, &'static str, &'a str, u8)> {
        let peers = root.sections("peer").into_iter().zip(&self.peers);
        let peers = peers.map(|(section, peer)| (section, "peer", peer.links.name.as_str(), peer.partition));
        let networks = root.sections("gsm").into_iter().zip(&self.networks);
        let networks =
            networks.map(|(section, one)| (section, "core network", one.links.name.as_str(), one.partition));
        let with_home =
            |(section, kind, name, home): (_, _, _, Option<u8>)| Some((section, kind, name, home?));
        peers.chain(networks).filter_map(with_home).collect()
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
        let peers = self.peers.iter().map(|peer| (&peer.links.name, &peer.keys));
        let networks = self.networks.iter().map(|network| (&network.links.name, &network.keys));
        let defaults: HashMap<&str, &str> = peers
            .chain(networks)
            .filter_map(|(name, keys)| Some((name.as_str(), keys.default_account.as_deref()?)))
            .collect();
        for (section, kind, peer, home) in self.with_home(root) {
            let Some(name) = defaults.get(peer) else { continue };
            let account = self.accounts.iter().find(|account| account.links.name == **name);
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
        let peers = self.peers.iter_mut();
        let peers =
            peers.map(|peer| (PartitionAccountKind::Peer, &peer.links.name, peer.partition, &mut peer.queue));
        let networks = self.networks.iter_mut();
        let networks = networks.map(|network| {
            (PartitionAccountKind::CoreNetwork, &network.links.name, network.partition, &mut network.queue)
        });
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
                let links = RemotePeerOptions { name: name.clone(), peer, partition, window: MO_WINDOW };
                self.remote_accounts.push(RemoteAccount { links, queue });
            }
        }
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

    /// Moves the accounts of other partitions to `elsewhere`, and finds the logins and pools there.
    pub(super) fn move_remote_accounts(&mut self) {
        let partition = self.partition();
        self.set_homes(partition);
        let (here, elsewhere): (Vec<_>, Vec<_>) =
            self.accounts.drain(..).partition(|account| account.partition == partition);
        self.accounts = here;
        self.elsewhere = OtherPartitions::default();
        let is_gateway = |name: &[u8]| {
            self.gateways.iter().any(|gateway| match &gateway.links {
                GatewayKind::Sgip(options) => options.inbound_login_name == name,
                GatewayKind::Cmpp(_) | GatewayKind::Smgp(_) => false,
            })
        };
        for account in elsewhere {
            let Account { links, partition, tenant, .. } = account;
            let name = links.name;
            self.elsewhere.system_ids.insert(links.system_id.to_vec(), partition);
            let sgip_name = links.sgip.map(|sp| sp.inbound_login_name.to_vec());
            let sgip_name = sgip_name.filter(|name| !name.is_empty() && !is_gateway(name));
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    const HASH: &str = "password-hash = \"$argon2id$v=19$m=64,t=1,p=1$85hrG3wk8kcb2sJTCOk1yg$vVqmsA3TKLPeDWcMpGJjcULw5ivDKUITdjoQhpY8L8c\"\n";

    fn parsed(partition: u8, tables: &str) -> Result<Config, Vec<String>> {
        let cluster = format!(
            "[archive]\nurl = \"none\"\n[cluster]\nnode = \"a\"\nendpoints = [\"http://127.0.0.1:1\"]\npartition = {partition}\n"
        );
        let text = format!("[appliance]\ndata = \"/x\"\n{cluster}{tables}");
        Config::parse(&text, Path::new("/nowhere"))
            .map_err(|problems| problems.iter().map(|problem| problem.message.clone()).collect())
    }

    fn account(name: &str, partition: u8, keys: &str) -> String {
        format!("[[account]]\nname = \"{name}\"\npartition = {partition}\n{keys}{HASH}")
    }

    #[test]
    fn each_partition_has_its_own_accounts_and_knows_where_the_others_are() {
        let tables = [account("one", 0, ""), account("two", 1, ""), account("three", 2, "")].concat();
        for (partition, own) in [(0, "one"), (1, "two"), (2, "three")] {
            let config = parsed(partition, &tables).unwrap();
            let here: Vec<&str> = config.accounts.iter().map(|account| &*account.links.name).collect();
            assert_eq!(here, [own]);
            assert_eq!(config.elsewhere.names.len(), 2);
            assert!(!config.elsewhere.names.contains_key(own));
            assert_eq!(
                config.elsewhere.system_ids.get(&b"three"[..]).copied(),
                Some(2).filter(|_| own != "three")
            );
        }
    }

    #[test]
    fn without_a_cluster_all_accounts_are_in_partition_0() {
        let text = format!("[appliance]\ndata = \"/x\"\n{}", account("one", 1, ""));
        let problems = Config::parse(&text, Path::new("/nowhere")).unwrap_err();
        assert!(problems.len() == 1 && problems[0].message.contains("no cluster"), "{problems:?}");
    }

    #[test]
    fn accounts_that_share_limits_are_in_one_partition() {
        let tenant = |keys: &str| format!("[[tenant]]\nname = \"north\"\n{keys}");
        let of_tenant = "tenant = \"north\"\n";
        for (key, shown) in [
            ("charged = true\n", "charged"),
            ("rate = 5.0\n", "rate"),
            ("messages-per-day = 5\n", "messages-per-day"),
        ] {
            let torn = [tenant(key), account("one", 0, of_tenant), account("two", 1, of_tenant)].concat();
            let problems = parsed(0, &torn).unwrap_err();
            assert_eq!(problems.len(), 2, "{problems:?}");
            assert!(
                problems[0].contains(&format!("share `{shown}` of the tenant \"north\"")),
                "{problems:?}"
            );
            let together = [tenant(key), account("one", 1, of_tenant), account("two", 1, of_tenant)].concat();
            assert!(parsed(0, &together).is_ok());
        }
        let unlimited = [tenant(""), account("one", 0, of_tenant), account("two", 1, of_tenant)].concat();
        let config = parsed(0, &unlimited).unwrap();
        assert_eq!(config.tenant_tree().branch("north").accounts.len(), 2, "its users see both");
        let bucket = "[[pace-bucket]]\nname = \"night\"\namount = 2000\n";
        let in_it = "pace-buckets = [\"night\"]\n";
        let torn = [bucket, &account("one", 0, in_it), &account("two", 1, in_it)].concat();
        let problems = parsed(1, &torn).unwrap_err();
        assert!(problems.len() == 2 && problems[0].contains("the pace bucket \"night\""), "{problems:?}");
    }

    #[test]
    fn an_account_gets_mo_messages_of_other_partitions() {
        let tables = account("zenith", 1, "mo-partitions = [0, 2]\n");
        let (zero, one) = (parsed(0, &tables).unwrap(), parsed(1, &tables).unwrap());
        let remote: Vec<_> = zero
            .remote_accounts
            .iter()
            .map(|account| (&*account.links.name, account.links.partition))
            .collect();
        assert_eq!(remote, [("zenith", 1)]);
        assert!(zero.remote_accounts[0].queue.remote && zero.remote_accounts[0].queue.addressee);
        let names: Vec<_> = one.partition_accounts.iter().map(|account| &*account.links.name).collect();
        assert_eq!(names, ["partition-0/zenith", "partition-2/zenith"]);
        assert!(parsed(3, &tables).unwrap().remote_accounts.is_empty());

        let peer = "[[peer]]\nname = \"upstream\"\naddress = \"127.0.0.1:1\"\nsystem-id = \"x\"\npartition = 0\ndefault-account = \"zenith\"\n";
        assert!(parsed(0, &[tables.as_str(), peer].concat()).is_ok());
        let taken = account("partition-2/zenith", 1, "system-id = \"y\"\n");
        for (tables, problem) in [
            ([account("zenith", 1, ""), peer.to_owned()].concat(), "give the account `mo-partitions = [0]`"),
            (account("zenith", 1, "mo-partitions = [1]\n"), "the partition of the account"),
            (account("zenith", 1, "mo-partitions = [128]\n"), "partitions are 0 to 127"),
            (account("zenith", 1, "mo-partitions = [2, 2]\n"), "more than once"),
            ([tables.clone(), taken].concat(), "is reserved"),
        ] {
            let problems = parsed(1, &tables).unwrap_err();
            assert!(problems.len() == 1 && problems[0].contains(problem), "{problems:?}");
        }
    }

    #[test]
    fn a_core_network_has_links_in_one_partition() {
        let network = |keys: &str| {
            format!("[[gsm]]\nname = \"phones\"\nhlr = \"127.0.0.1:1\"\nservice-centre = \"1999\"\n{keys}")
        };
        let accounts = [account("one", 1, ""), account("two", 2, "mo-partitions = [1]\n")].concat();
        let tables = [&accounts, network("partition = 1\ndefault-account = \"two\"\n").as_str()].concat();
        let (home, other) = (parsed(1, &tables).unwrap(), parsed(2, &tables).unwrap());
        assert_eq!(home.networks[0].remote_options(), None);
        let kinds: Vec<_> =
            home.partition_accounts.iter().map(|account| (&*account.links.name, account.kind)).collect();
        assert_eq!(kinds, [("partition-2/phones", PartitionAccountKind::CoreNetwork)]);
        let remote = other.networks[0].remote_options().unwrap();
        assert_eq!((remote.partition, remote.window), (1, 2_000));
        // The messages to a subscriber leave in order.
        assert!(other.networks[0].queue.serial && other.networks[0].queue.remote);
        assert!(other.partition_accounts.iter().all(|account| account.kind == PartitionAccountKind::Account));

        let alone = format!("[appliance]\ndata = \"/x\"\n{}", network("partition = 1\n"));
        let problems = Config::parse(&alone, Path::new("/nowhere")).unwrap_err();
        assert!(
            problems.len() == 1 && problems[0].message.contains("the core network in a cluster"),
            "{problems:?}"
        );
        for (tables, problem) in [
            (network(""), "name the partition that has the links"),
            (
                [account("one", 2, ""), network("partition = 1\ndefault-account = \"one\"\n")].concat(),
                "of this core network arrive in partition 1",
            ),
            (
                [account("partition-2/phones", 1, "system-id = \"y\"\n"), network("partition = 1\n")]
                    .concat(),
                "is reserved",
            ),
        ] {
            let problems = parsed(1, &tables).unwrap_err();
            assert!(problems.len() == 1 && problems[0].contains(problem), "{problems:?}");
        }
    }

    #[test]
    fn the_home_of_a_core_network_changes_at_a_start() {
        let tables = |home: u8| {
            let keys = format!("hlr = \"127.0.0.1:1\"\nservice-centre = \"1999\"\npartition = {home}\n");
            [account("one", 2, ""), format!("[[gsm]]\nname = \"phones\"\n{keys}")].concat()
        };
        for (from, to, accounts) in [(1, 1, 1), (1, 0, 0), (0, 1, 0)] {
            let (mut running, new) = (parsed(1, &tables(from)).unwrap(), parsed(1, &tables(to)).unwrap());
            running.take_partition_accounts(&new);
            assert_eq!(running.partition_accounts.len(), accounts, "from {from} to {to}");
        }
    }

    #[test]
    fn a_pool_is_in_one_partition() {
        let tables = "[[pool]]\nname = \"support\"\npartition = 1\n";
        assert_eq!(parsed(0, tables).unwrap().pools_configured.len(), 0);
        assert_eq!(parsed(1, tables).unwrap().pools_configured.len(), 1);
        assert_eq!(parsed(0, tables).unwrap().elsewhere.pools.get("support"), Some(&1));
        assert!(parsed(1, tables).unwrap().elsewhere.pools.is_empty());
    }

    #[test]
    fn a_redis_account_is_where_all_its_configured_pools_are() {
        let pool =
            |name: &str, partition: u8| format!("[[pool]]\nname = \"{name}\"\npartition = {partition}\n");
        let redis_account = |name: &str, pools: &str| {
            format!("[[redis.account]]\nname = \"{name}\"\npools = {pools}\npermissions = [\"read\"]\n{HASH}")
        };
        let tables = [
            "[redis]\nlisten = [\"127.0.0.1:0\"]\n",
            &redis_account("dialler", "[\"support-*\"]"),
            &redis_account("sales", "[\"sales\", \"unknown\"]"),
            &redis_account("none", "[\"unknown\"]"),
            &redis_account("all", "[\"*\"]"),
            &[pool("support-1", 1), pool("support-2", 1), pool("sales", 0)].concat(),
        ]
        .concat();
        let elsewhere = |partition: u8| {
            let redis = parsed(partition, &tables).unwrap().elsewhere.redis;
            let mut redis: Vec<_> =
                redis.into_iter().map(|(name, at)| (String::from_utf8(name).unwrap(), at)).collect();
            redis.sort();
            redis
        };
        assert_eq!(elsewhere(0), [("dialler".to_owned(), 1)]);
        assert_eq!(elsewhere(1), [("sales".to_owned(), 0)]);
        assert_eq!(elsewhere(2), [("dialler".to_owned(), 1), ("sales".to_owned(), 0)]);
    }

    #[test]
    fn an_sp_is_found_by_the_login_name_that_no_gateway_has() {
        let sgip =
            |name: &str| format!("[account.sgip]\nnode = 3010000001\ninbound-login-name = \"{name}\"\n");
        let gateway = "[[gateway]]\nname = \"unicom\"\naddress = \"127.0.0.1:1\"\nnode = 3010012345\ninbound-login-name = \"both\"\n";
        let sps = [("one", "901"), ("two", "both")];
        let accounts = sps.map(|(name, login)| [account(name, 1, ""), sgip(login)].concat()).concat();
        let here = parsed(0, &[&accounts, gateway].concat()).unwrap().elsewhere.sgip;
        assert_eq!(here.into_iter().collect::<Vec<_>>(), [(b"901".to_vec(), 1)]);
        assert!(parsed(1, &accounts).unwrap().elsewhere.sgip.is_empty());
    }
}
