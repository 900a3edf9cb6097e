//! The archive on real MariaDB and PostgreSQL: it behaves as on SQLite (see the crate's tests), and outages lose nothing.

#[path = "../../../../host/archive/tests/integration/scenarios/mod.rs"]
mod scenarios;

use anyhow::{Context, Result};
use api::PumpState;
use archive::RunningPump;
use parking_lot::Mutex;
use scenarios::messages::{TestSource, finished};
use scenarios::until;
use std::path::Path;
use std::sync::{Arc, Weak};
use testkit::database::Database;

/// A server and its folder.
struct Server {
    database: Database,
    // Dropped after the server, which uses it.
    _folder: tempfile::TempDir,
}

impl Server {
    fn start(begin: fn(&Path) -> Result<Database>) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        Ok(Self { database: begin(folder.path())?, _folder: folder })
    }
}

/// A server shared by several tests.
struct Shared {
    begin: fn(&Path) -> Result<Database>,
    running: Mutex<Weak<Server>>,
}

/// An empty database on a server.
struct ServerDatabase {
    url: String,
    _server: Arc<Server>,
}

impl ServerDatabase {
    fn url(&self) -> String {
        self.url.clone()
    }
}

#[allow(clippy::expect_used, reason = "a failed setup fails the test")]
impl Shared {
    const fn new(begin: fn(&Path) -> Result<Database>) -> Self {
        Self { begin, running: Mutex::new(Weak::new()) }
    }

    fn database(&self, name: &str) -> ServerDatabase {
        let mut running = self.running.lock();
        let server = running.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Server::start(self.begin).expect("a server"));
            *running = Arc::downgrade(&server);
            server
        });
        let url = server.database.create(name).expect("an empty data base");
        ServerDatabase { url, _server: server }
    }
}

mod mariadb {
    use super::*;

    static SHARED: Shared = Shared::new(Database::mariadb);

    crate::every_scenario!(|name| SHARED.database(name));

    /// MariaDB creates tables outside of transactions: a daemon that is killed during a migration leaves it incomplete.
    #[test]
    fn an_interrupted_migration_is_repeated() -> Result<()> {
        let database = SHARED.database("cut_off");
        let archive = scenarios::open(&database.url());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(archive.prepare())?;
        scenarios::sql(
            &database.url(),
            "UPDATE schema_versions SET success = 0; DROP TABLE hours, statistics",
        )?;
        runtime.block_on(archive.prepare())?;
        scenarios::sql(&database.url(), "SELECT * FROM hours, statistics, messages")?;
        Ok(())
    }

    #[test]
    fn hundred_thousand_messages_wait_during_an_outage() -> Result<()> {
        check_outage(Server::start(Database::mariadb)?, 100_000)
    }

    #[test]
    fn crashes_neither_lose_nor_duplicate_messages() -> Result<()> {
        check_crashes(Server::start(Database::mariadb)?)
    }
}

mod postgres {
    use super::*;

    static SHARED: Shared = Shared::new(Database::postgres);

    crate::every_scenario!(|name| SHARED.database(name));

    #[test]
    fn many_messages_wait_during_an_outage() -> Result<()> {
        check_outage(Server::start(Database::postgres)?, 20_000)
    }

    #[test]
    fn crashes_neither_lose_nor_duplicate_messages() -> Result<()> {
        check_crashes(Server::start(Database::postgres)?)
    }
}

fn is_unavailable(pump: &RunningPump) -> bool {
    pump.status().state == PumpState::Down
}

/// The server is stopped in an orderly way, and messages finish in the meantime.
fn check_outage(mut server: Server, messages: u64) -> Result<()> {
    let source = TestSource::with(0..500);
    let archive = scenarios::open(&server.database.url());
    let pump = archive.pump(source.clone()).start()?;
    source.wait_for(0);
    server.database.stop()?;
    source.put((500..500 + messages).map(finished));
    pump.wake();
    until("the pump finds that it is down", || is_unavailable(&pump));
    let status = pump.status();
    assert_eq!((status.archived, status.backlog), (500, messages));
    server.database.start()?;
    source.wait_for(0);
    let status = pump.status();
    pump.stop();
    assert_eq!(status.archived, 500 + messages);
    check_each_once(&server.database, 500 + messages)
}

/// The server is killed repeatedly under full load.
fn check_crashes(mut server: Server) -> Result<()> {
    const MESSAGES: u64 = 60_000;
    let archive = scenarios::open(&server.database.url());
    let source = TestSource::with(0..MESSAGES);
    let pump = archive.pump(source.clone()).start()?;
    for third in [1, 2] {
        until("some are archived", || (source.ids().len() as u64) < MESSAGES - third * MESSAGES / 4);
        server.database.kill()?;
        until("the pump finds that it is down", || is_unavailable(&pump));
        server.database.start()?;
    }
    source.wait_for(0);
    pump.stop();
    check_each_once(&server.database, MESSAGES)
}

/// Checks with the server's own client: every message once, in the table and in the statistics.
fn check_each_once(database: &Database, messages: u64) -> Result<()> {
    let number = |sql: &str| -> Result<u64> {
        let rows = database.query(sql)?;
        Ok(rows.first().and_then(|row| row.first()).context("no row")?.parse()?)
    };
    assert_eq!(number("SELECT count(*) FROM messages")?, messages);
    assert_eq!(number("SELECT count(DISTINCT id) FROM messages")?, messages);
    assert_eq!(number("SELECT sum(amount) FROM statistics WHERE measure = 'accepted'")?, messages);
    Ok(())
}
