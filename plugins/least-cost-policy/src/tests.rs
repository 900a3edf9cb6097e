use super::*;
use proptest::prelude::*;

const SHIPPED: &str = include_str!("../../../policies/least-cost.toml");

const SHORT: &str = r#"
most-legs = 3
lowest-quality = 50
highest-cost = "0.05"
most-queued = 1000
longest-wait = "2m"
table = "offers"

[[destination]]
prefix = ["8613", "8615"]
offers = [
  { peer = "north", cost = "0.012", quality = 95, longest-wait = "30s" },
  { peer = "south", cost = "0.010", quality = 80 },
  { peer = "bad", cost = "0.001", quality = 10 },
  { peer = "dear", cost = "0.06" },
  { peer = "east", cost = "0.012", quality = 95 },
  { peer = "west", cost = "0.012", quality = 90 },
]

[[destination]]
prefix = "49"
lowest-quality = 0
highest-cost = "1"
offers = [{ peer = "bad", cost = "0.9", quality = 0 }]
"#;

const UP: PeerState = PeerState { links: 1, queued: 0 };

/// The peers and ranks of a choice.
fn legs(choice: &Choice) -> Vec<(&str, u8)> {
    match choice {
        Choice::Legs { legs, .. } => legs.iter().map(|leg| (leg.peer.as_str(), leg.rank)).collect(),
        Choice::NoOffer { .. } => Vec::new(),
    }
}

fn policy() -> Policy {
    Policy::parse(SHORT).unwrap()
}

#[test]
fn the_shipped_document_is_valid() {
    Policy::parse(SHIPPED).unwrap();
}

#[test]
fn the_cheapest_acceptable_offer_is_first() {
    let choice = policy().choose(0, 3, |_| Some(UP));
    assert_eq!(legs(&choice), [("south", 0), ("north", 1), ("east", 1)]);
    let Choice::Legs { legs, .. } = choice else { panic!("nowhere") };
    assert_eq!((legs[0].cost, legs[0].longest_wait), (30_000, Some(Duration::from_secs(120))));
    assert_eq!((legs[1].cost, legs[1].longest_wait), (36_000, Some(Duration::from_secs(30))));
}

#[test]
fn unavailable_peers_are_left_out() {
    let down = PeerState { links: 0, queued: 0 };
    let full = PeerState { links: 1, queued: 1001 };
    let state = |peer: &str| match peer {
        "south" => Some(down),
        "north" => Some(full),
        "east" => None,
        _ => Some(UP),
    };
    assert_eq!(legs(&policy().choose(0, 1, state)), [("west", 0)]);
    // If no peer is available, the message waits for the best; a peer that is not configured does not count.
    let choice = policy().choose(0, 1, |peer| (peer != "east").then_some(down));
    assert_eq!(legs(&choice), [("south", 0), ("north", 1), ("west", 2)]);
    let Choice::Legs { note, .. } = choice else { panic!("nowhere") };
    assert!(note.starts_with("no peer can take it now"), "{note}");
}

#[test]
fn a_destination_may_have_its_own_limits() {
    assert_eq!(legs(&policy().choose(1, 1, |_| Some(UP))), [("bad", 0)]);
}

#[test]
fn a_destination_may_have_conditions_and_limits() {
    let document = r#"
[[destination]]
prefix = ["49", "43"]
attributes = { mcc = "262", mnc = ["01", "06"] }
offers = [{ peer = "north", cost = "0.01" }]
pace-buckets = [{ name = "north", amount = 100, per = "1s" }]
send-windows = [{ name = "daytime" }]

[[destination]]
prefix = "49"
offers = [{ peer = "south", cost = "0.02" }]
"#;
    let policy = Policy::parse(document).unwrap();
    let prefix = |digits: &str| policy.prefixes.iter().find(|(prefix, _)| prefix == digits).unwrap().1;
    let chosen = |digits: &str, mnc: &'static str| {
        let attributes = MessageAttributes::new(|name: &str| {
            Some(if name == "mcc" { "262".to_owned() } else { mnc.to_owned() })
        });
        policy.destination(prefix(digits), &attributes)
    };
    assert_eq!([chosen("49", "06"), chosen("49", "02"), chosen("43", "02")], [Some(0), Some(1), None]);
    assert_eq!(policy.destinations.iter().map(|one| one.pace.len()).collect::<Vec<_>>(), [2, 0]);
    let reversed =
        document.replace("[\"49\", \"43\"]", "\"43\"").replace("prefix = \"49\"", "prefix = \"4\"");
    Policy::parse(&reversed).unwrap();
    let covered = document.replace(r#"attributes = { mcc = "262", mnc = ["01", "06"] }"#, "");
    assert!(
        Policy::parse(&covered)
            .unwrap_err()
            .contains("line 9: prefix \"49\" has its offers at line 2 already")
    );
}

