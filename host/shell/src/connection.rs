//! A connection: handles requests one after the other, and finally streams changes if requested.

use crate::SubscriberNumber;
use crate::mailbox_index::ChangeReceiver;
use crate::records::{DEFAULT_LIMIT, ListQuery, MAX_LIMIT, Viewer, internal};
use crate::server::Shared;
use crate::user_permissions::UserPermissions;
use crate::wire::{
    MAX_LINE_OCTETS, ShellEvent, ShellFault, ShellFaultKind, ShellFollowQuery, ShellHello, ShellListQuery,
    ShellOperation, ShellReply, ShellRequest, ShellResponse, ShellWelcome,
};
use model::MessageId;
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use std::collections::HashMap;
use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;

/// Timeout for the first line.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout for writing an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// A user; for a user with any number also the number.
type SlotOwner = (u32, Option<SubscriberNumber>);

/// Number of connections per owner.
#[derive(Debug, Default)]
pub(crate) struct ConnectionSlots(Mutex<HashMap<SlotOwner, NonZero<usize>>>);

/// A counted connection; released on drop.
#[derive(Debug)]
struct ConnectionSlot {
    connection_slots: Arc<ConnectionSlots>,
    owner: SlotOwner,
}

impl ConnectionSlots {
    fn take(self: &Arc<Self>, owner: SlotOwner, limit: usize) -> Result<ConnectionSlot, ShellFault> {
        let mut connection_slots = self.0.lock();
        let taken = connection_slots.get(&owner).map_or(0, |taken| taken.get());
        match NonZero::new(taken + 1).filter(|taken| taken.get() <= limit) {
            Some(taken) => {
                connection_slots.insert(owner.clone(), taken);
                Ok(ConnectionSlot { connection_slots: self.clone(), owner })
            }
            None => {
                let detail = format!("you already have {taken} connections; close one, or try again later");
                Err(ShellFault::new(ShellFaultKind::Unavailable, detail))
            }
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut connection_slots = self.connection_slots.0.lock();
        let remaining = connection_slots.get(&self.owner).and_then(|taken| NonZero::new(taken.get() - 1));
        match remaining {
            Some(remaining) => connection_slots.insert(self.owner.clone(), remaining),
            None => connection_slots.remove(&self.owner),
        };
    }
}

fn response_line(id: Option<u64>, reply: ShellReply) -> Vec<u8> {
    // Serialisation cannot fail.
    let mut line = serde_json::to_vec(&ShellResponse { id, reply }).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Sends the fault and closes the connection. The line fits into the socket's buffer.
pub(crate) fn reject(stream: &UnixStream, fault: &ShellFault) {
    let _ = stream.try_write(&response_line(None, ShellReply::Error(fault.clone())));
}

/// Reason why no request was read.
enum ReadEnd {
    /// The caller has disconnected, or the appliance shuts down.
    End,
    /// The fault is sent, and the connection is closed.
    Fault(ShellFault),
}

struct Connection<'a> {
    shared: &'a Shared,
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    stop: watch::Receiver<bool>,
}

/// Serves a caller until it disconnects.
pub(crate) async fn serve(
    shared: &Shared,
    permissions: &UserPermissions,
    stream: UnixStream,
    stop: watch::Receiver<bool>,
) {
    let (reader, writer) = stream.into_split();
    let mut connection = Connection { shared, reader: BufReader::new(reader), writer, stop };
    if let Err(ReadEnd::Fault(fault)) = connection.run(permissions).await {
        let _ = connection.write(None, ShellReply::Error(fault)).await;
    }
}

fn ok(value: &impl Serialize) -> ShellReply {
    ShellReply::Ok(serde_json::to_value(value).unwrap_or(Value::Null))
}

impl Connection<'_> {
    async fn run(&mut self, permissions: &UserPermissions) -> Result<(), ReadEnd> {
        let options = self.shared.options();
        // A user with any number has a limit per number instead.
        let _place = (!permissions.acts_for_many())
            .then(|| self.shared.connection_slots.take((permissions.uid, None), options.connections_per_user))
            .transpose()
            .inspect_err(|_| self.shared.turned_away())
            .map_err(ReadEnd::Fault)?;
        let first = self.read_request(HELLO_TIMEOUT).await?;
        let authorized = match &first.operation {
            ShellOperation::Hello(hello) => self.authorize(permissions, hello),
            _ => Err(ShellFault::new(ShellFaultKind::Malformed, "the first request must be hello")),
        };
        let (view, _place) = match authorized {
            Ok(authorized) => authorized,
            Err(fault) => {
                self.write(Some(first.id), ShellReply::Error(fault)).await?;
                return Ok(());
            }
        };
        let number = match &view {
            Viewer::Subscriber(number) => Some(number.to_string()),
            Viewer::Operator => None,
        };
        self.write(Some(first.id), ok(&ShellWelcome { number })).await?;
        loop {
            let request = self.read_request(options.idle).await?;
            let name = request.operation.name();
            let reply = match request.operation {
                ShellOperation::Hello(_) => Err(ShellFault::new(
                    ShellFaultKind::Malformed,
                    "hello was sent already; a connection acts as one number",
                )),
                ShellOperation::Send(submission) => {
                    self.shared.submit(&view, &submission).await.map(|accepted| ok(&accepted))
                }
                ShellOperation::Inbox(list) => self.list(&view, list, true).await,
                ShellOperation::Log(list) => self.list(&view, list, false).await,
                ShellOperation::Follow(follow) => match self.changes(&view, follow).await {
                    Ok(changes) => {
                        self.shared.count(name, "ok");
                        return self.follow(&view, request.id, changes).await;
                    }
                    Err(fault) => Err(fault),
                },
            };
            self.shared.count(name, reply.as_ref().err().map_or("ok", |fault| fault.kind.name()));
            self.write(Some(request.id), reply.unwrap_or_else(ShellReply::Error)).await?;
        }
    }

