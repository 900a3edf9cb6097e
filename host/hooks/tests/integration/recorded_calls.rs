//! Recorded calls of receipt policies and of peers' plugins, and their replay.

use crate::support::{HooksFixture, NOW, message, options, with_long_deadline};
use capabilities::{Fetch, FetchFailure, FetchRequest, FetchResponse, HttpGrants};
use hooks::{Binding, DryRun, HooksOptions, PeerSubmission};
use model::{
    AcceptedSubmission, CallRecord, DlrFacts, DlrState, ErrorClass, Hook, Message, MessageId, Outcome,
    ReceiptEvent, ReceiptVerdict, SubmitResult, SubmitTicket, Timestamp,
};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

const GOOD: &str = "8613012345678";

/// Gives the next result each time, and the last one from then on.
struct ScriptedFetch {
    results: Mutex<Vec<Result<FetchResponse, FetchFailure>>>,
    requests: Mutex<Vec<FetchRequest>>,
}

impl Fetch for ScriptedFetch {
    fn fetch(&self, _: &str, _: &HttpGrants, request: FetchRequest) -> Result<FetchResponse, FetchFailure> {
        self.requests.lock().push(request);
        let mut results = self.results.lock();
        if results.len() > 1 { results.remove(0) } else { results[0].clone() }
    }
}

fn response(status: u16, headers: &[(&str, &str)], body: &str) -> FetchResponse {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    FetchResponse { status, headers, body: body.as_bytes().to_vec() }
}

fn accepting() -> Result<FetchResponse, FetchFailure> {
    Ok(response(
        200,
        &[("set-cookie", "session=abc"), ("x-id", "7")],
        r#"{"status":"queued","message_id":"api-7"}"#,
    ))
}

/// An `http-peer` of the peer `north`; its document asks for a secret in the header, in the URL and in the body.
fn peer_binding(fixture: &HooksFixture, text: &str, class: &str) -> Binding {
    let document = format!(
        "[request]\nurl = \"http://peer.example/{{secret:path}}\"\nbasic = {{ user = \"us\", secret = \"token\" }}\n\
         json = {{ to = \"{{destination}}\", {text} = \"{{text}}\", login = \"{{secret:token}}\" }}\n\
         [accepted]\nwhere = {{ \"/status\" = \"queued\" }}\nid = \"/message_id\"\n\
         [[refused]]\nstatus = [402]\nclass = \"{class}\"\n"
    );
    let mut binding = with_long_deadline(fixture.binding("http_peer", &document));
    binding.grants.http = vec!["http://peer.example/".to_owned()];
    binding.peers = vec!["north".to_owned()];
    binding
}

