//! `switchyard queue`: what waits, and an admin's orders about it.

mod shown;

use crate::output::{Failure, Output, Streams};
use crate::pages::{List, pages};
use crate::table::plural;
use crate::way::{Way, exits};
use clap::{Args, Subcommand};
use client::{Appliance, segment};
use model::parse_duration;
use serde_json::{Value, json};
use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

const AFTER: &str = concat!(
    exits!(),
    "
Examples:
  switchyard queue list
  switchyard queue suspend --peer upstream --why 'maintenance at theirs'
  switchyard queue resume --peer upstream
  switchyard queue rebind --peer upstream --to spare
  switchyard queue cancel --account acme --prefix 4179 --older-than 2h --undo-within 10m
  switchyard queue undo 4
  switchyard queue settle --peer upstream --send-again"
);

/// Arguments of `queue`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct QueueCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    way: Way,
}

/// Which messages: all that is given must hold.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Which {
    /// Those that wait for this peer.
    #[arg(long)]
    peer: Option<String>,
    /// Those that this account has submitted.
    #[arg(long)]
    account: Option<String>,
    /// Those whose destination begins so.
    #[arg(long)]
    prefix: Option<String>,
    /// Those accepted so long ago: 30s, 5m, 1h, 2d.
    #[arg(long, value_name = "TIME")]
    older_than: Option<String>,
}

impl Which {
    fn scope(&self) -> Value {
        let mut scope = json!({});
        let given = [
            ("peer", &self.peer),
            ("account", &self.account),
            ("prefix", &self.prefix),
            ("older-than", &self.older_than),
        ];
        for (name, value) in given {
            if let Some(value) = value {
                scope[name] = value.as_str().into();
            }
        }
        scope
    }
}

#[derive(Debug, Args)]
struct Giving {
    /// Why, for those who come after.
    #[arg(long, default_value = "")]
    why: String,
    /// Do not show first what is concerned, and do not ask.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Show every queue, and what stands between it and its links.
    List,
    /// Hand nothing over, of what waits and of what comes, until it is resumed.
    Suspend {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        giving: Giving,
    },
    /// End the suspensions and drains of exactly these messages.
    Resume {
        #[command(flatten)]
        which: Which,
    },
    /// Take nothing new for a peer, and send what waits.
    Drain {
        /// The peer.
        #[arg(long)]
        peer: String,
        #[command(flatten)]
        giving: Giving,
    },
    /// Send what waits for a peer, and what comes for it, to another.
    Rebind {
        #[command(flatten)]
        which: Which,
        /// The other peer.
        #[arg(long)]
        to: String,
        #[command(flatten)]
        giving: Giving,
    },
    /// End messages as cancelled that wait now. They are held back first, and it can be undone meanwhile.
    Cancel {
        #[command(flatten)]
        which: Which,
        /// How long it can be undone, at most 1d.
        #[arg(long, value_name = "TIME", default_value = "1m")]
        undo_within: String,
        #[command(flatten)]
        giving: Giving,
    },
    /// The same, and receipts on their way to submitters go too.
    Purge {
        #[command(flatten)]
        which: Which,
        /// How long it can be undone, at most 1d.
        #[arg(long, value_name = "TIME", default_value = "1m")]
        undo_within: String,
        #[command(flatten)]
        giving: Giving,
    },
    /// Show the orders that have a say, newest first.
    Orders {
        /// Those that are done with as well.
        #[arg(long)]
        all: bool,
    },
    /// Withdraw orders: what they hold back goes on.
    Undo {
        /// Their numbers.
        #[arg(required = true)]
        orders: Vec<u32>,
    },
    /// List messages that were written to a peer and never answered.
    Uncertain {
        /// Only of this peer.
        #[arg(long)]
        peer: Option<String>,
        /// How many at most.
        #[arg(long, default_value_t = 100)]
        limit: usize,
    },
    /// Settle uncertain messages: of a peer, or by their ids.
    #[command(group = clap::ArgGroup::new("remedy").required(true).args(["send_again", "give_up"]))]
    Settle {
        /// All of this peer's.
        #[arg(long, required_unless_present = "ids", conflicts_with = "ids")]
        peer: Option<String>,
        /// Their ids.
        ids: Vec<String>,
        /// Send them once more; they may arrive twice.
        #[arg(long)]
        send_again: bool,
        /// End them as unknown; they may have arrived.
        #[arg(long)]
        give_up: bool,
    },
}

impl QueueCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, way } = self;
        way.ask(streams, |appliance, output| task.run(appliance, output))
    }
}

