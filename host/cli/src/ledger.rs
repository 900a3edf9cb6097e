//! `switchyard ledger`: shows and changes the balances of ledger accounts.

use crate::format::{list, timestamp, value_text};
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use api::{BalanceChangeView, BalanceView, BalancesView, LedgerChangeRequest, LedgerOperationView};
use clap::{Args, Subcommand};
use client::{ApiClient, encode_segment};
use serde_json::json;
use std::process::ExitCode;

/// Amounts are in millionths of the currency.
const MILLIONTHS: u128 = 1_000_000;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Amounts are in the appliance's currency, with up to six decimals.

Examples:
  switchyard ledger fund shop 250.00 --reason 'invoice 4711'
  switchyard ledger credit shop 100 --reason 'contract of May'
  switchyard ledger operations shop --limit 20"
);

/// Arguments of `ledger`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct LedgerCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List all ledger accounts with their balances.
    List,
    /// Show one ledger account.
    Show {
        /// The ledger account.
        account: String,
    },
    /// Add an amount to the balance; a negative amount reduces it.
    Fund {
        /// The ledger account.
        account: String,
        /// The amount.
        #[arg(allow_hyphen_values = true, value_parser = parse_amount)]
        amount: i64,
        #[command(flatten)]
        change_args: ChangeArgs,
    },
    /// Set how far below zero a balance may go; the account is created if it does not exist.
    Credit {
        /// The ledger account.
        account: String,
        /// The credit.
        #[arg(value_parser = parse_credit)]
        amount: u64,
        #[command(flatten)]
        change_args: ChangeArgs,
    },
    /// List the operations on an account, newest first.
    Operations {
        /// The ledger account.
        account: String,
        /// Maximum number of entries.
        #[arg(long, default_value_t = 100)]
        limit: u16,
        /// Only operations before the one with this serial number.
        #[arg(long)]
        before: Option<u64>,
    },
}

/// The arguments of every change of a balance.
#[derive(Debug, Args)]
struct ChangeArgs {
    /// The reason; it is stored with the operation.
    #[arg(long)]
    reason: String,
    /// An idempotency key: operations with the same key are applied once. A key is generated if none is given.
    #[arg(long)]
    idempotency_key: Option<String>,
}

/// Parses an amount with up to six decimals; the result is in millionths.
fn parse_amount(text: &str) -> Result<i64, String> {
    let invalid = || format!("{text:?} is not an amount; use a form such as 250, 0.0125 or -3.5");
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let millionths = model::parse_millionths(digits).and_then(|millionths| i64::try_from(millionths).ok());
    millionths.map(|millionths| millionths * sign).ok_or_else(invalid)
}

/// Parses an amount that is not negative; the result is in millionths.
fn parse_credit(text: &str) -> Result<u64, String> {
    u64::try_from(parse_amount(text)?).map_err(|_| "the credit must not be negative".to_owned())
}

/// Formats millionths as an amount.
fn amount_text(millionths: impl Into<i128>) -> String {
    let millionths = millionths.into();
    let (sign, amount) = (if millionths < 0 { "-" } else { "" }, millionths.unsigned_abs());
    format!("{sign}{}.{:06}", amount / MILLIONTHS, amount % MILLIONTHS)
}

impl LedgerCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| match task {
            Task::List => balances(output, &api.read("/v1/ledger")?),
            Task::Show { account } => {
                let account: BalanceView = api.read(&path(&account))?;
                if output.json { output.document(&account) } else { balance(output, &account) }
            }
            Task::Fund { account, amount, change_args } => {
                let change = LedgerChangeRequest { fund: Some(amount), ..LedgerChangeRequest::default() };
                post_change(api, output, &account, change, change_args)
            }
            Task::Credit { account, amount, change_args } => {
                let change = LedgerChangeRequest { credit: Some(amount), ..LedgerChangeRequest::default() };
                post_change(api, output, &account, change, change_args)
            }
            Task::Operations { account, limit, before } => {
                let before = before.map(|before| format!("&before={before}")).unwrap_or_default();
                let path = format!("{}/operations?limit={limit}{before}", path(&account));
                operations(output, &api.read::<Vec<LedgerOperationView>>(&path)?)
            }
        })
    }
}

fn path(account: &str) -> String {
    format!("/v1/ledger/{}", encode_segment(account))
}

/// A unique key for a change.
fn new_idempotency_key() -> Result<String, Failure> {
    let random = getrandom::u64().map_err(|error| {
        let why = format!("the system gives no random number: {error}; name a key with --idempotency-key");
        Failure::Usage(why)
    })?;
    Ok(format!("cli-{random:016x}"))
}

