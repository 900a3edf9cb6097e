//! Code that wasmtime generates from `wit/`: the host's capabilities, and the types of guests' exports.
#![allow(missing_docs, unreachable_pub, reason = "generated; the WIT files carry the documentation")]

/// The capabilities of all worlds.
pub mod host {
    wasmtime::component::bindgen!({
        inline: "
            package switchyard:host;
            world all {
                import switchyard:hooks/log@0.3.0;
                import switchyard:hooks/clock@0.3.0;
                import switchyard:hooks/tables@0.3.0;
                import switchyard:hooks/counters@0.3.0;
                import switchyard:hooks/peers@0.3.0;
                import switchyard:hooks/quality@0.3.0;
                import switchyard:hooks/numbers@0.3.0;
                import switchyard:hooks/body@0.3.0;
                import switchyard:hooks/details@0.3.0;
                import switchyard:hooks/fault@0.3.0;
                import switchyard:hooks/kv@0.3.0;
                import switchyard:hooks/http@0.3.0;
                import switchyard:hooks/dns@0.3.0;
                import switchyard:hooks/hlr@0.3.0;
                import switchyard:hooks/secrets@0.3.0;
            }
        ",
        path: "../../wit",
        world: "switchyard:host/all",
    });
}

/// The exports of all worlds, for their types: [`crate::guest_function`] finds and calls the functions, because functions of
/// earlier contract versions have other names and mostly the same types.
pub mod guest {
    wasmtime::component::bindgen!({
        inline: "
            package switchyard:guest;
            world all {
                export switchyard:hooks/screening@0.3.0;
                export switchyard:hooks/batch-screening@0.3.0;
                export switchyard:hooks/number-lookup@0.3.0;
                export switchyard:hooks/routing@0.3.0;
                export switchyard:hooks/batch-routing@0.3.0;
                export switchyard:hooks/resolution@0.3.0;
                export switchyard:hooks/delivery@0.3.0;
                export switchyard:hooks/receipts@0.3.0;
                export switchyard:hooks/billing@0.3.0;
                export switchyard:hooks/batch-billing@0.3.0;
                export switchyard:hooks/peering@0.3.0;
                export switchyard:hooks/translation@0.3.0;
            }
        ",
        path: "../../wit",
        world: "switchyard:guest/all",
        // Texts are passed by reference, without a copy for each call.
        ownership: Borrowing { duplicate_if_necessary: true },
    });
}
