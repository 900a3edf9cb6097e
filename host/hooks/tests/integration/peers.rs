//! The hook `peer`: the choice of the binding for a peer, and the state of a message after a failed call.

use crate::support::{HooksFixture, NOW, message};
use capabilities::{Fetch, FetchFailure, FetchRequest, FetchResponse, HttpGrants};
use hooks::{Binding, CallbackRequest, HookError, PeerSubmission, Tolerance, TrialMode};
use model::{ErrorClass, Hook, Message, MessageId, Outcome, PeerMessageId, SubmitTicket};
use parking_lot::Mutex;
use std::sync::Arc;

const GOOD: &str = "8613012345678";
const BAD: &str = "66612345678";

/// Gives each request the next result; counts the requests.
#[derive(Default)]
struct ScriptedFetch {
    requests: Mutex<Vec<String>>,
    failure: Mutex<Option<FetchFailure>>,
}

impl Fetch for ScriptedFetch {
    fn fetch(&self, _: &str, _: &HttpGrants, request: FetchRequest) -> Result<FetchResponse, FetchFailure> {
        let body = String::from_utf8(request.body).unwrap();
        self.requests.lock().push(body.clone());
        match self.failure.lock().clone() {
            Some(failure) => Err(failure),
            None => Ok(FetchResponse {
                status: 200,
                headers: Vec::new(),
                body: format!("peer-{body}").into_bytes(),
            }),
        }
    }
}

fn fixture() -> (HooksFixture, Arc<ScriptedFetch>) {
    let fetch = Arc::new(ScriptedFetch::default());
    (HooksFixture::with_fetch(fetch.clone()), fetch)
}

/// A binding of the moody peer that is never rolled back.
fn binding(fixture: &HooksFixture, document: &str, peers: &[&str]) -> Binding {
    let mut binding = fixture.binding("test_moody_peer", document);
    binding.grants.kv = 1;
    binding.peers = peers.iter().map(|peer| (*peer).to_owned()).collect();
    Binding { tolerance: Tolerance { faults: 0, window_ms: 1 }, ..binding }
}

fn submission(peer: &str, destination: &str) -> PeerSubmission {
    let message = Message { id: MessageId(7), ..message("good", destination) };
    let ticket = SubmitTicket { at: NOW, attempt: 2 };
    PeerSubmission { peer: peer.into(), message: Arc::new(message), leg: 0, ticket, want_dlr: true }
}

fn accepted(id: &str) -> Outcome {
    Outcome::Accepted { ids: vec![PeerMessageId::new(id.as_bytes())] }
}

fn uncertain_outcome() -> Outcome {
    Outcome::Unanswered { taken: Vec::new(), known: Vec::new() }
}

fn refused(code: u32) -> Outcome {
    Outcome::Refused { class: ErrorClass::Temporary, code, taken: Vec::new() }
}

#[test]
fn each_peer_has_its_own_binding() {
    let (fixture, _) = fixture();
    let chain =
        vec![binding(&fixture, "ok", &["north"]), binding(&fixture, "ok after", &["south", "reserve"])];
    fixture.hooks.activate(Hook::Peer, NOW, chain.clone(), None).unwrap();
    let outcome = |peer| fixture.hooks.submit(&submission(peer, GOOD), NOW).outcome;
    assert_eq!(outcome("north"), accepted("0000000007-2"));
    assert_eq!(outcome("south"), accepted("peer-0000000007-2"));
    assert_eq!(outcome("acme"), Outcome::NotSent);
    assert!(fixture.hooks.serves_peer(&"reserve".into()) && !fixture.hooks.serves_peer(&"acme".into()));
    let request =
        |peer: &str| CallbackRequest { peer: peer.into(), body: b"x".to_vec(), ..Default::default() };
    assert_eq!(
        fixture.hooks.callback(&request("north"), NOW).unwrap().receipts[0].id,
        PeerMessageId::new(b"x")
    );
    assert!(fixture.hooks.callback(&request("acme"), NOW).unwrap_err().contains("no plugin serves"));

    let refusal = |chain: Vec<Binding>| fixture.hooks.activate(Hook::Peer, NOW, chain, None).unwrap_err();
    let twice = vec![chain[0].clone(), binding(&fixture, "ok", &["north"])];
    assert!(matches!(refusal(twice), HookError::DuplicatePeer(peer) if peer == "north"));
    assert!(matches!(refusal(vec![binding(&fixture, "ok", &[])]), HookError::WithoutPeers(_)));
    let unknown = vec![binding(&fixture, "ok", &["nobody"])];
    assert!(matches!(refusal(unknown), HookError::ServesUnknownPeer(peer) if peer == "nobody"));
    let router = Binding { peers: vec!["north".to_owned()], ..fixture.moody("ok", "north") };
    let refusal = fixture.hooks.activate(Hook::Router, NOW, vec![router], None).unwrap_err();
    assert!(matches!(refusal, HookError::ServesNoPeers("router")), "{refusal}");
    let refusal = fixture.hooks.start_trial(Hook::Peer, NOW, TrialMode::Shadow, chain, None).unwrap_err();
    assert!(matches!(refusal, HookError::NoShadow("peer")), "{refusal}");
}

