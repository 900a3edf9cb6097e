//! Client of the operate socket. The program behind it runs as root and changes the appliance image; only the daemon may
//! connect.
//!
//! One command per connection: a line from a fixed vocabulary, then the octets of an update if the command has one, then end of
//! stream. The answer is a line (`done`, `refused REASON` or `busy`), and after `done` the result.

use crate::problem::{Problem, ProblemKind};
use api::{ImageStatusView, ProblemReason, SystemSlotView};
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

/// Maximum size of an update, in octets.
const MAX_UPDATE_OCTETS: u64 = 1 << 30;
/// Answer timeout of all commands except updates.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);
/// Answer timeout of an update, from its last octet on: the program verifies it and writes it to a slow disk.
const WRITE_TIMEOUT: Duration = Duration::from_secs(3600);
/// Timeout of one chunk, in either direction.
const CHUNK_TIMEOUT: Duration = Duration::from_secs(180);
/// Maximum octets of an answer text.
const MAX_TEXT_OCTETS: u64 = 64 << 10;
/// Octets read at once.
const CHUNK: usize = 64 << 10;

/// A command of the operate program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OperateCommand {
    Status,
    Update { restarts: bool },
    Rollback { restarts: bool },
    SupportBundle,
    FactoryReset { keeps_state: bool, restarts: bool },
}

impl OperateCommand {
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

    fn answer_timeout(self) -> Duration {
        if matches!(self, Self::Update { .. }) { WRITE_TIMEOUT } else { ANSWER_TIMEOUT }
    }
}

/// Client of the operate socket.
#[derive(Debug, Clone)]
pub struct OperateClient(Arc<Path>);

type OperateAnswer = BufReader<UnixStream>;

fn no_answer(what: &str) -> Problem {
    let detail = format!(
        "the operate program does not answer ({what}); see its journal: journalctl --unit 'appliance-operate@*'"
    );
    Problem::new(ProblemKind::Unavailable, detail)
}

fn socket_problem(error: &io::Error) -> Problem {
    no_answer(&error.to_string())
}

impl OperateClient {
    /// A client of this socket.
    #[must_use]
    pub fn at(socket: &Path) -> Self {
        Self(socket.into())
    }

    /// Requests the system status.
    pub(super) async fn image_status(&self) -> Result<ImageStatusView, Problem> {
        let message = self.run(OperateCommand::Status, None).await?;
        parse_status(&message).ok_or_else(|| no_answer("its status cannot be parsed"))
    }

    /// Runs a command and returns the text of its answer.
    pub(super) async fn run(&self, command: OperateCommand, body: Option<Body>) -> Result<String, Problem> {
        let answer = self.send_command(command, body).await?;
        let mut message = Vec::new();
        let read = timeout(ANSWER_TIMEOUT, answer.take(MAX_TEXT_OCTETS).read_to_end(&mut message)).await;
        read.map_err(|_| no_answer("timeout"))?.map_err(|error| socket_problem(&error))?;
        Ok(String::from_utf8_lossy(&message).trim_end().to_owned())
    }

    /// Runs a command and streams the file of its answer.
    pub(super) async fn stream_file(
        &self,
        command: OperateCommand,
    ) -> Result<impl futures_util::Stream<Item = io::Result<Bytes>> + Send + use<>, Problem> {
        let answer = self.send_command(command, None).await?;
        Ok(futures_util::stream::unfold(Some(answer), |answer| async move {
            let mut answer = answer?;
            let mut piece = Vec::with_capacity(CHUNK);
            match timeout(CHUNK_TIMEOUT, answer.read_buf(&mut piece)).await {
                Ok(Ok(0)) => None,
                Ok(Ok(_)) => Some((Ok(Bytes::from(piece)), Some(answer))),
                Ok(Err(error)) => Some((Err(error), None)),
                Err(_) => Some((Err(io::ErrorKind::TimedOut.into()), None)),
            }
        }))
    }

    async fn send_command(
        &self,
        command: OperateCommand,
        body: Option<Body>,
    ) -> Result<OperateAnswer, Problem> {
        let mut stream = UnixStream::connect(&self.0).await.map_err(|error| socket_problem(&error))?;
        stream
            .write_all(format!("{}\n", command.line()).as_bytes())
            .await
            .map_err(|error| socket_problem(&error))?;
        if let Some(body) = body {
            send_body(body, &mut stream).await?;
        }
        // If the program has answered and closed, shutdown fails; the answer is read all the same.
        let _ = stream.shutdown().await;
        let mut answer = BufReader::new(stream);
        let mut first = String::new();
        let mut line = (&mut answer).take(MAX_TEXT_OCTETS);
        let read = timeout(command.answer_timeout(), line.read_line(&mut first)).await;
        read.map_err(|_| no_answer("timeout"))?.map_err(|error| socket_problem(&error))?;
        let (word, rest) = first.trim_end().split_once(' ').unwrap_or((first.trim_end(), ""));
        match word {
            "done" => Ok(answer),
            "refused" => Err(Problem::new(ProblemKind::Unprocessable, rest)),
            "busy" => {
                let detail = "another operation on the appliance image is running; wait until it ends";
                Err(Problem::new(ProblemKind::Conflict, detail).with_reason(ProblemReason::of("busy")))
            }
            _ => Err(no_answer("it sent no answer")),
        }
    }
}

