//! Refused plugins and answers: components for another hook, unsigned ones, ones that fail to configure; and oversized
//! or invalid answers.

use crate::support::{
    HooksFixture, NOW, directory, forwarded_peers, guest, message, moody_router, options, route_all_to,
    services, wait_until, with_long_deadline,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer, SigningKey};
use hooks::{Binding, HookError, Hooks, HooksOptions, InstanceUse, Tolerance, TrialMode, Trust, TrustedKey};
use model::{Hook, Verdict};
use std::time::Duration;

const GOOD: &str = "8613012345678";
const BAD: &str = "66612345678";

#[test]
fn a_plugin_cannot_serve_another_hook() {
    let fixture = HooksFixture::new();
    let guests = [
        (Hook::Router, "test_moody_router"),
        (Hook::Lookup, "test_moody_lookup"),
        (Hook::Resolver, "test_moody_resolver"),
        (Hook::DeliveryPolicy, "test_moody_policy"),
        (Hook::Receipt, "test_moody_receipt"),
        (Hook::Biller, "test_moody_biller"),
        (Hook::FrontEnd, "test_moody_front_end"),
    ];
    for (own, name) in guests {
        let binding = fixture.binding(name, "ok north");
        assert_eq!(
            fixture.hooks.versions().unwrap().iter().find(|one| one.plugin == name).unwrap().hook,
            own
        );
        for hook in Hook::ALL.into_iter().filter(|hook| *hook != own) {
            let refusals = [
                fixture.hooks.activate(hook, NOW, vec![binding.clone()], None).map(drop),
                fixture
                    .hooks
                    .start_trial(hook, NOW, TrialMode::Shadow, vec![binding.clone()], None)
                    .map(drop),
                fixture.hooks.dry_run(hook, std::slice::from_ref(&binding)).map(drop),
            ];
            for refusal in refusals {
                let refusal = refusal.unwrap_err();
                assert!(matches!(&refusal, HookError::WrongHook { .. }), "{refusal}");
                let words = refusal.to_string();
                assert!(words.contains(own.name()) && words.contains(hook.name()), "{words}");
            }
            assert!(fixture.hooks.status(hook).candidate.is_none());
        }
        fixture.hooks.activate(own, NOW, vec![binding.clone()], None).unwrap();
        let chain = vec![binding.clone(), binding];
        match own {
            Hook::Router | Hook::Lookup | Hook::Receipt => {
                fixture.hooks.activate(own, NOW, chain, None).map(drop).unwrap();
            }
            Hook::FrontEnd => {
                let refusal = fixture.hooks.activate(own, NOW, chain, None).unwrap_err();
                assert!(matches!(refusal, HookError::DuplicatePlugin(_)), "{refusal}");
            }
            _ => {
                let refusal = fixture.hooks.activate(own, NOW, chain, None).unwrap_err();
                assert!(matches!(refusal, HookError::OneOnly(name) if name == own.name()));
            }
        }
    }
}

#[test]
fn an_import_of_another_world_is_refused_by_name() {
    let fixture = HooksFixture::new();
    // Names of equal length, so that the component stays valid.
    let mut octets = guest("http_resolver");
    let (own, foreign) = (b"switchyard:hooks/http@", b"switchyard:hooks/body@");
    for start in 0..octets.len() - own.len() {
        if octets[start..].starts_with(own) {
            octets[start..start + own.len()].copy_from_slice(foreign);
        }
    }
    let refusal = fixture.hooks.upload("p", &octets, None).unwrap_err();
    assert!(
        matches!(&refusal, HookError::ForeignImport { name, hook: "resolver" } if name.contains("body")),
        "{refusal}"
    );
    assert_eq!(fixture.hooks.versions().unwrap(), []);
}

fn key(of: u8) -> SigningKey {
    SigningKey::from_bytes(&[of; 32])
}

fn trust(keys: &[u8], required: bool) -> HooksOptions {
    let public = |of: &u8| STANDARD.encode(key(*of).verifying_key().to_bytes());
    let keys = keys.iter().map(|of| TrustedKey::new(&format!("key {of}"), &public(of)).unwrap()).collect();
    HooksOptions { trust: Trust { keys, required }, ..options() }
}

