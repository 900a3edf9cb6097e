//! Code that wit-bindgen generates from the contract: one module per world. Types of several worlds are generated once,
//! so that `Message` is the same type everywhere. The world description in a component lists only the imports that the
//! component uses, and only the exports of the world whose `export_…!` macro is invoked.

/// The router world, and the capabilities that it shares with others.
pub mod router {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "batch-router",
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_router_component",
        default_bindings_module: "switchyard_sdk::bindings::router",
    });
}

/// The screen world.
pub mod screen {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "batch-screen",
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_screen_component",
        default_bindings_module: "switchyard_sdk::bindings::screen",
        with: {
            "switchyard:hooks/types@0.3.0": super::router::switchyard::hooks::types,
            "switchyard:hooks/log@0.3.0": super::router::switchyard::hooks::log,
            "switchyard:hooks/fault@0.3.0": super::router::switchyard::hooks::fault,
            "switchyard:hooks/body@0.3.0": super::router::switchyard::hooks::body,
            "switchyard:hooks/details@0.3.0": super::router::switchyard::hooks::details,
            "switchyard:hooks/clock@0.3.0": super::router::switchyard::hooks::clock,
            "switchyard:hooks/tables@0.3.0": super::router::switchyard::hooks::tables,
            "switchyard:hooks/counters@0.3.0": super::router::switchyard::hooks::counters,
        },
    });
}

/// The resolver world, with `kv`, `http` and `hlr`.
pub mod resolver {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "resolver",
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_resolver_component",
        default_bindings_module: "switchyard_sdk::bindings::resolver",
        with: {
            "switchyard:hooks/log@0.3.0": super::router::switchyard::hooks::log,
            "switchyard:hooks/fault@0.3.0": super::router::switchyard::hooks::fault,
            "switchyard:hooks/clock@0.3.0": super::router::switchyard::hooks::clock,
            "switchyard:hooks/tables@0.3.0": super::router::switchyard::hooks::tables,
            "switchyard:hooks/counters@0.3.0": super::router::switchyard::hooks::counters,
        },
    });
}

/// The delivery-policy world.
pub mod delivery_policy {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "delivery-policy",
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_delivery_policy_component",
        default_bindings_module: "switchyard_sdk::bindings::delivery_policy",
        with: {
            "switchyard:hooks/types@0.3.0": super::router::switchyard::hooks::types,
            "switchyard:hooks/log@0.3.0": super::router::switchyard::hooks::log,
            "switchyard:hooks/fault@0.3.0": super::router::switchyard::hooks::fault,
            "switchyard:hooks/details@0.3.0": super::router::switchyard::hooks::details,
            "switchyard:hooks/clock@0.3.0": super::router::switchyard::hooks::clock,
            "switchyard:hooks/tables@0.3.0": super::router::switchyard::hooks::tables,
            "switchyard:hooks/peers@0.3.0": super::router::switchyard::hooks::peers,
            "switchyard:hooks/quality@0.3.0": super::router::switchyard::hooks::quality,
        },
    });
}

/// The receipt world.
pub mod receipt {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "receipt",
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_receipt_component",
        default_bindings_module: "switchyard_sdk::bindings::receipt",
        with: {
            "switchyard:hooks/types@0.3.0": super::router::switchyard::hooks::types,
            "switchyard:hooks/log@0.3.0": super::router::switchyard::hooks::log,
            "switchyard:hooks/fault@0.3.0": super::router::switchyard::hooks::fault,
            "switchyard:hooks/details@0.3.0": super::router::switchyard::hooks::details,
            "switchyard:hooks/clock@0.3.0": super::router::switchyard::hooks::clock,
            "switchyard:hooks/tables@0.3.0": super::router::switchyard::hooks::tables,
            "switchyard:hooks/peers@0.3.0": super::router::switchyard::hooks::peers,
            "switchyard:hooks/quality@0.3.0": super::router::switchyard::hooks::quality,
        },
    });
}

/// The front-end world.
pub mod front_end {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "front-end",
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_front_end_component",
        default_bindings_module: "switchyard_sdk::bindings::front_end",
        with: {
            "switchyard:hooks/types@0.3.0": super::router::switchyard::hooks::types,
            "switchyard:hooks/log@0.3.0": super::router::switchyard::hooks::log,
            "switchyard:hooks/fault@0.3.0": super::router::switchyard::hooks::fault,
            "switchyard:hooks/clock@0.3.0": super::router::switchyard::hooks::clock,
            "switchyard:hooks/tables@0.3.0": super::router::switchyard::hooks::tables,
        },
    });
}

/// The biller world.
pub mod biller {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "batch-biller",
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_biller_component",
        default_bindings_module: "switchyard_sdk::bindings::biller",
        with: {
            "switchyard:hooks/types@0.3.0": super::router::switchyard::hooks::types,
            "switchyard:hooks/log@0.3.0": super::router::switchyard::hooks::log,
            "switchyard:hooks/fault@0.3.0": super::router::switchyard::hooks::fault,
            "switchyard:hooks/details@0.3.0": super::router::switchyard::hooks::details,
            "switchyard:hooks/clock@0.3.0": super::router::switchyard::hooks::clock,
            "switchyard:hooks/tables@0.3.0": super::router::switchyard::hooks::tables,
            "switchyard:hooks/kv@0.3.0": super::resolver::switchyard::hooks::kv,
            "switchyard:hooks/http@0.3.0": super::resolver::switchyard::hooks::http,
        },
    });
}

/// The peer world, with `secrets`.
pub mod peer {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "peer",
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_peer_component",
        default_bindings_module: "switchyard_sdk::bindings::peer",
        with: {
            "switchyard:hooks/types@0.3.0": super::router::switchyard::hooks::types,
            "switchyard:hooks/log@0.3.0": super::router::switchyard::hooks::log,
            "switchyard:hooks/fault@0.3.0": super::router::switchyard::hooks::fault,
            "switchyard:hooks/body@0.3.0": super::router::switchyard::hooks::body,
            "switchyard:hooks/details@0.3.0": super::router::switchyard::hooks::details,
            "switchyard:hooks/clock@0.3.0": super::router::switchyard::hooks::clock,
            "switchyard:hooks/tables@0.3.0": super::router::switchyard::hooks::tables,
            "switchyard:hooks/kv@0.3.0": super::resolver::switchyard::hooks::kv,
            "switchyard:hooks/http@0.3.0": super::resolver::switchyard::hooks::http,
        },
    });
}

/// The lookup world, with `dns`.
pub mod lookup {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "lookup",
        additional_derives: [PartialEq],
        pub_export_macro: true,
        export_macro_name: "export_lookup_component",
        default_bindings_module: "switchyard_sdk::bindings::lookup",
        with: {
            "switchyard:hooks/types@0.3.0": super::router::switchyard::hooks::types,
            "switchyard:hooks/log@0.3.0": super::router::switchyard::hooks::log,
            "switchyard:hooks/fault@0.3.0": super::router::switchyard::hooks::fault,
            "switchyard:hooks/clock@0.3.0": super::router::switchyard::hooks::clock,
            "switchyard:hooks/tables@0.3.0": super::router::switchyard::hooks::tables,
            "switchyard:hooks/counters@0.3.0": super::router::switchyard::hooks::counters,
            "switchyard:hooks/kv@0.3.0": super::resolver::switchyard::hooks::kv,
            "switchyard:hooks/http@0.3.0": super::resolver::switchyard::hooks::http,
            "switchyard:hooks/hlr@0.3.0": super::resolver::switchyard::hooks::hlr,
        },
    });
}
