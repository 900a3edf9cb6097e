//! OpenAPI schemas of texts that are one of a fixed set of names. Most of the names are defined in crates on which this one does
//! not depend; a behaviour test checks the daemon's answers against the document.

use model::{FinalState, Hook, Strategy};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Defines schemas of texts, each with its names.
macro_rules! name_schemas {
    ($($(#[$doc:meta])* $schema:ident = $names:expr;)+) => {$(
        $(#[$doc])*
        pub struct $schema;

        impl ToSchema for $schema {}

        impl PartialSchema for $schema {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::String).enum_values(Some($names)).into()
            }
        }
    )+};
}

name_schemas! {
    /// The state of an uncertain message in its list.
    UncertainStateSchema = ["uncertain"];
    /// The final state of a message.
    FinalStateSchema = FinalState::ALL.map(FinalState::name);
    /// The direction of a message.
    DirectionSchema = ["mt", "mo"];
    /// The settlement of a price.
    PriceStateSchema = ["free", "captured", "refunded", "open"];
    /// The protocol of a submission.
    ProtocolSchema = ["smpp", "sgip", "http", "gsup", "shell", "internal"];
    /// The state of a message in a DLR.
    DlrStateSchema = [
        "scheduled", "enroute", "delivered", "expired", "deleted", "undeliverable", "accepted", "unknown", "rejected",
        "skipped",
    ];
    /// The state of the archive's data pump.
    PumpStateSchema = ["starting", "up", "down"];
    /// A hook.
    HookSchema = Hook::ALL.map(Hook::name);
    /// How a chain became live.
    BindingChangeSchema = ["activated", "promoted", "rolled-back", "rolled-back-by-itself", "unbound"];
    /// The kind of a plugin's fault.
    PluginFaultKindSchema = ["trap", "deadline", "memory", "verdict", "instance"];
    /// The kind of a name in a policy.
    PolicyReferenceKindSchema = ["peer", "pool", "table"];
    /// The state of a replay.
    ReplayStateSchema = ["running", "done", "failed"];
    /// How a replay ended.
    ReplayOutcomeSchema = ["complete", "cancelled", "failed"];
    /// The appliance's role in a core network.
    CoreNetworkRoleSchema = ["client", "proxy"];
    /// The kind of a core network's fault.
    CoreNetworkFaultKindSchema = ["hlr-down", "hlr-ctrl-down", "no-msc", "msc-without-sms", "double-name"];
    /// The severity of a core network's fault.
    CoreNetworkFaultLevelSchema = ["error", "warning"];
    /// The kind of a handset's sign.
    PresenceSignSchema = ["location-update", "message", "ready-for-sm", "delivery"];
    /// A step of a peer test.
    TestStepSchema = ["resolve", "connect", "tls", "bind", "unbind"];
    /// The state of a number in its pool.
    NumberStateSchema = ["idle+up", "idle+down", "busy+up", "busy+down"];
    /// The state of a number that is not in its pool.
    NoStateSchema = ["none"];
    /// The strategy that selects the next number of a pool.
    StrategySchema = Strategy::ALL.map(Strategy::as_str);
    /// The kind of an entry of a pool's journal.
    PoolChangeSchema = ["add", "del", "reg", "unreg", "call", "hangup", "renew", "lapse", "rested", "weigh"];
}

/// Defines schemas of texts, each with its pattern.
macro_rules! pattern_schemas {
    ($($(#[$doc:meta])* $schema:ident = $pattern:expr;)+) => {$(
        $(#[$doc])*
        pub struct $schema;

        impl ToSchema for $schema {}

        impl PartialSchema for $schema {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new().schema_type(Type::String).pattern(Some($pattern)).into()
            }
        }
    )+};
}

pattern_schemas! {
    /// The name of a pool: at most 100 octets.
    PoolNameSchema = r"^[^\s\u0000-\u001f\u007f-\u009f{}/]{1,100}$";
    /// A number of a pool.
    PoolNumberSchema = "^[0-9+*#]{1,16}$";
}
