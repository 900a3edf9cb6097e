//! The live screen: one thread fetches snapshots, another draws and reads keys, so that a slow appliance does not delay keys.

use super::rates::TopData;
use super::screen::{ViewState, draw};
use crate::output::{Failure, Output};
use crate::snapshot::Snapshot;
use client::ApiClient;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use termion::event::Key;
use termion::input::TermRead;
use termion::raw::IntoRawMode;
use termion::screen::IntoAlternateScreen;

/// The interval in which keys and the size of the terminal are checked.
const TICK: Duration = Duration::from_millis(50);

/// The action of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeyAction {
    Quit,
    Pause,
    Up,
    Down,
    Nothing,
}

fn key_action(key: Key) -> KeyAction {
    match key {
        Key::Char('q' | 'Q') | Key::Esc | Key::Ctrl('c' | 'd') => KeyAction::Quit,
        Key::Char(' ') => KeyAction::Pause,
        Key::Up | Key::Char('k') => KeyAction::Up,
        Key::Down | Key::Char('j') => KeyAction::Down,
        _ => KeyAction::Nothing,
    }
}

type FetchResult = Result<(Snapshot, Instant), String>;

/// Shows the live screen until the user quits.
pub(super) fn watch(api: ApiClient, output: &Output, interval: Duration) -> Result<(), Failure> {
    if output.terminal_size().is_none() {
        let what = "the live screen needs a terminal; use --once";
        return Err(Failure::Usage(what.to_owned()));
    }
    // The first snapshot is fetched before the screen switches, so that errors stay on the normal screen.
    let (first, at) = (Snapshot::fetch(&api)?, Instant::now());
    let (sender, results) = mpsc::sync_channel::<FetchResult>(1);
    // Dropping the sender stops the thread.
    let (_stop, stopped) = mpsc::channel::<()>();
    let fetcher = std::thread::Builder::new().name("fetch".to_owned()).spawn(move || {
        while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            let result = Snapshot::fetch(&api).map_err(|error| error.to_string());
            if sender.send(result.map(|snapshot| (snapshot, Instant::now()))).is_err() {
                return;
            }
        }
    });
    fetcher.map_err(Failure::file(Path::new("a thread")))?;
    let terminal = Failure::file(Path::new("the terminal"));
    // Dropping these restores the terminal.
    let screen = std::io::stdout().into_raw_mode().and_then(IntoAlternateScreen::into_alternate_screen);
    let mut screen = match screen {
        Ok(screen) => termion::cursor::HideCursor::from(screen),
        Err(error) => return Err(terminal(error)),
    };
    show(&mut screen, termion::async_stdin(), output, (first, at), &results).map_err(terminal)
}

fn show(
    screen: &mut impl Write,
    keys: impl Read,
    output: &Output,
    (first, mut at): (Snapshot, Instant),
    results: &mpsc::Receiver<FetchResult>,
) -> std::io::Result<()> {
    let mut data = TopData::of(first);
    let mut view = ViewState { live: true, ..ViewState::default() };
    let mut keys = keys.keys();
    let mut size = None;
    let mut changed = true;
    loop {
        let now = output.terminal_size();
        if changed || now != size {
            (size, view.now) = (now, output.now());
            let lines = draw(size.unwrap_or((80, 24)), &data, &view);
            let mut frame = termion::cursor::Goto(1, 1).to_string();
            for (at, line) in lines.iter().enumerate() {
                // A raw terminal needs a carriage return as well.
                let end = if at + 1 < lines.len() { "\r\n" } else { "" };
                frame.push_str(&format!(
                    "{}{}{end}",
                    line.text(output.colour()),
                    termion::clear::UntilNewline
                ));
            }
            frame.push_str(termion::clear::AfterCursor.as_ref());
            screen.write_all(frame.as_bytes())?;
            screen.flush()?;
        }
        changed = match results.recv_timeout(TICK) {
            Ok(_) if view.paused => false,
            Ok(Ok((snapshot, seen))) => {
                data.next(snapshot, seen - at);
                (at, view.trouble) = (seen, None);
                true
            }
            Ok(Err(trouble)) => {
                view.trouble = Some(trouble);
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            // The fetching thread ends only after this one.
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        for key in keys.by_ref() {
            changed = true;
            match key_action(key?) {
                KeyAction::Quit => return Ok(()),
                KeyAction::Pause => view.paused = !view.paused,
                KeyAction::Up => view.scrolled = view.scrolled.saturating_sub(1),
                KeyAction::Down => {
                    let most = data.snapshot.queues.len().max(data.snapshot.links.len());
                    view.scrolled = (view.scrolled + 1).min(most);
                }
                KeyAction::Nothing => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::status;
    use crate::output::Streams;
    use api::StatusView;

    #[test]
    fn keys_map_to_actions() {
        assert_eq!(key_action(Key::Char('q')), KeyAction::Quit);
        assert_eq!(
            (key_action(Key::Ctrl('c')), key_action(Key::Char('c'))),
            (KeyAction::Quit, KeyAction::Nothing)
        );
        assert_eq!(
            (key_action(Key::Esc), key_action(Key::Char(' ')), key_action(Key::Down)),
            (KeyAction::Quit, KeyAction::Pause, KeyAction::Down)
        );
    }

    #[test]
    fn new_snapshots_are_drawn_until_quit() {
        let output = Output::without_tables(Streams::captured(std::io::sink(), std::io::sink()), false);
        let snapshot = |name: &str| {
            let status = StatusView { name: name.to_owned(), ..status(api::StatusTotals::default()) };
            Snapshot { status, ..Snapshot::default() }
        };
        let (sender, results) = mpsc::sync_channel::<FetchResult>(4);
        sender.send(Ok((snapshot("later"), Instant::now()))).unwrap();
        sender.send(Err("gone\u{1b}[2J".to_owned())).unwrap();
        let mut screen = Vec::new();
        // Keys are read once a frame: the first frame has none, and the last key quits.
        let keys = [&b"j"[..], b" ", b" ", b"q"];
        struct SlowReader<'a>(std::slice::Iter<'a, &'a [u8]>, bool);
        impl Read for SlowReader<'_> {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                self.1 = !self.1;
                let Some(key) = self.1.then(|| self.0.next()).flatten() else { return Ok(0) };
                into[..key.len()].copy_from_slice(key);
                Ok(key.len())
            }
        }
        let first = (snapshot("first"), Instant::now());
        show(&mut screen, SlowReader(keys.iter(), true), &output, first, &results).unwrap();
        let screen = String::from_utf8(screen).unwrap();
        for shown in ["first", "later", "gone␛[2J", "paused"] {
            assert!(screen.contains(shown), "{shown}: {screen:?}");
        }
        assert!(screen.find("first") < screen.find("later"));
    }
}
