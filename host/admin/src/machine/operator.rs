//! Who changes the machine: a program of the appliance image, which is root's, behind a socket that only the daemon may open.
//!
//! The daemon can do none of it itself. One order a connection: a line of a fixed vocabulary, then the octets of an update where it
//! is one, then the end. The answer is a line, `done`, `refused REASON` or `busy`, and after `done` what there is to tell.

use super::{MachineState, Slot};
use crate::problem::{Kind, Problem, Reason};
use axum::body::{Body, Bytes};
use futures_util::StreamExt as _;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// The largest update.
const LARGEST: u64 = 1 << 30;
/// Longest time for an answer to anything but an update.
const PATIENCE: Duration = Duration::from_secs(180);
/// Longest time between the last octet of an update and its answer: it is checked, and written to a disk that may be slow.
const WRITING: Duration = Duration::from_secs(3600);
/// Longest time until a piece of an update is taken or of a file comes.
const PIECE: Duration = Duration::from_secs(180);
/// The longest text that is read of an answer.
const TEXT: u64 = 64 << 10;
/// How much of a file is read at once.
const CHUNK: usize = 64 << 10;

/// What may be ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Status,
    Update { restarts: bool },
    Rollback { restarts: bool },
    SupportBundle,
    FactoryReset { keeps_state: bool, restarts: bool },
}

impl Order {
    fn line(self) -> String {
        let later = |restarts| if restarts { "" } else { " --no-reboot" };
        match self {
            Self::Status => "status".to_owned(),
            Self::Update { restarts } => format!("update{}", later(restarts)),
            Self::Rollback { restarts } => format!("rollback{}", later(restarts)),
            Self::SupportBundle => "support-bundle".to_owned(),
            Self::FactoryReset { keeps_state, restarts } => {
                let what = if keeps_state { "--keep-state" } else { "--drop-state" };
                format!("factory-reset {what}{}", later(restarts))
            }
        }
    }

    fn patience(self) -> Duration {
        if matches!(self, Self::Update { .. }) { WRITING } else { PATIENCE }
    }
}

/// The way to the program.
#[derive(Debug, Clone)]
pub struct Operator(Arc<Path>);

type Answer = BufReader<UnixStream>;

fn mute(what: &str) -> Problem {
    let detail = format!(
        "the machine's part does not answer ({what}); its journal says more: journalctl --unit 'appliance-operate@*'"
    );
    Problem::new(Kind::Unavailable, detail)
}

fn broken(error: &io::Error) -> Problem {
    mute(&error.to_string())
}

impl Operator {
    /// At this socket.
    #[must_use]
    pub fn at(socket: &Path) -> Self {
        Self(socket.into())
    }

    /// How the machine is.
    pub(super) async fn state(&self) -> Result<MachineState, Problem> {
        let said = self.order(Order::Status, None).await?;
        read_state(&said).ok_or_else(|| mute("its status is not understood"))
    }

    /// Has something done: what is said of it.
    pub(super) async fn order(&self, order: Order, body: Option<Body>) -> Result<String, Problem> {
        let answer = self.ask(order, body).await?;
        let mut said = Vec::new();
        let read = timeout(PATIENCE, answer.take(TEXT).read_to_end(&mut said)).await;
        read.map_err(|_| mute("it takes too long"))?.map_err(|error| broken(&error))?;
        Ok(String::from_utf8_lossy(&said).trim_end().to_owned())
    }

    /// Has a file made: its pieces as they come.
    pub(super) async fn file(
        &self,
        order: Order,
    ) -> Result<impl futures_util::Stream<Item = io::Result<Bytes>> + Send + use<>, Problem> {
        let answer = self.ask(order, None).await?;
        Ok(futures_util::stream::unfold(Some(answer), |answer| async move {
            let mut answer = answer?;
            let mut piece = Vec::with_capacity(CHUNK);
            match timeout(PIECE, answer.read_buf(&mut piece)).await {
                Ok(Ok(0)) => None,
                Ok(Ok(_)) => Some((Ok(Bytes::from(piece)), Some(answer))),
                Ok(Err(error)) => Some((Err(error), None)),
                Err(_) => Some((Err(io::ErrorKind::TimedOut.into()), None)),
            }
        }))
    }

    async fn ask(&self, order: Order, body: Option<Body>) -> Result<Answer, Problem> {
        let mut stream = UnixStream::connect(&self.0).await.map_err(|error| broken(&error))?;
        stream.write_all(format!("{}\n", order.line()).as_bytes()).await.map_err(|error| broken(&error))?;
        if let Some(body) = body {
            hand_on(body, &mut stream).await?;
        }
        // Where it has answered already and gone, there is nobody to tell.
        let _ = stream.shutdown().await;
        let mut answer = BufReader::new(stream);
        let mut first = String::new();
        let mut line = (&mut answer).take(TEXT);
        let read = timeout(order.patience(), line.read_line(&mut first)).await;
        read.map_err(|_| mute("it takes too long"))?.map_err(|error| broken(&error))?;
        let (word, rest) = first.trim_end().split_once(' ').unwrap_or((first.trim_end(), ""));
        match word {
            "done" => Ok(answer),
            "refused" => Err(Problem::new(Kind::Refused, rest)),
            "busy" => {
                let detail = "something else is being done to the machine; wait for its end";
                Err(Problem::new(Kind::Conflict, detail).because(Reason::of("busy")))
            }
            _ => Err(mute("it ended without a word")),
        }
    }
}

