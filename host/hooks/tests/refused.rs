//! What does not get to serve, and what answers too much: components for another hook, without a signature, that fail while
//! they are configured; and answers that no host should take as they are.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failed step is a failed test")]

mod support;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer, SigningKey};
use hooks::{Binding, HookError, Hooks, HooksOptions, InstanceUse, Tolerance, Trust, TrustedKey, Trying};
use model::{Hook, Verdict};
use std::time::Duration;
use support::{House, NOW, directory, everything_to, guest, message, options, patient, peers, powers, until};

const GOOD: &str = "8613012345678";
const BAD: &str = "66612345678";

#[test]
fn a_plugin_of_one_hook_serves_no_other() {
    let house = House::new();
    let guests = [
        (Hook::Router, "test_moody_router"),
        (Hook::Resolver, "test_moody_resolver"),
        (Hook::DeliveryPolicy, "test_moody_policy"),
        (Hook::Biller, "test_moody_biller"),
    ];
    for (own, name) in guests {
        let binding = house.binding(name, "ok north");
        assert_eq!(house.hooks.versions().unwrap().iter().find(|one| one.plugin == name).unwrap().hook, own);
        for hook in Hook::ALL.into_iter().filter(|hook| *hook != own) {
            let refusals = [
                house.hooks.activate(hook, NOW, vec![binding.clone()], None).map(drop),
                house.hooks.try_out(hook, NOW, Trying::Shadow, vec![binding.clone()], None).map(drop),
                house.hooks.trial(hook, std::slice::from_ref(&binding)).map(drop),
            ];
            for refusal in refusals {
                let refusal = refusal.unwrap_err();
                assert!(matches!(&refusal, HookError::WrongHook { .. }), "{refusal}");
                let words = refusal.to_string();
                assert!(words.contains(own.name()) && words.contains(hook.name()), "{words}");
            }
            assert!(house.hooks.state(hook).candidate.is_none());
        }
        house.hooks.activate(own, NOW, vec![binding.clone()], None).unwrap();
        let chain = vec![binding.clone(), binding];
        match own {
            Hook::Router => house.hooks.activate(own, NOW, chain, None).map(drop).unwrap(),
            _ => {
                let refusal = house.hooks.activate(own, NOW, chain, None).unwrap_err();
                assert!(matches!(refusal, HookError::OneOnly(name) if name == own.name()));
            }
        }
    }
}

