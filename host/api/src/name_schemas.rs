//! OpenAPI schemas of texts that are one of a fixed set of names. Most of the names are defined in crates on which this one does
//! not depend; a behaviour test checks the daemon's answers against the document.

use model::{Direction, FinalState, Hook, PriceState, Strategy};
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
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
    DirectionSchema = Direction::ALL.map(Direction::name);
    /// The settlement of a price.
    PriceStateSchema = PriceState::ALL.map(PriceState::name);
    /// The protocol of a submission.
    ProtocolSchema = ["smpp", "sgip", "cmpp", "smgp", "http", "gsup", "shell", "internal"];
    /// The state of a message in a DLR.
    DlrStateSchema = [
        "scheduled", "enroute", "delivered", "expired", "deleted", "undeliverable", "accepted", "unknown", "rejected",
        "skipped",
    ];
    /// A hook.
    HookSchema = Hook::ALL.map(Hook::name);
    /// The change that made a chain live.
    BindingChangeSchema = ["activated", "promoted", "rolled-back", "rolled-back-by-itself", "unbound"];
    /// The kind of a plugin's fault.
    PluginFaultKindSchema = ["trap", "deadline", "memory", "verdict", "instance"];
    /// The kind of a name in a policy.
    PolicyReferenceKindSchema = ["peer", "pool", "table"];
    /// The state of a replay.
    ReplayStateSchema = ["running", "done", "failed"];
    /// The outcome of a replay.
    ReplayOutcomeSchema = ["complete", "cancelled", "failed"];
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
    /// The id of a message.
    IdText = "^[0-9]{1,19}$";
    /// The name of a pool: at most 100 octets.
    PoolNameSchema = r"^[^\s\u0000-\u001f\u007f-\u009f{}/]{1,100}$";
    /// A number of a pool.
    PoolNumberSchema = "^[0-9+*#]{1,16}$";
}

/// A time as text: RFC 3339, or milliseconds since the epoch.
pub struct TimeText;

impl ToSchema for TimeText {}

impl PartialSchema for TimeText {
    fn schema() -> RefOr<Schema> {
        let text = || ObjectBuilder::new().schema_type(Type::String);
        let date_time = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        let moment = text().format(Some(date_time)).description(Some("RFC 3339."));
        let count = text().pattern(Some("^[0-9]{1,19}$")).description(Some("Milliseconds since the epoch."));
        AnyOfBuilder::new().item(moment).item(count).into()
    }
}
