//! Components that are compiled and linked, shared by all bindings that use them.

use crate::HookError;
use crate::contract::{self, WitVersion};
use crate::host_calls::InstanceState;
use crate::library::{Library, StoredComponent};
use crate::runtime::Runtime;
use api::Binding;
use model::Hook;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use wasmtime::component::InstancePre;

/// A component, ready for instances.
pub(crate) struct LinkedComponent {
    pub(crate) pre: InstancePre<InstanceState>,
    pub(crate) hook: Hook,
    pub(crate) wit: WitVersion,
    /// Its imports.
    pub(crate) imports: Vec<String>,
}

/// The identity of a component: plugin, version, and SHA-256.
type Key = (String, String, String);

fn key(binding: &Binding) -> Key {
    (binding.plugin.clone(), binding.version.clone(), binding.sha256.clone())
}

/// The components in use. Bindings of one component share its code, which is loaded once.
#[derive(Default)]
pub(crate) struct LinkedComponents(Mutex<HashMap<Key, Weak<LinkedComponent>>>);

/// Components that were read and verified for one change of the bindings.
#[derive(Default)]
pub(crate) struct VerifiedComponents(HashMap<Key, Arc<LinkedComponent>>);

impl LinkedComponents {
    /// The component of a binding. `verified`: components of the same change, which are not read again. The file is verified
    /// even if the component is in use, so that damage is found before a restart.
    pub(crate) fn get(
        &self,
        (library, runtime): (&Library, &Runtime),
        binding: &Binding,
        verified: &mut VerifiedComponents,
    ) -> Result<Arc<LinkedComponent>, HookError> {
        let key = key(binding);
        if let Some(known) = verified.0.get(&key) {
            return Ok(known.clone());
        }
        let octets = library.verified(&binding.plugin, &binding.version, &binding.sha256)?;
        let in_use = self.0.lock().get(&key).and_then(Weak::upgrade);
        let linked = match in_use {
            Some(linked) => linked,
            None => {
                let linked = Arc::new(link(
                    runtime,
                    &library.compile_stored(&runtime.engine, &binding.version, &octets)?,
                )?);
                let mut all = self.0.lock();
                all.retain(|_, component| component.strong_count() > 0);
                all.insert(key.clone(), Arc::downgrade(&linked));
                linked
            }
        };
        verified.0.insert(key, linked.clone());
        Ok(linked)
    }
}

fn link(runtime: &Runtime, stored: &StoredComponent) -> Result<LinkedComponent, HookError> {
    let pre = runtime.link(&stored.component).map_err(|error| HookError::Broken(format!("{error:#}")))?;
    let imports = contract::imports(&runtime.engine, &stored.component);
    Ok(LinkedComponent { pre, hook: stored.hook, wit: stored.wit, imports })
}
