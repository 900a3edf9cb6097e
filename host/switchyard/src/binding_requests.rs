//! Bindings in requests of the API.

use crate::problems::unprocessable;
use admin::Problem;
use hooks::Binding;
use model::Hook;
use std::time::Duration;

/// The chain that a request describes by `chain` or by a single binding. With `position`, the single binding is
/// inserted into the live chain and replaces one of the same plugin for the same tenant. Without it, a tenant's binding
/// replaces the live one of the same plugin and tenant, or is inserted as the first; a binding of the operator replaces
/// all bindings of the operator. A binding of the hook `peer` takes over its peers, and the other bindings keep their
/// remaining peers. Missing fields are taken from the live binding of the plugin for the same tenant.
pub(crate) fn chain(
    request: api::ActivationRequest,
    live_chain: &[Binding],
) -> Result<Vec<Binding>, Problem> {
    let api::ActivationRequest { chain, position, plugin, .. } = request;
    let single = api::BindingRequest {
        plugin: plugin.unwrap_or_default(),
        version: request.version,
        policy: request.policy,
        tenant: request.tenant,
        peers: request.peers,
        on_fault: request.on_fault,
        memory: request.memory,
        deadline_ms: request.deadline_ms,
        table_rows: request.table_rows,
        instance: request.instance,
        grants: request.grants,
        tolerance: request.tolerance,
    };
    if let Some(chain) = chain {
        if position.is_some() || single != api::BindingRequest::default() {
            return Err(unprocessable("`chain` must be a list of bindings, without other keys"));
        }
        return chain.into_iter().map(|one| binding(one, live_chain)).collect();
    }
    let binding = binding(single, live_chain)?;
    if !binding.peers.is_empty() && binding.tenant.is_none() {
        return match position {
            Some(_) => Err(unprocessable("`position` is for chains; bindings of peers have no order")),
            None => Ok(take_over(binding, live_chain)),
        };
    }
    let is_same = |other: &Binding| other.plugin == binding.plugin && other.tenant == binding.tenant;
    let position = match (position, &binding.tenant) {
        (Some(position), _) => usize::try_from(position).unwrap_or(usize::MAX),
        (None, Some(_)) => live_chain.iter().position(is_same).unwrap_or(0),
        (None, None) => return Ok(hooks::with_tenants_of(live_chain, vec![binding])),
    };
    let mut all: Vec<Binding> = live_chain.iter().filter(|other| !is_same(other)).cloned().collect();
    all.insert(position.min(all.len()), binding);
    Ok(all)
}

/// The live chain, with this binding for its peers. A binding without remaining peers is dropped.
fn take_over(binding: Binding, live_chain: &[Binding]) -> Vec<Binding> {
    let mut all = live_chain.to_vec();
    for other in &mut all {
        other.peers.retain(|peer| !binding.peers.contains(peer));
    }
    all.retain(|other| !other.peers.is_empty());
    all.push(binding);
    all
}

/// The request with the hook's default: a single front end replaces the binding of the same plugin, and the others
/// stay.
pub(crate) fn for_hook(request: api::ActivationRequest, hook: Hook) -> api::ActivationRequest {
    let is_added = hook == Hook::FrontEnd && request.chain.is_none() && request.position.is_none();
    if is_added { api::ActivationRequest { position: Some(u32::MAX.into()), ..request } } else { request }
}