#[test]
fn a_table_provides_offers() {
    assert_eq!(
        legs(&policy().choose_row("a 0.02; b 0.01; c 0.01 20", 1, |_| Some(UP))),
        [("b", 0), ("a", 1)]
    );
    for (row, expected) in [
        ("", "none of 0 offers"),
        ("a", "not an offer"),
        ("a 0.01; a 0.02", "two offers"),
        ("a 0.01 20", "none of 1 offers"),
    ] {
        match policy().choose_row(row, 1, |_| Some(UP)) {
            Choice::NoOffer { otherwise: NoOfferAction::Pass, note } => {
                assert!(note.contains(expected), "{note}");
            }
            other => panic!("{row:?}: {other:?}"),
        }
    }
    assert!(matches!(policy().choose(7, 1, |_| Some(UP)), Choice::NoOffer { .. }));
}

#[test]
fn errors_name_the_line_and_the_mistake() {
    let of = |offers: &str| format!("\n[[destination]]\nprefix = \"49\"\noffers = [{offers}]\n");
    for (document, expected) in [
        (String::new(), "has no offers"),
        ("table = \"\"".to_owned(), "`table` is empty"),
        (of(""), "line 2: `offers` has 0"),
        (
            of("{ peer = \"a\", cost = \"1\" }, { peer = \"a\", cost = \"2\" }"),
            "line 2: peer \"a\" has two offers",
        ),
        (of("{ peer = \"a\", cost = \"1\", quality = 101 }"), "0 to 100"),
        (of("{ peer = \"a\", cost = \"5000\" }"), "more than a leg may"),
        (of("{ peer = \"a\", cost = 0.1 }"), "a price in quotes"),
        (of("{ peer = \"\", cost = \"1\" }"), "empty `peer`"),
        (of("{ peer = \"a\", price = \"1\" }"), "unknown field `price`"),
        (
            format!("highest-cost = \"0.5\"{}", of("{ peer = \"a\", cost = \"1\" }")),
            "no message could ever go here",
        ),
        (format!("lowest-quality = 101{}", of("{ peer = \"a\", cost = \"1\" }")), "`lowest-quality` is 101"),
        (format!("most-legs = 0{}", of("{ peer = \"a\", cost = \"1\" }")), "`most-legs` is zero"),
        (of("{ peer = \"a\", cost = \"1\" }").repeat(2), "line 6: prefix \"49\" has its offers at line 2"),
        (
            "[[destination]]\nprefix = \"+49\"\noffers = [{ peer = \"a\", cost = \"1\" }]".to_owned(),
            "plus sign",
        ),
    ] {
        let error = Policy::parse(&document).unwrap_err();
        assert!(error.contains(expected), "{document:?}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_a_policy_or_refused(
        text in "([\\[\\]{}=\",. \n#a-z0-9]|destination|prefix|offers|peer|cost|\"0.1\"){0,60}",
    ) {
        if let Err(refusal) = Policy::parse(&text) {
            prop_assert!(!refusal.is_empty());
        }
    }

    /// For any states of the peers: legs are ordered by cost, each peer occurs once, and their number is limited.
    #[test]
    fn legs_are_in_order(states in prop::collection::vec((0_u32..2, 0_u64..2000, any::<bool>()), 6), parts: u16) {
        let policy = policy();
        let names = ["north", "south", "bad", "dear", "east", "west"];
        let state = |peer: &str| {
            let (links, queued, known) = states[names.iter().position(|name| *name == peer).unwrap()];
            known.then_some(PeerState { links, queued })
        };
        if let Choice::Legs { legs, .. } = policy.choose(0, parts, state) {
            prop_assert!((1..=3).contains(&legs.len()));
            prop_assert!(legs.windows(2).all(|pair| pair[0].cost <= pair[1].cost && pair[0].rank <= pair[1].rank));
            prop_assert!(legs.iter().all(|leg| leg.peer != "bad" && leg.peer != "dear" && state(&leg.peer).is_some()));
            let peers: HashSet<_> = legs.iter().map(|leg| leg.peer.as_str()).collect();
            prop_assert_eq!(peers.len(), legs.len());
            let able = |peer: &str| state(peer).is_some_and(|state| state.links > 0 && state.queued <= 1000);
            if legs.iter().any(|leg| able(&leg.peer)) {
                prop_assert!(legs.iter().all(|leg| able(&leg.peer)));
            }
        }
    }
}
