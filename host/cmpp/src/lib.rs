//! CMPP 2.0 and 3.0, China Mobile's protocol between SPs and gateways (ISMG), without I/O.
//!
//! [`CmppPdu`] is the codec for both versions, which differ in the width of some fields ([`is_wide`]). [`Cmpp`]
//! implements the protocol for [`sp_session::Session`]. [`CmppMsgId`] is the id of a message; [`result_text`] and
//! [`class`] describe the results of a Submit.
//!
//! Sources are cited as "CMPP 3.0 §x" (China Mobile QB-GF-028-2003, 2003-06-30); its change history describes version
//! 2.0.
#![forbid(unsafe_code)]

mod msg_id;
mod pdu;
mod protocol;
mod result;

pub use msg_id::CmppMsgId;
pub use pdu::{
    CmppForward, CmppPdu, CmppQuery, CmppQueryAnswer, Connect, ConnectAnswer, Deliver, MAX_USERS,
    ReportContent, Submit, is_wide,
};
pub use protocol::{Cmpp, Session};
pub use result::{class, result_text};