impl Task {
    fn run(self, appliance: &Appliance, output: &Output) -> Result<(), Failure> {
        let order = |what: &str, which: &Which| json!({ "what": what, "where": which.scope() });
        match self {
            Self::List => shown::queues(output, &appliance.get("/v1/queues")?),
            Self::Suspend { which, giving } => give(appliance, output, order("suspend", &which), &giving),
            Self::Resume { which } => resume(appliance, output, &which.scope()),
            Self::Drain { peer, giving } => {
                give(appliance, output, json!({ "what": "drain", "where": { "peer": peer } }), &giving)
            }
            Self::Rebind { which, to, giving } => {
                let mut wanted = order("rebind", &which);
                wanted["to"] = to.into();
                give(appliance, output, wanted, &giving)
            }
            Self::Cancel { which, undo_within, giving } => {
                let mut wanted = order("cancel", &which);
                wanted["undo-within"] = undo_within.into();
                give(appliance, output, wanted, &giving)
            }
            Self::Purge { which, undo_within, giving } => {
                let mut wanted = order("purge", &which);
                wanted["undo-within"] = undo_within.into();
                give(appliance, output, wanted, &giving)
            }
            Self::Orders { all } => {
                let mut orders = appliance.get("/v1/orders")?;
                if let (Some(orders), false) = (orders.as_array_mut(), all) {
                    orders.retain(has_a_say);
                }
                shown::orders(output, &orders)
            }
            Self::Undo { orders } => {
                for id in orders {
                    shown::order(output, &appliance.delete(&format!("/v1/orders/{id}"))?)?;
                }
                Ok(())
            }
            Self::Uncertain { peer, limit } => {
                let list = List { path: "/v1/uncertain", items: "messages", next: "after" };
                let query: Vec<(&str, String)> = peer.map(|peer| ("peer", peer)).into_iter().collect();
                let (messages, next) = pages(appliance, list, &query, limit)?;
                shown::uncertain(output, &messages, &next)
            }
            Self::Settle { peer, ids, send_again, .. } => {
                let mut wanted = json!({ "remedy": if send_again { "send-again" } else { "give-up" } });
                match peer {
                    Some(peer) => wanted["peer"] = peer.into(),
                    None => wanted["ids"] = ids.into(),
                }
                shown::settled(output, &appliance.post("/v1/uncertain/settle", &wanted)?)
            }
        }
    }
}

fn has_a_say(order: &Value) -> bool {
    matches!(order["state"].as_str(), Some("standing" | "undo-window" | "under-way"))
}

/// Shows what an order would concern, asks, and gives it.
fn give(appliance: &Appliance, output: &Output, mut wanted: Value, giving: &Giving) -> Result<(), Failure> {
    if !giving.why.is_empty() {
        wanted["why"] = giving.why.as_str().into();
    }
    if !giving.yes {
        let preview = appliance.post("/v1/orders/preview", &wanted)?;
        output.remark(&shown::preview(&wanted, &preview));
        confirm(output)?;
    }
    shown::order(output, &appliance.post("/v1/orders", &wanted)?)
}

/// Waits for a yes.
fn confirm(output: &Output) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        let what = "nobody is there to be asked: give --yes if that is what you want";
        return Err(Failure::Usage(what.to_owned()));
    }
    output.remark("go on? [y/N]");
    let mut said = String::new();
    // Who cannot be read has not said yes.
    let _ = std::io::stdin().lock().read_line(&mut said);
    if matches!(said.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(Failure::Refused("nothing was done".to_owned()))
}

/// Times and prefixes in the one form in which they can be compared.
fn normal(scope: &Value) -> Value {
    let mut scope = scope.clone();
    if let Some(age) = scope["older-than"].as_str().and_then(parse_duration) {
        // The appliance counts in whole seconds, and a part of one as one.
        scope["older-than"] = age.as_millis().div_ceil(1000).to_string().into();
    }
    if let Some(prefix) = scope["prefix"].as_str() {
        scope["prefix"] = prefix.trim_start_matches('+').into();
    }
    if let Some(given) = scope.as_object_mut() {
        given.retain(|_, value| !value.is_null());
    }
    scope
}