fn post_change(
    api: &ApiClient,
    output: &Output,
    account: &str,
    change: LedgerChangeRequest,
    change_args: ChangeArgs,
) -> Result<(), Failure> {
    let key = match change_args.idempotency_key {
        Some(key) => key,
        None => new_idempotency_key()?,
    };
    let body = json!(LedgerChangeRequest { reason: Some(change_args.reason), ..change });
    let headers = [("content-type", "application/json"), ("idempotency-key", key.as_str())];
    let changed: BalanceChangeView =
        api.upload("POST", &path(account), &headers, body.to_string().as_bytes())?;
    if output.json {
        return output.document(&changed);
    }
    balance(output, &changed.account)?;
    if changed.repeated {
        output.remark("this operation was applied before, with the same idempotency key; nothing changed");
    }
    Ok(())
}

fn balances(output: &Output, answer: &BalancesView) -> Result<(), Failure> {
    if output.json {
        return output.document(answer);
    }
    let row = |account: &BalanceView| {
        vec![
            value_text(&account.account),
            amount_text(account.balance),
            amount_text(account.reserved),
            amount_text(account.captured),
            amount_text(account.funded),
            amount_text(account.credit),
        ]
    };
    let rows: Vec<_> = answer.accounts.iter().map(row).collect();
    if rows.is_empty() {
        output.remark("there are no ledger accounts");
        return Ok(());
    }
    output.table(&["ACCOUNT", "BALANCE", "RESERVED", "PAID", "FUNDED", "CREDIT"], &rows)
}

fn balance(output: &Output, account: &BalanceView) -> Result<(), Failure> {
    output.write(&list(&[
        ("account", value_text(&account.account)),
        ("balance", amount_text(account.balance)),
        ("reserved", amount_text(account.reserved)),
        ("paid", amount_text(account.captured)),
        ("funded", amount_text(account.funded)),
        ("credit", amount_text(account.credit)),
    ]))
}

fn operations(output: &Output, done: &[LedgerOperationView]) -> Result<(), Failure> {
    if output.json {
        return output.document(&done);
    }
    let row = |done: &LedgerOperationView| {
        let what = match (done.fund, done.credit) {
            (Some(fund), _) => format!("fund {}", amount_text(fund)),
            (None, Some(credit)) => format!("credit {}", amount_text(credit)),
            (None, None) => "-".to_owned(),
        };
        vec![
            done.serial.to_string(),
            timestamp(&done.at),
            value_text(&done.actor),
            what,
            amount_text(done.after.balance),
            value_text(&done.reason),
        ]
    };
    let rows: Vec<_> = done.iter().map(row).collect();
    if rows.is_empty() {
        output.remark("this account has no operations");
        return Ok(());
    }
    output.table(&["SERIAL", "AT", "BY", "WHAT", "BALANCE", "REASON"], &rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{FakeApi, NOW, run};
    use serde_json::Value;

    #[test]
    fn amounts_are_exact() {
        let read = [("250", 250_000_000), ("0.0125", 12_500), ("-3.5", -3_500_000), ("0.000001", 1)];
        for (text, millionths) in read {
            assert_eq!(parse_amount(text), Ok(millionths), "{text}");
        }
        for text in ["", "1.", ".5", "1e3", "1,5", "0.0000001", "9999999999999999", "--1"] {
            assert!(parse_amount(text).is_err(), "{text}");
        }
        assert_eq!((amount_text(-3_500_000), amount_text(12_500)), ("-3.500000".into(), "0.012500".into()));
        assert!(parse_credit("-1").is_err());
    }

    #[test]
    fn an_operation_is_sent_with_its_idempotency_key_and_listed() {
        let after = BalanceView {
            account: "shop".to_owned(),
            balance: 250_000_000,
            reserved: 0,
            captured: 0,
            funded: 250_000_000,
            credit: 0,
        };
        let changed = BalanceChangeView { account: after.clone(), repeated: true };
        let done = LedgerOperationView {
            serial: 3,
            idempotency_key: "k".to_owned(),
            at: NOW,
            actor: "ada".to_owned(),
            reason: "invoice".to_owned(),
            fund: Some(250_000_000),
            credit: None,
            after,
        };
        let api = FakeApi::default().with("POST /v1/ledger/shop", 200, &changed).with(
            "GET /v1/ledger/shop/operations?limit=100",
            200,
            &[done],
        );
        let url = api.start();
        let fund = ["ledger", "fund", "shop", "250.00", "--reason", "invoice", "--idempotency-key", "k"];
        let done = run(&url, &fund);
        assert_eq!(done.code, 0, "{}", done.error);
        assert!(done.out.contains("balance   250.000000\n"), "{}", done.out);
        assert!(done.error.contains("applied before"), "{}", done.error);
        let request = &api.requests()[0];
        assert_eq!(
            serde_json::from_str::<Value>(&request.body).unwrap(),
            json!({ "fund": 250_000_000, "reason": "invoice" })
        );
        assert!(
            request.headers.contains(&("idempotency-key".to_owned(), "k".to_owned())),
            "{:?}",
            request.headers
        );
        let done = run(&url, &["ledger", "operations", "shop"]);
        let line = "3       2026-11-21 16:03:02Z  ada  fund 250.000000  250.000000  invoice\n";
        assert!(done.out.ends_with(line), "{}", done.out);
    }
}
