//! `switchyard ledger`: balances of accounts, and what is done to them.

use crate::output::{Failure, Output, Streams};
use crate::table::{list, moment, table, word};
use crate::way::{Way, exits};
use clap::{Args, Subcommand};
use client::{Appliance, segment};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

/// An amount is counted in millionths of the currency.
const MILLIONTHS: u64 = 1_000_000;

const AFTER: &str = concat!(
    exits!(),
    "
Amounts are in the appliance's currency, with up to six decimals.

Examples:
  switchyard ledger fund shop 250.00 --reason 'invoice 4711'
  switchyard ledger credit shop 100 --reason 'contract of May'
  switchyard ledger operations shop --limit 20"
);

/// Arguments of `ledger`.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub struct LedgerCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    way: Way,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List all accounts with their balances.
    List,
    /// Show one account.
    Show {
        /// The ledger account.
        account: String,
    },
    /// Put money in; a negative amount is taken back.
    Fund {
        /// The ledger account.
        account: String,
        /// How much.
        #[arg(allow_hyphen_values = true, value_parser = amount)]
        amount: i64,
        #[command(flatten)]
        change: Change,
    },
    /// Set how far below zero a balance may go; that opens an account that is not there.
    Credit {
        /// The ledger account.
        account: String,
        /// How far.
        #[arg(value_parser = amount)]
        amount: i64,
        #[command(flatten)]
        change: Change,
    },
    /// List what was done to an account, newest first.
    Operations {
        /// The ledger account.
        account: String,
        /// How many at most.
        #[arg(long, default_value_t = 100)]
        limit: u16,
        /// Only those before the one of this serial.
        #[arg(long)]
        before: Option<u64>,
    },
}

/// What goes with every change of a balance.
#[derive(Debug, Args)]
struct Change {
    /// Why: it is kept with the change.
    #[arg(long)]
    reason: String,
    /// A key of your own: a change is made once, however often it comes with the same key. One is made where none is given.
    #[arg(long)]
    key: Option<String>,
}

/// An amount in millionths: whole units, and up to six decimals.
fn amount(text: &str) -> Result<i64, String> {
    let wrong = || format!("{text:?} is no amount: such as 250, 0.0125 or -3.5");
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let numeric = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    if !numeric(whole) || !numeric(part) || part.len() > 6 {
        return Err(wrong());
    }
    let part: i64 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
    let whole: i64 = whole.parse().map_err(|_| wrong())?;
    whole
        .checked_mul(1_000_000)
        .and_then(|whole| whole.checked_add(part))
        .map(|millionths| millionths * sign)
        .ok_or_else(wrong)
}

/// Millionths as an amount.
fn shown(millionths: &Value) -> String {
    let (sign, amount) = match (millionths.as_u64(), millionths.as_i64()) {
        (Some(amount), _) => ("", amount),
        (None, Some(amount)) => ("-", amount.unsigned_abs()),
        (None, None) => return word(millionths),
    };
    format!("{sign}{}.{:06}", amount / MILLIONTHS, amount % MILLIONTHS)
}

impl LedgerCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, way } = self;
        way.ask(streams, |appliance, output| match task {
            Task::List => balances(output, &appliance.get("/v1/ledger")?),
            Task::Show { account } => balance(output, &appliance.get(&path(&account))?),
            Task::Fund { account, amount, change } => {
                balance(output, &make(appliance, &account, ("fund", amount), change)?)
            }
            Task::Credit { account, amount, change } => {
                balance(output, &make(appliance, &account, ("credit", amount), change)?)
            }
            Task::Operations { account, limit, before } => {
                let before = before.map(|before| format!("&before={before}")).unwrap_or_default();
                let path = format!("{}/operations?limit={limit}{before}", path(&account));
                operations(output, &appliance.get(&path)?)
            }
        })
    }
}

fn path(account: &str) -> String {
    format!("/v1/ledger/{}", segment(account))
}

fn make(
    appliance: &Appliance,
    account: &str,
    (what, amount): (&str, i64),
    change: Change,
) -> Result<Value, Failure> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let key = change.key.unwrap_or_else(|| format!("cli-{}-{}", since.as_nanos(), std::process::id()));
    let body = json!({ what: amount, "reason": change.reason });
    let headers = [("content-type", "application/json"), ("idempotency-key", key.as_str())];
    Ok(appliance.send("POST", &path(account), &headers, body.to_string().as_bytes())?)
}

