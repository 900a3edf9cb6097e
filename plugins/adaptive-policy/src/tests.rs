use super::*;
use proptest::prelude::*;

const SHIPPED: &str = include_str!("../../../policies/adaptive.toml");

const TWO: &str = r#"
samples = 20
assumed = 80
leave-margin = 10
return-margin = 5
exploration = 2
longest-wait = "2m"

[[destination]]
prefix = "49"
candidates = [{ peer = "cheap", cost = "0.010" }, { peer = "dear", cost = "0.012" }]
"#;

/// Beyond the share of the messages that explores.
const NORMAL: u32 = 9_999;

/// Outcomes of this number of attempts, with this share of deliveries, in percent.
fn delivered(attempts: u32, rate: u32) -> Outcomes {
    let delivered = attempts * rate / 100;
    Outcomes { accepted: attempts, delivered, failed: attempts - delivered, ..Outcomes::default() }
}

fn candidacy(outcomes: Outcomes) -> Candidacy {
    Candidacy { links: 1, similar: outcomes, overall: outcomes }
}

/// The peers of a choice, in order.
fn peers(choice: &Choice) -> Vec<&str> {
    match choice {
        Choice::Legs { legs, .. } => legs.iter().map(|leg| leg.peer.as_str()).collect(),
        Choice::NoCandidate { .. } => Vec::new(),
    }
}

/// The first peer for messages that do not explore.
fn preferred(document: &str, cheap: Outcomes, dear: Outcomes) -> String {
    let choice = Policy::parse(document)
        .unwrap()
        .choose(0, 1, NORMAL, |peer| Some(candidacy(if peer == "cheap" { cheap } else { dear })));
    peers(&choice)[0].to_owned()
}

#[test]
fn the_shipped_document_is_valid() {
    Policy::parse(SHIPPED).unwrap();
}

#[test]
fn the_cheapest_peer_is_preferred_as_long_as_it_is_close_to_the_best() {
    let nothing = Outcomes::default();
    assert_eq!(preferred(TWO, nothing, nothing), "cheap", "both are assumed to be equal");
    assert_eq!(preferred(TWO, delivered(1_000, 91), delivered(20, 100)), "cheap");
    assert_eq!(preferred(TWO, delivered(1_000, 89), delivered(20, 100)), "dear");
}

#[test]
fn a_fall_moves_the_traffic_even_if_nothing_is_known_of_the_others() {
    assert_eq!(preferred(TWO, delivered(1_000, 40), Outcomes::default()), "dear");
    assert_eq!(preferred(TWO, delivered(19, 40), Outcomes::default()), "cheap", "too few samples");
}

#[test]
fn the_traffic_returns_at_the_smaller_margin() {
    let (dear, probes) = (delivered(1_000, 95), |rate| delivered(50, rate));
    assert_eq!(preferred(TWO, probes(86), dear), "dear", "between the margins nothing moves");
    assert_eq!(preferred(TWO, probes(90), dear), "cheap");
    assert_eq!(preferred(TWO, delivered(1_000, 86), delivered(50, 95)), "cheap");
}

#[test]
fn refused_and_unanswered_attempts_are_failures_but_not_those_of_the_subscriber() {
    let good = delivered(100, 100);
    assert_eq!(preferred(TWO, Outcomes { refused: 20, ..good }, good), "dear");
    assert_eq!(preferred(TWO, Outcomes { unanswered: 20, ..good }, good), "dear");
    assert_eq!(preferred(TWO, Outcomes { excused: 100, ..good }, good), "cheap");
}

#[test]
fn conversions_can_be_the_measure() {
    let document = format!("success = \"conversion\"\n{TWO}");
    let of_100 = |conversions| Outcomes { accepted: 100, conversions, ..Outcomes::default() };
    assert_eq!(preferred(&document, of_100(50), of_100(70)), "dear");
    assert_eq!(preferred(&document, of_100(65), of_100(70)), "cheap");
}

