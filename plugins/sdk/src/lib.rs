//! Write Switchyard plugins in Rust.
//!
//! A router is a type that implements [`Router`] and is named in [`export_router!`]:
//!
//! ```ignore
//! struct Everywhere { peer: String }
//!
//! impl switchyard_sdk::Router for Everywhere {
//!     fn configure(document: &str) -> Result<Self, String> {
//!         Ok(Self { peer: document.trim().to_owned() })
//!     }
//!     fn route(&self, _message: &switchyard_sdk::Message) -> switchyard_sdk::Decision {
//!         switchyard_sdk::forward(vec![switchyard_sdk::leg(&self.peer)])
//!     }
//! }
//!
//! switchyard_sdk::export_router!(Everywhere);
//! ```
//!
//! Build it for `wasm32-unknown-unknown` with `wasm-component-ld` as linker, or let `cargo xtask plugins` do so.

#[doc(hidden)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "../../wit/previous",
        world: "router",
        pub_export_macro: true,
        export_macro_name: "export_component",
        default_bindings_module: "switchyard_sdk::bindings",
    });
}

#[doc(hidden)]
pub use bindings::exports::switchyard::hooks::routing::Guest as RoutingGuest;
pub use bindings::switchyard::hooks::types::{Address, Decision, Leg, Message, RejectReason, Verdict};
/// What the host offers: one module per capability.
pub use bindings::switchyard::hooks::{body, clock, log, peers, tables};

/// A routing plugin.
pub trait Router: Sized {
    /// Reads a policy document.
    ///
    /// # Errors
    /// What is wrong with it, where, and what would be right.
    fn configure(document: &str) -> Result<Self, String>;

    /// Decides about one message.
    fn route(&self, message: &Message) -> Decision;
}

/// A plain leg: rank 0, weight 1, no rewrite.
#[must_use]
pub fn leg(peer: &str) -> Leg {
    Leg {
        peer: peer.to_owned(),
        rank: 0,
        weight: 1,
        cost: 0,
        longest_wait: None,
        source: None,
        destination: None,
    }
}

/// Hand the message to one of these.
#[must_use]
pub fn forward(legs: Vec<Leg>) -> Decision {
    Decision { verdict: Verdict::Forward(legs), note: None }
}

/// Refuse the message.
#[must_use]
pub fn reject(reason: RejectReason) -> Decision {
    Decision { verdict: Verdict::Reject(reason), note: None }
}

/// Let the next router decide.
#[must_use]
pub fn pass() -> Decision {
    Decision { verdict: Verdict::Pass, note: None }
}

impl Decision {
    /// The same decision, with a note for the trace.
    #[must_use]
    pub fn because(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }
}

/// Makes a type the plugin's router.
#[macro_export]
macro_rules! export_router {
    ($router:ty) => {
        const _: () = {
            // A plugin instance is never called by two threads at once, and never re-entered.
            std::thread_local! {
                static ROUTER: std::cell::RefCell<Option<$router>> = const { std::cell::RefCell::new(None) };
            }
            struct Exported;
            impl $crate::RoutingGuest for Exported {
                fn configure(document: String) -> Result<(), String> {
                    let router = <$router as $crate::Router>::configure(&document)?;
                    ROUTER.with(|place| *place.borrow_mut() = Some(router));
                    Ok(())
                }
                fn route(message: $crate::Message) -> $crate::Decision {
                    ROUTER.with(|place| match &*place.borrow() {
                        Some(router) => $crate::Router::route(router, &message),
                        None => $crate::pass(),
                    })
                }
            }
    $crate::bindings::export_component!(Exported with_types_in $crate::bindings);
        };
    };
}
