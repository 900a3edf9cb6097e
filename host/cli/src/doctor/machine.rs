//! The machine, as the configuration wants it.

use super::Facts;
use crate::attention::{Finding, Level};
use crate::table::{number, octets, plural};
use rustix::fs::Access;
use rustix::process::{Resource, getrlimit};
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// How long a data base may take to be reached.
const REACH: Duration = Duration::from_secs(5);
/// Files that the daemon has open besides connections: data bases, plugins, logs.
const OWN_FILES: u64 = 256;
/// How far files may be in the future: clocks of file servers are not ours. In milliseconds.
const FUTURE: u64 = 60_000;
/// 2025-01-01: this program is not older, so no clock that is right says less. In milliseconds.
const OLDEST: u64 = 1_735_689_600_000;
/// Shortest token that the appliance takes.
const TOKEN: usize = 32;

/// Looks at folder, disk, token, clock, limits and ports.
pub(super) fn look(facts: &Facts, is_running: bool, now: u64, found: &mut Vec<Finding>) {
    found.push(data(&facts.data));
    found.push(disk(facts));
    found.push(token(facts));
    found.push(clock(&facts.data, now));
    found.push(files(facts.connections));
    ports(facts, is_running, found);
}

/// The folder itself, or the nearest above it that is there.
fn nearest(path: &Path) -> PathBuf {
    let there = path.ancestors().find(|path| !path.as_os_str().is_empty() && path.exists());
    there.unwrap_or(Path::new(".")).to_owned()
}

fn data(data: &Path) -> Finding {
    let name = data.display();
    let about = "data";
    let there = nearest(data);
    if !there.is_dir() {
        let what = format!("{} is no folder", there.display());
        return Finding::new(
            Level::Error,
            about,
            what,
            "give another `data` in [appliance], or move the file away",
        );
    }
    if rustix::fs::access(&there, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        let what = format!("{} cannot be written by this user", there.display());
        let remedy = format!(
            "run this as the appliance's user; or, as root: install -d -m 700 -o switchyard -g switchyard {name}"
        );
        return Finding::new(Level::Error, about, what, remedy);
    }
    if there != data {
        return Finding::new(Level::Ok, about, format!("{name} is made at the first start"), "");
    }
    let mode = std::fs::metadata(data).map_or(0, |metadata| metadata.permissions().mode() & 0o777);
    if mode & 0o007 != 0 {
        let what = format!("{name} can be looked into by everybody on this machine (mode {mode:03o})");
        return Finding::new(Level::Warning, about, what, format!("chmod o-rwx {name}"));
    }
    Finding::new(Level::Ok, about, format!("{name} is there, and can be written"), "")
}

fn disk(facts: &Facts) -> Finding {
    let about = "disk";
    let there = nearest(&facts.data);
    let disk = match rustix::fs::statvfs(&there) {
        Ok(disk) => disk,
        Err(error) => {
            let what = format!("{}: {error}", there.display());
            return Finding::new(Level::Error, about, what, "look at the file system of the data folder");
        }
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let (shown, mark) = (octets(free), octets(facts.watermark));
    let remedy = "make room on the disk of the data folder, or lower free-space-watermark in [appliance]";
    if disk.f_files > 0 && disk.f_favail == 0 {
        let what = format!("{} has no inode left", there.display());
        return Finding::new(Level::Error, about, what, "remove files from that file system");
    }
    if free < facts.watermark {
        let what = format!("{shown} are free, and below {mark} submissions are refused");
        return Finding::new(Level::Error, about, what, remedy);
    }
    if free < facts.watermark.saturating_mul(2) {
        let what = format!("{shown} are free; below {mark} submissions are refused");
        return Finding::new(Level::Warning, about, what, remedy);
    }
    Finding::new(Level::Ok, about, format!("{shown} are free"), "")
}

fn token(facts: &Facts) -> Finding {
    let about = "token";
    let path = facts.token_file.display();
    let text = match std::fs::read_to_string(&facts.token_file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Finding::new(Level::Ok, about, format!("{path} is made at the first start"), "");
        }
        Err(error) => {
            let remedy = "run this as the appliance's user, or make yourself a token: switchyard token make";
            return Finding::new(Level::Warning, about, format!("{path}: {error}"), remedy);
        }
    };
    if text.trim().len() < TOKEN {
        let what =
            format!("{path} holds fewer than {TOKEN} characters: the appliance does not start with it");
        return Finding::new(Level::Error, about, what, "remove it, and a new one is made at the next start");
    }
    let mode =
        std::fs::metadata(&facts.token_file).map_or(0, |metadata| metadata.permissions().mode() & 0o777);
    if mode & 0o077 != 0 {
        let what =
            format!("{path} can be read by others (mode {mode:03o}), and whoever has it may do everything");
        let remedy = format!("chmod 600 {path}; if somebody may have read it, remove it and start anew");
        return Finding::new(Level::Warning, about, what, remedy);
    }
    Finding::new(Level::Ok, about, format!("{path} can be read, by its owner alone"), "")
}