#[test]
fn similar_messages_weigh_more() {
    let policy = Policy::parse(TWO).unwrap();
    let first = |similar: Outcomes| {
        let choice = policy.choose(0, 1, NORMAL, |peer| {
            let overall = delivered(1_000, 95);
            let similar = if peer == "cheap" { similar } else { overall };
            Some(Candidacy { links: 1, similar, overall })
        });
        peers(&choice)[0].to_owned()
    };
    assert_eq!(first(delivered(20, 40)), "dear");
    assert_eq!(first(delivered(19, 40)), "cheap", "too few: all messages of the peer count");
}

#[test]
fn a_share_of_the_messages_explores_and_keeps_the_others_as_further_legs() {
    let policy = Policy::parse(TWO).unwrap();
    let choose = |spread| policy.choose(0, 3, spread, |_| Some(candidacy(delivered(100, 95))));
    assert_eq!(peers(&choose(199)), ["dear", "cheap"]);
    assert_eq!(peers(&choose(200)), ["cheap", "dear"]);
    let Choice::Legs { legs, note } = choose(0) else { panic!("no candidate") };
    assert_eq!((legs[0].cost, legs[0].rank, legs[1].rank), (36_000, 0, 1));
    assert_eq!(legs[0].longest_wait, Some(Duration::from_secs(120)));
    assert_eq!(note, "explores dear 95 % of 100; cheap 95 % of 100");
    let none = Policy::parse(&TWO.replace("exploration = 2", "exploration = 0")).unwrap();
    assert_eq!(peers(&none.choose(0, 1, 0, |_| Some(candidacy(delivered(100, 95))))), ["cheap", "dear"]);
}

#[test]
fn peers_that_are_down_or_unknown_get_nothing() {
    let policy = Policy::parse(TWO).unwrap();
    let with = |links: fn(&str) -> Option<u32>| {
        policy.choose(0, 1, NORMAL, |peer| Some(Candidacy { links: links(peer)?, ..Candidacy::default() }))
    };
    assert_eq!(peers(&with(|peer| Some(u32::from(peer == "dear")))), ["dear"]);
    assert_eq!(peers(&with(|_| Some(0))), ["cheap", "dear"], "the message waits");
    assert_eq!(peers(&with(|peer| (peer == "dear").then_some(0))), ["dear"]);
    assert_eq!(
        with(|_| None),
        Choice::NoCandidate {
            otherwise: NoCandidateAction::Pass,
            note: "no candidate is a known peer".to_owned()
        }
    );
}

#[test]
fn the_cost_bound_removes_candidates() {
    let of = |line: &str| {
        let policy =
            Policy::parse(&TWO.replace("prefix = \"49\"", &format!("prefix = \"49\"\n{line}"))).unwrap();
        policy.peers().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of(""), ["cheap", "dear"]);
    assert_eq!(of("highest-cost = \"0.011\""), ["cheap"]);
    assert_eq!(of("highest-markup = 20"), ["cheap", "dear"]);
    assert_eq!(of("highest-markup = 19"), ["cheap"]);
}

#[test]
fn a_mistake_is_named_with_its_line() {
    for (from, to, expected) in [
        ("samples = 20", "samples = 0", "`samples` is zero"),
        ("assumed = 80", "assumed = 101", "`assumed` is 101"),
        ("return-margin = 5", "return-margin = 11", "more than `leave-margin`"),
        ("exploration = 2", "exploration = 51", "line 9: `exploration` is 51 for each of 1 further"),
        ("exploration = 2", "digits = 9", "`digits` is 9"),
        ("exploration = 2", "digits = 5\nattribute = \"a\"", "exclude each other"),
        ("exploration = 2", "attribute = \"\"", "`attribute` is empty"),
        ("\"dear\"", "\"cheap\"", "line 9: peer \"cheap\" is there twice"),
        ("\"dear\"", "\"\"", "line 9: a candidate has an empty `peer`"),
        ("\"0.012\"", "\"5000\"", "line 9: candidate \"dear\" costs more"),
        ("prefix = \"49\"", "prefix = \"+49\"", "line 9: prefix \"+49\""),
        ("prefix = \"49\"", "prefix = \"49\"\nhighest-cost = \"0.001\"", "line 9: no candidate is within"),
        ("prefix = \"49\"", "prefix = [\"49\", \"49\"]", "already"),
    ] {
        let error = Policy::parse(&TWO.replace(from, to)).unwrap_err();
        assert!(error.contains(expected), "{to:?}: {error}");
    }
    assert!(Policy::parse("").unwrap_err().contains("add a [[destination]]"));
}

