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
    /// The previous version: routers only.
    #[serde(rename = "0.1.0")]
    V0_1,
    /// The current version.
    #[serde(rename = "0.2.0")]
    V0_2,
}

impl WitVersion {
    /// Its number.
    #[must_use]
    pub fn number(self) -> &'static str {
        match self {
            Self::V0_1 => "0.1.0",
            Self::V0_2 => "0.2.0",
        }
    }
}

const PACKAGE: &str = "switchyard:hooks/";
pub(crate) const SERVED_VERSIONS: &str = "switchyard:hooks@0.2.0 and, for routers, @0.1.0";

/// The exports of a component for each world, and its allowed imports.
const WORLDS: [(Hook, &str, WitVersion, &[&str]); 5] = [
    (
        Hook::Router,
        "routing",
        WitVersion::V0_2,
        &["types", "log", "clock", "tables", "counters", "peers", "numbers", "body"],
    ),
    (Hook::Router, "routing", WitVersion::V0_1, &["types", "log", "clock", "tables", "peers", "body"]),
    (
        Hook::Resolver,
        "resolution",
        WitVersion::V0_2,
        &["log", "clock", "tables", "counters", "kv", "http", "hlr"],
    ),
    (Hook::DeliveryPolicy, "delivery", WitVersion::V0_2, &["types", "log", "clock", "tables", "peers"]),
    (Hook::Biller, "billing", WitVersion::V0_2, &["types", "log", "clock", "tables", "kv", "http"]),
];

/// Names of a component's imports.
pub(crate) fn imports(engine: &Engine, component: &Component) -> Vec<String> {
    component.component_type().imports(engine).map(|(name, _)| name.to_owned()).collect()
}

/// The hook that a component can serve. A component with other exports, for an unsupported contract version or with
/// forbidden imports is refused.
pub(crate) fn identify(engine: &Engine, component: &Component) -> Result<(Hook, WitVersion), HookError> {
    let exports: Vec<String> =
        component.component_type().exports(engine).map(|(name, _)| name.to_owned()).collect();
    let found = WORLDS.iter().find(|(_, interface, wit, _)| {
        exports.iter().any(|name| *name == format!("{PACKAGE}{interface}@{}", wit.number()))
    });
    let Some((hook, _, wit, allowed)) = found else {
        let ours = |name: &&String| {
            WORLDS.iter().any(|(_, interface, ..)| name.starts_with(&format!("{PACKAGE}{interface}@")))
        };
        return Err(match exports.iter().find(ours) {
            Some(found) => HookError::WrongVersion { found: found.clone(), served: SERVED_VERSIONS },
            None => HookError::WrongWorld {
                found: if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") },
            },
        });
    };
    for name in imports(engine, component) {
        let ours = name
            .strip_prefix(PACKAGE)
            .and_then(|rest| rest.split_once('@'))
            .is_some_and(|(interface, version)| version == wit.number() && allowed.contains(&interface));
        // The empty WASI world satisfies the imports of other languages' run-time libraries.
        if !ours && !wasi::is_wasi(&name) {
            return Err(HookError::ForeignImport { name, hook: hook.name() });
        }
    }
    Ok((*hook, *wit))
}
