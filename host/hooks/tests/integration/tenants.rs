//! Bindings of tenants in the operator's chain.

use crate::support::{
    FORCED, HooksFixture, NOW, forwarded_peers, message, options, route_all_to, wait_until,
    with_long_deadline,
};
use hooks::{Binding, BindingChange, HookError, HooksOptions, OnFault, TenantCalls, Tolerance, TrialMode};
use model::{Hook, Message, PeerId, RoutingDecision, TenantTree, Verdict};
use std::sync::Arc;

/// Accounts: `acme` of the tenant `shop` below `north-tenant`, `south` of `other`, and `reserve` of the operator.
fn publish(fixture: &HooksFixture, tenants: &[(&str, Option<&str>)]) {
    let shared = |(name, parent): &(&str, Option<&str>)| (Arc::from(*name), parent.map(Arc::from));
    let accounts = [("acme", Some("shop")), ("south", Some("other")), ("reserve", None)];
    let tree = TenantTree::new(tenants.iter().map(shared), accounts.iter().map(shared), []);
    let directory = fixture.directory.load();
    fixture.tenant_lines.publish(&tree, |account| directory.id(account));
}

const TENANTS: [(&str, Option<&str>); 3] =
    [("north-tenant", None), ("shop", Some("north-tenant")), ("other", None)];

fn fixture() -> HooksFixture {
    let fixture = HooksFixture::new();
    publish(&fixture, &TENANTS);
    fixture
}

/// A router of a tenant that sends everything to a peer.
fn router(fixture: &HooksFixture, tenant: &str, peer: &str) -> Binding {
    let binding = with_long_deadline(fixture.binding("prefix_router", &route_all_to(peer)));
    Binding { tenant: Some(tenant.to_owned()), peers: vec![peer.to_owned()], ..binding }
}

fn operators(fixture: &HooksFixture, peer: &str) -> Binding {
    with_long_deadline(fixture.binding("prefix_router", &route_all_to(peer)))
}

fn from(fixture: &HooksFixture, account: &str) -> Message {
    Message { origin: fixture.peer(account), ..message("good", "8613012345678") }
}

fn route(fixture: &HooksFixture, account: &str) -> RoutingDecision {
    fixture.hooks.route(&from(fixture, account), NOW)
}

fn peers(fixture: &HooksFixture, account: &str) -> Vec<PeerId> {
    forwarded_peers(&route(fixture, account))
}

fn activate(fixture: &HooksFixture, chain: &[&Binding]) -> Result<(), HookError> {
    let chain = chain.iter().copied().cloned().collect();
    fixture.hooks.activate(Hook::Router, NOW, chain, None).map(drop)
}

/// The calls of each live binding.
fn calls(fixture: &HooksFixture) -> Vec<u64> {
    fixture.hooks.counts(Hook::Router).iter().map(|one| one.counts.calls).collect()
}

fn note(routed: &RoutingDecision) -> &str {
    routed.note.as_deref().unwrap_or_default()
}

#[test]
fn a_binding_is_asked_for_its_tenants_branch_only() {
    let fixture = fixture();
    let (north, other) = (router(&fixture, "north-tenant", "north"), router(&fixture, "other", "reserve"));
    activate(&fixture, &[&north, &other, &operators(&fixture, "south")]).unwrap();
    assert_eq!(peers(&fixture, "acme"), [fixture.peer("north")], "a tenant below it");
    assert_eq!(peers(&fixture, "south"), [fixture.peer("reserve")]);
    assert_eq!(peers(&fixture, "reserve"), [fixture.peer("south")], "of no tenant");
    assert_eq!(calls(&fixture), [1, 1, 1]);
    // Messages routed together get the same peers.
    let batch: Vec<Message> = (0..12).map(|n| from(&fixture, ["acme", "south", "reserve"][n % 3])).collect();
    let decisions = fixture.hooks.route_many(&batch.iter().collect::<Vec<_>>(), NOW);
    let expected = ["north", "reserve", "south"].map(|peer| vec![fixture.peer(peer)]);
    for (n, decision) in decisions.iter().enumerate() {
        assert_eq!(forwarded_peers(decision), expected[n % 3]);
    }
    assert_eq!(calls(&fixture), [5, 5, 5]);
    let costs = fixture.hooks.tenant_calls();
    let counted = |tenant: &str| costs.get(tenant).map(|cost| (cost.calls, cost.faults));
    assert_eq!(
        (counted("north-tenant"), counted("other"), counted("shop")),
        (Some((5, 0)), Some((5, 0)), None)
    );
    let explained = fixture.hooks.explain(&from(&fixture, "acme"), NOW);
    assert_eq!(explained.0.len(), 1, "others' bindings are no steps");
    assert_eq!(calls(&fixture), [5, 5, 5]);
}

