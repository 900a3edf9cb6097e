//! Words of the model in the API's description of itself; the model knows nothing of descriptions.

use crate::request::words;
use model::{NumberState, Strategy};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// The state of a number that is in its pool.
pub(super) struct NumberWord;

impl ToSchema for NumberWord {}

impl PartialSchema for NumberWord {
    fn schema() -> RefOr<Schema> {
        use NumberState::{BusyDown, BusyUp, IdleDown, IdleUp};
        words([IdleUp, IdleDown, BusyUp, BusyDown].map(NumberState::as_str))
    }
}

/// What can be a number of a pool.
pub(super) struct NumberText;

impl ToSchema for NumberText {}

impl PartialSchema for NumberText {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[0-9+*#]{1,16}$")).into()
    }
}

/// How a pool chooses among its numbers.
pub(super) struct StrategyWord;

impl ToSchema for StrategyWord {}

impl PartialSchema for StrategyWord {
    fn schema() -> RefOr<Schema> {
        words(Strategy::ALL.map(Strategy::as_str))
    }
}

/// What can happen to a number.
pub(super) struct ChangeWord;

impl ToSchema for ChangeWord {}

impl PartialSchema for ChangeWord {
    fn schema() -> RefOr<Schema> {
        words(["add", "del", "reg", "unreg", "call", "hangup", "renew", "lapse", "rested", "weigh"])
    }
}

/// What can be the name of a pool. Its length is counted in octets.
pub(super) struct NameText;

impl ToSchema for NameText {}

impl PartialSchema for NameText {
    fn schema() -> RefOr<Schema> {
        let pattern = r"^[^\s\u0000-\u001f\u007f-\u009f{}/]{1,100}$";
        ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).into()
    }
}

/// The state of a number that is not in its pool.
pub(super) struct NoState;

impl ToSchema for NoState {}

impl PartialSchema for NoState {
    fn schema() -> RefOr<Schema> {
        words(["none"])
    }
}