fn balances(output: &Output, answer: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(answer);
    }
    let row = |account: &Value| {
        let amounts = ["balance", "reserved", "captured", "funded", "credit"];
        let amounts = amounts.iter().map(|name| shown(&account[*name]));
        std::iter::once(word(&account["account"])).chain(amounts).collect::<Vec<_>>()
    };
    let rows: Vec<_> = answer["accounts"].as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        output.remark("there is no ledger account");
        return Ok(());
    }
    output.write(&table(&["ACCOUNT", "BALANCE", "RESERVED", "PAID", "FUNDED", "CREDIT"], &rows))
}

fn balance(output: &Output, account: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(account);
    }
    output.write(&list(&[
        ("account", word(&account["account"])),
        ("balance", shown(&account["balance"])),
        ("reserved", shown(&account["reserved"])),
        ("paid", shown(&account["captured"])),
        ("funded", shown(&account["funded"])),
        ("credit", shown(&account["credit"])),
    ]))?;
    if account["repeated"] == true {
        output.remark("this was done before, under the same key: nothing has changed");
    }
    Ok(())
}

fn operations(output: &Output, answer: &Value) -> Result<(), Failure> {
    if output.json {
        return output.document(answer);
    }
    let row = |done: &Value| {
        let what = match (&done["fund"], &done["credit"]) {
            (Value::Null, credit) => format!("credit {}", shown(credit)),
            (fund, _) => format!("fund {}", shown(fund)),
        };
        vec![
            word(&done["serial"]),
            moment(&done["at"]),
            word(&done["actor"]),
            what,
            shown(&done["after"]["balance"]),
            word(&done["reason"]),
        ]
    };
    let rows: Vec<_> = answer.as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        output.remark("nothing was done to this account");
        return Ok(());
    }
    output.write(&table(&["SERIAL", "AT", "BY", "WHAT", "BALANCE", "REASON"], &rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub::{NOW, Stub, run};

    #[test]
    fn amounts_are_exact() {
        let read = [("250", 250_000_000), ("0.0125", 12_500), ("-3.5", -3_500_000), ("0.000001", 1)];
        for (text, millionths) in read {
            assert_eq!(amount(text), Ok(millionths), "{text}");
        }
        for text in ["", "1.", ".5", "1e3", "1,5", "0.0000001", "9999999999999999", "--1"] {
            assert!(amount(text).is_err(), "{text}");
        }
        assert_eq!(
            (shown(&json!(-3_500_000)), shown(&json!(12_500))),
            ("-3.500000".into(), "0.012500".into())
        );
    }

    #[test]
    fn money_is_put_in_once_for_its_key_and_found_again() {
        let after = json!({ "account": "shop", "balance": 250_000_000, "reserved": 0, "captured": 0,
                            "funded": 250_000_000, "credit": 0, "repeated": true });
        let done = json!([{ "serial": 3, "key": "k", "at": NOW, "actor": "ada", "reason": "invoice", "fund": 250_000_000,
                            "after": after }]);
        let stub = Stub::default().with("POST /v1/ledger/shop", 200, &after).with(
            "GET /v1/ledger/shop/operations?limit=100",
            200,
            &done,
        );
        let url = stub.start();
        let fund = ["ledger", "fund", "shop", "250.00", "--reason", "invoice", "--key", "k"];
        let told = run(&url, &fund);
        assert_eq!(told.code, 0, "{}", told.error);
        assert!(told.out.contains("balance   250.000000\n"), "{}", told.out);
        assert!(told.error.contains("done before"), "{}", told.error);
        let asked = &stub.asked()[0];
        assert_eq!(
            serde_json::from_str::<Value>(&asked.body).unwrap(),
            json!({ "fund": 250_000_000, "reason": "invoice" })
        );
        assert!(
            asked.headers.contains(&("idempotency-key".to_owned(), "k".to_owned())),
            "{:?}",
            asked.headers
        );
        let told = run(&url, &["ledger", "operations", "shop"]);
        let line = "3       2026-11-21 16:03:02Z  ada  fund 250.000000  250.000000  invoice\n";
        assert!(told.out.ends_with(line), "{}", told.out);
    }
}
