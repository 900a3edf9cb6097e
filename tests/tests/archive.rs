//! The archive on real MariaDB and PostgreSQL: what holds on SQLite (its own tests) holds there, and outages cost nothing.

#[path = "../../host/archive/tests/scenarios/mod.rs"]
mod scenarios;

use anyhow::{Context, Result};
use archive::{RunningPump, State};
use parking_lot::Mutex;
use scenarios::messages::{Shelf, finished};
use scenarios::until;
use std::path::Path;
use std::sync::{Arc, Weak};
use xtask::database::Database;

/// A server and its folder.
struct Server {
    database: Database,
    // After the server: it is in use until then.
    _folder: tempfile::TempDir,
}

impl Server {
    fn start(begin: fn(&Path) -> Result<Database>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        Ok(Self { database: begin(folder.path())?, _folder: folder })
    }
}

/// A server that lives as long as one of the tests that share it.
struct Shared {
    begin: fn(&Path) -> Result<Database>,
    running: Mutex<Weak<Server>>,
}

/// An empty data base on a server.
struct Place {
    url: String,
    _server: Arc<Server>,
}

impl Place {
    fn url(&self) -> String {
        self.url.clone()
    }
}

#[allow(clippy::expect_used, reason = "the ground that a test stands on")]
impl Shared {
    const fn new(begin: fn(&Path) -> Result<Database>) -> Self {
        Self { begin, running: Mutex::new(Weak::new()) }
    }

    fn place(&self, name: &str) -> Place {
        let mut running = self.running.lock();
        let server = running.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Server::start(self.begin).expect("a server"));
            *running = Arc::downgrade(&server);
            server
        });
        let url = server.database.create(name).expect("an empty data base");
        Place { url, _server: server }
    }
}

mod mariadb {
    use super::*;

    static SHARED: Shared = Shared::new(Database::mariadb);

    every_scenario!(|name| SHARED.place(name));

    /// MariaDB makes tables outside of transactions: a daemon that is killed among them leaves half of the work.
    #[test]
    fn a_migration_that_was_cut_off_is_done_again() -> Result<()> {
        let place = SHARED.place("cut_off");
        let archive = scenarios::open(&place.url());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(archive.prepare())?;
        scenarios::sql(&place.url(), "UPDATE schema_versions SET success = 0; DROP TABLE hours, statistics")?;
        runtime.block_on(archive.prepare())?;
        scenarios::sql(&place.url(), "SELECT * FROM hours, statistics, messages")?;
        Ok(())
    }

    #[test]
    fn hundred_thousand_wait_while_it_is_down() -> Result<()> {
        waits_while_it_is_down(Server::start(Database::mariadb)?, 100_000)
    }

    #[test]
    fn crashes_neither_lose_nor_double() -> Result<()> {
        survives_crashes(Server::start(Database::mariadb)?)
    }
}

mod postgres {
    use super::*;

    static SHARED: Shared = Shared::new(Database::postgres);

    every_scenario!(|name| SHARED.place(name));

    #[test]
    fn many_wait_while_it_is_down() -> Result<()> {
        waits_while_it_is_down(Server::start(Database::postgres)?, 20_000)
    }

    #[test]
    fn crashes_neither_lose_nor_double() -> Result<()> {
        survives_crashes(Server::start(Database::postgres)?)
    }
}

fn is_down(pump: &RunningPump) -> bool {
    matches!(pump.status().state, State::Down(_))
}

/// The server is stopped as an admin does it; meanwhile messages end.
fn waits_while_it_is_down(mut server: Server, messages: u64) -> Result<()> {
    let shelf = Shelf::with(0..500);
    let archive = scenarios::open(&server.database.url());
    let pump = archive.pump(shelf.clone()).start()?;
    shelf.wait_for(0);
    server.database.stop()?;
    shelf.put((500..500 + messages).map(finished));
    pump.wake();
    until("the pump finds that it is down", || is_down(&pump));
    let status = pump.status();
    assert_eq!((status.archived, status.backlog), (500, messages));
    server.database.start()?;
    shelf.wait_for(0);
    let status = pump.status();
    pump.stop();
    assert_eq!(status.archived, 500 + messages);
    holds_each_once(&server.database, 500 + messages)
}

/// The server dies again and again under full load.
fn survives_crashes(mut server: Server) -> Result<()> {
    const MESSAGES: u64 = 60_000;
    let archive = scenarios::open(&server.database.url());
    let shelf = Shelf::with(0..MESSAGES);
    let pump = archive.pump(shelf.clone()).start()?;
    for third in [1, 2] {
        until("some are archived", || (shelf.ids().len() as u64) < MESSAGES - third * MESSAGES / 4);
        server.database.kill()?;
        until("the pump finds that it is down", || is_down(&pump));
        server.database.start()?;
    }
    shelf.wait_for(0);
    pump.stop();
    holds_each_once(&server.database, MESSAGES)
}

/// By the server's own client: every message once, in the table and in the statistics.
fn holds_each_once(database: &Database, messages: u64) -> Result<()> {
    let number = |sql: &str| -> Result<u64> {
        let rows = database.query(sql)?;
        Ok(rows.first().and_then(|row| row.first()).context("no row")?.parse()?)
    };
    assert_eq!(number("SELECT count(*) FROM messages")?, messages);
    assert_eq!(number("SELECT count(DISTINCT id) FROM messages")?, messages);
    assert_eq!(number("SELECT sum(amount) FROM statistics WHERE measure = 'accepted'")?, messages);
    Ok(())
}
