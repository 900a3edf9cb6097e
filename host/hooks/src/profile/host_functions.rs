//! The host's functions for plugins with a profiler: each reports its time to the profiler.

use super::Profiler;
use crate::bindings::host::switchyard::hooks::{
    body, clock, counters, details, dns, fault, hlr, http, kv, log, numbers, peers, quality, secrets, tables,
};
use crate::contract::{PACKAGE, WitVersion};
use crate::host_calls::InstanceState;
use std::sync::Arc;
use wasmtime::Result;
use wasmtime::component::Linker;

/// Replaces the functions of all contract versions, with the types of the current version. Earlier versions do not have all
/// functions, and their components do not import the missing ones. Returns the names of the functions.
pub(crate) fn link(
    linker: &mut Linker<InstanceState>,
    profiler: &Arc<Profiler>,
) -> Result<Vec<&'static str>> {
    linker.allow_shadowing(true);
    let mut names = Vec::new();
    for version in [WitVersion::V0_1, WitVersion::V0_2, WitVersion::V0_3] {
        names = link_version(linker, profiler, version)?;
    }
    Ok(names)
}

fn link_version(
    linker: &mut Linker<InstanceState>,
    profiler: &Arc<Profiler>,
    version: WitVersion,
) -> Result<Vec<&'static str>> {
    let mut names = Vec::new();
    /// Adds functions of an interface: name in the contract, method, arguments, and the function's results from the method's.
    macro_rules! interface {
        ($module:ident { $($name:literal: $method:ident($($argument:ident),*) -> $results:expr;)* }) => {
            let mut interface =
                linker.instance(&format!("{PACKAGE}{}@{}", stringify!($module), version.number()))?;
            $({
                const NAME: &str = concat!(stringify!($module), ".", $name);
                names.push(NAME);
                let profiler = profiler.clone();
                interface.func_wrap($name, move |store, ($($argument,)*)| {
                    let result = profiler.run_host_function(store, NAME, |state| {
                        $module::Host::$method(state, $($argument),*)
                    });
                    Ok($results(result))
                })?;
            })*
        };
    }
    /// A function with a result.
    fn one<R>(result: R) -> (R,) {
        (result,)
    }
    /// A function without a result.
    fn none(_: ()) {}
    interface!(log { "write": write(level, text) -> none; });
    interface!(clock { "now": now() -> one; });
    interface!(tables {
        "define-prefixes": define_prefixes(name, rows) -> one;
        "longest-prefix": longest_prefix(table, key) -> one;
        "match-destination": match_destination(table, digits) -> one;
        "open": open(name) -> one;
        "get": get(table, key) -> one;
        "get-prefix": get_prefix(table, key) -> one;
    });
    interface!(counters {
        "add": add(name, key, amount, window) -> one;
        "sum": sum(name, key, window) -> one;
    });
    interface!(peers { "state": state(peer) -> one; });
    interface!(quality { "observed": observed(peer, scope) -> one; });
    interface!(numbers {
        "state": state(pool) -> one;
        "take-sender": take_sender(request) -> one;
    });
    interface!(body { "octets": octets() -> one; });
    interface!(details {
        "tlv-value": tlv_value(tag) -> one;
        "tlvs": tlvs() -> one;
        "header": header() -> one;
        "text": text() -> one;
        "urls": urls() -> one;
        "near-duplicate": near_duplicate() -> one;
        "esm-class": esm_class() -> one;
        "protocol-id": protocol_id() -> one;
        "wanted-receipts": wanted_receipts() -> one;
        "scheduled": scheduled() -> one;
        "valid-until": valid_until() -> one;
        "attribute": attribute(name) -> one;
    });
    interface!(fault { "report": report(what) -> none; });
    interface!(kv {
        "get": get(key) -> one;
        "set": set(key, value) -> one;
        "delete": delete(key) -> one;
    });
    interface!(http { "fetch": fetch(request) -> one; });
    interface!(dns {
        "query-naptr": query_naptr(name) -> one;
        "query-txt": query_txt(name) -> one;
    });
    interface!(hlr { "look-up": look_up(msisdn) -> one; });
    interface!(secrets { "get": get(name) -> one; });
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;
    use std::time::Duration;

    #[test]
    fn each_function_of_the_contract_is_timed() {
        let mut resolve = wit_parser::Resolve::new();
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
        let (package, _) = resolve.push_path(&wit).unwrap();
        let mut expected = BTreeSet::new();
        for world in resolve.packages[package].worlds.values() {
            for import in resolve.worlds[*world].imports.values() {
                let wit_parser::WorldItem::Interface { id, .. } = import else { continue };
                let interface = &resolve.interfaces[*id];
                let name = interface.name.as_deref().unwrap_or_default();
                expected.extend(interface.functions.keys().map(|function| format!("{name}.{function}")));
            }
        }
        let profiler = Profiler::start(b"\0asm\x0d\0\x01\0", Duration::from_secs(1)).unwrap();
        let mut linker = Linker::new(&wasmtime::Engine::default());
        let linked: BTreeSet<String> =
            link(&mut linker, &profiler).unwrap().into_iter().map(str::to_owned).collect();
        assert!(expected.contains("peers.state") && expected.contains("log.write"), "{expected:?}");
        assert_eq!(linked, expected, "a function without a row here is not a frame of its own in profiles");
    }
}