/// The octets of an update, as they come.
async fn hand_on(body: Body, stream: &mut UnixStream) -> Result<(), Problem> {
    let mut pieces = body.into_data_stream();
    let mut sum = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| {
            Problem::new(Kind::BadRequest, format!("the update ended too early: {error}"))
        })?;
        sum += piece.len() as u64;
        if sum > LARGEST {
            let detail = format!("an update has no more than {} MiB", LARGEST >> 20);
            return Err(Problem::new(Kind::TooLarge, detail));
        }
        match timeout(PIECE, stream.write_all(&piece)).await {
            Ok(Ok(())) => {}
            // It has said no already; why, is to be read.
            Ok(Err(_)) => break,
            Err(_) => return Err(mute("it does not take the update")),
        }
    }
    Ok(())
}

/// Lines of a name and a value.
fn read_state(said: &str) -> Option<MachineState> {
    let lines: HashMap<&str, &str> = said
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, value)| (name, value.trim()))
        .collect();
    let text = |name: &str| lines.get(name).map(|value| (*value).to_owned());
    let count = |name: &str| lines.get(name).and_then(|value| value.parse().ok());
    let slot = |name: &str, line: &str| Slot {
        name: name.to_owned(),
        healthy: text(line).filter(|version| version != "never"),
    };
    let slots = vec![slot("A", "healthy-a"), slot("B", "healthy-b")];
    let (version, running) = (text("version")?, text("slot")?);
    let here = slots.iter().find(|slot| slot.name == running);
    Some(MachineState {
        on_trial: here.is_none_or(|slot| slot.healthy.as_ref() != Some(&version)),
        next: text("next")?,
        up_seconds: count("up-seconds")?,
        clock_synchronised: lines.get("clock-synchronised") == Some(&"yes"),
        data_used: count("data-used")?,
        data_size: count("data-size")?,
        version,
        slot: running,
        slots,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::UnixListener;

    /// A socket behind which this is answered, once; what was asked.
    fn answering(
        said: &'static [u8],
    ) -> (tempfile::TempDir, Operator, tokio::task::JoinHandle<io::Result<Vec<u8>>>) {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("operate")).unwrap();
        let operator = Operator::at(&folder.path().join("operate"));
        let asked = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await?;
            let mut asked = Vec::new();
            stream.read_to_end(&mut asked).await?;
            // Whoever broke off is not there any more.
            let _ = stream.write_all(said).await;
            Ok(asked)
        });
        (folder, operator, asked)
    }

    #[tokio::test]
    async fn the_status_is_read_and_a_system_is_on_trial_until_it_was_found_healthy() {
        let said = b"done\nversion 1.2\nslot B\nnext B\nhealthy-a 1.1\nhealthy-b never\nup-seconds 61\n\
            clock-synchronised yes\ndata-used 10\ndata-size 20\nsomething else\n";
        let (_folder, operator, asked) = answering(said);
        let state = operator.state().await.unwrap();
        assert_eq!(asked.await.unwrap().unwrap(), b"status\n");
        assert!(state.on_trial && state.clock_synchronised);
        assert_eq!((state.version.as_str(), state.slot.as_str(), state.up_seconds), ("1.2", "B", 61));
        assert_eq!(state.slots[0].healthy.as_deref(), Some("1.1"));
        assert_eq!(state.slots[1].healthy, None);
    }

    #[tokio::test]
    async fn an_update_is_handed_on_and_what_is_said_of_it_comes_back() {
        let (_folder, operator, asked) = answering(b"done\nwritten to slot B\n");
        let body = Body::from_stream(futures_util::stream::iter([Ok::<_, io::Error>("one"), Ok("two")]));
        let said = operator.order(Order::Update { restarts: false }, Some(body)).await.unwrap();
        assert_eq!(said, "written to slot B");
        assert_eq!(asked.await.unwrap().unwrap(), b"update --no-reboot\nonetwo");
    }

    #[tokio::test]
    async fn a_no_is_a_no_and_silence_is_our_fault() {
        for (said, want, word) in [
            (&b"refused signature is not trusted\n"[..], 422, "not trusted"),
            (b"busy\n", 409, "something else"),
            (b"", 503, "without a word"),
            (b"done\nversion 1\n", 503, "not understood"),
        ] {
            let (_folder, operator, _asked) = answering(said);
            let problem = operator.state().await.unwrap_err();
            assert_eq!(problem.status, want);
            assert!(problem.detail.contains(word), "{}", problem.detail);
        }
        let nobody = Operator::at(Path::new("/nowhere/operate"));
        assert_eq!(nobody.state().await.unwrap_err().status, 503);
    }

    #[tokio::test]
    async fn a_client_that_goes_away_in_the_midst_of_an_update_is_no_end_of_it() {
        let (_folder, operator, asked) = answering(b"done\n");
        let pieces = [Ok("one"), Err(io::Error::other("gone"))];
        let body = Body::from_stream(futures_util::stream::iter(pieces));
        let problem = operator.order(Order::Update { restarts: true }, Some(body)).await.unwrap_err();
        assert_eq!(problem.status, 400);
        assert_eq!(asked.await.unwrap().unwrap(), b"update\none");
    }

    #[tokio::test]
    async fn a_file_comes_in_pieces() {
        let (_folder, operator, asked) = answering(b"done\n\x1f\x8b rest");
        let pieces: Vec<_> = operator.file(Order::SupportBundle).await.unwrap().collect().await;
        let all: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.unwrap()).collect();
        assert_eq!(all, b"\x1f\x8b rest");
        assert_eq!(asked.await.unwrap().unwrap(), b"support-bundle\n");
    }
}