fn sign(of: u8, octets: &[u8]) -> String {
    STANDARD.encode(key(of).sign(octets).to_bytes())
}

#[test]
fn required_signatures_are_enforced() {
    let fixture = HooksFixture::with(trust(&[1, 2], true));
    let router = guest("prefix_router");
    let upload = |signature: Option<&str>| fixture.hooks.upload("router", &router, signature);
    assert!(matches!(upload(None), Err(HookError::Unsigned)));
    let foreign = [sign(3, &router), sign(1, &moody_router("trap")), "AAAA".to_owned(), String::new()];
    for signature in &foreign {
        assert!(matches!(upload(Some(signature)), Err(HookError::BadSignature(_))), "{signature}");
    }
    assert_eq!(fixture.hooks.versions().unwrap(), []);
    let info = upload(Some(&format!(" {}\n", sign(2, &router)))).unwrap();
    assert_eq!(info.signed_by.as_deref(), Some("key 2"));
    let binding = Binding::new("router", &info.version, &route_all_to("north"));
    fixture.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
    // The component and its signer are known already.
    assert_eq!(upload(None).unwrap(), info);
    assert_eq!(fixture.hooks.versions().unwrap(), [info]);
    let fixture = fixture.restart();
    assert_eq!(forwarded_peers(&fixture.route("good")), [fixture.peer("north")]);
}

#[test]
fn stored_versions_need_the_signature_required_now() {
    let fixture = HooksFixture::with(trust(&[1], false));
    let router = guest("prefix_router");
    let unsigned = fixture.hooks.upload("unsigned", &router, None).unwrap();
    let signed = fixture.hooks.upload("signed", &router, Some(&sign(1, &router))).unwrap();
    // A signature must be valid even if none is required.
    let wrong = fixture.hooks.upload("wrong", &router, Some(&sign(3, &router)));
    assert!(matches!(wrong, Err(HookError::BadSignature(_))));
    let binding = |name: &str| Binding::new(name, &signed.version, &route_all_to("north"));
    fixture.hooks.activate(Hook::Router, NOW, vec![binding("signed")], None).unwrap();

    let fixture = fixture.restart_with(trust(&[1], true));
    assert_eq!(forwarded_peers(&fixture.route("good")), [fixture.peer("north")]);
    let refused = fixture.hooks.activate(Hook::Router, NOW, vec![binding("unsigned")], None);
    assert!(matches!(refused, Err(HookError::Unsigned)));
    let info = fixture.hooks.upload("unsigned", &router, Some(&sign(1, &router))).unwrap();
    assert_eq!(info.version, unsigned.version);
    fixture.hooks.activate(Hook::Router, NOW, vec![binding("unsigned")], None).unwrap();

    // The signer is no longer trusted: a host that requires signatures does not start, and reports the reason.
    let HooksFixture { hooks, folder, .. } = fixture;
    drop(hooks);
    let open = |options| Hooks::open(folder.path(), options, directory(), services(folder.path()));
    let error = open(trust(&[2], true)).err().expect("the live plugin's signature does not count");
    assert!(matches!(&error, HookError::BadSignature(_)), "{error}");
    // If no signature is required, the version counts as unsigned.
    let hooks = open(trust(&[2], false)).unwrap();
    assert_eq!(
        forwarded_peers(&hooks.route(&message("good", GOOD), NOW)),
        [fixture.directory.load().id("north").unwrap()]
    );
}

#[test]
fn a_plugin_that_fails_to_configure_is_not_activated() {
    let fixture = HooksFixture::new();
    let live = with_long_deadline(fixture.moody("ok", "north"));
    fixture.hooks.activate(Hook::Router, NOW, vec![live.clone()], None).unwrap();
    let deep = Binding { policy: "deep-configure".to_owned(), ..live.clone() };
    let narrow = Binding { memory: 1 << 16, ..live.clone() };
    for (binding, words) in [(deep, "stack"), (narrow, "memory")] {
        let refusals = [
            fixture.hooks.activate(Hook::Router, NOW, vec![binding.clone()], None).map(drop),
            fixture
                .hooks
                .start_trial(Hook::Router, NOW, TrialMode::Shadow, vec![binding.clone()], None)
                .map(drop),
            fixture.hooks.dry_run(Hook::Router, &[binding]).map(drop),
        ];
        for refusal in refusals {
            let refusal = refusal.unwrap_err();
            assert!(matches!(&refusal, HookError::Faulty { stage: "configuration", .. }), "{refusal}");
            assert!(refusal.to_string().contains(words), "{refusal}");
        }
    }
    assert_eq!(fixture.hooks.history(Hook::Router).len(), 1);
    assert_eq!(forwarded_peers(&fixture.route("good")), [fixture.peer("north")], "the shallow one decides");
    assert_eq!(fixture.hooks.counts(Hook::Router)[0].counts.faults, [0; 5]);
}