fn binding(request: api::BindingRequest, live_chain: &[Binding]) -> Result<Binding, Problem> {
    let serves = |live: &&Binding, peers: &[String]| live.peers.iter().any(|peer| peers.contains(peer));
    let mut same_plugin = live_chain
        .iter()
        .filter(|binding| binding.plugin == request.plugin && binding.tenant == request.tenant);
    let live = match &request.peers {
        _ if request.tenant.is_some() => same_plugin.next(),
        Some(peers) => same_plugin.clone().find(|live| serves(live, peers)).or_else(|| same_plugin.next()),
        None => {
            let live = same_plugin.next();
            if live.is_some_and(|live| !live.peers.is_empty()) && same_plugin.next().is_some() {
                let what = format!(
                    "{} serves peers by several bindings: name those of this one in `peers`",
                    request.plugin
                );
                return Err(unprocessable(what));
            }
            live
        }
    };
    let live = live.cloned();
    let version = request.version.or_else(|| live.as_ref().map(|live| live.version.clone()));
    let missing = |field: &str| unprocessable(format!("invalid binding: missing field `{field}`"));
    if request.plugin.is_empty() {
        return Err(missing("plugin"));
    }
    let version = version.ok_or_else(|| missing("version"))?;
    let base = live.unwrap_or_else(|| Binding::new(&request.plugin, "", ""));
    // The digest of the live component does not fit another version.
    let sha256 = if version == base.version { base.sha256 } else { String::new() };
    let size = |size: Option<u64>, base: usize| {
        size.map_or(base, |size| usize::try_from(size).unwrap_or(usize::MAX))
    };
    Ok(Binding {
        plugin: request.plugin,
        version,
        sha256,
        policy: request.policy.unwrap_or(base.policy),
        tenant: request.tenant,
        peers: request.peers.unwrap_or(base.peers),
        on_fault: request.on_fault.unwrap_or(base.on_fault),
        memory: size(request.memory, base.memory),
        deadline: request.deadline_ms.map_or(base.deadline, Duration::from_millis),
        table_rows: size(request.table_rows, base.table_rows),
        instance: request.instance.unwrap_or(base.instance),
        grants: request.grants.unwrap_or(base.grants),
        tolerance: request.tolerance.unwrap_or(base.tolerance),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_fields_come_from_the_live_binding_of_the_plugin() {
        let live = Binding {
            sha256: "1d9e".to_owned(),
            tolerance: hooks::Tolerance { faults: 3, window_ms: 5 },
            ..Binding::new("router", "96fced7a19c6", "policy")
        };
        let other = Binding::new("other", "58cd962459f1", "");
        let live_chain = [other.clone(), live.clone()];
        let mut request = api::ActivationRequest {
            plugin: Some("router".to_owned()),
            deadline_ms: Some(50),
            position: Some(0),
            ..api::ActivationRequest::default()
        };
        let expected = Binding { deadline: Duration::from_millis(50), ..live };
        assert_eq!(chain(request.clone(), &live_chain).unwrap(), [expected.clone(), other]);
        // The digest belongs to the live version.
        (request.position, request.version) = (None, Some("58cd962459f1".to_owned()));
        let expected = Binding { version: "58cd962459f1".to_owned(), sha256: String::new(), ..expected };
        assert_eq!(chain(request.clone(), &live_chain).unwrap(), [expected]);
        request.chain = Some(Vec::new());
        assert!(chain(request, &live_chain).is_err(), "a chain and a binding");
    }

    #[test]
    fn bindings_of_tenants_and_of_the_operator_coexist() {
        let of = |plugin: &str, tenant: Option<&str>, policy: &str| Binding {
            tenant: tenant.map(str::to_owned),
            ..Binding::new(plugin, "96fced7a19c6", policy)
        };
        let (guard, router) = (of("guard", None, ""), of("router", None, "carrier"));
        let north = Binding { peers: vec!["smsc".to_owned()], ..of("router", Some("north"), "north") };
        let live = [guard.clone(), north.clone(), router.clone()];
        let request = |tenant: Option<&str>, policy: Option<&str>| api::ActivationRequest {
            plugin: Some("router".to_owned()),
            version: Some("96fced7a19c6".to_owned()),
            tenant: tenant.map(str::to_owned),
            policy: policy.map(str::to_owned),
            ..api::ActivationRequest::default()
        };
        // It keeps its place and its peers.
        let changed = Binding { policy: "new".to_owned(), ..north.clone() };
        let expected = [guard.clone(), changed, router.clone()];
        assert_eq!(chain(request(Some("north"), Some("new")), &live).unwrap(), expected);
        // Another tenant's binding inherits nothing and comes first.
        let south = of("router", Some("south"), "");
        let expected = [south.clone(), guard.clone(), north.clone(), router.clone()];
        assert_eq!(chain(request(Some("south"), None), &live).unwrap(), expected);
        let last = api::ActivationRequest { position: Some(9), ..request(Some("south"), None) };
        assert_eq!(chain(last, &live).unwrap(), [guard, north.clone(), router.clone(), south]);
        // The operator's binding replaces those of the operator.
        assert_eq!(chain(request(None, None), &live).unwrap(), [router, north]);
    }

    #[test]
    fn a_binding_takes_its_peers_over() {
        let of = |policy: &str, peers: &[&str]| Binding {
            peers: peers.iter().map(|peer| (*peer).to_owned()).collect(),
            ..Binding::new("http-peer", "96fced7a19c6", policy)
        };
        let live = [of("a", &["north", "south"]), of("b", &["east"])];
        let request = |peers: Option<&[&str]>, policy: Option<&str>| api::ActivationRequest {
            plugin: Some("http-peer".to_owned()),
            policy: policy.map(str::to_owned),
            peers: peers.map(|peers| peers.iter().map(|peer| (*peer).to_owned()).collect()),
            ..api::ActivationRequest::default()
        };
        // Missing fields come from the binding that serves the peer now.
        let moved = chain(request(Some(&["east"]), None), &live).unwrap();
        assert_eq!(moved, [of("a", &["north", "south"]), of("b", &["east"])]);
        let split = chain(request(Some(&["south", "west"]), Some("c")), &live).unwrap();
        assert_eq!(split, [of("a", &["north"]), of("b", &["east"]), of("c", &["south", "west"])]);
        let whole = chain(request(Some(&["north", "south"]), Some("c")), &live).unwrap();
        assert_eq!(whole, [of("b", &["east"]), of("c", &["north", "south"])]);
        assert!(chain(request(None, Some("c")), &live).is_err(), "two bindings of the plugin");
        assert_eq!(chain(request(None, Some("c")), &live[1..]).unwrap(), [of("c", &["east"])]);
        let first = api::ActivationRequest { position: Some(0), ..request(Some(&["east"]), None) };
        assert!(chain(first, &live).is_err(), "a position");
    }
}
