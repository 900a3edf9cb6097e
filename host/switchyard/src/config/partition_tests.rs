//! Tests of what the configuration says about partitions.

use super::Config;
use super::partitions::PartitionAccountKind;
use ports::Protocol;
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
        assert!(problems[0].contains(&format!("share `{shown}` of the tenant \"north\"")), "{problems:?}");
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
    let remote: Vec<_> =
        zero.remote_accounts.iter().map(|account| (&*account.links.name, account.links.partition)).collect();
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
    assert!(home.remote_peer_options().iter().all(|one| one.name == "two"), "the account's only");
    let kinds: Vec<_> =
        home.partition_accounts.iter().map(|account| (&*account.links.name, account.kind)).collect();
    assert_eq!(kinds, [("partition-2/phones", PartitionAccountKind::CoreNetwork)]);
    let remote = other.remote_peer_options().remove(0);
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
            [account("partition-2/phones", 1, "system-id = \"y\"\n"), network("partition = 1\n")].concat(),
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
    let pool = |name: &str, partition: u8| format!("[[pool]]\nname = \"{name}\"\npartition = {partition}\n");
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
    let sgip = |name: &str| format!("[account.sgip]\nnode = 3010000001\ninbound-login-name = \"{name}\"\n");
    let gateway = "[[gateway]]\nname = \"unicom\"\naddress = \"127.0.0.1:1\"\nnode = 3010012345\ninbound-login-name = \"both\"\n";
    let sps = [("one", "901"), ("two", "both")];
    let accounts = sps.map(|(name, login)| [account(name, 1, ""), sgip(login)].concat()).concat();
    let here = parsed(0, &[&accounts, gateway].concat()).unwrap().elsewhere.sgip;
    assert_eq!(here.into_iter().collect::<Vec<_>>(), [(b"901".to_vec(), 1)]);
    assert!(parsed(1, &accounts).unwrap().elsewhere.sgip.is_empty());
}

#[test]
fn gateways_and_plugin_peers_have_links_in_one_partition() {
    let gateway = "[[gateway]]\nname = \"unicom\"\naddress = \"127.0.0.1:1\"\nnode = 3010012345\nwindow = 70\n\
        inbound-login-name = \"smg\"\npartition = 1\n";
    let peer = "[[plugin-peer]]\nname = \"api\"\npartition = 1\n";
    let north = account("north", 2, "attributes = { brand = \"B1\" }\n");
    let tables = [&north, &account("south", 0, ""), gateway, peer].concat();
    let (home, other) = (parsed(1, &tables).unwrap(), parsed(2, &tables).unwrap());
    assert!(home.remote_peer_options().is_empty());
    let accounts: Vec<_> = home.partition_accounts.iter().map(|account| &*account.links.name).collect();
    let expected = ["partition-0/unicom", "partition-2/unicom", "partition-0/api", "partition-2/api"];
    assert_eq!(accounts, expected);
    assert!(home.elsewhere.sgip.is_empty());

    let remote = other.remote_peer_options();
    let shown: Vec<_> = remote
        .iter()
        .map(|peer| (&*peer.name, peer.partition, peer.protocol, peer.window, peer.account_attributes.len()))
        .collect();
    // Only a plugin reads the attributes of accounts.
    assert_eq!(
        shown,
        [("unicom", 1, Some(Protocol::Sgip), 140, 0), ("api", 1, Some(Protocol::Http), 100, 1)]
    );
    assert!(other.partition_accounts.is_empty());
    assert_eq!(other.elsewhere.sgip.get(&b"smg"[..]), Some(&1), "the gateway's login is passed on");
}

#[test]
fn a_login_is_for_a_gateway_or_an_sp_of_the_same_partition() {
    let gateway = "[[gateway]]\nname = \"unicom\"\naddress = \"127.0.0.1:1\"\nnode = 3010012345\n\
        inbound-login-name = \"both\"\npartition = 1\n";
    let sp = |partition| {
        let keys = "[account.sgip]\nnode = 3010000001\ninbound-login-name = \"both\"\n";
        [account("one", partition, ""), keys.to_owned()].concat()
    };
    let config = parsed(0, &[&sp(1), gateway].concat()).unwrap();
    assert_eq!(config.elsewhere.sgip.into_iter().collect::<Vec<_>>(), [(b"both".to_vec(), 1)]);
    let problems = parsed(0, &[&sp(2), gateway].concat()).unwrap_err();
    assert!(problems.len() == 1 && problems[0].contains("\"one\" in partition 2"), "{problems:?}");
}
