//! SGIP and Redis clients, and callers of front ends, whose account is in the other partition.

use crate::nodes::{ClusterFixture, PEER_KEYS};
use anyhow::{Context, Result, ensure};
use api::ClusterView;
use behaviour_tests::test_daemon::{HASH, PASSWORD, TestDaemon, TestDaemonConfig, free_port};
use behaviour_tests::{Fixture, TIMEOUT, bind, shipped_policy, until};
use bytes::Bytes;
use model::{MessageId, Timestamp};
use serde_json::json;
use sgip::{Bind, HEADER_LENGTH, Header, LoginType, Pdu, ResultCode, Sequence, Submit};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Waits until a node knows the leaders of both partitions.
pub(crate) fn wait_until_nodes_know_leaders(nodes: [&TestDaemon; 2]) -> Result<()> {
    for node in nodes {
        node.read_until(TIMEOUT, "/v1/cluster", |cluster: &ClusterView| {
            cluster.partitions.len() == 2 && cluster.partitions.iter().all(|one| one.leader.is_some())
        })?;
    }
    Ok(())
}

/// Of all SPs: a command with the sequence of another one is its repetition.
static COMMANDS: AtomicU32 = AtomicU32::new(0);

/// One connection of an SP.
struct Sp {
    socket: TcpStream,
}

impl Sp {
    fn connect(config: &TestDaemonConfig) -> Result<Self> {
        let socket = TcpStream::connect(config.sgip())?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { socket })
    }

    /// Sends a command in two parts, and returns the result in its answer.
    fn ask(&mut self, pdu: &Pdu) -> Result<ResultCode> {
        let sequence = Sequence::new(3_010_000_001, Timestamp(0), COMMANDS.fetch_add(1, Relaxed));
        let octets = pdu.to_bytes(sequence);
        let (first, rest) = octets.split_at(HEADER_LENGTH + 5);
        for part in [first, rest] {
            self.socket.write_all(part)?;
        }
        let mut head = [0; HEADER_LENGTH];
        self.socket.read_exact(&mut head)?;
        let header = Header::peek(&head).context("no header")?;
        let mut body = vec![0; header.length as usize - HEADER_LENGTH];
        self.socket.read_exact(&mut body)?;
        ensure!(header.sequence == sequence, "{header:?}");
        match Pdu::decode(header.command, &body)? {
            Pdu::Answer { result, .. } => Ok(result),
            other => anyhow::bail!("{other:?}"),
        }
    }

    fn bind(&mut self, name: &str, password: &str) -> Result<ResultCode> {
        let octets = |text: &str| Bytes::copy_from_slice(text.as_bytes());
        let (name, password) = (octets(name), octets(password));
        self.ask(&Pdu::Bind(Bind { login_type: LoginType::SP, name, password, reserve: [0; 8] }))
    }

    fn submit(&mut self) -> Result<ResultCode> {
        self.ask(&Pdu::Submit(Submit {
            sp_number: Bytes::from_static(b"10655"),
            users: vec![Bytes::from_static(b"8613012345678")],
            report_flag: 2,
            coding: 0,
            content: Bytes::from_static(b"hello"),
            ..Submit::default()
        }))
    }
}

#[test]
fn an_sgip_bind_is_passed_on_to_the_partition_of_its_account() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let node = |name: &str, partition: u8| -> Result<TestDaemonConfig> {
        let mut config = fixture.partition_node(name, partition)?;
        let address = config.sgip();
        config
            .tables(&format!("[[listener]]\nname = \"sgip\"\nprotocol = \"sgip\"\nlisten = \"{address}\"\n"));
        for (account, login, partition) in [("corp", "901001", 1), ("firm", "901000", 0)] {
            let sgip = format!("[account.sgip]\nnode = 205502\ninbound-login-name = \"{login}\"\n");
            config.account(account, &format!("partition = {partition}\n{sgip}"));
        }
        Ok(config)
    };
    let zero = node("a", 0)?.start()?;
    let entrance = zero.config().clone();
    // Partition 1 has no leader yet: the login can be repeated later.
    assert_eq!(Sp::connect(&entrance)?.bind("901001", PASSWORD)?, ResultCode::BUSY);
    let one = node("b", 1)?.start()?;
    wait_until_nodes_know_leaders([&zero, &one])?;

    let mut sp = Sp::connect(&entrance)?;
    assert_eq!(sp.bind("901001", PASSWORD)?, ResultCode::OK);
    assert_eq!(sp.submit()?, ResultCode::OK);
    let accounts = |node: &TestDaemon| Ok::<_, anyhow::Error>(node.get("/v1/links")?.to_string());
    ensure!(accounts(&one)?.contains("corp") && !accounts(&zero)?.contains("corp"));
    let sent = |node: &TestDaemon, account: &str| -> Result<Vec<u8>> {
        let found = node.get(&format!("/v1/messages?account={account}"))?;
        let ids = found["messages"].as_array().into_iter().flatten().filter_map(|row| row["id"].as_str());
        ids.map(|id| Ok(id.parse::<MessageId>()?.partition())).collect()
    };
    assert_eq!(sent(&one, "corp")?, [1]);
    assert_eq!(Sp::connect(&entrance)?.bind("901001", "wrong")?, ResultCode::LOGIN);
    // The account of this partition stays here, whatever the node to which it comes.
    for config in [&entrance, one.config()] {
        let mut sp = Sp::connect(config)?;
        assert_eq!((sp.bind("901000", PASSWORD)?, sp.submit()?), (ResultCode::OK, ResultCode::OK));
    }
    assert_eq!(sent(&zero, "firm")?, [0, 0]);
    drop(sp);
    until("the link ends with the connection", || Ok(!accounts(&one)?.contains("corp")))
}