#[test]
fn oversized_answers_and_invalid_utf8_cost_one_call() {
    let fixture = HooksFixture::new();
    let north = fixture.peer("north");
    for name in ["giant", "many-legs", "bad-utf8", "bad-utf8-peer", "recurse"] {
        let binding = with_long_deadline(fixture.moody(name, "north"));
        let binding =
            Binding { memory: 60 << 20, tolerance: Tolerance { faults: 0, window_ms: 1 }, ..binding };
        fixture.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
        for (source, destination) in [("bad", GOOD), ("good", BAD)] {
            let routed = fixture.hooks.route(&message(source, destination), NOW);
            assert!(matches!(routed.verdict, Verdict::Hold(_)), "{name}: {routed:?}");
            assert!(routed.note.unwrap().len() < 400);
            assert_eq!(forwarded_peers(&fixture.route("good")), [north], "{name}");
        }
        let counts = fixture.hooks.counts(Hook::Router);
        assert_eq!((counts[0].counts.calls, counts[0].counts.faults.iter().sum()), (4, 2_u64), "{name}");
    }
}

#[test]
fn long_refusals_are_truncated() {
    let fixture = HooksFixture::new();
    let long = format!("{} north", "x".repeat(1 << 20));
    let binding = with_long_deadline(fixture.binding("test_moody_router", &long));
    let refusal = fixture.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap_err();
    assert!(matches!(&refusal, HookError::Refused { why, .. } if why.len() <= 2_000), "it is cut");
}

#[test]
fn without_a_free_instance_a_message_is_held_without_a_fault() {
    let fixture = HooksFixture::with(HooksOptions { instances: 2, ..options() });
    let south = with_long_deadline(fixture.binding("prefix_router", &route_all_to("south")));
    // A fresh instance for every call, and one fault exceeds the tolerance.
    let once = Tolerance { faults: 1, window_ms: 3_600_000 };
    let south = Binding { instance: InstanceUse::PerCall, tolerance: once, ..south };
    let north = Binding { policy: route_all_to("north"), ..south.clone() };
    fixture.hooks.activate(Hook::Router, NOW, vec![south], None).unwrap();
    fixture.hooks.activate(Hook::Router, NOW, vec![north], None).unwrap();
    let stuck = fixture.binding("test_moody_resolver", "loop");
    let never = Tolerance { faults: 0, window_ms: 1 };
    let stuck = Binding { deadline: Duration::from_secs(3), tolerance: never, ..stuck };
    fixture.hooks.activate(Hook::Resolver, NOW, vec![stuck], None).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            // The router may hold the last instance at this moment: retry until the resolver gets one.
            scope.spawn(|| {
                while fixture.hooks.resolve(BAD, NOW).note.unwrap().contains("limit of instances") {}
            });
        }
        wait_until("both instances are in use", || {
            let routed = fixture.route("good");
            let full = matches!(routed.verdict, Verdict::Hold(_));
            assert!(full || forwarded_peers(&routed) == [fixture.peer("north")], "{routed:?}");
            assert!(!full || routed.note.as_deref().unwrap().contains("the limit of instances is reached"));
            full
        });
    });
    assert_eq!(forwarded_peers(&fixture.route("good")), [fixture.peer("north")]);
    assert_eq!(fixture.hooks.counts(Hook::Router)[0].counts.faults, [0, 0, 0, 0, 1]);
    assert_eq!(fixture.hooks.history(Hook::Router).len(), 2, "nothing was rolled back");
}
