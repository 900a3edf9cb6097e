//! SMGP 3.0 and 3.1, China Telecom's protocol between SPs and gateways (SMGW), without I/O. The layout of version 1.3
//! is supported, too.
//!
//! [`SmgpPdu`] is the codec. [`Smgp`] implements the protocol for [`sp_session::Session`]. [`SmgpTlvs`] are the
//! optional fields, [`ReportText`] is the text of a status report; [`status_text`] and [`class`] describe statuses.
//!
//! Sources are cited as "SMGP 3.0.3 §x" (China Telecom, August 2008).
#![forbid(unsafe_code)]

mod msg_id;
mod pdu;
mod protocol;
mod report_text;
mod status;
mod tlv;

pub use msg_id::SmgpMsgId;
pub use pdu::{
    Deliver, Login, LoginAnswer, MAX_USERS, SmgpForward, SmgpPdu, SmgpQuery, SmgpQueryAnswer, Submit,
};
pub use protocol::{Session, Smgp};
pub use report_text::ReportText;
pub use status::{class, status_text};
pub use tlv::{SmgpTlvs, tag};
