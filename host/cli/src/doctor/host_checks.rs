//! Checks of the machine: data directory, disk, token file, clock, limits and ports.

use crate::attention::{Finding, Level};
use crate::context::ConfigFacts;
use crate::format::{number, octets, plural};
use rustix::fs::Access;
use rustix::process::{Resource, getrlimit};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// The timeout of a connection to a database.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The number of files that the daemon opens besides connections: databases, plugins, logs.
const OWN_FILES: u64 = 256;
/// Maximum difference of a file's time into the future, in milliseconds: clocks of file servers may differ.
const MAX_CLOCK_SKEW_MS: u64 = 60_000;
/// 2025-01-01, in milliseconds since the epoch: an earlier clock is wrong.
const EARLIEST_CLOCK_MS: u64 = 1_735_689_600_000;
/// The minimum length of the root token.
const MIN_TOKEN_LENGTH: usize = 32;

/// Runs all checks of the machine.
pub(super) fn check(facts: &ConfigFacts, is_running: bool, now: u64, found: &mut Vec<Finding>) {
    found.push(data(&facts.data));
    let remedy = "switchyard journal verify --data DIR tells where";
    found.extend(facts.journal.as_ref().map(|state| stored("journal", state, remedy)));
    let remedy =
        "stop the appliance and restore a backup, with the journal since; see the manual, backup and upgrade";
    found.extend(facts.tables.as_ref().map(|state| stored("tables", state, remedy)));
    let remedy =
        "put the files back; without their keys, encrypted texts cannot be read; see the manual, privacy";
    found.extend(facts.text_keys.as_ref().map(|state| stored("text keys", state, remedy)));
    found.push(disk(facts));
    found.push(token(facts));
    found.push(clock(&facts.data, now));
    found.push(open_files(facts.connections));
    ports(facts, is_running, found);
}

/// The path itself, or its nearest ancestor that exists.
fn nearest_existing(path: &Path) -> PathBuf {
    let existing = path.ancestors().find(|path| !path.as_os_str().is_empty() && path.exists());
    existing.unwrap_or(Path::new(".")).to_owned()
}

fn data(data: &Path) -> Finding {
    let name = data.display();
    let about = "data";
    let existing = nearest_existing(data);
    if !existing.is_dir() {
        let what = format!("{} is not a directory", existing.display());
        return Finding::new(
            Level::Error,
            about,
            what,
            "set another `data` in [appliance], or move the file away",
        );
    }
    if rustix::fs::access(&existing, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let what = format!("{} is not writable by this user", existing.display());
        let remedy = format!(
            "run this as the appliance's user; or, as root: install -d -m 700 -o switchyard -g switchyard {name}"
        );
        return Finding::new(Level::Error, about, what, remedy);
    }
    if existing != data {
        return Finding::new(Level::Ok, about, format!("{name} is created at the first start"), "");
    }
    let mode = std::fs::metadata(data).map_or(0, |metadata| metadata.permissions().mode() & 0o777);
    if mode & 0o007 != 0 {
        let what = format!("{name} is accessible to all users of this machine (mode {mode:03o})");
        return Finding::new(Level::Warning, about, what, format!("chmod o-rwx {name}"));
    }
    Finding::new(Level::Ok, about, format!("{name} exists and is writable"), "")
}

/// A finding about a part of the data directory.
fn stored(about: &'static str, state: &Result<String, String>, remedy: &str) -> Finding {
    match state {
        Ok(what) => Finding::new(Level::Ok, about, what.clone(), ""),
        Err(what) => Finding::new(Level::Error, about, what.clone(), remedy),
    }
}

fn disk(facts: &ConfigFacts) -> Finding {
    let about = "disk";
    let existing = nearest_existing(&facts.data);
    let disk = match rustix::fs::statvfs(&existing) {
        Ok(disk) => disk,
        Err(error) => {
            let what = format!("{}: {error}", existing.display());
            return Finding::new(Level::Error, about, what, "check the file system of the data directory");
        }
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let (shown, mark) = (octets(free), octets(facts.free_space_watermark));
    let remedy = "free space on the disk of the data directory, or lower free-space-watermark in [appliance]";
    if disk.f_files > 0 && disk.f_favail == 0 {
        let what = format!("{} has no inode left", existing.display());
        return Finding::new(Level::Error, about, what, "remove files from that file system");
    }
    if free < facts.free_space_watermark {
        let what = format!("{shown} are free, less than {mark}: submissions are refused");
        return Finding::new(Level::Error, about, what, remedy);
    }
    if free < facts.free_space_watermark.saturating_mul(2) {
        let what = format!("{shown} are free; below {mark} submissions are refused");
        return Finding::new(Level::Warning, about, what, remedy);
    }
    Finding::new(Level::Ok, about, format!("{shown} are free"), "")
}

fn token(facts: &ConfigFacts) -> Finding {
    let about = "token";
    let path = facts.token_file.display();
    let text = match std::fs::read_to_string(&facts.token_file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Finding::new(Level::Ok, about, format!("{path} is created at the first start"), "");
        }
        Err(error) => {
            let remedy = "run this as the appliance's user, or create a token: switchyard token make";
            return Finding::new(Level::Warning, about, format!("{path}: {error}"), remedy);
        }
    };
    if text.trim().len() < MIN_TOKEN_LENGTH {
        let what = format!(
            "{path} holds fewer than {MIN_TOKEN_LENGTH} characters: the appliance does not start with it"
        );
        return Finding::new(Level::Error, about, what, "remove it; a new one is created at the next start");
    }
    let mode =
        std::fs::metadata(&facts.token_file).map_or(0, |metadata| metadata.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        let what = format!(
            "{path} is readable by other users (mode {mode:03o}), and the root token has all permissions"
        );
        let remedy = format!("chmod 600 {path}; if another user may have read it, remove it and restart");
        return Finding::new(Level::Warning, about, what, remedy);
    }
    Finding::new(Level::Ok, about, format!("{path} is readable by its owner only"), "")
}