fn clock(data: &Path, now: u64) -> Finding {
    let about = "clock";
    let remedy = "set the clock, and keep it right: apt-get install chrony";
    if now < OLDEST {
        let what = "this machine's clock says that it is before 2025";
        return Finding::new(Level::Error, about, what, remedy);
    }
    let entries = std::fs::read_dir(data).into_iter().flatten().flatten();
    let written = entries.filter_map(|entry| entry.metadata().ok()?.modified().ok());
    let written = written.filter_map(|at| at.duration_since(UNIX_EPOCH).ok());
    let newest = written.max().map_or(0, |at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
    if newest > now.saturating_add(FUTURE) {
        let ahead = crate::table::span(&(newest - now).into());
        let what = format!("files in {} are {ahead} in the future: the clock went back", data.display());
        return Finding::new(Level::Error, about, what, remedy);
    }
    Finding::new(Level::Ok, about, crate::table::moment(&now.into()), "")
}

fn files(connections: u64) -> Finding {
    let about = "open files";
    let needed = connections.saturating_add(OWN_FILES);
    // None is no limit.
    match getrlimit(Resource::Nofile).current {
        Some(limit) if limit < needed => Finding::new(
            Level::Warning,
            about,
            format!(
                "here {} may be open at a time, and all connections that are allowed would take {}",
                number(limit),
                number(needed)
            ),
            "LimitNOFILE=1048576 in the service's unit, or ulimit -n before the start",
        ),
        limit => {
            let limit = limit.map_or_else(|| "any number".to_owned(), number);
            Finding::new(Level::Ok, about, format!("{limit} may be open at a time"), "")
        }
    }
}

fn ports(facts: &Facts, is_running: bool, found: &mut Vec<Finding>) {
    let before = found.len();
    let mut taken = 0;
    for (name, address) in &facts.listens {
        let Err(error) = TcpListener::bind(address) else { continue };
        let (what, remedy) = match error.kind() {
            // That is how it should be.
            ErrorKind::AddrInUse if is_running => {
                taken += 1;
                continue;
            }
            ErrorKind::AddrInUse => (
                "is taken by another program".to_owned(),
                format!(
                    "ss -ltnp 'sport = :{}' says by which; stop that, or give another `listen`",
                    address.port()
                ),
            ),
            ErrorKind::AddrNotAvailable => (
                "is no address of this machine".to_owned(),
                "give an address of this machine as `listen`, or 0.0.0.0 for all of them".to_owned(),
            ),
            ErrorKind::PermissionDenied => (
                "needs more rights than this user has".to_owned(),
                "give a port from 1024 on, or AmbientCapabilities=CAP_NET_BIND_SERVICE in the unit"
                    .to_owned(),
            ),
            _ => (error.to_string(), "give another `listen`".to_owned()),
        };
        found.push(Finding::new(Level::Error, "ports", format!("{address} ({name}) {what}"), remedy));
    }
    if found.len() == before {
        let ports = |count: usize| plural(count as u64, "port is", "ports are");
        let free = facts.listens.len() - taken;
        let what = match (taken, free) {
            (0, free) => format!("{} free", ports(free)),
            (taken, 0) => format!("{} taken by the appliance, which is running", ports(taken)),
            (taken, free) => {
                format!("{} taken by the appliance, which is running; {} free", ports(taken), ports(free))
            }
        };
        found.push(Finding::new(Level::Ok, "ports", what, ""));
    }
}

/// Whether the archive's data base can be reached from here.
pub(super) fn archive(facts: &Facts, found: &mut Vec<Finding>) {
    let Some(place) = &facts.archive else { return };
    let reached = place.to_socket_addrs().and_then(|addresses| {
        let mut error = std::io::Error::new(ErrorKind::NotFound, "there is no such host");
        for address in addresses {
            match TcpStream::connect_timeout(&address, REACH) {
                Ok(_) => return Ok(()),
                Err(wrong) => error = wrong,
            }
        }
        Err(error)
    });
    found.push(match reached {
        Ok(()) => Finding::new(Level::Ok, "archive", format!("{place} can be reached"), ""),
        Err(error) => Finding::new(
            Level::Error,
            "archive",
            format!("{place}: {error}"),
            "start the data base, or correct [archive] url; until then, what has ended waits on the disk",
        ),
    });
}
