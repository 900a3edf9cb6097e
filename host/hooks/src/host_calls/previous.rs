//! The capabilities under the names of earlier contract versions. Their functions and types are a subset of the current
//! version's.

use super::InstanceState;
use crate::bindings::host::switchyard::hooks::{
    body, clock, counters, hlr, http, kv, log, numbers, peers, tables,
};
use crate::contract::{PACKAGE, WitVersion};
use wasmtime::Result;
use wasmtime::component::Linker;

/// Adds the imports of plugins of an earlier version.
pub(crate) fn link(linker: &mut Linker<InstanceState>, version: WitVersion) -> Result<()> {
    /// Adds functions of an interface that have a result: name in the contract, method, arguments.
    macro_rules! interface {
        ($module:ident { $($name:literal: $method:ident($($argument:ident),*);)* }) => {
            let mut interface =
                linker.instance(&format!("{PACKAGE}{}@{}", stringify!($module), version.number()))?;
            $(interface.func_wrap($name, |mut store, ($($argument,)*)| {
                Ok(($module::Host::$method(store.data_mut(), $($argument),*),))
            })?;)*
        };
    }
    linker.instance(&format!("{PACKAGE}types@{}", version.number()))?;
    linker.instance(&format!("{PACKAGE}log@{}", version.number()))?.func_wrap(
        "write",
        |mut store, (level, text)| {
            log::Host::write(store.data_mut(), level, text);
            Ok(())
        },
    )?;
    interface!(clock { "now": now(); });
    interface!(tables {
        "define-prefixes": define_prefixes(name, rows);
        "longest-prefix": longest_prefix(table, key);
        "match-destination": match_destination(table, digits);
        "open": open(name);
        "get": get(table, key);
        "get-prefix": get_prefix(table, key);
    });
    interface!(counters {
        "add": add(name, key, amount, window);
        "sum": sum(name, key, window);
    });
    interface!(peers { "state": state(peer); });
    interface!(numbers {
        "state": state(pool);
        "take-sender": take_sender(request);
    });
    interface!(body { "octets": octets(); });
    interface!(kv {
        "get": get(key);
        "set": set(key, value);
        "delete": delete(key);
    });
    interface!(http { "fetch": fetch(request); });
    interface!(hlr { "look-up": look_up(msisdn); });
    Ok(())
}
