//! `switchyard pool`: number pools.

mod events;
mod files;
mod render;
mod watch;

use crate::global_args::GlobalArgs;
use crate::output::{Failure, Output, Streams};
use crate::paged_list::{Page, fetch_pages};
use api::{
    PoolEntryView, PoolEventRequest, PoolHistoryPage, PoolNumberView, PoolNumbersPage, PoolSettingsRequest,
};
use clap::{Args, Subcommand};
use client::{ApiClient, encode_segment};
use model::{Strategy, parse_duration};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const EXITS: &str = "\
Exit status:
  0  done
  1  the appliance refused: standard error says why (empty, all-busy, all-down, all-resting, not-in-pool, wrong-state,
     other-ticket, resting, full, too-long, not-empty, no-pool), with --json as the appliance's own document
  2  the command line or the token is wrong, or the appliance cannot be reached

Examples:
  export SWITCHYARD_TOKEN_FILE=/var/lib/switchyard/token
  switchyard pool create support --strategy sticky --quarantine 30s
  switchyard pool add support 8613800138000 8613800138001 --reg
  switchyard pool call support --holder crm --lease 5m        # prints number and ticket
  switchyard pool hangup support 8613800138000 --ticket 17
  switchyard pool list support --state busy+up
  switchyard pool watch support --json | jq .event";

/// A pool and some of its numbers.
#[derive(Debug, Args)]
struct NumberArgs {
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
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Create a pool, or change its settings.
    #[command(after_help = "Example:\n  switchyard pool create support --strategy nearest --quarantine 1m")]
    Create {
        /// The pool.
        pool: String,
        /// The strategy that selects a number: longest-idle, random, weighted, sticky or nearest.
        #[arg(long, default_value = "longest-idle")]
        strategy: Strategy,
        /// Quarantine of a number after its release.
        #[arg(long, value_parser = duration, default_value = "0s")]
        quarantine: Duration,
    },
    /// Remove a pool.
    Remove {
        /// The pool.
        pool: String,
        /// Remove it even if it has numbers, leased or not.
        #[arg(long)]
        with_numbers: bool,
    },
    /// Add numbers to a pool, and create the pool if it does not exist. Numbers are down until they are brought up.
    #[command(after_help = "Example:\n  switchyard pool add support 8613800138000 8613800138001 --reg")]
    Add {
        #[command(flatten)]
        which: NumberArgs,
        /// Their weight for the strategy weighted: 1 to 16.
        #[arg(long, default_value_t = 1)]
        weight: u8,
        /// Bring them up at once.
        #[arg(long)]
        reg: bool,
    },
    /// Remove numbers from a pool, leased or not.
    Del(NumberArgs),
    /// Bring numbers up, so that they can be acquired.
    Reg(NumberArgs),
    /// Bring numbers down, so that they cannot be acquired; leases continue.
    Unreg(NumberArgs),
    /// Acquire a number; prints the number and the ticket of its lease.
    #[command(
        after_help = "Example, in a shell:\n  read number ticket < <(switchyard pool call support --lease 30s)"
    )]
    Call {
        /// The pool.
        pool: String,
        /// The number; the pool's strategy chooses by default.
        #[arg(long)]
        number: Option<String>,
        /// The holder of the lease.
        #[arg(long, default_value = "")]
        holder: String,
        /// The reason.
        #[arg(long, default_value = "")]
        reason: String,
        /// The user for the strategy sticky; the holder by default.
        #[arg(long, default_value = "")]
        user: String,
        /// The called number, for the strategies sticky and nearest.
        #[arg(long, default_value = "")]
        callee: String,
        /// The lease ends automatically after this time: 30s, 5m, 1h, 2d.
        #[arg(long, value_parser = duration)]
        lease: Option<Duration>,
    },
    /// Release a number.
    Hangup {
        /// The pool.
        pool: String,
        /// The number.
        number: String,
        /// Only if the lease has this ticket; any lease by default.
        #[arg(long)]
        ticket: Option<u64>,
    },
    /// Renew a lease, counted from now.
    Renew {
        /// The pool.
        pool: String,
        /// The number.
        number: String,
        /// Only if the lease has this ticket; any lease by default.
        #[arg(long)]
        ticket: Option<u64>,
        /// The time from now; without it, the lease does not end automatically.
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
        /// Only numbers that begin with this prefix.
        #[arg(long, requires = "pool")]
        prefix: Option<String>,
        /// Maximum number of numbers.
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
    /// Follow the events of a pool until interrupted.
    #[command(
        after_help = "Example, all stored entries and then new ones:\n  switchyard pool watch support --from 0"
    )]
    Watch {
        /// The pool.
        pool: String,
        /// Begin with the entry with this id.
        #[arg(long)]
        from: Option<u64>,
        /// Exit after this many entries.
        #[arg(long)]
        count: Option<u64>,
    },
    /// List the events of a pool, newest first.
    History {
        /// The pool.
        pool: String,
        /// Only events of this number.
        #[arg(long)]
        number: Option<String>,
        /// Only entries before the entry with this id.
        #[arg(long)]
        before: Option<u64>,
        /// Maximum number of entries.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Import numbers from a file: CSV with number, state and weight, one number a line, or JSON lines.
    #[command(after_help = "Example:\n  switchyard pool export old | switchyard pool import new -")]
    Import {
        /// The pool.
        pool: String,
        /// The file; - is standard input.
        file: PathBuf,
        /// csv or ndjson; by default, the file's extension decides.
        #[arg(long, value_parser = ["csv", "ndjson"])]
        format: Option<String>,
        /// Bring all numbers up at once.
        #[arg(long)]
        reg: bool,
    },
    /// Export the numbers of a pool to a file.
    Export {
        /// The pool.
        pool: String,
        /// The file; standard output by default.
        file: Option<PathBuf>,
        /// csv or ndjson; by default, the file's extension decides.
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

/// The API path of a pool, or of a resource below it.
fn path(pool: &str, rest: &str) -> String {
    format!("/v1/pools/{}{rest}", encode_segment(pool))
}

impl Page for PoolNumbersPage {
    type Item = PoolNumberView;
    const NEXT: &str = "cursor";

    fn items(&mut self) -> &mut Vec<PoolNumberView> {
        &mut self.numbers
    }

    fn next(&self) -> Option<String> {
        self.next.map(|next| next.to_string())
    }
}

impl Page for PoolHistoryPage {
    type Item = PoolEntryView;
    const NEXT: &str = "before";

    fn items(&mut self) -> &mut Vec<PoolEntryView> {
        &mut self.entries
    }

    fn next(&self) -> Option<String> {
        self.next.map(|next| next.to_string())
    }
}

impl PoolCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| task.run(api, output))
    }
}

