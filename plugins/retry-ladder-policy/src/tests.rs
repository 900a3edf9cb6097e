use super::*;
use proptest::prelude::*;

const SHIPPED: &str = include_str!("../../../policies/retries.toml");

const SHORT: &str = r#"
overall-limit = "10h"
[temporary]
waits = ["1m", "5m", "1h"]
attempts-per-leg = 4
[permanent]
[absent]
waits = ["30m", "6h"]
await-alert = true
then = "fail"
[memory-full]
waits = ["1h"]
await-alert = true
[throttled]
waits = ["0s"]
advice = { pause = "2s", rate = 12.5, window = 3 }

[[peer]]
name = ["north", "south"]
[peer.temporary]
waits = ["7s"]
attempts-per-leg = 2
then = "fail"
"#;

fn attempt(class: FailureClass, number: u16, leg: u8) -> Attempt<'static> {
    Attempt {
        number,
        leg,
        legs: 2,
        peer: "east",
        class,
        age: Duration::from_secs(60),
        left: Duration::from_secs(86_400),
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn the_shipped_document_is_valid() {
    Policy::parse(SHIPPED).unwrap();
}

#[test]
fn the_last_wait_repeats_until_the_legs_attempts_are_used() {
    let policy = Policy::parse(SHORT).unwrap();
    let steps: Vec<_> =
        (1..=4).map(|number| policy.next(&attempt(FailureClass::Temporary, number, 0)).step).collect();
    let waits = [60, 300, 3600].map(|wait| Step::RetryAfter(seconds(wait)));
    assert_eq!(steps, [waits[0], waits[1], waits[2], Step::NextLeg]);
    let steps: Vec<_> =
        (5..=8).map(|number| policy.next(&attempt(FailureClass::Temporary, number, 1)).step).collect();
    assert_eq!(steps, [waits[2], waits[2], waits[2], Step::Fail]);
}

#[test]
fn each_class_has_its_schedule() {
    let policy = Policy::parse(SHORT).unwrap();
    assert_eq!(policy.next(&attempt(FailureClass::Permanent, 1, 0)).step, Step::NextLeg);
    assert_eq!(policy.next(&attempt(FailureClass::Permanent, 2, 1)).step, Step::Fail);
    assert_eq!(policy.next(&attempt(FailureClass::Absent, 1, 0)).step, Step::AwaitAlert(seconds(1800)));
    assert_eq!(policy.next(&attempt(FailureClass::Absent, 9, 1)).step, Step::AwaitAlert(seconds(21_600)));
    let throttled = policy.next(&attempt(FailureClass::Throttled, 900, 0));
    assert_eq!(throttled.step, Step::RetryAfter(Duration::ZERO));
    assert_eq!(throttled.advice, Advice { pause: Some(seconds(2)), rate: Some(12.5), window: Some(3) });
    assert_eq!(policy.next(&attempt(FailureClass::Temporary, 1, 0)).advice, Advice::default());
}

#[test]
fn a_peer_may_have_its_own_schedules() {
    let policy = Policy::parse(SHORT).unwrap();
    let north = |class, number| policy.next(&Attempt { peer: "north", ..attempt(class, number, 0) });
    assert_eq!(north(FailureClass::Temporary, 1).step, Step::RetryAfter(seconds(7)));
    let end = north(FailureClass::Temporary, 2);
    assert_eq!(
        (end.step, end.note.as_str()),
        (Step::Fail, "temporary: 2 attempts are enough, no further attempt")
    );
    // Classes without a schedule of the peer use the common one.
    assert_eq!(north(FailureClass::MemoryFull, 1).step, Step::AwaitAlert(seconds(3600)));
}

#[test]
fn the_overall_limit_ends_retries() {
    let policy = Policy::parse(SHORT).unwrap();
    let at = |age: u64, left: u64, leg: u8| {
        let attempt =
            Attempt { age: seconds(age), left: seconds(left), ..attempt(FailureClass::Absent, 2, leg) };
        policy.next(&attempt).step
    };
    assert_eq!(at(36_000, 86_400, 0), Step::Fail);
    // The last attempt is made at the limit.
    assert_eq!(at(35_000, 86_400, 0), Step::AwaitAlert(seconds(1000)));
    let temporary = |left: u64, leg: u8| {
        let attempt = Attempt { left: seconds(left), ..attempt(FailureClass::Temporary, 3, leg) };
        policy.next(&attempt).step
    };
    // Prefer another leg to a wait for the limit.
    assert_eq!(temporary(3600, 0), Step::NextLeg);
    assert_eq!(temporary(3601, 0), Step::RetryAfter(seconds(3600)));
    assert_eq!(temporary(3600, 1), Step::RetryAfter(seconds(3600)));
}

#[test]
fn errors_name_the_line_and_the_mistake() {
    let all = "[permanent]\n[absent]\n[memory-full]\n[throttled]\n";
    for (document, expected) in [
        (String::new(), "says nothing of temporary, permanent, absent, memory-full, throttled"),
        (all.to_owned(), "says nothing of temporary"),
        (format!("{all}[temporary]\nwaits = [\"soon\"]\n"), "\"soon\" is not a time"),
        (format!("{all}[temporary]\nwaits = [5]\n"), "a time in quotes"),
        (format!("{all}[temporary]\nwait = [\"5s\"]\n"), "unknown field `wait`"),
        (
            format!("{all}[temporary]\nwaits = [\"5s\"]\nawait-alert = true\n"),
            "line 5: [temporary] has `await-alert`",
        ),
        (
            format!("{all}[temporary]\nattempts-per-leg = 3\n"),
            "line 5: [temporary] has `attempts-per-leg` and no",
        ),
        (format!("{all}[temporary]\nwaits = [\"0s\"]\n"), "without rest"),
        (format!("{all}[temporary]\nadvice = {{ rate = 0.0 }}\n"), "above zero"),
        (format!("{all}[temporary]\nadvice = {{ rate = nan }}\n"), "above zero"),
        (format!("{all}[temporary]\nadvice = {{ window = 0 }}\n"), "use `pause`"),
        (format!("{all}[temporary]\nadvice = {{ pause = \"2h\" }}\n"), "above 1h"),
        (format!("{all}[temporary]\nthen = \"retry\"\n"), "unknown variant `retry`"),
        (format!("{all}[temporary]\n[[peer]]\nname = \"a\"\n"), "line 6: this [[peer]] changes nothing"),
        (
            format!(
                "{all}[temporary]\n[[peer]]\nname = \"a\"\n[peer.absent]\n[[peer]]\nname = \"a\"\n[peer.absent]\n"
            ),
            "line 9: peer \"a\" has its [[peer]] at line 6",
        ),
        (format!("overall-limit = \"0s\"\n{all}[temporary]\n"), "`overall-limit` is zero"),
    ] {
        let error = Policy::parse(&document).unwrap_err();
        assert!(error.contains(expected), "{document:?}: {error}");
    }
}

fn class() -> impl Strategy<Value = FailureClass> {
    prop::sample::select(FailureClass::ALL.to_vec())
}

proptest! {
    #[test]
    fn any_text_is_a_policy_or_refused(
        text in "([\\[\\]{}=\",. \n#a-z0-9]|temporary|waits|\"5s\"|peer|then|advice){0,60}",
    ) {
        if let Err(refusal) = Policy::parse(&text) {
            prop_assert!(!refusal.is_empty());
        }
    }

    /// For any attempt: no wait exceeds the overall limit, and a next leg is chosen only if there is one.
    #[test]
    fn every_attempt_has_a_next_step(
        class in class(), number: u16, leg: u8, legs: u8, age in 0_u64..100_000, left in 0_u64..100_000,
        peer in "(north|east)",
    ) {
        let policy = Policy::parse(SHORT).unwrap();
        let (age, left) = (seconds(age), seconds(left));
        let decision = policy.next(&Attempt { number, leg, legs, peer: &peer, class, age, left });
        match decision.step {
            Step::RetryAfter(wait) | Step::AwaitAlert(wait) => prop_assert!(age + wait <= seconds(36_000)),
            Step::NextLeg => prop_assert!(u16::from(leg) + 1 < u16::from(legs)),
            Step::Fail => {}
        }
        prop_assert!(decision.note.len() <= 200);
    }
}