fn clock(data: &Path, now: u64) -> Finding {
    let about = "clock";
    let remedy = "set the clock, and synchronise it: apt-get install chrony";
    if now < EARLIEST_CLOCK_MS {
        let what = "the clock of this machine is before 2025";
        return Finding::new(Level::Error, about, what, remedy);
    }
    let entries = std::fs::read_dir(data).into_iter().flatten().flatten();
    let written = entries.filter_map(|entry| entry.metadata().ok()?.modified().ok());
    let written = written.filter_map(|at| at.duration_since(UNIX_EPOCH).ok());
    let newest = written.max().map_or(0, |at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
    if newest > now.saturating_add(MAX_CLOCK_SKEW_MS) {
        let ahead = crate::format::duration_text(&(newest - now));
        let what = format!("files in {} are {ahead} in the future: the clock went back", data.display());
        return Finding::new(Level::Error, about, what, remedy);
    }
    Finding::new(Level::Ok, about, crate::format::timestamp(&now), "")
}

fn open_files(connections: u64) -> Finding {
    let about = "open files";
    let needed = connections.saturating_add(OWN_FILES);
    // `None` means no limit.
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < needed => Finding::new(
            Level::Warning,
            about,
            format!(
                "the limit is {}, and the maximum number of connections needs {}",
                number(limit),
                number(needed)
            ),
            "LimitNOFILE=1048576 in the service's unit, or ulimit -n before the start",
        ),
        limit => {
            let limit = limit.map_or_else(|| "no limit".to_owned(), number);
            Finding::new(Level::Ok, about, format!("limit: {limit}"), "")
        }
    }
}

fn ports(facts: &ConfigFacts, is_running: bool, found: &mut Vec<Finding>) {
    let before = found.len();
    let mut taken = 0;
    for (name, address) in &facts.listens {
        let Err(error) = TcpListener::bind(address) else { continue };
        let (what, remedy) = match error.kind() {
            // The running appliance uses the port.
            ErrorKind::AddrInUse if is_running => {
                taken += 1;
                continue;
            }
            ErrorKind::AddrInUse => (
                "is in use by another program".to_owned(),
                format!(
                    "ss -ltnp 'sport = :{}' shows which; stop it, or set another `listen`",
                    address.port()
                ),
            ),
            ErrorKind::AddrNotAvailable => (
                "is not an address of this machine".to_owned(),
                "set an address of this machine as `listen`, or 0.0.0.0 for all of them".to_owned(),
            ),
            ErrorKind::PermissionDenied => (
                "needs more privileges than this user has".to_owned(),
                "use a port from 1024 on, or set AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit"
                    .to_owned(),
            ),
            _ => (error.to_string(), "set another `listen`".to_owned()),
        };
        found.push(Finding::new(Level::Error, "ports", format!("{address} ({name}) {what}"), remedy));
    }
    if found.len() == before {
        let ports = |count: usize| plural(count as u64, "port is", "ports are");
        let free = facts.listens.len() - taken;
        let what = match (taken, free) {
            (0, free) => format!("{} free", ports(free)),
            (taken, 0) => format!("{} in use by the running appliance", ports(taken)),
            (taken, free) => {
                format!("{} in use by the running appliance; {} free", ports(taken), ports(free))
            }
        };
        found.push(Finding::new(Level::Ok, "ports", what, ""));
    }
}

/// Checks whether the archive's database can be reached.
pub(super) fn archive(facts: &ConfigFacts, found: &mut Vec<Finding>) {
    let Some(address) = &facts.archive else { return };
    let reached = address.to_socket_addrs().and_then(|addresses| {
        let mut error = std::io::Error::new(ErrorKind::NotFound, "there is no such host");
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(_) => return Ok(()),
                Err(invalid) => error = invalid,
            }
        }
        Err(error)
    });
    found.push(match reached {
        Ok(()) => Finding::new(Level::Ok, "archive", format!("{address} can be reached"), ""),
        Err(error) => Finding::new(
            Level::Error,
            "archive",
            format!("{address}: {error}"),
            "start the database, or correct [archive] url; until then, finished messages wait on the disk",
        ),
    });
}
