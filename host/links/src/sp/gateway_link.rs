//! Connections to a CMPP or SMGP gateway, which the appliance dials.

use super::options::session_options;
use super::outgoing::LinkPeer;
use super::sp_link::SpLink;
use super::{LinkedProtocol, SpGatewayOptions};
use crate::shared::Shared;
use model::Timestamp;
use parking_lot::Mutex;
use ports::link::{DialTarget, DialedPeer, PeerError, dial};
use sp_session::{OwnLogin, SessionOptions, china_time};
use std::sync::Arc;
use std::time::Duration;

/// Maximum back-off before a gateway is dialled again: gateways lock accounts that try too often.
const REDIAL_INTERVAL: Duration = Duration::from_secs(300);

/// Session options for a gateway.
pub(super) fn gateway_session<P: LinkedProtocol>(options: &SpGatewayOptions) -> SessionOptions {
    SessionOptions { login_timeout: options.bind_timeout, ..session_options::<P>(&options.node) }
}

/// Our login at a gateway, with the time `at`.
pub(super) fn login<P: LinkedProtocol>(options: &SpGatewayOptions, at: Timestamp) -> P::Pdu {
    P::login(&OwnLogin {
        name: &options.login_name,
        secret: &options.login_password.0,
        timestamp: china_time(at),
        version: options.version,
        unpadded: options.unpadded_login_name,
    })
}

/// Starts to dial a gateway.
pub(crate) fn dial_gateway<P: LinkedProtocol>(
    shared: &Arc<Shared>,
    options: &Arc<SpGatewayOptions>,
) -> Result<DialedPeer, PeerError> {
    let target = DialTarget {
        name: options.name.clone(),
        peer: options.peer,
        address: options.address.clone(),
        partition: None,
        links: options.connections,
        connect_timeout: options.bind_timeout,
        redial_interval: REDIAL_INTERVAL,
        redial_stable_after: None,
        tls: options.tls.clone(),
    };
    let (of_links, options) = (shared.clone(), options.clone());
    // A gateway may refuse a login that it has seen before, and the time in a login has a resolution of one second. So
    // concurrent connections use different seconds.
    let last = Mutex::new(0);
    dial(&shared.deps, target, move |now| {
        let second = {
            let mut last = last.lock();
            *last = (Timestamp::now().0 / 1000).max(*last + 1);
            *last
        };
        let login = login::<P>(&options, Timestamp(second * 1000));
        let link_peer = LinkPeer::Gateway(options.clone());
        SpLink::<P>::client(now, &of_links, gateway_session::<P>(&options), options.version, login, link_peer)
    })
}
