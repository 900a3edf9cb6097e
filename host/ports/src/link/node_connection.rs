use super::driver::Driver;
use super::link_record::LinkRecord;
use super::{LinkControl, LinkDeps, LinkPhase, LinkProtocol, LinkRole, Socket};
use model::PeerId;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// Serves a connection that another node of the cluster has opened for itself. `create` creates the protocol's session; its
/// argument closes the link.
pub fn serve_node<P: LinkProtocol>(
    deps: &Arc<LinkDeps>,
    socket: Socket,
    create: impl FnOnce(UnboundedSender<LinkControl>) -> P,
) {
    let (control, commands) = unbounded_channel();
    let record = LinkRecord::new(LinkRole::Server, PeerId(u32::MAX), "", 0, true);
    record.set_phase(LinkPhase::Binding);
    let driver = Driver::new(deps.clone(), record, socket, create(control), commands);
    deps.spawn(async move {
        driver.run().await;
    });
}