fn peer_fixture(record: bool) -> (HooksFixture, Arc<ScriptedFetch>) {
    let (results, requests) = (Mutex::new(vec![accepting()]), Mutex::default());
    let fetch = Arc::new(ScriptedFetch { results, requests });
    let fixture = HooksFixture::with_fetch_and_options(HooksOptions { record, ..options() }, fetch.clone());
    let secrets =
        [("token", "t0ken"), ("path", "p4th")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    fixture.secrets.publish([("north".to_owned(), secrets.into())].into());
    let live = peer_binding(&fixture, "text", "permanent");
    fixture.hooks.activate(Hook::Peer, NOW, vec![live], None).unwrap();
    (fixture, fetch)
}

fn submission() -> PeerSubmission {
    let message = Message { id: MessageId(7), ..message("good", GOOD) };
    let ticket = SubmitTicket { at: NOW, attempt: 2 };
    PeerSubmission { peer: "north".into(), message: Arc::new(message), leg: 0, ticket, want_dlr: true }
}

fn dry_run(fixture: &HooksFixture, text: &str, class: &str) -> DryRun {
    fixture.hooks.dry_run(Hook::Peer, &[peer_binding(fixture, text, class)]).unwrap()
}

/// The octets of a record that is not encrypted.
fn plain(record: Option<CallRecord>) -> Box<[u8]> {
    let Some(CallRecord::Plain(octets)) = record else { panic!("{record:?}") };
    octets
}

#[test]
fn a_submission_is_recorded_without_secrets_and_made_again_without_sending() {
    let (fixture, fetch) = peer_fixture(true);
    let refusal = response(402, &[], "no credit");
    for (answer, result, class) in [
        (accepting(), SubmitResult::Accepted, None),
        (
            Ok(refusal),
            SubmitResult::Refused { class: ErrorClass::Permanent, code: 402 },
            Some(ErrorClass::Temporary),
        ),
    ] {
        *fetch.results.lock() = vec![answer];
        let (submitted, record) = fixture.hooks.submit_recorded(&submission(), NOW);
        assert_eq!(SubmitResult::of(&submitted.outcome), Some(result));
        let record = plain(record);
        let text = String::from_utf8_lossy(&record);
        for private in ["t0ken", "p4th", "dXM6", "session", GOOD] {
            assert!(!text.contains(private), "{private}: {text}");
        }
        let call = codec::decode_submit_call(&record).unwrap();
        assert_eq!((&*call.peer, call.attempt, call.want_dlr, call.at), ("north", 2, true, NOW));
        assert_eq!((call.result, &*call.by.plugin), (result, "http_peer"));

        let sent = fetch.requests.lock().len();
        let live = dry_run(&fixture, "text", "permanent").submit_again(&submission(), NOW, &call.host_calls);
        assert_eq!((live.submitted.unwrap().outcome, live.missing), (submitted.outcome, None));
        let [request] = &live.requests[..] else { panic!("{:?}", live.requests) };
        assert_eq!((&*request.method, &*request.url), ("POST", "http://peer.example/secret-path"));
        assert!(String::from_utf8_lossy(&request.body).contains("\"login\":\"secret-token\""), "{request:?}");

        let other =
            dry_run(&fixture, "message", "temporary").submit_again(&submission(), NOW, &call.host_calls);
        assert!(
            String::from_utf8_lossy(&other.requests[0].body).contains("\"message\":"),
            "{:?}",
            other.requests
        );
        assert_eq!(other.requests[0].headers, request.headers, "the same login with the same placeholder");
        if let Some(class) = class {
            let refused = Outcome::Refused { class, code: 402, taken: Vec::new() };
            assert_eq!(other.submitted.unwrap().outcome, refused);
        }
        assert_eq!(fetch.requests.lock().len(), sent, "a replay sends nothing");
    }
}

#[test]
fn whether_a_request_was_sent_is_recorded_too() {
    let (fixture, fetch) = peer_fixture(true);
    for (failure, result) in [
        (FetchFailure::TimedOut, SubmitResult::Unsure),
        (FetchFailure::Unreachable("http://peer.example/p4th: reset".to_owned()), SubmitResult::Unsure),
        (
            FetchFailure::NotConnected("http://peer.example/p4th".to_owned()),
            SubmitResult::Refused { class: ErrorClass::Temporary, code: 0 },
        ),
    ] {
        *fetch.results.lock() = vec![Err(failure.clone())];
        let (submitted, record) = fixture.hooks.submit_recorded(&submission(), NOW);
        let live = SubmitResult::of(&submitted.outcome).unwrap();
        assert_eq!(std::mem::discriminant(&live), std::mem::discriminant(&result), "{failure}");
        let record = plain(record);
        assert!(!String::from_utf8_lossy(&record).contains("p4th"), "{failure}");
        let call = codec::decode_submit_call(&record).unwrap();
        let again = dry_run(&fixture, "text", "permanent").submit_again(&submission(), NOW, &call.host_calls);
        assert_eq!(again.submitted.unwrap().outcome, submitted.outcome, "{failure}");
    }
}

#[test]
fn calls_with_secrets_or_long_answers_are_not_recorded() {
    let (fixture, fetch) = peer_fixture(true);
    for answer in [
        response(200, &[], r#"{"status":"queued","url":"https://us/?key=t0ken"}"#),
        response(200, &[("location", "/p4th/7")], r#"{"status":"queued"}"#),
        // An answer that is longer than a record may be.
        response(200, &[], &format!(r#"{{"status":"queued","more":"{}"}}"#, "x".repeat(8_000))),
    ] {
        *fetch.results.lock() = vec![Ok(answer)];
        let (submitted, record) = fixture.hooks.submit_recorded(&submission(), NOW);
        assert!(matches!(submitted.outcome, Outcome::Accepted { .. }), "{submitted:?}");
        assert_eq!(record, None);
    }
    // A call whose plugin makes no request is not recorded.
    let mut silent = fixture.binding("test_moody_peer", "ok");
    (silent.grants.kv, silent.peers) = (1, vec!["north".to_owned()]);
    fixture.hooks.activate(Hook::Peer, NOW, vec![silent], None).unwrap();
    assert_eq!(fixture.hooks.submit_recorded(&submission(), NOW).1, None);
    // Without an archive, nothing is recorded.
    let (fixture, _) = peer_fixture(false);
    assert_eq!(fixture.hooks.submit_recorded(&submission(), NOW).1, None);
}

#[test]
fn a_call_of_receipt_policies_is_recorded_and_asked_again() {
    let event = |error| {
        ReceiptEvent::Dlr(DlrFacts {
            is_final: true,
            state: DlrState::Undeliverable,
            error,
            network_error: Some([3, 0, 1]),
            latency: Duration::from_micros(20_500),
        })
    };
    let fixture = HooksFixture::recording(true);
    let binding = |document: &str| with_long_deadline(fixture.binding("test_moody_receipt", document));
    let submission = AcceptedSubmission {
        attempts: 3,
        leg: (1, 2),
        peer: fixture.peer("north"),
        age: Duration::from_secs(1),
        left: Duration::from_secs(3_600),
    };
    let asked = message("good", GOOD);
    let decide = |event| fixture.hooks.decide_receipt_recorded(&asked, submission, event, NOW);

    // Without a policy, the recorded decision is "accept", and a candidate can replay the call.
    let (decision, record) = decide(event(8));
    let call = codec::decode_receipt_call(&plain(record)).unwrap();
    assert_eq!((decision, call.verdict, call.wait), (None, ReceiptVerdict::Accept, None));
    let rounded = ReceiptEvent::Dlr(DlrFacts {
        latency: Duration::from_millis(20),
        ..match event(8) {
            ReceiptEvent::Dlr(dlr) => dlr,
            _ => unreachable!(),
        }
    });
    assert_eq!((&*call.peer, call.attempts, call.leg, call.event), ("north", 3, (1, 2), rounded));

    fixture.hooks.activate(Hook::Receipt, NOW, vec![binding("ok\nnext-leg\nwait 5")], None).unwrap();
    let (decision, record) = decide(event(8));
    let call = codec::decode_receipt_call(&plain(record)).unwrap();
    assert_eq!(call.verdict, decision.as_ref().unwrap().verdict);
    assert_eq!(call.wait, Some(Duration::from_millis(5)));
    let again = |document: &str, at: Timestamp| {
        let candidate = fixture.hooks.dry_run(Hook::Receipt, &[binding(document)]).unwrap();
        let host_calls = call.host_calls.as_deref().unwrap_or_default();
        candidate.decide_receipt_again(&asked, submission, call.event, at, host_calls)
    };
    let same = again("ok\nnext-leg\nwait 5", call.at);
    assert_eq!((same.decision.unwrap().unwrap().verdict, same.missing), (ReceiptVerdict::NextLeg, None));
    let other = again("ok\nsuspect", call.at).decision.unwrap().unwrap();
    assert_eq!(other.verdict, ReceiptVerdict::Suspect);

    let fixture = HooksFixture::recording(false);
    let asked = fixture.hooks.decide_receipt_recorded(&asked, submission, event(8), NOW);
    assert_eq!(asked.1, None);
}