#[test]
fn what_another_world_may_import_is_refused_by_name() {
    let house = House::new();
    // Names of one length, so that the component stays one.
    let mut octets = guest("http_resolver");
    let (own, foreign) = (b"switchyard:hooks/http@", b"switchyard:hooks/body@");
    for start in 0..octets.len() - own.len() {
        if octets[start..].starts_with(own) {
            octets[start..start + own.len()].copy_from_slice(foreign);
        }
    }
    let refusal = house.hooks.upload("p", &octets, None).unwrap_err();
    assert!(
        matches!(&refusal, HookError::ForeignImport { name, hook: "resolver" } if name.contains("body")),
        "{refusal}"
    );
    assert_eq!(house.hooks.versions().unwrap(), []);
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
fn where_signatures_are_required_nothing_else_is_taken() {
    let house = House::with(trust(&[1, 2], true));
    let router = guest("prefix_router");
    let upload = |signature: Option<&str>| house.hooks.upload("router", &router, signature);
    assert!(matches!(upload(None), Err(HookError::Unsigned)));
    let foreign = [sign(3, &router), sign(1, &guest("test_trap")), "AAAA".to_owned(), String::new()];
    for signature in &foreign {
        assert!(matches!(upload(Some(signature)), Err(HookError::BadSignature(_))), "{signature}");
    }
    assert_eq!(house.hooks.versions().unwrap(), []);
    let info = upload(Some(&format!(" {}\n", sign(2, &router)))).unwrap();
    assert_eq!(info.signed_by.as_deref(), Some("key 2"));
    let binding = Binding::new("router", &info.version, &everything_to("north"));
    house.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
    // It is known already, and so is who signed it.
    assert_eq!(upload(None).unwrap(), info);
    assert_eq!(house.hooks.versions().unwrap(), [info]);
    let house = house.restart();
    assert_eq!(peers(&house.route("good")), [house.peer("north")]);
}

#[test]
fn what_was_kept_before_serves_only_with_what_is_required_now() {
    let house = House::with(trust(&[1], false));
    let router = guest("prefix_router");
    let unsigned = house.hooks.upload("unsigned", &router, None).unwrap();
    let signed = house.hooks.upload("signed", &router, Some(&sign(1, &router))).unwrap();
    // Right or not at all, also where none is required.
    let wrong = house.hooks.upload("wrong", &router, Some(&sign(3, &router)));
    assert!(matches!(wrong, Err(HookError::BadSignature(_))));
    let binding = |name: &str| Binding::new(name, &signed.version, &everything_to("north"));
    house.hooks.activate(Hook::Router, NOW, vec![binding("signed")], None).unwrap();

    let house = house.restart_with(trust(&[1], true));
    assert_eq!(peers(&house.route("good")), [house.peer("north")]);
    let refused = house.hooks.activate(Hook::Router, NOW, vec![binding("unsigned")], None);
    assert!(matches!(refused, Err(HookError::Unsigned)));
    let info = house.hooks.upload("unsigned", &router, Some(&sign(1, &router))).unwrap();
    assert_eq!(info.version, unsigned.version);
    house.hooks.activate(Hook::Router, NOW, vec![binding("unsigned")], None).unwrap();

    // The signer is trusted no more: what requires a signature does not start, and says why.
    let House { hooks, folder, .. } = house;
    drop(hooks);
    let open = |options| Hooks::open(folder.path(), options, directory(), powers(folder.path()));
    let error = open(trust(&[2], true)).err().expect("the live plugin's signature does not count");
    assert!(matches!(&error, HookError::BadSignature(_)), "{error}");
    // Where none is required it is no worse than one without.
    let hooks = open(trust(&[2], false)).unwrap();
    assert_eq!(
        peers(&hooks.route(&message("good", GOOD), NOW)),
        [house.directory.load().id("north").unwrap()]
    );
}

#[test]
fn a_plugin_that_fails_while_it_is_configured_is_not_activated() {
    let house = House::new();
    let live = patient(house.binding("test_deep_configure", "shallow"));
    house.hooks.activate(Hook::Router, NOW, vec![live.clone()], None).unwrap();
    let deep = Binding { policy: "deep".to_owned(), ..live.clone() };
    let narrow = Binding { memory: 1 << 16, ..live.clone() };
    for (binding, words) in [(deep, "stack"), (narrow, "memory")] {
        let refusals = [
            house.hooks.activate(Hook::Router, NOW, vec![binding.clone()], None).map(drop),
            house.hooks.try_out(Hook::Router, NOW, Trying::Shadow, vec![binding.clone()], None).map(drop),
            house.hooks.trial(Hook::Router, &[binding]).map(drop),
        ];
        for refusal in refusals {
            let refusal = refusal.unwrap_err();
            assert!(matches!(&refusal, HookError::Faulty { stage: "configuration", .. }), "{refusal}");
            assert!(refusal.to_string().contains(words), "{refusal}");
        }
    }
    assert_eq!(house.hooks.history(Hook::Router).len(), 1);
    assert_eq!(house.route("good").note.as_deref(), Some("no router decided"), "the shallow one passes");
    assert_eq!(house.hooks.counts(Hook::Router)[0].counts.faults, [0; 5]);
}

#[test]
fn giant_answers_and_texts_that_are_none_cost_one_call() {
    let house = House::new();
    let north = house.peer("north");
    for name in ["test_giant", "test_badutf8", "test_overflow"] {
        let binding = patient(house.binding(name, "north"));
        let binding =
            Binding { memory: 60 << 20, tolerance: Tolerance { faults: 0, window_ms: 1 }, ..binding };
        house.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap();
        for (source, destination) in [("bad", GOOD), ("good", BAD)] {
            let routed = house.hooks.route(&message(source, destination), NOW);
            assert!(matches!(routed.verdict, Verdict::Hold(_)), "{name}: {routed:?}");
            assert!(routed.note.unwrap().len() < 400);
            assert_eq!(peers(&house.route("good")), [north], "{name}");
        }
        let counts = house.hooks.counts(Hook::Router);
        assert_eq!((counts[0].counts.calls, counts[0].counts.faults.iter().sum()), (4, 2_u64), "{name}");
    }
}

#[test]
fn words_without_end_are_cut_where_people_stop_reading() {
    let house = House::new();
    let long = format!("{} north", "x".repeat(1 << 20));
    let binding = patient(house.binding("test_moody_router", &long));
    let refusal = house.hooks.activate(Hook::Router, NOW, vec![binding], None).unwrap_err();
    assert!(matches!(&refusal, HookError::Refused { why, .. } if why.len() <= 2_000), "it is cut");
}

#[test]
fn where_all_instances_are_in_use_a_message_is_held_and_no_plugin_is_blamed() {
    let house = House::with(HooksOptions { instances: 2, ..options() });
    let south = patient(house.binding("prefix_router", &everything_to("south")));
    // A fresh instance for every call, and one fault is too many.
    let once = Tolerance { faults: 1, window_ms: 3_600_000 };
    let south = Binding { instance: InstanceUse::PerCall, tolerance: once, ..south };
    let north = Binding { policy: everything_to("north"), ..south.clone() };
    house.hooks.activate(Hook::Router, NOW, vec![south], None).unwrap();
    house.hooks.activate(Hook::Router, NOW, vec![north], None).unwrap();
    let stuck = house.binding("test_moody_resolver", "loop");
    let never = Tolerance { faults: 0, window_ms: 1 };
    let stuck = Binding { deadline: Duration::from_secs(3), tolerance: never, ..stuck };
    house.hooks.activate(Hook::Resolver, NOW, vec![stuck], None).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            // The router may have had the last one just then: until it gets one.
            scope.spawn(|| while house.hooks.resolve(BAD, NOW).note.unwrap().contains("in use") {});
        }
        until("both instances are in use", || {
            let routed = house.route("good");
            let full = matches!(routed.verdict, Verdict::Hold(_));
            assert!(full || peers(&routed) == [house.peer("north")], "{routed:?}");
            assert!(
                !full || routed.note.as_deref().unwrap().contains("all that the house allows are in use")
            );
            full
        });
    });
    assert_eq!(peers(&house.route("good")), [house.peer("north")]);
    assert_eq!(house.hooks.counts(Hook::Router)[0].counts.faults, [0, 0, 0, 0, 1]);
    assert_eq!(house.hooks.history(Hook::Router).len(), 2, "and nothing was taken back");
}
