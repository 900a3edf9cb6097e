//! One caller: requests one after the other, and then, if it wants, everything that happens.

use crate::door::Shared;
use crate::permit::Permit;
use crate::records::{MOST, USUAL, View, Wanted, internal};
use crate::watch::Changes;
use crate::wire::{
    Ask, Event, Fault, Follow, Hello, Kind, LONGEST_LINE, List, Reply, Request, Response, Welcome,
};
use crate::{Number, ShellOptions};
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

/// How long the first line may take.
const FIRST: Duration = Duration::from_secs(10);
/// How long a caller may take to read an answer.
const WRITE: Duration = Duration::from_secs(30);

/// A user, and of one that acts for many the number too.
type Whose = (u32, Option<Number>);

/// Connections by whose they are.
#[derive(Debug, Default)]
pub(crate) struct Slots(Mutex<HashMap<Whose, NonZero<usize>>>);

/// A place, given back when it is dropped.
#[derive(Debug)]
struct Slot {
    slots: Arc<Slots>,
    whose: Whose,
}

impl Slots {
    fn take(self: &Arc<Self>, whose: Whose, most: usize) -> Result<Slot, Fault> {
        let mut slots = self.0.lock();
        let taken = slots.get(&whose).map_or(0, |taken| taken.get());
        match NonZero::new(taken + 1).filter(|taken| taken.get() <= most) {
            Some(taken) => {
                slots.insert(whose.clone(), taken);
                Ok(Slot { slots: self.clone(), whose })
            }
            None => {
                let detail = format!("you have {taken} connections already; end one, or try again later");
                Err(Fault::new(Kind::Unavailable, detail))
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut slots = self.slots.0.lock();
        let left = slots.get(&self.whose).and_then(|taken| NonZero::new(taken.get() - 1));
        match left {
            Some(left) => slots.insert(self.whose.clone(), left),
            None => slots.remove(&self.whose),
        };
    }
}

fn line(id: Option<u64>, what: Reply) -> Vec<u8> {
    // Nothing in it can fail to be JSON.
    let mut line = serde_json::to_vec(&Response { id, what }).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Says why, and hangs up. The line fits into any socket's buffer.
pub(crate) fn turn_away(stream: &UnixStream, fault: &Fault) {
    let _ = stream.try_write(&line(None, Reply::Error(fault.clone())));
}

/// What came in instead of a line.
enum NoLine {
    /// The caller has hung up, or the appliance is to stop.
    End,
    /// It is told, and hung up on.
    Fault(Fault),
}

struct Connection<'a> {
    shared: &'a Shared,
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    stop: watch::Receiver<bool>,
}

/// Serves a caller until it hangs up.
pub(crate) async fn serve(shared: &Shared, permit: &Permit, stream: UnixStream, stop: watch::Receiver<bool>) {
    let (reader, writer) = stream.into_split();
    let mut connection = Connection { shared, reader: BufReader::new(reader), writer, stop };
    if let Err(NoLine::Fault(fault)) = connection.run(permit).await {
        let _ = connection.write(None, Reply::Error(fault)).await;
    }
}

fn ok(value: &impl Serialize) -> Reply {
    Reply::Ok(serde_json::to_value(value).unwrap_or(Value::Null))
}

impl Connection<'_> {
    async fn run(&mut self, permit: &Permit) -> Result<(), NoLine> {
        let options: &ShellOptions = &self.shared.options;
        // One that acts for many has a place for each of them instead.
        let _place = (!permit.is_for_many())
            .then(|| self.shared.slots.take((permit.uid, None), options.connections_per_user))
            .transpose()
            .inspect_err(|_| self.shared.turned_away())
            .map_err(NoLine::Fault)?;
        let first = self.read(FIRST).await?;
        let admitted = match &first.ask {
            Ask::Hello(hello) => self.admit(permit, hello),
            _ => Err(Fault::new(Kind::Malformed, "the first request must be hello")),
        };
        let (view, _place) = match admitted {
            Ok(admitted) => admitted,
            Err(fault) => {
                self.write(Some(first.id), Reply::Error(fault)).await?;
                return Ok(());
            }
        };
        let number = match &view {
            View::Subscriber(number) => Some(number.to_string()),
            View::Operator => None,
        };
        self.write(Some(first.id), ok(&Welcome { number })).await?;
        loop {
            let request = self.read(options.idle).await?;
            let name = request.ask.name();
            let reply = match request.ask {
                Ask::Hello(_) => {
                    Err(Fault::new(Kind::Malformed, "hello was said; a connection acts as one number"))
                }
                Ask::Send(submission) => {
                    self.shared.submit(&view, &submission).await.map(|accepted| ok(&accepted))
                }
                Ask::Inbox(list) => self.list(&view, list, true).await,
                Ask::Log(list) => self.list(&view, list, false).await,
                Ask::Follow(follow) => match self.changes(&view, follow).await {
                    Ok(changes) => {
                        self.shared.count(name, "ok");
                        return self.follow(&view, request.id, changes).await;
                    }
                    Err(fault) => Err(fault),
                },
            };
            self.shared.count(name, reply.as_ref().err().map_or("ok", |fault| fault.kind.name()));
            self.write(Some(request.id), reply.unwrap_or_else(Reply::Error)).await?;
        }
    }

    fn admit(&self, permit: &Permit, hello: &Hello) -> Result<(View, Option<Slot>), Fault> {
        let view = permit.admit(hello)?;
        let place = match (&view, permit.is_for_many()) {
            (View::Subscriber(number), true) => {
                let most = self.shared.options.connections_per_user;
                Some(
                    self.shared
                        .slots
                        .take((permit.uid, Some(number.clone())), most)
                        .inspect_err(|_| self.shared.turned_away())?,
                )
            }
            _ => None,
        };
        Ok((view, place))
    }

    async fn read(&mut self, patience: Duration) -> Result<Request, NoLine> {
        loop {
            let mut octets = Vec::new();
            let mut limited = (&mut self.reader).take(LONGEST_LINE as u64 + 1);
            let read = tokio::time::timeout(patience, limited.read_until(b'\n', &mut octets));
            let read = tokio::select! {
                read = read => read,
                _ = self.stop.wait_for(|stop| *stop) => {
                    return Err(NoLine::Fault(Fault::new(Kind::Unavailable, "the appliance is shutting down")));
                }
            };
            match read {
                Err(_) => {
                    let detail = format!("nothing was asked for {} seconds", patience.as_secs());
                    return Err(NoLine::Fault(Fault::new(Kind::Unavailable, detail)));
                }
                Ok(Err(_)) => return Err(NoLine::End),
                Ok(Ok(_)) if octets.len() > LONGEST_LINE => {
                    let detail = format!("a line may have {LONGEST_LINE} octets");
                    return Err(NoLine::Fault(Fault::new(Kind::Malformed, detail)));
                }
                // A line that was not finished is no request.
                Ok(Ok(_)) if octets.last() != Some(&b'\n') => return Err(NoLine::End),
                Ok(Ok(_)) => {}
            }
            match serde_json::from_slice(&octets) {
                Ok(request) => return Ok(request),
                Err(error) => {
                    let fault = Fault::new(Kind::Malformed, format!("this is no request: {error}"));
                    self.write(None, Reply::Error(fault)).await?;
                }
            }
        }
    }

    async fn write(&mut self, id: Option<u64>, what: Reply) -> Result<(), NoLine> {
        match tokio::time::timeout(WRITE, self.writer.write_all(&line(id, what))).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(NoLine::End),
        }
    }

