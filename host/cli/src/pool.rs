//! `switchyard pool`: number pools.

mod events;
mod files;
mod shown;
mod watch;

use crate::output::{Failure, Output, Streams};
use crate::pages::{List, pages};
use crate::way::Way;
use clap::{Args, Subcommand};
use client::{Appliance, segment};
use model::parse_duration;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const EXITS: &str = "\
Exit status:
  0  done
  1  the appliance refused: standard error says why (empty, all-busy, all-down, all-resting, not-in-pool, wrong-state,
     other-ticket, resting, full, too-long, not-empty, no-pool), with --json as the appliance's own document
  2  the command line is wrong, the token is, or the appliance cannot be reached

Examples:
  export SWITCHYARD_TOKEN_FILE=/var/lib/switchyard/token
  switchyard pool create support --strategy sticky --quarantine 30s
  switchyard pool add support 8613800138000 8613800138001 --reg
  switchyard pool call support --holder crm --lease 5m        # prints number and ticket
  switchyard pool hangup support 8613800138000 --ticket 17
  switchyard pool list support --state busy+up
  switchyard pool watch support --json | jq .event";

/// Which pool, which numbers.
#[derive(Debug, Args)]
struct Numbers {
    /// The pool.
    pool: String,
    /// The numbers: 1 to 16 characters of 0-9, +, * and #.
    #[arg(required = true)]
    numbers: Vec<String>,
}

/// Arguments of `pool`.
#[derive(Debug, Args)]
#[command(after_help = EXITS)]
pub struct PoolCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    way: Way,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Make a pool, or give it other settings.
    #[command(after_help = "Example:\n  switchyard pool create support --strategy nearest --quarantine 1m")]
    Create {
        /// The pool.
        pool: String,
        /// Which number a caller gets who names none: longest-idle, random, weighted, sticky or nearest.
        #[arg(long, default_value = "longest-idle")]
        strategy: String,
        /// How long a number rests after a call.
        #[arg(long, value_parser = duration, default_value = "0s")]
        quarantine: Duration,
    },
    /// Take a pool away.
    Remove {
        /// The pool.
        pool: String,
        /// Also if it has numbers, whoever holds them.
        #[arg(long)]
        with_numbers: bool,
    },
    /// Put numbers into a pool, and make the pool if there is none. They are down until they are brought up.
    #[command(after_help = "Example:\n  switchyard pool add support 8613800138000 8613800138001 --reg")]
    Add {
        #[command(flatten)]
        which: Numbers,
        /// How often they are given beside others, where the strategy is weighted: 1 to 16.
        #[arg(long, default_value_t = 1)]
        weight: u8,
        /// Bring them up at once.
        #[arg(long)]
        reg: bool,
    },
    /// Take numbers out of a pool, whoever holds them.
    Del(Numbers),
    /// Bring numbers up: they can be used.
    Reg(Numbers),
    /// Bring numbers down: they cannot be used, and whoever holds one keeps it.
    Unreg(Numbers),
    /// Take a number; prints it and the ticket of its holding.
    #[command(
        after_help = "Example, in a shell:\n  read number ticket < <(switchyard pool call support --lease 30s)"
    )]
    Call {
        /// The pool.
        pool: String,
        /// This one; otherwise the pool's strategy chooses.
        #[arg(long)]
        number: Option<String>,
        /// Who takes it.
        #[arg(long, default_value = "")]
        holder: String,
        /// What for.
        #[arg(long, default_value = "")]
        reason: String,
        /// The user that the strategy sticky looks at; the holder otherwise.
        #[arg(long, default_value = "")]
        user: String,
        /// Whom it is for: the strategies sticky and nearest look at it.
        #[arg(long, default_value = "")]
        callee: String,
        /// After this long it is given back by itself: 30s, 5m, 1h, 2d.
        #[arg(long, value_parser = duration)]
        lease: Option<Duration>,
    },
    /// Give a number back.
    Hangup {
        /// The pool.
        pool: String,
        /// The number.
        number: String,
        /// Only if it is still held under this ticket; otherwise whoever holds it.
        #[arg(long)]
        ticket: Option<u64>,
    },
    /// Set a new end for a lease, counted from now.
    Renew {
        /// The pool.
        pool: String,
        /// The number.
        number: String,
        /// Only if it is still held under this ticket; otherwise whoever holds it.
        #[arg(long)]
        ticket: Option<u64>,
        /// How long from now; otherwise it has no end.
        #[arg(long, value_parser = duration)]
        lease: Option<Duration>,
    },
    /// List all pools, or the numbers of one.
    #[command(
        after_help = "Example:\n  switchyard pool list support --state busy+up --prefix 8613 --limit 1000"
    )]
    List {
        /// The pool.
        pool: Option<String>,
        /// Only numbers in this state: idle+up, idle+down, busy+up, busy+down.
        #[arg(long, requires = "pool")]
        state: Option<String>,
        /// Only numbers that begin with this.
        #[arg(long, requires = "pool")]
        prefix: Option<String>,
        /// How many numbers at most.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Show one pool, or one of its numbers.
    Show {
        /// The pool.
        pool: String,
        /// The number.
        number: Option<String>,
    },
    /// Tell what happens to a pool's numbers, as it happens, until interrupted.
    #[command(
        after_help = "Example, everything that is kept and then what comes:\n  switchyard pool watch support --from 0"
    )]
    Watch {
        /// The pool.
        pool: String,
        /// Begin with the entry of this number.
        #[arg(long)]
        from: Option<u64>,
        /// End after so many.
        #[arg(long)]
        count: Option<u64>,
    },
    /// Tell what has happened to a pool's numbers, newest first.
    History {
        /// The pool.
        pool: String,
        /// Only to this number.
        #[arg(long)]
        number: Option<String>,
        /// Only what was before the entry of this number.
        #[arg(long)]
        before: Option<u64>,
        /// How many entries at most.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Put the numbers of a file into a pool: CSV with number, state and weight, or a number a line, or JSON lines.
    #[command(after_help = "Example:\n  switchyard pool export old | switchyard pool import new -")]
    Import {
        /// The pool.
        pool: String,
        /// The file; - is standard input.
        file: PathBuf,
        /// csv or ndjson; otherwise as the file is called.
        #[arg(long, value_parser = ["csv", "ndjson"])]
        format: Option<String>,
        /// Bring all of them up at once.
        #[arg(long)]
        reg: bool,
    },
    /// Write the numbers of a pool into a file that can be imported.
    Export {
        /// The pool.
        pool: String,
        /// The file; otherwise standard output.
        file: Option<PathBuf>,
        /// csv or ndjson; otherwise as the file is called.
        #[arg(long, value_parser = ["csv", "ndjson"])]
        format: Option<String>,
    },
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "expected a time such as 500ms, 30s, 5m, 1h or 2d".to_owned())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The path of a pool, and of what belongs to it.
fn path(pool: &str, rest: &str) -> String {
    format!("/v1/pools/{}{rest}", segment(pool))
}

