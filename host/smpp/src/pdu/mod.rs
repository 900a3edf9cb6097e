//! PDUs: typed requests and responses, and their way from and to the wire (34 §4; 5.0 for the broadcast family).

mod alert;
mod bind;
mod broadcast;
mod command;
mod data;
mod frame;
mod manage;
mod multi;
mod request;
mod response;
mod sm;

pub use alert::AlertNotification;
pub use bind::{Bind, BindMode, Outbind};
pub use broadcast::{BroadcastSm, CancelBroadcastSm, QueryBroadcastSm};
pub use command::{CommandId, Header};
pub use data::DataSm;
pub use frame::Frame;
pub use manage::{CancelSm, QuerySm, QuerySmResp, ReplaceSm};
pub use multi::{Destination, SubmitMulti, SubmitMultiResp, Unsuccess};
pub use request::{Request, decode_request, encode_request};
pub use response::{Response, decode_response, encode_response};
pub use sm::{MAX_SHORT_MESSAGE, Sm};