    /// Whose messages are asked for: a subscriber's own, or whose an operator likes.
    fn number(view: &View, asked: Option<String>) -> Result<Option<Number>, Fault> {
        match (view, asked) {
            (View::Subscriber(own), None) => Ok(Some(own.clone())),
            (View::Subscriber(_), Some(_)) => {
                let detail =
                    "only an operator may ask for another number; use --as to act as another of yours";
                Err(Fault::new(Kind::NotAllowed, detail))
            }
            (View::Operator, None) => Ok(None),
            (View::Operator, Some(text)) => {
                let number: Result<Number, _> = text.parse();
                number.map(Some).map_err(|error| Fault::new(Kind::Invalid, error.to_string()))
            }
        }
    }

    async fn open(&self, number: Option<&Number>) -> Result<(), Fault> {
        match number {
            Some(number) => self.shared.library.watch.open(number).await.map_err(|error| internal(&error)),
            None => Ok(()),
        }
    }

    async fn list(&mut self, view: &View, list: List, inbox: bool) -> Result<Reply, Fault> {
        let number = Self::number(view, list.number)?;
        if inbox && number.is_none() {
            return Err(Fault::new(Kind::Invalid, "whose inbox? Name it with --number"));
        }
        let limit = list.limit.unwrap_or(USUAL);
        if !(1..=MOST).contains(&limit) {
            return Err(Fault::new(Kind::Invalid, format!("the limit must be 1 to {MOST}")));
        }
        let before: Option<MessageId> = list
            .before
            .map(|id| id.parse())
            .transpose()
            .map_err(|error: model::ParseMessageIdError| Fault::new(Kind::Invalid, error.to_string()))?;
        self.open(number.as_ref()).await?;
        let wanted = Wanted { number, inbox, before: before.unwrap_or(MessageId(u64::MAX)), limit };
        let (library, view) = (self.shared.library.clone(), view.clone());
        let page = tokio::task::spawn_blocking(move || library.page(&view, &wanted)).await;
        page.unwrap_or_else(|_| {
            Err(Fault::new(Kind::Internal, "a fault of the appliance's; its log says more"))
        })
        .map(|page| ok(&page))
    }