#[test]
fn a_call_that_fails_after_a_request_is_uncertain() {
    let (fixture, fetch) = fixture();
    for (mood, words) in [("trap", "trap"), ("absurd", "an id of 256 octets"), ("hog", "memory")] {
        for (when, outcome) in [("before", refused(0)), ("after", uncertain_outcome())] {
            let chain = vec![binding(&fixture, &format!("{mood} {when}"), &["north"])];
            fixture.hooks.activate(Hook::Peer, NOW, chain, None).unwrap();
            let submitted = fixture.hooks.submit(&submission("north", BAD), NOW);
            assert_eq!(submitted.outcome, outcome, "{mood} {when}");
            let note = submitted.note.unwrap();
            assert!(note.starts_with("fault (") && note.contains(words), "{note}");
            // The requests of one call do not affect the outcome of the next.
            let next = fixture.hooks.submit(&submission("north", GOOD), NOW).outcome;
            assert_eq!(next, accepted(if when == "after" { "peer-0000000007-2" } else { "0000000007-2" }));
        }
    }
    assert_eq!(fetch.requests.lock().len(), 6);
}

#[test]
fn a_refusal_without_an_answer_is_uncertain() {
    let (fixture, fetch) = fixture();
    fixture.hooks.activate(Hook::Peer, NOW, vec![binding(&fixture, "ok after", &["north"])], None).unwrap();
    for (failure, outcome) in [
        (FetchFailure::TimedOut, uncertain_outcome()),
        (FetchFailure::TooLarge, uncertain_outcome()),
        (FetchFailure::Unreachable("reset".to_owned()), uncertain_outcome()),
        (FetchFailure::NotConnected("refused".to_owned()), refused(500)),
        (FetchFailure::NotAllowed("no".to_owned()), refused(500)),
    ] {
        *fetch.failure.lock() = Some(failure.clone());
        assert_eq!(fixture.hooks.submit(&submission("north", GOOD), NOW).outcome, outcome, "{failure}");
    }
}

#[test]
fn the_live_chain_repeats_only_what_a_canary_did_not_send() {
    let (fixture, fetch) = fixture();
    let live = vec![binding(&fixture, "ok", &["north", "south"])];
    fixture.hooks.activate(Hook::Peer, NOW, live, None).unwrap();
    let all = TrialMode::Canary { share: 10_000 };
    let outcome = |peer| fixture.hooks.submit(&submission(peer, BAD), NOW).outcome;
    fixture
        .hooks
        .start_trial(Hook::Peer, NOW, all, vec![binding(&fixture, "trap after", &["north"])], None)
        .unwrap();
    assert_eq!(outcome("north"), uncertain_outcome());
    assert_eq!(
        (fetch.requests.lock().len(), fixture.hooks.status(Hook::Peer).candidate.unwrap().failed),
        (1, 1)
    );
    // The candidate does not serve this peer.
    assert_eq!(outcome("south"), accepted(""));
    fixture
        .hooks
        .start_trial(Hook::Peer, NOW, all, vec![binding(&fixture, "trap before", &["north"])], None)
        .unwrap();
    assert_eq!(outcome("north"), accepted(""));
    assert_eq!(fetch.requests.lock().len(), 1);
}

#[test]
fn a_plugin_reads_the_secrets_of_the_peer_at_hand() {
    let (fixture, _) = fixture();
    let chain = vec![binding(&fixture, "ok secret", &["north", "south"])];
    fixture.hooks.activate(Hook::Peer, NOW, chain, None).unwrap();
    let of = |secret: &str| [("token".to_owned(), secret.to_owned())].into();
    fixture.secrets.publish([("north".to_owned(), of("n")), ("south".to_owned(), of("s"))].into());
    let outcome = |peer| fixture.hooks.submit(&submission(peer, GOOD), NOW).outcome;
    assert_eq!((outcome("north"), outcome("south")), (accepted("n"), accepted("s")));
    fixture.secrets.publish(Default::default());
    assert_eq!(outcome("north"), accepted(""));
}
