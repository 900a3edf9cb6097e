//! OpenAPI schemas of model types. The crate `model` does not depend on utoipa.

use crate::request::enum_schema;
use model::{NumberState, Strategy};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The state of a number in its pool.
pub(super) struct NumberStateSchema;

impl ToSchema for NumberStateSchema {}

impl PartialSchema for NumberStateSchema {
    fn schema() -> RefOr<Schema> {
        use NumberState::{BusyDown, BusyUp, IdleDown, IdleUp};
        enum_schema([IdleUp, IdleDown, BusyUp, BusyDown].map(NumberState::as_str))
    }
}

/// A number of a pool.
pub(super) struct NumberSchema;

impl ToSchema for NumberSchema {}

impl PartialSchema for NumberSchema {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[0-9+*#]{1,16}$")).into()
    }
}

/// A strategy for choosing numbers.
pub(super) struct StrategySchema;

impl ToSchema for StrategySchema {}

impl PartialSchema for StrategySchema {
    fn schema() -> RefOr<Schema> {
        enum_schema(Strategy::ALL.map(Strategy::as_str))
    }
}

/// The kind of a journal entry.
pub(super) struct ChangeSchema;

impl ToSchema for ChangeSchema {}

impl PartialSchema for ChangeSchema {
    fn schema() -> RefOr<Schema> {
        enum_schema(["add", "del", "reg", "unreg", "call", "hangup", "renew", "lapse", "rested", "weigh"])
    }
}

/// The name of a pool: at most 100 octets.
pub(super) struct NameSchema;

impl ToSchema for NameSchema {}

impl PartialSchema for NameSchema {
    fn schema() -> RefOr<Schema> {
        let pattern = r"^[^\s\u0000-\u001f\u007f-\u009f{}/]{1,100}$";
        ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
    }
}

/// The state of a number that is not in its pool.
pub(super) struct NoStateSchema;

impl ToSchema for NoStateSchema {}

impl PartialSchema for NoStateSchema {
    fn schema() -> RefOr<Schema> {
        enum_schema(["none"])
    }
}