#[test]
fn the_operators_bindings_come_where_the_chain_has_them() {
    let fixture = fixture();
    let guard = "[[route]]\nprefix = \"86\"\nreject = \"prohibited\"\n";
    let guard = with_long_deadline(fixture.binding("prefix_router", guard));
    let own = router(&fixture, "shop", "north");
    activate(&fixture, &[&guard, &own]).unwrap();
    assert!(matches!(route(&fixture, "acme").verdict, Verdict::Reject(_)), "the first decision counts");
    activate(&fixture, &[&own, &guard]).unwrap();
    assert_eq!(peers(&fixture, "acme"), [fixture.peer("north")]);
    // A router that passes leaves the message to the next router. A router of another tenant is not asked about it.
    let passes =
        Binding { policy: "[[route]]\nprefix = \"1\"\nlegs = [{ peer = \"north\" }]\n".to_owned(), ..own };
    activate(&fixture, &[&passes, &operators(&fixture, "south"), &router(&fixture, "other", "north")])
        .unwrap();
    assert_eq!(peers(&fixture, "acme"), [fixture.peer("south")]);
    activate(&fixture, &[&passes, &router(&fixture, "other", "north")]).unwrap();
    let undecided = route(&fixture, "acme");
    assert_eq!((note(&undecided), &*undecided.by.version), ("no router decided", &*passes.version));
    assert_eq!(note(&route(&fixture, "reserve")), "no router is bound");
}

#[test]
fn the_tree_may_change_under_a_chain() {
    let fixture = fixture();
    let own = router(&fixture, "north-tenant", "north");
    activate(&fixture, &[&own, &operators(&fixture, "south")]).unwrap();
    assert_eq!(peers(&fixture, "acme"), [fixture.peer("north")]);
    publish(&fixture, &[("shop", None), ("other", None)]);
    assert_eq!(peers(&fixture, "acme"), [fixture.peer("south")], "the tenant is removed");
    // Its binding does not prevent changes of other bindings, but cannot be activated with new contents.
    let other = router(&fixture, "other", "north");
    activate(&fixture, &[&other, &own, &operators(&fixture, "south")]).unwrap();
    let changed = Binding { policy: route_all_to("south"), peers: vec!["south".to_owned()], ..own.clone() };
    let error = activate(&fixture, &[&changed, &other]).unwrap_err();
    assert!(matches!(&error, HookError::UnknownTenant(tenant) if tenant == "north-tenant"), "{error}");
    assert!(error.to_string().contains("not a [[tenant]]"), "{error}");
    fixture.hooks.activate(Hook::Router, NOW, vec![changed, other], FORCED).unwrap();
    publish(&fixture, &TENANTS);
    assert_eq!(peers(&fixture, "acme"), [fixture.peer("south")], "it exists again");
}

#[test]
fn a_tenants_router_uses_the_peers_of_its_binding_only() {
    let fixture = fixture();
    // A policy that names another peer is refused.
    let outside = Binding { policy: route_all_to("south"), ..router(&fixture, "shop", "north") };
    let error = activate(&fixture, &[&outside]).unwrap_err();
    assert!(matches!(&error, HookError::PeersNotAllowed { names, .. } if names == "south"), "{error}");
    let unknown = Binding { peers: vec!["nowhere".to_owned()], ..outside.clone() };
    assert!(matches!(activate(&fixture, &[&unknown]), Err(HookError::ServesUnknownPeer(_))));
    // If the router names such a peer at run time, that is a fault, and the binding's `on-fault` applies.
    for (on_fault, expected) in [(OnFault::Peer("reserve".to_owned()), "reserve"), (OnFault::Pass, "acme")] {
        let binding = Binding { on_fault, ..outside.clone() };
        let chain = vec![binding, operators(&fixture, "acme")];
        fixture.hooks.activate(Hook::Router, NOW, chain, FORCED).unwrap();
        assert_eq!(peers(&fixture, "acme"), [fixture.peer(expected)]);
        assert_eq!(fixture.hooks.counts(Hook::Router)[0].counts.faults, [0, 0, 0, 1, 0]);
    }
    let held = Binding { on_fault: OnFault::Hold, ..outside };
    fixture.hooks.activate(Hook::Router, NOW, vec![held], FORCED).unwrap();
    let routed = route(&fixture, "acme");
    assert!(
        matches!(routed.verdict, Verdict::Hold(_)) && note(&routed).contains("not among the `peers`"),
        "{routed:?}"
    );
}