    async fn changes(&self, view: &View, follow: Follow) -> Result<Changes, Fault> {
        let number = Self::number(view, follow.number)?;
        self.open(number.as_ref()).await?;
        Ok(self.shared.library.watch.follow(number.as_ref()))
    }

    /// Tells what happens, until the caller hangs up or says anything else.
    async fn follow(&mut self, view: &View, id: u64, mut changes: Changes) -> Result<(), NoLine> {
        self.write(Some(id), ok(&Value::Object(serde_json::Map::new()))).await?;
        // What was told last, so that nothing is told twice; of a few, since most messages end soon.
        let mut told: std::collections::VecDeque<crate::wire::Item> = std::collections::VecDeque::new();
        loop {
            let changed = tokio::select! {
                changed = changes.next() => changed,
                more = self.reader.fill_buf() => {
                    return match more {
                        Ok([]) | Err(_) => Err(NoLine::End),
                        Ok(_) => {
                            let detail = "a connection that follows takes no more requests";
                            Err(NoLine::Fault(Fault::new(Kind::Malformed, detail)))
                        }
                    };
                }
                _ = self.stop.wait_for(|stop| *stop) => {
                    return Err(NoLine::Fault(Fault::new(Kind::Unavailable, "the appliance is shutting down")));
                }
            };
            let lost = changes.lost();
            if lost > 0 {
                self.write(Some(id), Reply::Event(Event::Lost(lost))).await?;
            }
            let (library, view) = (self.shared.library.clone(), view.clone());
            let item = tokio::task::spawn_blocking(move || library.one(&view, changed)).await;
            let Ok(Ok(Some(item))) = item else { continue };
            if told.iter().any(|before| *before == item) {
                continue;
            }
            told.retain(|before| before.id != item.id);
            told.push_back(item.clone());
            if told.len() > 256 {
                told.pop_front();
            }
            self.write(Some(id), Reply::Event(Event::Message(item))).await?;
        }
    }
}
