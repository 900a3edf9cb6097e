//! The contract of components: the hook that a component can serve, and the contract version that it was built for.

#[cfg(test)]
mod reference;

use crate::HookError;
use crate::wasi;
use model::Hook;
use serde::{Deserialize, Serialize};
use wasmtime::Engine;
use wasmtime::component::Component;

/// A supported version of `switchyard:hooks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WitVersion {
    /// Routers only.
    #[serde(rename = "0.1.0")]
    V0_1,
    /// The version before the current one.
    #[serde(rename = "0.2.0")]
    V0_2,
    /// The current version.
    #[serde(rename = "0.3.0")]
    V0_3,
}

impl WitVersion {
    /// Its number.
    #[must_use]
    pub fn number(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1.0",
            Self::V0_2 => "0.2.0",
            Self::V0_3 => "0.3.0",
        }
    }
}

pub(crate) const PACKAGE: &str = "switchyard:hooks/";
pub(crate) const SERVED_VERSIONS: &str = "switchyard:hooks@0.3.0, @0.2.0 and, for routers, @0.1.0";

/// A world of a contract version.
struct WorldContract {
    hook: Hook,
    version: WitVersion,
    /// The interface that its components export.
    export: &'static str,
    /// The interfaces that its components may import.
    imports: &'static [&'static str],
}

const fn world(
    hook: Hook,
    version: WitVersion,
    export: &'static str,
    imports: &'static [&'static str],
) -> WorldContract {
    WorldContract { hook, version, export, imports }
}

const WORLDS: [WorldContract; 14] = {
    use Hook::{Biller, DeliveryPolicy, FrontEnd, Lookup, Peer, Receipt, Resolver, Router, Screen};
    use WitVersion::{V0_1, V0_2, V0_3};
    [
        world(
            Screen,
            V0_3,
            "screening",
            &["types", "log", "clock", "tables", "counters", "body", "details", "fault"],
        ),
        world(
            Lookup,
            V0_3,
            "number-lookup",
            &["types", "log", "clock", "tables", "counters", "kv", "http", "dns", "hlr", "fault"],
        ),
        world(
            Router,
            V0_3,
            "routing",
            &[
                "types", "log", "clock", "tables", "counters", "peers", "quality", "numbers", "body",
                "details", "fault",
            ],
        ),
        world(
            Resolver,
            V0_3,
            "resolution",
            &["log", "clock", "tables", "counters", "kv", "http", "hlr", "fault"],
        ),
        world(
            DeliveryPolicy,
            V0_3,
            "delivery",
            &["types", "log", "clock", "tables", "peers", "quality", "details", "fault"],
        ),
        world(
            Receipt,
            V0_3,
            "receipts",
            &["types", "log", "clock", "tables", "peers", "quality", "details", "fault"],
        ),
        world(
            Biller,
            V0_3,
            "billing",
            &["types", "log", "clock", "tables", "kv", "http", "details", "fault"],
        ),
        world(FrontEnd, V0_3, "translation", &["types", "log", "clock", "tables", "fault"]),
        world(
            Peer,
            V0_3,
            "peering",
            &["types", "log", "clock", "tables", "kv", "http", "secrets", "body", "details", "fault"],
        ),
        world(
            Router,
            V0_2,
            "routing",
            &["types", "log", "clock", "tables", "counters", "peers", "numbers", "body"],
        ),
        world(Resolver, V0_2, "resolution", &["log", "clock", "tables", "counters", "kv", "http", "hlr"]),
        world(DeliveryPolicy, V0_2, "delivery", &["types", "log", "clock", "tables", "peers"]),
        world(Biller, V0_2, "billing", &["types", "log", "clock", "tables", "kv", "http"]),
        world(Router, V0_1, "routing", &["types", "log", "clock", "tables", "peers", "body"]),
    ]
};

/// Names of a component's imports.
pub(crate) fn imports(engine: &Engine, component: &Component) -> Vec<String> {
    component.component_type().imports(engine).map(|(name, _)| name.to_owned()).collect()
}

/// The hook that a component can serve. Refuses a component with other exports, for an unsupported contract version, or with
/// forbidden imports.
pub(crate) fn identify(engine: &Engine, component: &Component) -> Result<(Hook, WitVersion), HookError> {
    let exports: Vec<String> =
        component.component_type().exports(engine).map(|(name, _)| name.to_owned()).collect();
    let found = WORLDS.iter().find(|world| {
        exports.iter().any(|name| *name == format!("{PACKAGE}{}@{}", world.export, world.version.number()))
    });
    let Some(world) = found else {
        let ours = |name: &&String| {
            WORLDS.iter().any(|world| name.starts_with(&format!("{PACKAGE}{}@", world.export)))
        };
        return Err(match exports.iter().find(ours) {
            Some(found) => HookError::WrongVersion { found: found.clone(), served: SERVED_VERSIONS },
            None => HookError::WrongWorld {
                found: if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") },
            },
        });
    };
    for name in imports(engine, component) {
        let ours = name.strip_prefix(PACKAGE).and_then(|rest| rest.split_once('@')).is_some_and(
            |(interface, version)| version == world.version.number() && world.imports.contains(&interface),
        );
        // The empty WASI world satisfies the imports of other languages' run-time libraries.
        if !ours && !wasi::is_wasi(&name) {
            return Err(HookError::ForeignImport { name, hook: world.hook.name() });
        }
    }
    Ok((world.hook, world.version))
}
