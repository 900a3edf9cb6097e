use super::*;
use api::{AttentionSubject, SubmitterTrafficView};

fn queue(name: &str, is_account: bool, queued: u64) -> QueueView {
    QueueView {
        peer: name.to_owned(),
        configured: true,
        is_account,
        queued,
        links: 1,
        blocked_by: "idle".to_owned(),
        ..QueueView::default()
    }
}

fn flow(from: &str, to: &str, accepted: u64, refused: u64) -> TrafficFlowView {
    let counts = TrafficCounts { accepted, refused, ..TrafficCounts::default() };
    TrafficFlowView { from: from.to_owned(), to: to.to_owned(), direction: Direction::Mt, counts }
}

fn names(nodes: &[TrafficNodeView]) -> Vec<&str> {
    nodes.iter().map(|node| node.name.as_deref().unwrap_or("others")).collect()
}

#[test]
fn trouble_comes_first_then_the_busiest() {
    let traffic = TrafficView {
        window_ms: 60_000,
        flows: vec![flow("acme", "calm", 900, 1), flow("acme", "sour", 95, 5), flow("acme", "dead", 1, 9)],
        ..TrafficView::default()
    };
    let severities: Vec<_> = traffic.flows.iter().map(|flow| flow.counts.severity()).collect();
    assert_eq!(severities, [None, Some(AttentionSeverity::Warning), Some(AttentionSeverity::Error)]);
    let finding = AttentionView {
        severity: AttentionSeverity::Error,
        code: "peer-down".to_owned(),
        subject: AttentionSubject { kind: AttentionSubjectKind::Peer, name: Some("down".to_owned()) },
        since: None,
        text: String::new(),
        remedy: None,
    };
    let queues = ["calm", "dead", "sour", "quiet", "down"].map(|name| queue(name, false, 0));
    let map = traffic_map(&traffic, &queues, &[finding], 9, 2);
    assert_eq!(names(&map.peers), ["dead", "down", "sour", "calm", "quiet"]);
    assert_eq!(map.flows.iter().map(|flow| &*flow.to).collect::<Vec<_>>(), ["dead", "sour"]);
    assert_eq!((map.flow_count, map.submitted), (3, 1_011));
}

/// The answer has the same size with ten thousand accounts, and all messages are counted in it.
#[test]
fn others_are_one_node_and_nothing_is_lost() {
    let accounts: Vec<String> = (0..2_000).map(|index| format!("account-{index:04}")).collect();
    let peers: Vec<String> = (0..200).map(|index| format!("peer-{index:03}")).collect();
    let mut queues: Vec<QueueView> = peers.iter().map(|peer| queue(peer, false, 0)).collect();
    queues.extend(accounts.iter().map(|account| queue(account, true, 0)));
    let traffic = TrafficView {
        window_ms: 60_000,
        submitters: accounts
            .iter()
            .map(|name| SubmitterTrafficView { name: name.clone(), accepted: 60 })
            .collect(),
        flows: accounts
            .iter()
            .zip(peers.iter().cycle())
            .map(|(account, peer)| flow(account, peer, 60, 0))
            .collect(),
        ..TrafficView::default()
    };
    let map = traffic_map(&traffic, &queues, &[], 9, 40);
    assert_eq!((map.accounts.len(), map.peers.len(), map.flows.len()), (10, 10, 40));
    assert_eq!(map.accounts[9].members, 1_991);
    assert_eq!(map.accounts.iter().map(|node| node.messages).sum::<u64>(), 120_000);
    assert_eq!(map.peers.iter().map(|node| node.messages).sum::<u64>(), 120_000);
    assert_eq!(map.lines.iter().map(|line| line.counts.attempts()).sum::<u64>(), 120_000);
    assert!(map.lines.len() <= 100, "{}", map.lines.len());
    let length = serde_json::to_vec(&map).unwrap().len();
    assert!(length < 30_000, "{length}");
}

#[test]
fn waiting_messages_are_at_their_queue() {
    let held = QueueView { blocked_by: "no link is up".to_owned(), ..queue("north", false, 7) };
    let map = traffic_map(&TrafficView::default(), &[held, queue("acme", true, 0)], &[], 9, 40);
    assert_eq!((map.peers[0].waiting, map.peers[0].blocked_by.as_deref()), (7, Some("no link is up")));
    assert_eq!((map.accounts[0].quiet, map.accounts[0].configured), (1, true));
}