    fn authorize(
        &self,
        permissions: &UserPermissions,
        hello: &ShellHello,
    ) -> Result<(Viewer, Option<ConnectionSlot>), ShellFault> {
        let view = permissions.authorize(hello)?;
        let slot = match (&view, permissions.acts_for_many()) {
            (Viewer::Subscriber(number), true) => {
                let limit = self.shared.options().connections_per_user;
                Some(
                    self.shared
                        .connection_slots
                        .take((permissions.uid, Some(number.clone())), limit)
                        .inspect_err(|_| self.shared.turned_away())?,
                )
            }
            _ => None,
        };
        Ok((view, slot))
    }

    async fn read_request(&mut self, submit_timeout: Duration) -> Result<ShellRequest, ReadEnd> {
        loop {
            let mut octets = Vec::new();
            let mut limited = (&mut self.reader).take(MAX_LINE_OCTETS as u64 + 1);
            let read = tokio::time::timeout(submit_timeout, limited.read_until(b'\n', &mut octets));
            let read = tokio::select! {
                read = read => read,
                _ = self.stop.wait_for(|stop| *stop) => {
                    return Err(ReadEnd::Fault(ShellFault::new(ShellFaultKind::Unavailable, "the appliance is shutting down")));
                }
            };
            match read {
                Err(_) => {
                    let detail = format!("no request for {} seconds", submit_timeout.as_secs());
                    return Err(ReadEnd::Fault(ShellFault::new(ShellFaultKind::Unavailable, detail)));
                }
                Ok(Err(_)) => return Err(ReadEnd::End),
                Ok(Ok(_)) if octets.len() > MAX_LINE_OCTETS => {
                    let detail = format!("a line may have at most {MAX_LINE_OCTETS} octets");
                    return Err(ReadEnd::Fault(ShellFault::new(ShellFaultKind::Malformed, detail)));
                }
                // An incomplete line is not a request.
                Ok(Ok(_)) if octets.last() != Some(&b'\n') => return Err(ReadEnd::End),
                Ok(Ok(_)) => {}
            }
            match serde_json::from_slice(&octets) {
                Ok(request) => return Ok(request),
                Err(error) => {
                    let fault =
                        ShellFault::new(ShellFaultKind::Malformed, format!("invalid request: {error}"));
                    self.write(None, ShellReply::Error(fault)).await?;
                }
            }
        }
    }

