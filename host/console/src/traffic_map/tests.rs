use super::*;
use api::{TrafficCounts, TrafficFlowView, TrafficLineView, TrafficNodeView};

fn node(name: &str, messages: u64, waiting: u64) -> TrafficNodeView {
    TrafficNodeView {
        name: Some(name.to_owned()),
        members: 1,
        messages,
        waiting,
        configured: true,
        links: 1,
        ..TrafficNodeView::default()
    }
}

fn line(account: usize, peer: usize, accepted: u64, severity: Option<AttentionSeverity>) -> TrafficLineView {
    let counts = TrafficCounts { accepted, ..TrafficCounts::default() };
    TrafficLineView { account, peer, direction: Direction::Mt, counts, severity }
}

fn shown(traffic: &TrafficMapView) -> String {
    traffic_map(&MapInput { traffic, hooks: &[], findings: &[] }).into_string()
}

#[test]
fn lines_are_as_wide_as_their_rates() {
    let traffic = TrafficMapView {
        window_ms: 60_000,
        accounts: vec![node("acme", 6_000, 0), node("demo", 600, 0)],
        peers: vec![node("north", 3_600, 7), node("<b>", 3_000, 0)],
        lines: vec![
            line(0, 0, 3_000, None),
            line(1, 0, 600, None),
            line(0, 1, 3_000, Some(AttentionSeverity::Warning)),
        ],
        ..TrafficMapView::default()
    };
    let input = MapInput { traffic: &traffic, hooks: &[], findings: &[] };
    let map_lines = map_lines(&input, &side(&input, true), &side(&input, false), 2);
    let widths = |lines: &[lines::MapLine]| lines.iter().map(|line| line.width).collect::<Vec<_>>();
    let left = widths(&map_lines.left);
    assert!((left[0] / left[1] - 10.0).abs() < 0.01, "{left:?}");
    assert_eq!(map_lines.right.iter().filter(|line| line.class == "s4").count(), 1);
    let text = shown(&traffic);
    assert!(text.contains(">100 /s accepted from acme<"), "{text}");
    assert!(text.contains("7 waiting") && !text.contains("<b>") && text.contains("/peers/%3Cb%3E"), "{text}");
}

#[test]
fn the_node_of_the_others_leads_to_the_list() {
    let others = TrafficNodeView { name: None, members: 191, quiet: 100, troubled: 2, ..node("", 60, 0) };
    let traffic = TrafficMapView {
        window_ms: 60_000,
        peers: vec![node("north", 60, 0), others],
        ..TrafficMapView::default()
    };
    let text = shown(&traffic);
    assert!(text.contains("191 others") && text.contains("2 with trouble, 100 quiet"), "{text}");
    assert!(text.contains("href=\"/peers\""), "{text}");
}

#[test]
fn flows_are_listed_in_the_order_of_the_api() {
    let flow = |to: &str| TrafficFlowView {
        from: "acme".to_owned(),
        to: to.to_owned(),
        direction: Direction::Mt,
        counts: TrafficCounts { accepted: 60, ..TrafficCounts::default() },
    };
    let traffic = TrafficMapView {
        window_ms: 60_000,
        accounts: vec![node("acme", 120, 0)],
        flows: vec![flow("sour"), flow("even")],
        flow_count: 1_202,
        ..TrafficMapView::default()
    };
    let text = shown(&traffic);
    assert!(text.contains("And 1\u{202f}200 more.") && text.find("sour") < text.find("even"), "{text}");
}

#[test]
fn an_appliance_without_traffic_shows_its_nodes() {
    let nodes = TrafficMapView {
        window_ms: 1_000,
        accounts: vec![node("acme", 0, 0)],
        peers: vec![node("north", 0, 0)],
        ..TrafficMapView::default()
    };
    let text = shown(&nodes);
    assert!(text.contains("acme") && text.contains("north") && !text.contains("<path"), "{text}");
    assert!(shown(&TrafficMapView::default()).contains("no accounts and no peers"));
}