#[test]
fn a_tenants_router_changes_nothing_that_is_the_operators() {
    let fixture = fixture();
    fixture
        .pool_snapshots
        .publish([("texts".to_owned(), hooks::PoolState { ready: 1, busy: 0, down: 0, total: 1 })].into());
    fixture.peer_snapshots.publish(
        ["north", "south"].map(|peer| (peer.to_owned(), hooks::PeerState { links: 1, queued: 7 })).into(),
    );
    let decide = |guest: &str, document: &str| {
        let binding = with_long_deadline(fixture.binding(guest, document));
        let binding = Binding {
            tenant: Some("shop".to_owned()),
            peers: vec!["north".to_owned()],
            tolerance: Tolerance { faults: 0, window_ms: 1 },
            ..binding
        };
        fixture.hooks.activate(Hook::Router, NOW, vec![binding], FORCED).unwrap();
        route(&fixture, "acme")
    };
    for refused in ["attribute tariff free", "attribute tenants free", "bucket brand", "window night"] {
        let routed = decide("test_examiner", &format!("{refused}\nforward north"));
        assert!(note(&routed).starts_with("fault (verdict)"), "{refused}: {routed:?}");
    }
    let allowed = decide("test_examiner", "attribute tenant.campaign spring\nset-tlv 1400 x\nforward north");
    assert_eq!(forwarded_peers(&allowed), [fixture.peer("north")]);
    assert_eq!(allowed.changes.unwrap().to_string(), "TLV 0x1400 set, attribute tenant.campaign set");
    let pools = decide("test_taker", "state texts\ntake texts hold\nto north");
    assert!(pools.sender.is_none() && note(&pools).contains("no pool"), "{pools:?}");
    assert!(note(&pools).contains("number pools are not for plugins of tenants"), "{pools:?}");
}

#[test]
fn counters_of_a_tenant_are_its_own() {
    let fixture = fixture();
    let document = "note near-duplicate\nforward north";
    let plain = with_long_deadline(fixture.binding("test_examiner", document));
    let of = |tenant: &str| Binding {
        tenant: Some(tenant.to_owned()),
        peers: vec!["north".to_owned()],
        ..plain.clone()
    };
    fixture.hooks.activate(Hook::Router, NOW, vec![of("shop"), of("other"), plain.clone()], FORCED).unwrap();
    let spaces: Vec<String> = fixture.counters.metrics().into_iter().map(|(name, _)| name).collect();
    for space in ["test_examiner", "test_examiner@other", "test_examiner@shop"] {
        assert!(spaces.iter().any(|one| one == space), "{space}: {spaces:?}");
    }
}

#[test]
fn a_failing_binding_of_a_tenant_is_rolled_back_alone() {
    let fixture = fixture();
    let low = Tolerance { faults: 2, window_ms: 3_600_000 };
    let good = router(&fixture, "shop", "north");
    let (other, default) = (router(&fixture, "other", "north"), operators(&fixture, "south"));
    activate(&fixture, &[&good, &default]).unwrap();
    // In the meantime, another tenant gets a router.
    activate(&fixture, &[&good, &other, &default]).unwrap();
    let bad =
        Binding { policy: route_all_to("south"), tolerance: low, on_fault: OnFault::Pass, ..good.clone() };
    fixture.hooks.activate(Hook::Router, NOW, vec![bad, other.clone(), default.clone()], FORCED).unwrap();
    route(&fixture, "acme");
    route(&fixture, "acme");
    let last = || fixture.hooks.history(Hook::Router).pop().unwrap();
    wait_until("it is rolled back", || last().change == BindingChange::RolledBackAutomatically);
    assert_eq!(last().chain, [good.clone(), other.clone(), default.clone()]);
    // A rollback because of a failing binding of the operator keeps the tenants' bindings.
    let moody = Binding { tolerance: low, ..with_long_deadline(fixture.moody("trap", "north")) };
    fixture.hooks.activate(Hook::Router, NOW, vec![good.clone(), moody.clone()], FORCED).unwrap();
    fixture.hooks.activate(Hook::Router, NOW, vec![other.clone(), moody], FORCED).unwrap();
    for _ in 0..2 {
        let bad = Message { origin: fixture.peer("reserve"), ..message("bad", "8613012345678") };
        drop(fixture.hooks.route(&bad, NOW));
    }
    wait_until("it is rolled back", || last().change == BindingChange::RolledBackAutomatically);
    assert_eq!(last().chain, [other, default]);
}