/// A client of the Redis protocol.
struct Redis {
    socket: BufReader<TcpStream>,
}

impl Redis {
    fn connect(address: SocketAddr) -> Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        Ok(Self { socket: BufReader::new(socket) })
    }

    fn send(&mut self, commands: &[&str]) -> Result<()> {
        let lines: String = commands.iter().map(|command| format!("{command}\r\n")).collect();
        Ok(self.socket.get_mut().write_all(lines.as_bytes())?)
    }

    /// The next line.
    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.socket.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    fn lines(&mut self, count: usize) -> Result<Vec<String>> {
        (0..count).map(|_| self.line()).collect()
    }

    fn ask(&mut self, command: &str) -> Result<String> {
        self.send(&[command])?;
        self.line()
    }
}

/// A node with a Redis listener: the pools of `dialler` are in partition 1, those of `sales` in partition 0, and `both` has some in
/// each.
fn redis_node(fixture: &ClusterFixture, name: &str, partition: u8) -> Result<(TestDaemonConfig, SocketAddr)> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?));
    let mut config = fixture.partition_node_with(name, partition, &["redis"], PEER_KEYS)?;
    let limits = "unauthenticated-connections = 2\nlogin-timeout = \"120s\"\n";
    config.tables(&format!("[redis]\nlisten = [\"{address}\"]\n{limits}"));
    for (account, pools) in [("dialler", "support*"), ("sales", "sales"), ("both", "*")] {
        config.tables(&format!(
            "[[redis.account]]\nname = \"{account}\"\npassword-hash = \"{HASH}\"\npools = [\"{pools}\"]\npermissions = [\"read\", \"lease\", \"manage\"]\n"
        ));
    }
    for (pool, partition) in [("support", 1), ("support-night", 1), ("sales", 0)] {
        config.tables(&format!("[[pool]]\nname = \"{pool}\"\npartition = {partition}\n"));
    }
    Ok((config, address))
}

