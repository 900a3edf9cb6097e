//! Which hook a component can serve, and for which version of the contract it was built.

use crate::HookError;
use crate::wasi;
use model::Hook;
use serde::{Deserialize, Serialize};
use wasmtime::Engine;
use wasmtime::component::Component;

/// A version of `switchyard:hooks` that this host serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Wit {
    /// The previous one: routers only.
    #[serde(rename = "0.1.0")]
    V0_1,
    /// Today's.
    #[serde(rename = "0.2.0")]
    V0_2,
}

impl Wit {
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
pub(crate) const SERVED: &str = "switchyard:hooks@0.2.0 and, for routers, @0.1.0";

/// What a component of each world exports, and what it may import of ours.
const WORLDS: [(Hook, &str, Wit, &[&str]); 5] = [
    (
        Hook::Router,
        "routing",
        Wit::V0_2,
        &["types", "log", "clock", "tables", "counters", "peers", "numbers", "body"],
    ),
    (Hook::Router, "routing", Wit::V0_1, &["types", "log", "clock", "tables", "peers", "body"]),
    (Hook::Resolver, "resolution", Wit::V0_2, &["log", "clock", "tables", "counters", "kv", "http", "hlr"]),
    (Hook::DeliveryPolicy, "delivery", Wit::V0_2, &["types", "log", "clock", "tables", "peers"]),
    (Hook::Biller, "billing", Wit::V0_2, &["types", "log", "clock", "tables", "kv", "http"]),
];

/// Names of what a component imports.
pub(crate) fn imports(engine: &Engine, component: &Component) -> Vec<String> {
    component.component_type().imports(engine).map(|(name, _)| name.to_owned()).collect()
}

/// The hook that a component can serve. Refused is what exports something else, was built for a version that is not served,
/// or imports what it may not.
pub(crate) fn of(engine: &Engine, component: &Component) -> Result<(Hook, Wit), HookError> {
    let exports: Vec<String> =
        component.component_type().exports(engine).map(|(name, _)| name.to_owned()).collect();
    let found = WORLDS.iter().find(|(_, interface, wit, _)| {
        exports.iter().any(|name| *name == format!("{PACKAGE}{interface}@{}", wit.number()))
    });
    let Some((hook, _, wit, given)) = found else {
        let ours = |name: &&String| {
            WORLDS.iter().any(|(_, interface, ..)| name.starts_with(&format!("{PACKAGE}{interface}@")))
        };
        return Err(match exports.iter().find(ours) {
            Some(found) => HookError::WrongVersion { found: found.clone(), served: SERVED },
            None => HookError::WrongWorld {
                found: if exports.is_empty() { "nothing".to_owned() } else { exports.join(", ") },
            },
        });
    };
    for name in imports(engine, component) {
        let ours = name
            .strip_prefix(PACKAGE)
            .and_then(|rest| rest.split_once('@'))
            .is_some_and(|(interface, version)| version == wit.number() && given.contains(&interface));
        // What other languages' run times want of a system is served by an empty world.
        if !ours && !wasi::is_ambient(&name) {
            return Err(HookError::ForeignImport { name, hook: hook.name() });
        }
    }
    Ok((*hook, *wit))
}