    async fn write(&mut self, id: Option<u64>, reply: ShellReply) -> Result<(), ReadEnd> {
        match tokio::time::timeout(WRITE_TIMEOUT, self.writer.write_all(&response_line(id, reply))).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(ReadEnd::End),
        }
    }

    /// The number whose messages are requested: the subscriber's own, or any for an operator.
    fn requested_number(
        view: &Viewer,
        requested: Option<String>,
    ) -> Result<Option<SubscriberNumber>, ShellFault> {
        match (view, requested) {
            (Viewer::Subscriber(own), None) => Ok(Some(own.clone())),
            (Viewer::Subscriber(_), Some(_)) => {
                let detail =
                    "only an operator may ask for another number; use --as to act as another of yours";
                Err(ShellFault::new(ShellFaultKind::NotAllowed, detail))
            }
            (Viewer::Operator, None) => Ok(None),
            (Viewer::Operator, Some(text)) => {
                let number: Result<SubscriberNumber, _> = text.parse();
                number.map(Some).map_err(|error| ShellFault::new(ShellFaultKind::Invalid, error.to_string()))
            }
        }
    }

    async fn open(&self, number: Option<&SubscriberNumber>) -> Result<(), ShellFault> {
        match number {
            Some(number) => {
                self.shared.reader.mailbox_index.open(number).await.map_err(|error| internal(&error))
            }
            None => Ok(()),
        }
    }

    async fn list(
        &mut self,
        view: &Viewer,
        list: ShellListQuery,
        inbox: bool,
    ) -> Result<ShellReply, ShellFault> {
        let number = Self::requested_number(view, list.number)?;
        if inbox && number.is_none() {
            return Err(ShellFault::new(
                ShellFaultKind::Invalid,
                "an operator must name the inbox with --number",
            ));
        }
        let limit = list.limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(ShellFault::new(
                ShellFaultKind::Invalid,
                format!("the limit must be 1 to {MAX_LIMIT}"),
            ));
        }
        let before: Option<MessageId> =
            list.before.map(|id| id.parse()).transpose().map_err(|error: model::ParseMessageIdError| {
                ShellFault::new(ShellFaultKind::Invalid, error.to_string())
            })?;
        self.open(number.as_ref()).await?;
        let query = ListQuery { number, inbox, before: before.unwrap_or(MessageId(u64::MAX)), limit };
        let (reader, view) = (self.shared.reader.clone(), view.clone());
        let page = tokio::task::spawn_blocking(move || reader.page(&view, &query)).await;
        page.unwrap_or_else(|_| {
            Err(ShellFault::new(ShellFaultKind::Internal, "internal error of the appliance; see its log"))
        })
        .map(|page| ok(&page))
    }

    async fn changes(&self, view: &Viewer, follow: ShellFollowQuery) -> Result<ChangeReceiver, ShellFault> {
        let number = Self::requested_number(view, follow.number)?;
        self.open(number.as_ref()).await?;
        Ok(self.shared.reader.mailbox_index.follow(number.as_ref()))
    }

    /// Streams changes until the caller disconnects or sends anything.
    async fn follow(&mut self, view: &Viewer, id: u64, mut changes: ChangeReceiver) -> Result<(), ReadEnd> {
        self.write(Some(id), ok(&Value::Object(serde_json::Map::new()))).await?;
        // Recently sent messages, to suppress duplicates. A few are enough, since most messages end soon.
        let mut recent: std::collections::VecDeque<crate::wire::ShellMessage> =
            std::collections::VecDeque::new();
        loop {
            let changed = tokio::select! {
                changed = changes.next() => changed,
                more = self.reader.fill_buf() => {
                    return match more {
                        Ok([]) | Err(_) => Err(ReadEnd::End),
                        Ok(_) => {
                            let detail = "a connection that follows accepts no further requests";
                            Err(ReadEnd::Fault(ShellFault::new(ShellFaultKind::Malformed, detail)))
                        }
                    };
                }
                _ = self.stop.wait_for(|stop| *stop) => {
                    return Err(ReadEnd::Fault(ShellFault::new(ShellFaultKind::Unavailable, "the appliance is shutting down")));
                }
            };
            let lost = changes.lost();
            if lost > 0 {
                self.write(Some(id), ShellReply::Event(ShellEvent::Lost(lost))).await?;
            }
            let (reader, view) = (self.shared.reader.clone(), view.clone());
            let item = tokio::task::spawn_blocking(move || reader.message_for(&view, changed)).await;
            let Ok(Ok(Some(item))) = item else { continue };
            if recent.iter().any(|before| *before == item) {
                continue;
            }
            recent.retain(|before| before.id != item.id);
            recent.push_back(item.clone());
            if recent.len() > 256 {
                recent.pop_front();
            }
            self.write(Some(id), ShellReply::Event(ShellEvent::Message(item))).await?;
        }
    }
}
