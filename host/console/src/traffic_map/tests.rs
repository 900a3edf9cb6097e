use super::*;
use api::{SubmitterTrafficView, TrafficCounts};

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

fn submitter(name: &str, accepted: u64) -> SubmitterTrafficView {
    SubmitterTrafficView { name: name.to_owned(), accepted }
}

fn shown(traffic: &TrafficView, queues: &[QueueView]) -> String {
    traffic_map(&MapInput::new(traffic, queues, &[], &[])).into_string()
}

#[test]
fn lines_are_as_wide_as_their_rates() {
    let traffic = TrafficView {
        window_ms: 60_000,
        submitters: vec![submitter("acme", 6_000), submitter("demo", 600)],
        flows: vec![
            flow("acme", "north", 3_000, 0),
            flow("demo", "north", 600, 0),
            flow("acme", "<b>", 3_000, 0),
        ],
        ..TrafficView::default()
    };
    let queues =
        [queue("acme", true, 0), queue("demo", true, 0), queue("north", false, 7), queue("<b>", false, 0)];
    let input = MapInput::new(&traffic, &queues, &[], &[]);
    let picture = picture(&input, &side(&input, true), &side(&input, false), 2);
    let widths = |strands: &[lines::Strand]| strands.iter().map(|one| one.width).collect::<Vec<_>>();
    let left = widths(&picture.left);
    assert!((left[0] / left[1] - 10.0).abs() < 0.01, "{left:?}");
    assert_eq!(widths(&picture.right).len(), 3);
    let text = shown(&traffic, &queues);
    assert!(
        text.contains("100 /s accepted from acme") || text.contains(">100 /s accepted from acme<"),
        "{text}"
    );
    assert!(text.contains("7 waiting") && !text.contains("<b>") && text.contains("/peers/%3Cb%3E"), "{text}");
}

#[test]
fn flows_with_refusals_are_coloured_and_first() {
    let traffic = TrafficView {
        window_ms: 60_000,
        submitters: vec![submitter("acme", 600)],
        flows: vec![flow("acme", "calm", 900, 1), flow("acme", "sour", 95, 5), flow("acme", "dead", 1, 9)],
        ..TrafficView::default()
    };
    let troubles: Vec<Trouble> = traffic.flows.iter().map(Trouble::of_flow).collect();
    assert_eq!(troubles, [Trouble::None, Trouble::Warning, Trouble::Error]);
    let queues =
        [queue("acme", true, 0), queue("calm", false, 0), queue("dead", false, 0), queue("sour", false, 0)];
    let input = MapInput::new(&traffic, &queues, &[], &[]);
    let names: Vec<_> = side(&input, false).iter().map(|node| node.label.clone()).collect();
    assert_eq!(names, ["dead", "sour", "calm"]);
}

#[test]
fn many_peers_are_one_node_and_no_rate_is_lost() {
    let peers: Vec<String> = (0..200).map(|index| format!("peer-{index:03}")).collect();
    let mut queues: Vec<QueueView> = peers.iter().map(|peer| queue(peer, false, 0)).collect();
    queues.push(queue("acme", true, 0));
    let traffic = TrafficView {
        window_ms: 60_000,
        submitters: vec![submitter("acme", 6_000), submitter("peer-000", 60)],
        flows: peers.iter().take(100).map(|peer| flow("acme", peer, 60, 0)).collect(),
        ..TrafficView::default()
    };
    let input = MapInput::new(&traffic, &queues, &[], &[]);
    let nodes = side(&input, false);
    assert_eq!(nodes.len(), MAX_NODES + 1);
    let rate: f64 = nodes.iter().filter_map(|node| node.rate).sum();
    assert!((rate - 100.0).abs() < 1e-6, "{rate}");
    let text = shown(&traffic, &queues);
    assert!(text.contains("191 others") && text.contains("100 quiet"), "{text}");
    assert!(text.len() < 60_000, "{}", text.len());
}

#[test]
fn an_appliance_without_traffic_shows_its_nodes() {
    let traffic = TrafficView { window_ms: 1_000, ..TrafficView::default() };
    let text = shown(&traffic, &[queue("acme", true, 0), queue("north", false, 0)]);
    assert!(text.contains("acme") && text.contains("north") && !text.contains("<path"), "{text}");
    assert!(shown(&traffic, &[]).contains("no accounts and no peers"));
}
