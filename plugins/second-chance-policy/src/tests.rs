use super::*;

const DOCUMENT: &str = r#"
[[rule]]
prefix = ["49", "43"]
peer = "cheap"
wait = "30s"
next-leg = ["undeliverable", "rejected"]
suspect-below = "300ms"
[[rule]]
attribute = { name = "campaign", value = "otp" }
wait = "5s"
last-leg = "undeliverable"
[[remap]]
peer = "cheap"
state = "unknown"
errors = [34, 35]
to-state = "rejected"
[[remap]]
errors = [99]
to-error = 1
"#;

fn submission(peer: &str, has_next_leg: bool) -> Submission<'_> {
    Submission { destination: "+4915112345678", peer, has_next_leg }
}

fn dlr(state: DlrState, error: u16, latency: u64) -> Event {
    Event::Dlr { state, error, latency: Duration::from_millis(latency) }
}

fn decide(submission: Submission<'_>, event: Event) -> Decision {
    Policy::parse(DOCUMENT).unwrap().decide(submission, event, |_| None)
}

#[test]
fn a_submission_is_waited_for_if_something_follows() {
    let wait = |submission| decide(submission, Event::Accepted);
    let long = Some(Duration::from_secs(30));
    assert_eq!(wait(submission("cheap", true)), Decision { wait: long, ..Decision::accept() });
    assert_eq!(wait(submission("cheap", false)), Decision::accept());
    assert_eq!(wait(submission("dear", true)), Decision::accept());
    let elsewhere = Submission { destination: "8613", ..submission("cheap", true) };
    assert_eq!(wait(elsewhere), Decision::accept());
    let policy = Policy::parse(DOCUMENT).unwrap();
    let campaign = |name: &str| (name == "campaign").then(|| "otp".to_owned());
    let short = Some(Duration::from_secs(5));
    for has_next_leg in [true, false] {
        let decision = policy.decide(submission("dear", has_next_leg), Event::Accepted, campaign);
        assert_eq!(decision.wait, short, "with `last-leg`, the last leg too");
    }
    let over = policy.decide(submission("dear", false), Event::Timeout, campaign);
    assert_eq!(over.step, Step::Remap(DlrState::Undeliverable, 0));
    assert_eq!(over.note.as_deref(), Some("no DLR from dear in 5 s"));
}

#[test]
fn the_next_leg_follows_silence_and_some_states() {
    let step = |submission, event| decide(submission, event).step;
    assert_eq!(step(submission("cheap", true), Event::Timeout), Step::NextLeg);
    assert_eq!(step(submission("cheap", false), Event::Timeout), Step::Accept);
    for state in [DlrState::Undeliverable, DlrState::Rejected] {
        assert_eq!(step(submission("cheap", true), dlr(state, 5, 900)), Step::NextLeg);
        assert_eq!(step(submission("cheap", false), dlr(state, 5, 900)), Step::Accept);
        assert_eq!(step(submission("dear", true), dlr(state, 5, 900)), Step::Accept);
    }
    assert_eq!(step(submission("cheap", true), dlr(DlrState::Expired, 5, 900)), Step::Accept);
    let decision = decide(submission("cheap", true), dlr(DlrState::Rejected, 7, 900));
    assert_eq!(decision.note.as_deref(), Some("rejected from cheap, error 7"));
}

#[test]
fn a_delivery_that_is_too_fast_is_not_believed() {
    let fast = decide(submission("cheap", true), dlr(DlrState::Delivered, 0, 299));
    assert_eq!((fast.step, fast.note.as_deref()), (Step::Suspect, Some("delivered after 299 ms")));
    assert_eq!(decide(submission("cheap", true), dlr(DlrState::Delivered, 0, 300)), Decision::accept());
    assert_eq!(decide(submission("cheap", true), dlr(DlrState::Expired, 0, 1)), Decision::accept());
    assert_eq!(decide(submission("dear", true), dlr(DlrState::Delivered, 0, 1)), Decision::accept());
}

#[test]
fn states_and_error_codes_are_replaced() {
    let step = |submission, event| decide(submission, event).step;
    let unknown = |error| dlr(DlrState::Unknown, error, 900);
    assert_eq!(step(submission("cheap", false), unknown(34)), Step::Remap(DlrState::Rejected, 34));
    assert_eq!(step(submission("cheap", true), unknown(34)), Step::NextLeg, "rejected is in next-leg");
    assert_eq!(step(submission("cheap", true), unknown(36)), Step::Accept);
    assert_eq!(step(submission("dear", true), unknown(34)), Step::Accept);
    assert_eq!(step(submission("dear", true), unknown(99)), Step::Remap(DlrState::Unknown, 1));
}

#[test]
fn mistakes_are_named_with_their_line() {
    for (document, words) in [
        ("", "add a [[rule]]"),
        ("\n[[rule]]\n", "line 2: the rule does nothing"),
        ("[[rule]]\nwait = \"10ms\"\n", "line 1: `wait` is shorter than 1s"),
        ("[[rule]]\nnext-leg = [\"delivered\"]\n", "twice"),
        ("[[rule]]\nlast-leg = \"expired\"\nnext-leg = [\"unknown\"]\n", "add `wait`"),
        ("[[rule]]\nprefix = \"+49\"\nwait = \"5s\"\n", "plus sign"),
        ("[[rule]]\npeer = \"\"\nwait = \"5s\"\n", "empty name"),
        ("[[rule]]\nwait = \"5s\"\nnext-leg = [\"enroute\"]\n", "line 3"),
        ("[[remap]]\nstate = \"expired\"\n", "line 1: the remap changes nothing"),
        ("[[remap]]\nerrors = []\nto-error = 1\n", "`errors` is empty"),
        ("[[rules]]\n", "unknown field"),
    ] {
        let error = Policy::parse(document).unwrap_err();
        assert!(error.contains(words), "{document:?}: {error}");
    }
}

#[test]
fn the_named_peers_are_known() {
    let policy = Policy::parse(DOCUMENT).unwrap();
    assert_eq!(policy.peers().into_iter().collect::<Vec<_>>(), ["cheap"]);
    Policy::parse(include_str!("../../../policies/second-chance.toml")).unwrap();
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(\\[\\[(rule|remap)\\]\\]\n|(wait|peer|prefix|next-leg|to-state) = [\"\\[a-z0-9]*\n){0,6}") {
        if let Ok(policy) = Policy::parse(&text) {
            for event in [Event::Accepted, Event::Timeout, dlr(DlrState::Unknown, 1, 1)] {
                let _ = policy.decide(submission("a", true), event, |_| None);
            }
        }
    }
}
