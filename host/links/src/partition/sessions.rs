//! The accounts of other partitions, and their connections.

use super::PartitionAccountOptions;
use model::PeerId;
use parking_lot::Mutex;
use ports::clock;
use ports::link::LinkControl;
use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

/// A session of an account. Its sender is dropped when the session takes nothing more.
struct OpenSession {
    control: UnboundedSender<LinkControl>,
    is_open: watch::Receiver<()>,
}

/// All accounts of other partitions, with their sessions.
#[derive(Default)]
pub(crate) struct PartitionSessions {
    accounts: Mutex<HashMap<(u8, String), Arc<PartitionAccountOptions>>>,
    open: Mutex<HashMap<PeerId, Vec<OpenSession>>>,
}

impl PartitionSessions {
    /// Sets the accounts. The sessions of accounts that are gone are closed.
    pub(crate) fn set_accounts(&self, accounts: Vec<PartitionAccountOptions>, until: Instant) {
        let accounts: HashMap<_, _> = accounts
            .into_iter()
            .map(|account| ((account.partition, account.peer_name.clone()), Arc::new(account)))
            .collect();
        let mut known = self.accounts.lock();
        for (name, gone) in known.iter().filter(|(name, account)| accounts.get(*name) != Some(account)) {
            tracing::debug!(partition = name.0, peer = name.1, "account of a partition removed or changed");
            self.close(gone.account, until);
        }
        *known = accounts;
    }

    pub(crate) fn account(&self, partition: u8, peer: &str) -> Option<Arc<PartitionAccountOptions>> {
        self.accounts.lock().get(&(partition, peer.to_owned())).cloned()
    }

    fn close(&self, account: PeerId, until: Instant) {
        for session in self.open.lock().get(&account).into_iter().flatten() {
            let _ = session.control.send(LinkControl::Close(until));
        }
    }

    /// Closes all sessions.
    pub(crate) fn close_all(&self, until: Instant) {
        let accounts: Vec<PeerId> = self.open.lock().keys().copied().collect();
        accounts.into_iter().for_each(|account| self.close(account, until));
    }

    /// Opens a session until the sender is dropped, and closes the earlier sessions of the account. The future ends when they take
    /// nothing more: an older connection must not submit an attempt after a newer one has repeated it.
    pub(crate) fn open(
        &self,
        account: PeerId,
        control: UnboundedSender<LinkControl>,
    ) -> (watch::Sender<()>, impl Future<Output = ()> + Send + use<>) {
        let (open_session, is_open) = watch::channel(());
        let mut open = self.open.lock();
        let sessions = open.entry(account).or_default();
        sessions.retain(|session| session.is_open.has_changed().is_ok());
        let mut before = Vec::new();
        for session in sessions.iter() {
            let _ = session.control.send(LinkControl::Close(clock::now()));
            before.push(session.is_open.clone());
        }
        sessions.push(OpenSession { control, is_open });
        let closed = async move {
            for mut session in before {
                while session.changed().await.is_ok() {}
            }
        };
        (open_session, closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::{Context, Poll, Waker};
    use tokio::sync::mpsc::unbounded_channel;

    #[test]
    fn a_session_begins_when_all_before_it_have_ended() {
        let sessions = PartitionSessions::default();
        let mut context = Context::from_waker(Waker::noop());
        let open = || {
            let (control, commands) = unbounded_channel();
            let (open_session, closed) = sessions.open(PeerId(3), control);
            (open_session, Box::pin(closed), commands)
        };
        let (first, mut alone, mut of_first) = open();
        assert_eq!(alone.as_mut().poll(&mut context), Poll::Ready(()));
        assert!(of_first.try_recv().is_err());
        let (second, mut behind_first, _of_second) = open();
        assert!(matches!(of_first.try_recv(), Ok(LinkControl::Close(_))));
        let (_third, mut behind_both, _of_third) = open();
        drop(second);
        assert_eq!(behind_both.as_mut().poll(&mut context), Poll::Pending, "the first goes on");
        assert_eq!(behind_first.as_mut().poll(&mut context), Poll::Pending);
        drop(first);
        assert_eq!(behind_both.as_mut().poll(&mut context), Poll::Ready(()));
    }
}
