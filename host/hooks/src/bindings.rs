//! Code that wasmtime generates from `wit/`: a module per world, and one for the host's capabilities, which all worlds
//! share.
#![allow(missing_docs, unreachable_pub, reason = "generated; the WIT files carry the documentation")]

/// The capabilities as a world without exports, so that all worlds implement the same traits.
pub mod host {
    wasmtime::component::bindgen!({
        inline: "
            package switchyard:host;
            world all {
                import switchyard:hooks/log@0.2.0;
                import switchyard:hooks/clock@0.2.0;
                import switchyard:hooks/tables@0.2.0;
                import switchyard:hooks/counters@0.2.0;
                import switchyard:hooks/peers@0.2.0;
                import switchyard:hooks/numbers@0.2.0;
                import switchyard:hooks/body@0.2.0;
                import switchyard:hooks/kv@0.2.0;
                import switchyard:hooks/http@0.2.0;
                import switchyard:hooks/hlr@0.2.0;
            }
        ",
        path: "../../wit",
        world: "switchyard:host/all",
    });
}

macro_rules! world {
    ($module:ident, $world:literal, { $($with:tt)* }) => {
        pub mod $module {
            wasmtime::component::bindgen!({
                path: "../../wit",
                world: $world,
                // Texts are passed by reference, without a copy for each call.
                ownership: Borrowing { duplicate_if_necessary: true },
                with: { $($with)* },
            });
        }
    };
}

world!(router, "router", {
    "switchyard:hooks/log@0.2.0": crate::bindings::host::switchyard::hooks::log,
    "switchyard:hooks/clock@0.2.0": crate::bindings::host::switchyard::hooks::clock,
    "switchyard:hooks/tables@0.2.0": crate::bindings::host::switchyard::hooks::tables,
    "switchyard:hooks/counters@0.2.0": crate::bindings::host::switchyard::hooks::counters,
    "switchyard:hooks/peers@0.2.0": crate::bindings::host::switchyard::hooks::peers,
    "switchyard:hooks/numbers@0.2.0": crate::bindings::host::switchyard::hooks::numbers,
    "switchyard:hooks/body@0.2.0": crate::bindings::host::switchyard::hooks::body,
});
world!(resolver, "resolver", {
    "switchyard:hooks/log@0.2.0": crate::bindings::host::switchyard::hooks::log,
    "switchyard:hooks/clock@0.2.0": crate::bindings::host::switchyard::hooks::clock,
    "switchyard:hooks/tables@0.2.0": crate::bindings::host::switchyard::hooks::tables,
    "switchyard:hooks/counters@0.2.0": crate::bindings::host::switchyard::hooks::counters,
    "switchyard:hooks/kv@0.2.0": crate::bindings::host::switchyard::hooks::kv,
    "switchyard:hooks/http@0.2.0": crate::bindings::host::switchyard::hooks::http,
    "switchyard:hooks/hlr@0.2.0": crate::bindings::host::switchyard::hooks::hlr,
});
world!(delivery, "delivery-policy", {
    "switchyard:hooks/log@0.2.0": crate::bindings::host::switchyard::hooks::log,
    "switchyard:hooks/clock@0.2.0": crate::bindings::host::switchyard::hooks::clock,
    "switchyard:hooks/tables@0.2.0": crate::bindings::host::switchyard::hooks::tables,
    "switchyard:hooks/peers@0.2.0": crate::bindings::host::switchyard::hooks::peers,
});
world!(biller, "biller", {
    "switchyard:hooks/log@0.2.0": crate::bindings::host::switchyard::hooks::log,
    "switchyard:hooks/clock@0.2.0": crate::bindings::host::switchyard::hooks::clock,
    "switchyard:hooks/tables@0.2.0": crate::bindings::host::switchyard::hooks::tables,
    "switchyard:hooks/kv@0.2.0": crate::bindings::host::switchyard::hooks::kv,
    "switchyard:hooks/http@0.2.0": crate::bindings::host::switchyard::hooks::http,
});

/// The router of the previous contract version.
pub mod previous {
    wasmtime::component::bindgen!({
        path: "../../wit/previous",
        world: "router",
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}
