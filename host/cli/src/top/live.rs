//! The live picture: a thread asks, this one draws and listens to keys, so that a slow appliance holds up no key.

use super::drawing::{Sight, draw};
use super::rates::Scene;
use crate::output::{Failure, Output};
use crate::picture::Picture;
use client::Appliance;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use termion::event::Key;
use termion::input::TermRead;
use termion::raw::IntoRawMode;
use termion::screen::IntoAlternateScreen;

/// How long a key may wait at most; also how soon another size of the terminal is noticed.
const TICK: Duration = Duration::from_millis(50);

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Quit,
    Pause,
    Up,
    Down,
    Nothing,
}

fn wish(key: Key) -> Wish {
    match key {
        Key::Char('q' | 'Q') | Key::Esc | Key::Ctrl('c' | 'd') => Wish::Quit,
        Key::Char(' ') => Wish::Pause,
        Key::Up | Key::Char('k') => Wish::Up,
        Key::Down | Key::Char('j') => Wish::Down,
        _ => Wish::Nothing,
    }
}

type Look = Result<(Picture, Instant), String>;

/// Shows the appliance until somebody has seen enough.
pub(super) fn watch(appliance: Appliance, output: &Output, interval: Duration) -> Result<(), Failure> {
    if output.size().is_none() {
        let what = "a live picture needs a terminal; --once prints one picture";
        return Err(Failure::Usage(what.to_owned()));
    }
    // The first look before the screen is taken, so that what is wrong is told where the command was given.
    let (first, at) = (Picture::take(&appliance)?, Instant::now());
    let (tell, looks) = mpsc::sync_channel::<Look>(1);
    // Its sender is gone when nobody looks any more.
    let (_looker, looking) = mpsc::channel::<()>();
    let asking = std::thread::Builder::new().name("asking".to_owned()).spawn(move || {
        while looking.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
            let look = Picture::take(&appliance).map_err(|error| error.to_string());
            if tell.send(look.map(|picture| (picture, Instant::now()))).is_err() {
                return;
            }
        }
    });
    asking.map_err(Failure::file(Path::new("a thread")))?;
    let terminal = Failure::file(Path::new("the terminal"));
    // What is taken here is given back as these are dropped, however this ends.
    let screen = std::io::stdout().into_raw_mode().and_then(IntoAlternateScreen::into_alternate_screen);
    let mut screen = match screen {
        Ok(screen) => termion::cursor::HideCursor::from(screen),
        Err(error) => return Err(terminal(error)),
    };
    show(&mut screen, termion::async_stdin(), output, (first, at), &looks).map_err(terminal)
}

fn show(
    screen: &mut impl Write,
    keys: impl Read,
    output: &Output,
    (first, mut at): (Picture, Instant),
    looks: &mpsc::Receiver<Look>,
) -> std::io::Result<()> {
    let mut scene = Scene::of(first);
    let mut sight = Sight { live: true, ..Sight::default() };
    let mut keys = keys.keys();
    let mut size = None;
    let mut changed = true;
    loop {
        let now = output.size();
        if changed || now != size {
            (size, sight.now) = (now, output.now());
            let lines = draw(size.unwrap_or((80, 24)), &scene, &sight);
            let mut picture = termion::cursor::Goto(1, 1).to_string();
            for (at, line) in lines.iter().enumerate() {
                // In a raw terminal a new line does not begin at the left edge by itself.
                let end = if at + 1 < lines.len() { "\r\n" } else { "" };
                picture.push_str(&format!(
                    "{}{}{end}",
                    line.text(output.colour()),
                    termion::clear::UntilNewline
                ));
            }
            picture.push_str(termion::clear::AfterCursor.as_ref());
            screen.write_all(picture.as_bytes())?;
            screen.flush()?;
        }
        changed = match looks.recv_timeout(TICK) {
            Ok(_) if sight.paused => false,
            Ok(Ok((picture, seen))) => {
                scene.next(picture, seen - at);
                (at, sight.trouble) = (seen, None);
                true
            }
            Ok(Err(trouble)) => {
                sight.trouble = Some(trouble);
                true
            }
            Err(RecvTimeoutError::Timeout) => false,
            // The thread that asks has ended, which it does only after us.
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        };
        for key in keys.by_ref() {
            changed = true;
            match wish(key?) {
                Wish::Quit => return Ok(()),
                Wish::Pause => sight.paused = !sight.paused,
                Wish::Up => sight.scrolled = sight.scrolled.saturating_sub(1),
                Wish::Down => {
                    let most = scene.picture.queues().len().max(scene.picture.links().len());
                    sight.scrolled = (sight.scrolled + 1).min(most);
                }
                Wish::Nothing => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Streams;
    use serde_json::json;

    #[test]
    fn keys() {
        assert_eq!(wish(Key::Char('q')), Wish::Quit);
        assert_eq!((wish(Key::Ctrl('c')), wish(Key::Char('c'))), (Wish::Quit, Wish::Nothing));
        assert_eq!(
            (wish(Key::Esc), wish(Key::Char(' ')), wish(Key::Down)),
            (Wish::Quit, Wish::Pause, Wish::Down)
        );
    }

    #[test]
    fn what_is_new_is_drawn_until_somebody_quits() {
        let output = Output::new(Streams::captured(std::io::sink(), std::io::sink()), false);
        let picture = |name: &str| Picture { status: json!({ "name": name }), ..Picture::default() };
        let (tell, looks) = mpsc::sync_channel::<Look>(4);
        tell.send(Ok((picture("later"), Instant::now()))).unwrap();
        tell.send(Err("gone\u{1b}[2J".to_owned())).unwrap();
        let mut screen = Vec::new();
        // Keys are read one heap a picture: the first has none, and the last ends it.
        let keys = [&b"j"[..], b" ", b" ", b"q"];
        struct Slowly<'a>(std::slice::Iter<'a, &'a [u8]>, bool);
        impl Read for Slowly<'_> {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                self.1 = !self.1;
                let Some(key) = self.1.then(|| self.0.next()).flatten() else { return Ok(0) };
                into[..key.len()].copy_from_slice(key);
                Ok(key.len())
            }
        }
        let first = (picture("first"), Instant::now());
        show(&mut screen, Slowly(keys.iter(), true), &output, first, &looks).unwrap();
        let screen = String::from_utf8(screen).unwrap();
        for shown in ["first", "later", "gone␛[2J", "paused"] {
            assert!(screen.contains(shown), "{shown}: {screen:?}");
        }
        assert!(screen.find("first") < screen.find("later"));
    }
}
