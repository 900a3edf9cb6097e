//! PDUs: typed requests and responses, with encoding and decoding (34 §4; 5.0 for the broadcast family).

mod alert_notification;
mod bind;
mod broadcast;
mod data_sm;
mod header;
mod pdu_frame;
mod query_cancel_replace;
mod request;
mod response;
mod sm;
mod submit_multi;

pub use alert_notification::AlertNotification;
pub use bind::{Bind, BindMode, Outbind};
pub use broadcast::{BroadcastSm, CancelBroadcastSm, QueryBroadcastSm};
pub use data_sm::DataSm;
pub use header::{CommandId, Header};
pub use pdu_frame::PduFrame;
pub use query_cancel_replace::{CancelSm, QuerySm, QuerySmResp, ReplaceSm};
pub use request::{Request, decode_request, encode_request};
pub use response::{Response, decode_response, encode_response};
pub use sm::{MAX_SHORT_MESSAGE, Sm};
pub use submit_multi::{Destination, SubmitMulti, SubmitMultiResp, Unsuccess};
