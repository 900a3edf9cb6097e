//! SGIP clients whose account is in the other partition.

use crate::nodes::Bed;
use anyhow::{Context, Result, ensure};
use api::ClusterView;
use behaviour_tests::test_daemon::{PASSWORD, TestDaemon, TestDaemonConfig};
use behaviour_tests::{TIMEOUT, until};
use bytes::Bytes;
use model::{MessageId, Timestamp};
use sgip::{Bind, HEADER_LENGTH, Header, LoginType, Pdu, ResultCode, Sequence, Submit};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Waits until a node knows the leaders of both partitions.
fn know_each_other(nodes: [&TestDaemon; 2]) -> Result<()> {
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
    let bed = Bed::new()?;
    let node = |name: &str, partition: u8| -> Result<TestDaemonConfig> {
        let mut config = bed.partition_node(name, partition)?;
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
    know_each_other([&zero, &one])?;

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