/// Sends the chunks of an update.
async fn send_body(body: Body, stream: &mut UnixStream) -> Result<(), Problem> {
    let mut pieces = body.into_data_stream();
    let mut sum = 0;
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| {
            Problem::new(ProblemKind::BadRequest, format!("the update ended too early: {error}"))
        })?;
        sum += piece.len() as u64;
        if sum > MAX_UPDATE_OCTETS {
            let detail = format!("the update is larger than {} MiB", MAX_UPDATE_OCTETS >> 20);
            return Err(Problem::new(ProblemKind::TooLarge, detail));
        }
        match timeout(CHUNK_TIMEOUT, stream.write_all(&piece)).await {
            Ok(Ok(())) => {}
            // The program has refused already; the answer says why.
            Ok(Err(_)) => break,
            Err(_) => return Err(no_answer("it does not accept the update")),
        }
    }
    Ok(())
}

/// Parses lines of `name value`.
fn parse_status(message: &str) -> Option<ImageStatusView> {
    let lines: HashMap<&str, &str> = message
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(name, value)| (name, value.trim()))
        .collect();
    let text = |name: &str| lines.get(name).map(|value| (*value).to_owned());
    let count = |name: &str| lines.get(name).and_then(|value| value.parse().ok());
    let slot = |name: &str, line: &str| SystemSlotView {
        name: name.to_owned(),
        healthy: text(line).filter(|version| version != "never"),
    };
    let slots = vec![slot("A", "healthy-a"), slot("B", "healthy-b")];
    let (version, running) = (text("version")?, text("slot")?);
    let here = slots.iter().find(|slot| slot.name == running);
    Some(ImageStatusView {
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

    /// A socket that answers one connection with `message`; the task returns what it received.
    fn fake_socket(
        message: &'static [u8],
    ) -> (tempfile::TempDir, OperateClient, tokio::task::JoinHandle<io::Result<Vec<u8>>>) {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("operate")).unwrap();
        let operate_client = OperateClient::at(&folder.path().join("operate"));
        let received = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await?;
            let mut received = Vec::new();
            stream.read_to_end(&mut received).await?;
            // The client may be gone.
            let _ = stream.write_all(message).await;
            Ok(received)
        });
        (folder, operate_client, received)
    }

    #[tokio::test]
    async fn status_is_parsed_and_system_is_on_trial_until_healthy() {
        let message = b"done\nversion 1.2\nslot B\nnext B\nhealthy-a 1.1\nhealthy-b never\nup-seconds 61\n\
            clock-synchronised yes\ndata-used 10\ndata-size 20\nsomething else\n";
        let (_folder, operate_client, received) = fake_socket(message);
        let state = operate_client.image_status().await.unwrap();
        assert_eq!(received.await.unwrap().unwrap(), b"status\n");
        assert!(state.on_trial && state.clock_synchronised);
        assert_eq!((state.version.as_str(), state.slot.as_str(), state.up_seconds), ("1.2", "B", 61));
        assert_eq!(state.slots[0].healthy.as_deref(), Some("1.1"));
        assert_eq!(state.slots[1].healthy, None);
    }

    #[tokio::test]
    async fn update_is_streamed_and_its_answer_returned() {
        let (_folder, operate_client, received) = fake_socket(b"done\nwritten to slot B\n");
        let body = Body::from_stream(futures_util::stream::iter([Ok::<_, io::Error>("one"), Ok("two")]));
        let message =
            operate_client.run(OperateCommand::Update { restarts: false }, Some(body)).await.unwrap();
        assert_eq!(message, "written to slot B");
        assert_eq!(received.await.unwrap().unwrap(), b"update --no-reboot\nonetwo");
    }

    #[tokio::test]
    async fn refusals_are_passed_on_and_silence_is_unavailable() {
        for (message, want, word) in [
            (&b"refused signature is not trusted\n"[..], 422, "not trusted"),
            (b"busy\n", 409, "another operation"),
            (b"", 503, "no answer"),
            (b"done\nversion 1\n", 503, "cannot be parsed"),
        ] {
            let (_folder, operate_client, _asked) = fake_socket(message);
            let problem = operate_client.image_status().await.unwrap_err();
            assert_eq!(problem.status, want);
            assert!(problem.detail.contains(word), "{}", problem.detail);
        }
        let nobody = OperateClient::at(Path::new("/nowhere/operate"));
        assert_eq!(nobody.image_status().await.unwrap_err().status, 503);
    }

    #[tokio::test]
    async fn aborted_upload_is_not_a_complete_update() {
        let (_folder, operate_client, received) = fake_socket(b"done\n");
        let pieces = [Ok("one"), Err(io::Error::other("gone"))];
        let body = Body::from_stream(futures_util::stream::iter(pieces));
        let problem =
            operate_client.run(OperateCommand::Update { restarts: true }, Some(body)).await.unwrap_err();
        assert_eq!(problem.status, 400);
        assert_eq!(received.await.unwrap().unwrap(), b"update\none");
    }

    #[tokio::test]
    async fn file_is_streamed_in_chunks() {
        let (_folder, operate_client, received) = fake_socket(b"done\n\x1f\x8b rest");
        let pieces: Vec<_> =
            operate_client.stream_file(OperateCommand::SupportBundle).await.unwrap().collect().await;
        let all: Vec<u8> = pieces.into_iter().flat_map(|piece| piece.unwrap()).collect();
        assert_eq!(all, b"\x1f\x8b rest");
        assert_eq!(received.await.unwrap().unwrap(), b"support-bundle\n");
    }
}