#[test]
fn a_canary_of_a_tenant_decides_for_its_branch() {
    let fixture = fixture();
    let (own, default) = (router(&fixture, "shop", "north"), operators(&fixture, "south"));
    activate(&fixture, &[&own, &default]).unwrap();
    let trial = Binding { policy: route_all_to("reserve"), peers: vec!["reserve".to_owned()], ..own };
    let canary = TrialMode::Canary { share: 10_000 };
    fixture.hooks.start_trial(Hook::Router, NOW, canary, vec![trial, default], None).unwrap();
    assert_eq!(peers(&fixture, "acme"), [fixture.peer("reserve")]);
    assert_eq!(peers(&fixture, "south"), [fixture.peer("south")]);
}

#[test]
fn only_routers_serve_tenants() {
    let fixture = fixture();
    let screen = with_long_deadline(fixture.binding("test_moody_screen", "ok"));
    let screen = Binding { tenant: Some("shop".to_owned()), ..screen };
    let error = fixture.hooks.activate(Hook::Screen, NOW, vec![screen], FORCED).unwrap_err();
    assert!(matches!(error, HookError::ServesNoTenants("screen")), "{error}");
    let operators = Binding { peers: vec!["north".to_owned()], ..operators(&fixture, "north") };
    assert!(matches!(activate(&fixture, &[&operators]), Err(HookError::ServesNoPeers("router"))));
}

#[test]
fn many_tenants_share_a_few_instances() {
    // More bindings than the host has instances, and as many again when the chain is changed.
    let fixture = HooksFixture::with(HooksOptions { instances: 12, ..options() });
    let tenants: Vec<String> = (0..40).map(|n| format!("t{n}")).collect();
    let names: Vec<Arc<str>> = tenants.iter().map(|name| name.as_str().into()).collect();
    let mut directory = (**fixture.directory.load()).clone();
    let accounts: Vec<PeerId> =
        tenants.iter().map(|name| directory.intern(&format!("a-{name}")).unwrap().0).collect();
    let account = |name: &Arc<str>| (Arc::from(format!("a-{name}")), Some(name.clone()));
    let tree = TenantTree::new(names.iter().map(|name| (name.clone(), None)), names.iter().map(account), []);
    fixture.tenant_lines.publish(&tree, |account| directory.id(account));
    let plain = with_long_deadline(fixture.binding("prefix_router", ""));
    let bindings = |turn: usize| -> Vec<Binding> {
        let one = |(n, tenant): (usize, &String)| {
            let peer = ["north", "south"][(n + turn) % 2];
            Binding {
                tenant: Some(tenant.clone()),
                policy: route_all_to(peer),
                peers: vec![peer.to_owned()],
                ..plain.clone()
            }
        };
        tenants.iter().enumerate().map(one).collect()
    };
    for turn in 0..2 {
        fixture.hooks.activate(Hook::Router, NOW, bindings(turn), None).unwrap();
        for _ in 0..2 {
            for (n, origin) in accounts.iter().enumerate() {
                let routed = fixture
                    .hooks
                    .route(&Message { origin: *origin, ..message("good", "8613012345678") }, NOW);
                assert_eq!(forwarded_peers(&routed), [fixture.peer(["north", "south"][(n + turn) % 2])]);
            }
        }
    }
    let counts = fixture.hooks.counts(Hook::Router);
    assert!(counts.iter().all(|one| (one.counts.calls, one.counts.faults) == (2, [0; 5])), "{counts:?}");
    // The calls of the previous chain are counted, too.
    let costs: Vec<TenantCalls> = fixture.hooks.tenant_calls().into_values().collect();
    assert!(costs.len() == 40 && costs.iter().all(|cost| cost.calls == 4), "{costs:?}");
}

#[test]
fn a_change_of_one_binding_starts_no_other() {
    let fixture = fixture();
    let (own, other) = (router(&fixture, "shop", "north"), router(&fixture, "other", "north"));
    activate(&fixture, &[&own, &other]).unwrap();
    peers(&fixture, "south");
    let changed = Binding { policy: route_all_to("reserve"), peers: vec!["reserve".to_owned()], ..own };
    activate(&fixture, &[&changed, &other]).unwrap();
    // Its counts continue.
    assert_eq!(calls(&fixture), [0, 1]);
    assert_eq!(peers(&fixture, "acme"), [fixture.peer("reserve")]);
}