impl PoolCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, way } = self;
        way.ask(streams, |appliance, output| task.run(appliance, output))
    }
}

impl Task {
    fn run(self, appliance: &Appliance, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Create { pool, strategy, quarantine } => {
                let settings = json!({ "strategy": strategy, "quarantine-ms": millis(quarantine) });
                shown::pool(output, &appliance.put(&path(&pool, ""), &settings)?)
            }
            Self::Remove { pool, with_numbers } => {
                let query = if with_numbers { "?with-numbers=true" } else { "" };
                appliance.delete(&path(&pool, query))?;
                Ok(())
            }
            Self::Add { which: Numbers { pool, numbers }, weight, reg } => {
                let mut events = Vec::new();
                for number in numbers {
                    events.push(json!({ "event": "add", "number": number, "weight": weight }));
                    if reg {
                        events.push(json!({ "event": "reg", "number": number }));
                    }
                }
                let steps = if reg { 2 } else { 1 };
                events::all(appliance, output, &pool, &events, steps)
            }
            Self::Del(which) => events::each(appliance, output, "del", &which),
            Self::Reg(which) => events::each(appliance, output, "reg", &which),
            Self::Unreg(which) => events::each(appliance, output, "unreg", &which),
            Self::Call { pool, number, holder, reason, user, callee, lease } => {
                let mut event = json!({
                    "event": "call", "holder": holder, "reason": reason, "user": user, "callee": callee,
                });
                if let Some(number) = number {
                    event["number"] = number.into();
                }
                if let Some(lease) = lease {
                    event["lease-ms"] = millis(lease).into();
                }
                events::one(appliance, output, &pool, &event)
            }
            Self::Hangup { pool, number, ticket } => {
                let event = json!({ "event": "hangup", "number": number, "ticket": ticket });
                events::one(appliance, output, &pool, &event)
            }
            Self::Renew { pool, number, ticket, lease } => {
                let lease = lease.map(millis);
                let event =
                    json!({ "event": "renew", "number": number, "ticket": ticket, "lease-ms": lease });
                events::one(appliance, output, &pool, &event)
            }
            Self::List { pool: None, .. } => shown::pools(output, &appliance.get("/v1/pools")?),
            Self::List { pool: Some(pool), state, prefix, limit } => {
                let query = [("state", state), ("prefix", prefix)];
                let query: Vec<_> =
                    query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                let list = List { path: &path(&pool, "/numbers"), items: "numbers", next: "cursor" };
                let (numbers, next) = pages(appliance, list, &query, limit)?;
                shown::numbers(output, &numbers, &next)
            }
            Self::Show { pool, number: None } => shown::pool(output, &appliance.get(&path(&pool, ""))?),
            Self::Show { pool, number: Some(number) } => {
                let number = appliance.get(&path(&pool, &format!("/numbers/{}", segment(&number))))?;
                shown::number(output, &number)
            }
            Self::Watch { pool, from, count } => watch::watch(appliance, output, &pool, from, count),
            Self::History { pool, number, before, limit } => {
                let query = [("number", number), ("before", before.map(|before| before.to_string()))];
                let query: Vec<_> =
                    query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                let list = List { path: &path(&pool, "/history"), items: "entries", next: "before" };
                let (entries, next) = pages(appliance, list, &query, limit)?;
                shown::history(output, &entries, &next)
            }
            Self::Import { pool, file, format, reg } => {
                files::import(appliance, output, &pool, &file, format.as_deref(), reg)
            }
            Self::Export { pool, file, format } => {
                files::export(appliance, output, &pool, file.as_deref(), format.as_deref())
            }
        }
    }
}
