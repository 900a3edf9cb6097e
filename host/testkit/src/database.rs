//! Private database servers from Debian's packages, one per test or measurement: each has its own folder, loopback port and
//! settings. The system's servers are neither used nor changed.

use crate::test_daemon::free_port;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use workspace::packages::{mariadb_programs, postgres_programs};

/// User, password and name of the empty database; the password protects nothing.
const NAME: &str = "switchyard";

/// Maximum time for a start or a stop; crash recovery is included.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DatabaseKind {
    Mariadb,
    Postgres,
}

/// A database server; killed when dropped. Its data stay in the given folder.
#[derive(Debug)]
pub struct Database {
    kind: DatabaseKind,
    /// Folder of the server's programs.
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    /// Root may not run PostgreSQL and should not run MariaDB: the user and group to run as instead.
    identity: Option<(u32, u32)>,
    /// `None` while it is stopped.
    process: Option<Child>,
}

impl Database {
    /// Starts an empty MariaDB in a new folder `mariadb` of this one.
    ///
    /// # Errors
    /// If MariaDB is not installed or does not start; the error contains the end of its log.
    pub fn mariadb(folder: &Path) -> Result<Self> {
        let programs =
            mariadb_programs().context("mariadb-server is not installed; run: cargo xtask setup")?;
        Self::new(DatabaseKind::Mariadb, programs, folder)
    }

    /// Starts an empty PostgreSQL in a new folder `postgres` of this one.
    ///
    /// # Errors
    /// If PostgreSQL is not installed or does not start; the error contains the end of its log.
    pub fn postgres(folder: &Path) -> Result<Self> {
        let programs = postgres_programs().context("postgresql is not installed; run: cargo xtask setup")?;
        Self::new(DatabaseKind::Postgres, programs, folder)
    }

    fn new(kind: DatabaseKind, programs: PathBuf, folder: &Path) -> Result<Self> {
        let (name, user) = match kind {
            DatabaseKind::Mariadb => ("mariadb", "mysql"),
            DatabaseKind::Postgres => ("postgres", "postgres"),
        };
        fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?.join(name);
        fs::create_dir(&folder).with_context(|| format!("making {}", folder.display()))?;
        let identity = if geteuid().is_root() { Some(identity(user)?) } else { None };
        if let Some((user, group)) = identity {
            std::os::unix::fs::chown(&folder, Some(user), Some(group))?;
            allow_traversal(&folder)?;
        }
        let mut database = Self { kind, programs, folder, port: free_port()?, identity, process: None };
        database.initialise().with_context(|| format!("initialising {}", database.folder.display()))?;
        database.start()?;
        if kind == DatabaseKind::Postgres {
            database.create(NAME)?;
        }
        Ok(database)
    }

    /// The URL of the empty database, with user and password.
    pub fn url(&self) -> String {
        self.url_of(NAME)
    }

