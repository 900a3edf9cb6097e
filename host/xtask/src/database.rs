//! Data base servers of Debian's packages, private to one test or measurement: their own folder, their own port of
//! loopback, their own settings. The system's own servers are neither used nor touched.

use crate::appliance::free_port;
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

/// User, password and the name of the empty data base; a made-up secret that protects nothing.
const NAME: &str = "switchyard";

/// Longest time that starting or stopping may take; recovery after a kill is in it.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Mariadb,
    Postgres,
}

/// A data base server; killed when dropped. Its data stay in the folder that it was given.
#[derive(Debug)]
pub struct Database {
    kind: Kind,
    /// Where the server's programs are.
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    /// Root may not run PostgreSQL and should not run MariaDB: user and group to run as instead.
    identity: Option<(u32, u32)>,
    /// `None` while it is stopped.
    process: Option<Child>,
}

/// Where MariaDB's server is, if it is installed.
pub fn mariadb_programs() -> Option<PathBuf> {
    let folder = PathBuf::from("/usr/sbin");
    folder.join("mariadbd").exists().then_some(folder)
}

/// Where the programs of the newest installed PostgreSQL are; Debian keeps the server's out of the path.
pub fn postgres_programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok);
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|version| version.path()).filter(|path| path.join("bin/initdb").exists());
    Some(newest.max_by_key(number)?.join("bin"))
}

impl Database {
    /// An empty MariaDB, running. Makes a folder `mariadb` in this one.
    ///
    /// # Errors
    /// If MariaDB is not installed, or does not start; the end of its log is in the error.
    pub fn mariadb(folder: &Path) -> Result<Self> {
        let programs =
            mariadb_programs().context("mariadb-server is not installed; run: cargo xtask setup")?;
        Self::new(Kind::Mariadb, programs, folder)
    }

    /// An empty PostgreSQL, running. Makes a folder `postgres` in this one.
    ///
    /// # Errors
    /// If PostgreSQL is not installed, or does not start; the end of its log is in the error.
    pub fn postgres(folder: &Path) -> Result<Self> {
        let programs = postgres_programs().context("postgresql is not installed; run: cargo xtask setup")?;
        Self::new(Kind::Postgres, programs, folder)
    }

    fn new(kind: Kind, programs: PathBuf, folder: &Path) -> Result<Self> {
        let (name, user) = match kind {
            Kind::Mariadb => ("mariadb", "mysql"),
            Kind::Postgres => ("postgres", "postgres"),
        };
        fs::create_dir_all(folder)?;
        let folder = folder.canonicalize()?.join(name);
        fs::create_dir(&folder).with_context(|| format!("making {}", folder.display()))?;
        let identity = if geteuid().is_root() { Some(identity(user)?) } else { None };
        if let Some((user, group)) = identity {
            std::os::unix::fs::chown(&folder, Some(user), Some(group))?;
            let_pass(&folder)?;
        }
        let mut database = Self { kind, programs, folder, port: free_port()?, identity, process: None };
        database.initialise().with_context(|| format!("initialising {}", database.folder.display()))?;
        database.start()?;
        if kind == Kind::Postgres {
            database.create(NAME)?;
        }
        Ok(database)
    }

    /// The URL of the empty data base, with user and password.
    pub fn url(&self) -> String {
        self.url_of(NAME)
    }