/// Traffic in rounds, each with the outcomes of the last sixty rounds; the rate of `cheap` is the rate of the round.
fn shares(rates: &[u32]) -> Vec<u32> {
    let policy = Policy::parse(TWO).unwrap();
    let mut rounds: Vec<[(u32, u32); 2]> = Vec::new();
    let mut shares = Vec::new();
    for (round, rate) in rates.iter().enumerate() {
        let seen = |peer: usize| {
            let last = rounds.iter().rev().take(60).map(|round| round[peer]);
            let (attempts, delivered) = last.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
            Outcomes { accepted: attempts, delivered, failed: attempts - delivered, ..Outcomes::default() }
        };
        let (cheap, dear) = (seen(0), seen(1));
        let mut sent = [(0, 0); 2];
        for message in 0..100_u32 {
            let number = spread(&[&(round as u32).to_le_bytes(), &message.to_le_bytes()]);
            let choice = policy
                .choose(0, 1, number, |peer| Some(candidacy(if peer == "cheap" { cheap } else { dear })));
            let (place, rate) = if peers(&choice)[0] == "cheap" { (0, *rate) } else { (1, 95) };
            let good = spread(&[b"outcome", &number.to_le_bytes()]) < rate * 100;
            sent[place] = (sent[place].0 + 1, sent[place].1 + u32::from(good));
        }
        rounds.push(sent);
        shares.push(sent[0].0);
    }
    shares
}

/// A round stands for a second: 100 messages, and a window of a minute.
#[test]
fn a_peer_that_falls_to_40_percent_loses_its_traffic_within_a_minute_and_gets_it_back() {
    let rates: Vec<u32> = [(120, 95), (180, 40), (180, 95)]
        .into_iter()
        .flat_map(|(rounds, rate)| std::iter::repeat_n(rate, rounds))
        .collect();
    let shares = shares(&rates);
    let mean = |from: usize, to: usize| shares[from..to].iter().sum::<u32>() / (to - from) as u32;
    assert!(mean(60, 120) >= 95, "{shares:?}");
    assert!(shares[180..300].iter().all(|share| *share <= 12), "{shares:?}");
    assert!((1..=4).contains(&mean(180, 300)), "the rest explores: {shares:?}");
    assert!(mean(420, 480) >= 95, "{shares:?}");
    let switches = shares.windows(2).filter(|pair| (pair[0] > 50) != (pair[1] > 50)).count();
    assert!(switches <= 4, "{switches} switches: {shares:?}");
}

proptest! {
    #[test]
    fn every_candidate_is_a_leg_once(
        spread in 0_u32..10_000,
        outcomes in prop::collection::vec((any::<u32>(), any::<u32>(), any::<u32>(), any::<u32>()), 2),
        parts: u16,
    ) {
        let policy = Policy::parse(TWO).unwrap();
        let outcome = |place: usize| {
            let (accepted, delivered, failed, refused) = outcomes[place];
            candidacy(Outcomes { accepted, delivered, failed, refused, ..Outcomes::default() })
        };
        let choose =
            || policy.choose(0, parts, spread, |peer| Some(outcome(usize::from(peer == "dear"))));
        let choice = choose();
        let mut legs = peers(&choice);
        legs.sort_unstable();
        prop_assert_eq!(legs, ["cheap", "dear"]);
        prop_assert_eq!(&choice, &choose());
    }

    #[test]
    fn no_document_panics(text in "([a-z\\-=\"\\[\\]{},. 0-9\n]|exploration|candidates|\\[\\[destination\\]\\]\n){0,60}") {
        let _ = Policy::parse(&text);
    }
}