impl Task {
    fn run(self, api: &ApiClient, output: &Output) -> Result<(), Failure> {
        match self {
            Self::Create { pool, strategy, quarantine } => {
                let settings = PoolSettingsRequest { strategy, quarantine_ms: millis(quarantine) };
                render::pool(output, &api.call("PUT", &path(&pool, ""), &settings)?)
            }
            Self::Remove { pool, with_numbers } => {
                let query = if with_numbers { "?with-numbers=true" } else { "" };
                api.delete(&path(&pool, query))?;
                Ok(())
            }
            Self::Add { which: NumberArgs { pool, numbers }, weight, reg } => {
                let mut events = Vec::new();
                for number in numbers {
                    events.push(PoolEventRequest::Add { number: number.clone(), weight: Some(weight) });
                    if reg {
                        events.push(PoolEventRequest::Reg { number });
                    }
                }
                let steps = if reg { 2 } else { 1 };
                events::send_batch(api, output, &pool, &events, steps)
            }
            Self::Del(which) => {
                events::send_for_each(api, output, which, |number| PoolEventRequest::Del { number })
            }
            Self::Reg(which) => {
                events::send_for_each(api, output, which, |number| PoolEventRequest::Reg { number })
            }
            Self::Unreg(which) => {
                events::send_for_each(api, output, which, |number| PoolEventRequest::Unreg { number })
            }
            Self::Call { pool, number, holder, reason, user, callee, lease } => {
                let lease_ms = lease.map(millis);
                let event = PoolEventRequest::Call { number, holder, reason, user, callee, lease_ms };
                events::send_event(api, output, &pool, &event)
            }
            Self::Hangup { pool, number, ticket } => {
                events::send_event(api, output, &pool, &PoolEventRequest::Hangup { number, ticket })
            }
            Self::Renew { pool, number, ticket, lease } => {
                let event = PoolEventRequest::Renew { number, ticket, lease_ms: lease.map(millis) };
                events::send_event(api, output, &pool, &event)
            }
            Self::List { pool: None, .. } => render::pools(output, &api.read("/v1/pools")?),
            Self::List { pool: Some(pool), state, prefix, limit } => {
                let query = [("state", state), ("prefix", prefix)];
                let query: Vec<_> =
                    query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                render::numbers(output, &fetch_pages(api, &path(&pool, "/numbers"), &query, limit)?)
            }
            Self::Show { pool, number: None } => render::pool(output, &api.read(&path(&pool, ""))?),
            Self::Show { pool, number: Some(number) } => {
                let path = path(&pool, &format!("/numbers/{}", encode_segment(&number)));
                render::number(output, &api.read(&path)?)
            }
            Self::Watch { pool, from, count } => watch::watch(api, output, &pool, from, count),
            Self::History { pool, number, before, limit } => {
                let query = [("number", number), ("before", before.map(|before| before.to_string()))];
                let query: Vec<_> =
                    query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                render::history(output, &fetch_pages(api, &path(&pool, "/history"), &query, limit)?)
            }
            Self::Import { pool, file, format, reg } => {
                files::import(api, output, &pool, &file, format.as_deref(), reg)
            }
            Self::Export { pool, file, format } => {
                files::export(api, output, &pool, file.as_deref(), format.as_deref())
            }
        }
    }
}