    /// The port of loopback where it listens; the same after every start.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The end of what the server wrote to its log.
    pub fn log(&self) -> String {
        let text = fs::read(self.log_file()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<_> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Makes one more empty data base, and gives its URL. The name is put into SQL as it is.
    pub fn create(&self, name: &str) -> Result<String> {
        let administrative = if self.kind == Kind::Mariadb { "mysql" } else { "postgres" };
        self.query_in(administrative, &format!("CREATE DATABASE {name}"))?;
        Ok(self.url_of(name))
    }

    /// Rows of the empty data base of the start, by the server's own command line client: a look that owes nothing to
    /// the code under test. NULL is an empty text from PostgreSQL and the text `NULL` from MariaDB.
    pub fn query(&self, sql: &str) -> Result<Vec<Vec<String>>> {
        self.query_in(NAME, sql)
    }

    /// Like [`Database::query`], in a data base made by [`Database::create`].
    pub fn query_in(&self, name: &str, sql: &str) -> Result<Vec<Vec<String>>> {
        let mut client = match self.kind {
            Kind::Mariadb => {
                let mut client = self.client("mariadb");
                client.args(["--batch", "--skip-column-names", "--default-character-set=utf8mb4"]);
                client.args(["--execute", sql, name]);
                client
            }
            Kind::Postgres => {
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
        let output = client.output().context("running the data base's client")?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{sql}: {complaint}");
        let text = String::from_utf8(output.stdout).context("the client's answer is no UTF-8")?;
        Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
    }

    /// Starts it again with the same data on the same port, and waits until it answers. Does nothing if it runs.
    ///
    /// # Errors
    /// If it ends before it answers, or does not answer for a minute; the end of its log is in the error.
    pub fn start(&mut self) -> Result<()> {
        if self.process.is_some() {
            return Ok(());
        }
        let deadline = Instant::now() + PATIENCE;
        let mut process = self.serve()?;
        let pause = crate::load::Stop::default();
        loop {
            if let Some(status) = process.try_wait()? {
                bail!("{} ended with {status}:\n{}", self.folder.display(), self.log());
            }
            if self.answers()? {
                self.process = Some(process);
                return Ok(());
            }
            if Instant::now() > deadline {
                // What never came up has nothing to lose.
                let _ = process.kill();
                let _ = process.wait();
                bail!("{} does not answer after {PATIENCE:?}:\n{}", self.folder.display(), self.log());
            }
            pause.pause(Duration::from_millis(50));
        }
    }

    /// Stops it as an admin does: what is under way is broken off, what is committed is written out.
    ///
    /// # Errors
    /// If it has not ended after a minute; it runs on then.
    pub fn stop(&mut self) -> Result<()> {
        // PostgreSQL's SIGTERM waits for its clients to leave, which a pool of connections never does.
        self.end(if self.kind == Kind::Mariadb { Signal::TERM } else { Signal::INT })
    }

    /// Ends it as a crash does: the next start recovers from its log.
    ///
    /// PostgreSQL's is an "immediate shutdown", the same to the data as SIGKILL: after that, its children would hold the
    /// shared memory for a while, and a new server would refuse to start.
    pub fn kill(&mut self) -> Result<()> {
        self.end(if self.kind == Kind::Mariadb { Signal::KILL } else { Signal::QUIT })
    }

    fn end(&mut self, signal: Signal) -> Result<()> {
        let Some(process) = &mut self.process else { return Ok(()) };
        kill_process(Pid::from_child(process), signal)?;
        ensure!(wait(process)?.is_some(), "{} does not end on {signal:?}", self.folder.display());
        self.process = None;
        Ok(())
    }

    fn url_of(&self, name: &str) -> String {
        let scheme = if self.kind == Kind::Mariadb { "mysql" } else { "postgres" };
        format!("{scheme}://{NAME}:{NAME}@{}:{}/{name}", Ipv4Addr::LOCALHOST, self.port)
    }

    fn log_file(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A program that runs as the server's user, in the server's folder.
    fn server(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).stdin(Stdio::null()).env("LC_ALL", "C").env("TZ", "UTC");
        // A MariaDB that starts removes the temporary tables of every other from a folder that they share.
        command.env("TMPDIR", &self.folder);
        if let Some((user, group)) = self.identity {
            // Says nothing about the other groups of root: std drops those with the user.
            command.uid(user).gid(group).env("HOME", &self.folder);
        }
        command
    }

    /// A client of this server, that reads no configuration of the user.
    fn client(&self, program: &str) -> Command {
        let port = self.port.to_string();
        let mut command = match self.kind {
            Kind::Mariadb => {
                let mut command = Command::new(program);
                command.args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1", "--port", &port]);
                command.args(["--user", NAME]).env("MYSQL_PWD", NAME);
                command
            }
            Kind::Postgres => {
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
            Kind::Mariadb => {
                let mut command = self.server("mariadb-install-db");
                command.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db"]);
                command.arg("--skip-name-resolve").arg(argument("--datadir=", &self.data()));
                // Read at every start, before the first connection is taken.
                let sql = format!(
                    "CREATE DATABASE IF NOT EXISTS {NAME};\n\
                     CREATE USER IF NOT EXISTS '{NAME}'@'%' IDENTIFIED BY '{NAME}';\n\
                     GRANT ALL ON *.* TO '{NAME}'@'%' WITH GRANT OPTION;\n"
                );
                fs::write(self.folder.join("init.sql"), sql)?;
                command
            }
            Kind::Postgres => {
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
            Kind::Mariadb => {
                let mut command = self.server(self.programs.join("mariadbd"));
                command.arg("--no-defaults").arg(argument("--datadir=", &self.data()));
                command.arg(argument("--init-file=", &self.folder.join("init.sql")));
                // A path in the data folder, since the whole one may be longer than a socket's may be.
                command.args(["--socket=socket", "--bind-address=127.0.0.1", "--skip-name-resolve"]);
                command.arg(format!("--port={}", self.port));
                command.args(["--innodb-flush-log-at-trx-commit=1", "--skip-log-bin"]);
                // As Debian's own configuration has it; MariaDB's built-in default is latin1.
                command.args(["--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci"]);
                command.args(["--innodb-buffer-pool-size=128M", "--performance-schema=OFF"]);
                command
            }
            Kind::Postgres => {
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

    /// Whether it takes connections and questions.
    fn answers(&self) -> Result<bool> {
        let mut command = match self.kind {
            Kind::Mariadb => {
                let mut command = self.client("mariadb-admin");
                command.arg("ping");
                command
            }
            Kind::Postgres => self.client("pg_isready"),
        };
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command.status().with_context(|| format!("running {command:?}"))?.success())
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Already gone is as good.
        let _ = self.kill();
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

/// Waits for the end; `None` if it does not come.
fn wait(process: &mut Child) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + PATIENCE;
    let pause = crate::load::Stop::default();
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

/// User and group of a name.
fn identity(user: &str) -> Result<(u32, u32)> {
    let number = |what: &str| -> Result<u32> {
        let output = Command::new("id").args([what, user]).output().context("running id")?;
        ensure!(output.status.success(), "there is no user {user}, which its Debian package makes");
        Ok(String::from_utf8(output.stdout)?.trim().parse()?)
    };
    Ok((number("-u")?, number("-g")?))
}

/// Lets another user pass through the folders above this one, if they are ours and temporary: others are the caller's.
fn let_pass(folder: &Path) -> Result<()> {
    let temporary = std::env::temp_dir().canonicalize()?;
    for above in folder.ancestors().skip(1) {
        let metadata = fs::metadata(above)?;
        let mode = metadata.permissions().mode();
        if mode & 0o001 != 0 {
            continue;
        }
        ensure!(
            above != temporary && above.starts_with(&temporary) && metadata.uid() == geteuid().as_raw(),
            "started by root, the data base runs as another user, who may not pass through {}; take a folder in {}",
            above.display(),
            temporary.display()
        );
        fs::set_permissions(above, fs::Permissions::from_mode(mode | 0o011))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row outlives a crash and a stop, and the server comes back where it was.
    fn keeps_what_is_committed(begin: impl Fn(&Path) -> Result<Database>) -> Result<()> {
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
    fn mariadb_keeps_what_is_committed() -> Result<()> {
        keeps_what_is_committed(|folder| {
            let database = Database::mariadb(folder)?;
            let temporary = database.query("SELECT @@tmpdir")?;
            assert_eq!(temporary, [[folder.join("mariadb").display().to_string()]]);
            Ok(database)
        })
    }

    #[test]
    fn postgres_keeps_what_is_committed() -> Result<()> {
        keeps_what_is_committed(Database::postgres)
    }
}