    /// The loopback port; every start uses the same one.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The end of the server's log.
    pub fn log(&self) -> String {
        let text = fs::read(self.log_file()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Creates another empty database and returns its URL. The name is not escaped.
    pub fn create(&self, name: &str) -> Result<String> {
        let administrative = if self.kind == DatabaseKind::Mariadb { "mysql" } else { "postgres" };
        self.query_in(administrative, &format!("CREATE DATABASE {name}"))?;
        Ok(self.url_of(name))
    }

    /// Queries the initial database with the server's own command line client, independently of the code under test.
    /// NULL is an empty text from PostgreSQL and the text `NULL` from MariaDB.
    pub fn query(&self, sql: &str) -> Result<Vec<Vec<String>>> {
        self.query_in(NAME, sql)
    }

    /// Like [`Database::query`], in a database made by [`Database::create`].
    pub fn query_in(&self, name: &str, sql: &str) -> Result<Vec<Vec<String>>> {
        let mut client = match self.kind {
            DatabaseKind::Mariadb => {
                let mut client = self.client("mariadb");
                client.args(["--batch", "--skip-column-names", "--default-character-set=utf8mb4"]);
                client.args(["--execute", sql, name]);
                client
            }
            DatabaseKind::Postgres => {
                let mut client = self.client("psql");
                client.args([
                    "--no-psqlrc",
                    "--quiet",
                    "--no-align",
                    "--tuples-only",
                    "--field-separator=\t",
                ]);
                client.args(["--set=ON_ERROR_STOP=1", "--dbname", name, "--command", sql]);
                client
            }
        };
        let output = client.output().context("running the database client")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{sql}: {complaint}");
        let text = String::from_utf8(output.stdout).context("the client's output is not UTF-8")?;
        Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
    }

    /// Starts the server again with the same data on the same port and waits until it answers. No-op if it runs.
    ///
    /// # Errors
    /// If it exits before it answers, or does not answer for a minute; the error contains the end of its log.
    pub fn start(&mut self) -> Result<()> {
        if self.process.is_some() {
            return Ok(());
        }
        let deadline = Instant::now() + TIMEOUT;
        let mut process = self.serve()?;
        let pause = crate::load::StopFlag::default();
        loop {
            if let Some(status) = process.try_wait()? {
                bail!("{} ended with {status}:\n{}", self.folder.display(), self.log());
            }
            if self.answers()? {
                self.process = Some(process);
                return Ok(());
            }
            if Instant::now() > deadline {
                // A server that never started has no data to lose.
                let _ = process.kill();
                let _ = process.wait();
                bail!("{} does not answer after {TIMEOUT:?}:\n{}", self.folder.display(), self.log());
            }
            pause.pause(Duration::from_millis(50));
        }
    }

    /// Stops the server in an orderly way: open transactions are rolled back, and committed data is written out.
    ///
    /// # Errors
    /// If it has not ended after a minute; it keeps running then.
    pub fn stop(&mut self) -> Result<()> {
        // PostgreSQL's SIGTERM waits for clients to disconnect, which a connection pool never does.
        self.send_signal(if self.kind == DatabaseKind::Mariadb { Signal::TERM } else { Signal::INT })
    }

    /// Stops it like a crash: the next start recovers from the log.
    ///
    /// PostgreSQL gets an "immediate shutdown", which has the same effect on the data as SIGKILL: after SIGKILL its children would
    /// hold the shared memory for a while, and a new server would refuse to start.
    pub fn kill(&mut self) -> Result<()> {
        self.send_signal(if self.kind == DatabaseKind::Mariadb { Signal::KILL } else { Signal::QUIT })
    }

    fn send_signal(&mut self, signal: Signal) -> Result<()> {
        let Some(process) = &mut self.process else { return Ok(()) };
        kill_process(Pid::from_child(process), signal)?;
        ensure!(wait(process)?.is_some(), "{} does not end on {signal:?}", self.folder.display());
        self.process = None;
        Ok(())
    }

    fn url_of(&self, name: &str) -> String {
        let scheme = if self.kind == DatabaseKind::Mariadb { "mysql" } else { "postgres" };
        format!("{scheme}://{NAME}:{NAME}@{}:{}/{name}", Ipv4Addr::LOCALHOST, self.port)
    }

    fn log_file(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A program that runs as the server's user in the server's folder.
    fn server(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).stdin(Stdio::null()).env("LC_ALL", "C").env("TZ", "UTC");
        // A starting MariaDB removes the temporary tables of every other one in a shared folder.
        command.env("TMPDIR", &self.folder);
        if let Some((user, group)) = self.identity {
            // std drops root's supplementary groups together with the user.
            command.uid(user).gid(group).env("HOME", &self.folder);
        }
        command
    }

    /// A client of this server that ignores the user's configuration.
    fn client(&self, program: &str) -> Command {
        let port = self.port.to_string();
        let mut command = match self.kind {
            DatabaseKind::Mariadb => {
                let mut command = Command::new(program);
                command.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--port", &port]);
                command.args(["--user", NAME]).env("MYSQL_PWD", NAME);
                command
            }
            DatabaseKind::Postgres => {
                let mut command = Command::new(self.programs.join(program));
                command.args(["--host=127.0.0.1", "--port", &port, "--username", NAME]);
                command.env("PGPASSWORD", NAME).env("PGCLIENTENCODING", "UTF8");
                command
            }
        };
        command.stdin(Stdio::null()).env("LC_ALL", "C.UTF-8");
        command
    }

    fn initialise(&self) -> Result<()> {
        let mut command = match self.kind {
            DatabaseKind::Mariadb => {
                let mut command = self.server("mariadb-install-db");
                command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
                command.arg("--skip-name-resolve").arg(argument("--datadir=", &self.data()));
                // Read at every start, before the first connection.
                let sql = format!(
                    "CREATE DATABASE IF NOT EXISTS {NAME};\n\
                     CREATE USER IF NOT EXISTS '{NAME}'@'%' IDENTIFIED BY '{NAME}';\n\
                     GRANT ALL ON *.* TO '{NAME}'@'%' WITH GRANT OPTION;\n"
                );
                fs::write(self.folder.join("init.sql"), sql)?;
                command
            }
            DatabaseKind::Postgres => {
                let password = self.folder.join("password");
                fs::write(&password, NAME)?;
                let mut command = self.server(self.programs.join("initdb"));
                command.args(["--username", NAME, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"]);
                command.arg("--pwfile").arg(&password).arg("--pgdata").arg(self.data());
                command
            }
        };
        let output = command.output().with_context(|| format!("running {command:?}"))?;
        let words = [output.stdout, output.stderr].concat();
        ensure!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&words));
        Ok(())
    }

    fn serve(&self) -> Result<Child> {
        let mut command = match self.kind {
            DatabaseKind::Mariadb => {
                let mut command = self.server(self.programs.join("mariadbd"));
                command.arg("--no-defaults").arg(argument("--datadir=", &self.data()));
                command.arg(argument("--init-file=", &self.folder.join("init.sql")));
                // A path relative to the data folder: the absolute one may be too long for a socket.
                command.args(["--socket=socket", "--bind-address=127.0.0.1", "--skip-name-resolve"]);
                command.arg(format!("--port={}", self.port));
                command.args(["--innodb-flush-log-at-trx-commit=1", "--skip-log-bin"]);
                // As in Debian's configuration; MariaDB's built-in default is latin1.
                command.args(["--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci"]);
                command.args(["--innodb-buffer-pool-size=128M", "--performance-schema=OFF"]);
                command
            }
            DatabaseKind::Postgres => {
                let mut command = self.server(self.programs.join("postgres"));
                command.arg("-D").arg(self.data()).arg("-p").arg(self.port.to_string());
                for setting in [
                    "listen_addresses=127.0.0.1",
                    "unix_socket_directories=",
                    "shared_buffers=128MB",
                    "logging_collector=off",
                ] {
                    command.args(["-c", setting]);
                }
                command
            }
        };
        let log = File::options().create(true).append(true).open(self.log_file())?;
        command.stdout(log.try_clone()?).stderr(log);
        command.spawn().with_context(|| format!("starting {command:?}"))
    }

    /// Whether it accepts connections and queries.
    fn answers(&self) -> Result<bool> {
        let mut command = match self.kind {
            DatabaseKind::Mariadb => {
                let mut command = self.client("mariadb-admin");
                command.arg("ping");
                command
            }
            DatabaseKind::Postgres => self.client("pg_isready"),
        };
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command.status().with_context(|| format!("running {command:?}"))?.success())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.kill();
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Waits for the process to end; `None` if it does not.
fn wait(process: &mut Child) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + TIMEOUT;
    let pause = crate::load::StopFlag::default();
    while Instant::now() < deadline {
        if let Some(status) = process.try_wait()? {
            return Ok(Some(status));
        }
        pause.pause(Duration::from_millis(10));
    }
    Ok(None)
}

fn argument(name: &str, path: &Path) -> std::ffi::OsString {
    let mut argument = std::ffi::OsString::from(name);
    argument.push(path);
    argument
}

/// User id and group id of a user name.
fn identity(user: &str) -> Result<(u32, u32)> {
    let number = |what: &str| -> Result<u32> {
        let output = Command::new("id").args([what, user]).output().context("running id")?;
        ensure!(output.status.success(), "user {user} does not exist; its Debian package creates it");
        Ok(String::from_utf8(output.stdout)?.trim().parse()?)
    };
    Ok((number("-u")?, number("-g")?))
}

/// Gives another user access to the folders above this one, as far as they are temporary and belong to us.
fn allow_traversal(folder: &Path) -> Result<()> {
    let temporary = std::env::temp_dir().canonicalize()?;
    for above in folder.ancestors().skip(1) {
        let metadata = fs::metadata(above)?;
        let mode = metadata.permissions().mode();
        if mode & 0o001 != 0 {
            continue;
        }
        ensure!(
            above != temporary && above.starts_with(&temporary) && metadata.uid() == geteuid().as_raw(),
            "as root, the database runs as another user, who cannot access {}; use a folder in {}",
            above.display(),
            temporary.display()
        );
        fs::set_permissions(above, fs::Permissions::from_mode(mode | 0o011))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    mod foreign {
        use super::super::*;

        /// A row survives a crash and a stop, and the server restarts on the same port.
        fn check_durability(begin: impl Fn(&Path) -> Result<Database>) -> Result<()> {
            let folder = tempfile::tempdir()?;
            let mut database = begin(&folder.path().join("deep"))?;
            let url = database.url();
            database.query("CREATE TABLE t (id INT PRIMARY KEY, text VARCHAR(20))")?;
            database.query("INSERT INTO t VALUES (1, '测试')")?;
            database.kill()?;
            assert!(database.query("SELECT 1").is_err(), "killed, and still answers");
            database.start()?;
            database.query("INSERT INTO t VALUES (2, 'two')")?;
            database.stop()?;
            database.start()?;
            assert_eq!(database.url(), url);
            assert_eq!(database.query("SELECT id, text FROM t ORDER BY id")?, [["1", "测试"], ["2", "two"]]);
            let other = database.create("other")?;
            assert!(other.ends_with("/other") && database.query_in("other", "SELECT id FROM t").is_err());
            assert!(std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, database.port())).is_ok());
            let port = database.port();
            drop(database);
            assert!(
                std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err(),
                "dropped, and still listens"
            );
            Ok(())
        }

        #[test]
        fn mariadb_keeps_committed_rows() -> Result<()> {
            check_durability(|folder| {
                let database = Database::mariadb(folder)?;
                let temporary = database.query("SELECT @@tmpdir")?;
                assert_eq!(temporary, [[folder.join("mariadb").display().to_string()]]);
                Ok(database)
            })
        }

        #[test]
        fn postgres_keeps_committed_rows() -> Result<()> {
            check_durability(Database::postgres)
        }
    }
}