/// Withdraws the suspensions and drains with exactly this scope.
fn resume(appliance: &Appliance, output: &Output, scope: &Value) -> Result<(), Failure> {
    let orders = appliance.get("/v1/orders")?;
    let theirs = orders.as_array().into_iter().flatten().filter(|order| {
        has_a_say(order)
            && matches!(order["what"].as_str(), Some("suspend" | "drain"))
            && normal(&order["where"]) == normal(scope)
    });
    let ids: Vec<u64> = theirs.filter_map(|order| order["id"].as_u64()).collect();
    if ids.is_empty() {
        let what = "no suspension and no drain is about exactly these; see `switchyard queue orders`";
        return Err(Failure::Refused(what.to_owned()));
    }
    for id in &ids {
        shown::order(output, &appliance.delete(&format!("/v1/orders/{}", segment(&id.to_string())))?)?;
    }
    if !output.json {
        output.line(&format!("{} withdrawn", plural(ids.len() as u64, "order", "orders")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::stub::{NOW, Stub, run};
    use serde_json::{Value, json};

    fn order(id: u32, what: &str, state: &str) -> Value {
        json!({
            "id": id, "what": what, "where": { "peer": "upstream" }, "by": "ada", "why": "cable\u{1b}[31m cut",
            "at": NOW, "state": state, "touched": 0, "held": 1_200,
        })
    }

    #[test]
    fn an_order_is_given_and_shown() {
        let stub = Stub::default().with("POST /v1/orders", 201, &order(4, "suspend", "standing"));
        let url = stub.start();
        let done = run(&url, &["queue", "suspend", "--peer", "upstream", "--why", "cable cut", "--yes"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        insta::assert_snapshot!("order", done.out);
        let asked = stub.asked();
        let body: Value = serde_json::from_str(&asked[0].body).unwrap();
        assert_eq!(body, json!({ "what": "suspend", "where": { "peer": "upstream" }, "why": "cable cut" }));
    }

    #[test]
    fn without_a_terminal_and_without_yes_nothing_is_done() {
        let preview = json!({ "messages": 3, "by-state": { "queued": 2, "deferred": 1 }, "sample": [], "complete": true });
        let stub = Stub::default().with("POST /v1/orders/preview", 200, &preview);
        let url = stub.start();
        let done = run(&url, &["queue", "cancel", "--account", "acme", "--older-than", "2h"]);
        assert_eq!((done.code, done.out.as_str()), (2, ""));
        assert!(done.error.contains("3 messages") && done.error.contains("--yes"), "{}", done.error);
        let asked: Vec<String> = stub.asked().into_iter().map(|asked| asked.what).collect();
        assert_eq!(asked, ["POST /v1/orders/preview"]);
    }

    #[test]
    fn lists_are_tables() {
        let queues = json!([{
            "peer": "upstream", "configured": true, "queued": 1_200, "aside": 0, "suspended": 7, "parked": 0,
            "deferred": 3, "resolving": 0, "in_flight": 5, "uncertain": 2, "awaiting_receipt": 40, "oldest": NOW - 61_000,
            "links": 2, "brake": "suspended by ada: cable cut (order 4)",
        }]);
        let uncertain = json!({ "messages": [{
            "id": "1000000007", "peer": "upstream", "account": "acme", "source": "10655", "destination": "8613*******00",
            "at": NOW - 61_000, "since": NOW - 60_000, "until": NOW + 60_000, "attempts": 1,
        }], "next": null });
        let stub = Stub::default()
            .with("GET /v1/queues", 200, &queues)
            .with(
                "GET /v1/orders",
                200,
                &json!([order(4, "suspend", "standing"), order(3, "cancel", "done")]),
            )
            .with("GET /v1/uncertain?limit=100&peer=upstream", 200, &uncertain)
            .with("POST /v1/uncertain/settle", 200, &json!({ "settled": 2, "passed-over": 1 }));
        let url = stub.start();
        let mut text = String::new();
        for line in [
            &["queue", "list"][..],
            &["queue", "orders"],
            &["queue", "orders", "--all"],
            &["queue", "uncertain", "--peer", "upstream"],
            &["queue", "settle", "--peer", "upstream", "--give-up"],
        ] {
            let done = run(&url, line);
            assert_eq!((done.code, done.error.as_str()), (0, ""), "{line:?}");
            text.push_str(&format!("$ switchyard {}\n{}\n", line.join(" "), done.out));
        }
        insta::assert_snapshot!("queue_lists", text);
    }

    #[test]
    fn what_is_resumed_is_exactly_that() {
        let stub = Stub::default()
            .with(
                "GET /v1/orders",
                200,
                &json!([order(4, "suspend", "standing"), order(3, "suspend", "undone")]),
            )
            .with("DELETE /v1/orders/4", 200, &order(4, "suspend", "undone"));
        let url = stub.start();
        let done = run(&url, &["queue", "resume", "--peer", "upstream"]);
        assert_eq!((done.code, done.error.as_str()), (0, ""));
        assert!(done.out.ends_with("1 order withdrawn\n"), "{}", done.out);
        let done = run(&url, &["queue", "resume", "--peer", "upstream", "--prefix", "41"]);
        assert_eq!(done.code, 1, "{done:?}");
        let done = run(&url, &["queue", "resume"]);
        assert_eq!(done.code, 2, "{done:?}");
    }
}