#[test]
fn a_redis_client_is_passed_on_with_what_it_has_pipelined() -> Result<()> {
    let fixture = ClusterFixture::new()?;
    let (zero, entrance) = redis_node(&fixture, "a", 0)?;
    let zero = zero.start()?;
    let auth = format!("AUTH dialler {PASSWORD}");
    let mut early = Redis::connect(entrance)?;
    let answer = early.ask(&auth)?;
    ensure!(answer.starts_with("-TRYAGAIN") && answer.contains("partition 1"), "{answer}");
    let (one, at_one) = redis_node(&fixture, "b", 1)?;
    let one = one.start()?;
    wait_until_nodes_know_leaders([&zero, &one])?;
    // The same connection can try again.
    assert_eq!(early.ask(&auth)?, "+OK");

    // What follows the login in the same write is the leader's, and the answers are in order.
    let mut client = Redis::connect(entrance)?;
    client.send(&[
        "PING",
        &auth,
        "POOL.ADD support 100 101",
        "POOL.REG support 100 101",
        "POOL.CALL support",
        "POOL.HANGUP support 100",
        "CLIENT GETNAME",
        "POOL.LIST",
    ])?;
    let expected = [
        "-NOAUTH Authentication required.",
        "+OK",
        ":2",
        ":2",
        "$3",
        "100",
        ":1",
        "$-1",
        "*2",
        "$7",
        "support",
        "$13",
        "support-night",
    ];
    assert_eq!(client.lines(expected.len())?, expected);
    let view = one.get("/v1/pools/support")?;
    assert_eq!(view["numbers"]["idle+up"].as_u64(), Some(2), "{view:#}");
    assert_eq!(zero.request("GET", "/v1/pools/support", &[])?.0, 404);
    // Cluster clients find the address to which they have connected.
    let mut hello = Redis::connect(entrance)?;
    hello.send(&[&format!("HELLO 3 AUTH dialler {PASSWORD} SETNAME crm"), "CLIENT GETNAME"])?;
    assert_eq!(hello.line()?, "%7");
    while hello.line()? != "crm" {}
    hello.send(&["CLUSTER NODES"])?;
    hello.line()?;
    let nodes = hello.line()?;
    ensure!(nodes.contains(&entrance.to_string()), "{nodes}");

    // A wrong password is refused by the leader; the client is not logged in, and can try again.
    let mut wrong = Redis::connect(entrance)?;
    wrong.send(&["AUTH dialler wrong", "POOL.LIST", &auth, "POOL.SHOW support 100"])?;
    let answers = wrong.lines(3)?;
    ensure!(answers[0].starts_with("-WRONGPASS") && answers[1].starts_with("-NOAUTH"), "{answers:?}");
    assert_eq!(answers[2], "+OK");

    // A pool of another partition is named as such, with its leader.
    let mut both = Redis::connect(entrance)?;
    assert_eq!(both.ask(&format!("AUTH both {PASSWORD}"))?, "+OK");
    let answer = both.ask("POOL.CALL support")?;
    let url = format!("http://{}", one.config().http());
    ensure!(
        answer.starts_with("-ERR the pool support is in partition 1") && answer.contains(&url),
        "{answer}"
    );
    both.send(&["POOL.ADD sales 7", "POOL.REG sales 7"])?;
    assert_eq!(both.lines(2)?, [":1", ":1"]);
    // From the other side.
    let mut sales = Redis::connect(at_one)?;
    sales.send(&[&format!("AUTH sales {PASSWORD}"), "POOL.CALL sales"])?;
    assert_eq!(sales.lines(3)?, ["+OK", "$1", "7"]);
    // Clients that do not log in displace each other, and none that was passed on.
    let _idle: Vec<_> = (0..5).map(|_| Redis::connect(entrance)).collect::<Result<_>>()?;
    assert_eq!(client.ask("PING")?, "+PONG");
    assert_eq!(early.ask("PING")?, "+PONG");
    Ok(())
}

/// Calls a front end; returns status and body.
fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut answer = agent.get(format!("http://{address}{path}")).call()?;
    Ok((answer.status().as_u16(), answer.body_mut().read_to_string()?))
}

fn bind_front_end(fixture: &Fixture, node: &TestDaemon) -> Result<()> {
    let component = fixture.component("jasmin_front_end")?;
    let policy = shipped_policy("jasmin-front-end")?;
    bind(node, "front-end", "jasmin-front-end", &component, &policy, &json!({})).map(drop)
}

#[test]
fn a_request_of_a_front_end_is_passed_on_when_its_account_is_known() -> Result<()> {
    const PATH: &str = "[[business.front-end]]\npath = \"/send\"\nplugin = \"jasmin-front-end\"\n";
    let fixture = ClusterFixture::new()?;
    let node = |name: &str, partition: u8| -> Result<TestDaemonConfig> {
        let mut config = fixture.partition_node(name, partition)?;
        config.business_account("local", "", "").tables(PATH);
        Ok(config)
    };
    let zero = node("a", 0)?.start()?;
    bind_front_end(&fixture.base, &zero)?;
    let entrance = zero.config().business();
    let send = |account: &str, password: &str| {
        get(
            entrance,
            &format!("/send?username={account}&password={password}&to=8613012345678&from=10655&content=hi"),
        )
    };
    let (status, answer) = send("shop", PASSWORD)?;
    ensure!(status == 503 && answer.contains("does not answer"), "{status} {answer}");
    let one = node("b", 1)?.start()?;
    wait_until_nodes_know_leaders([&zero, &one])?;
    let partition_of = |(status, answer): (u16, String)| -> Result<u8> {
        let id = answer.strip_prefix("Success \"").and_then(|rest| rest.strip_suffix('"'));
        let id = id.with_context(|| format!("{status} {answer}"))?;
        Ok(id.parse::<MessageId>()?.partition())
    };
    until("the plugin of the other partition", || Ok(send("shop", PASSWORD)?.0 == 200))?;
    assert_eq!(partition_of(send("shop", PASSWORD)?)?, 1);
    assert_eq!(partition_of(send("local", PASSWORD)?)?, 0);
    let (status, answer) = send("shop", "wrong")?;
    ensure!(status == 403 && answer.contains("Authentication failure"), "{status} {answer}");
    // Each was accepted once, where its account is.
    let count = |node: &TestDaemon| -> Result<Option<usize>> {
        Ok(node.get("/v1/messages?account=shop")?["messages"].as_array().map(Vec::len))
    };
    assert_eq!((count(&zero)?, count(&one)?), (Some(0), Some(2)));
    Ok(())
}
