//! `switchyard tenant`: lists tenants.

use crate::format::value_text;
use crate::global_args::{GlobalArgs, exit_help};
use crate::output::{Failure, Output, Streams};
use api::{DayQuotaView, TenantView};
use clap::{Args, Subcommand};
use client::ApiClient;
use std::process::ExitCode;

const AFTER_HELP: &str = concat!(
    exit_help!(),
    "
Examples:
  switchyard tenant list            # with a token of a tenant: its branch
  switchyard tenant list --json | jq -r '.[].name'"
);

/// Arguments of `tenant`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct TenantCommand {
    #[command(subcommand)]
    task: Task,
    #[command(flatten)]
    global: GlobalArgs,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// List the tenants that you may see, with the accounts of their branches.
    List,
}

impl TenantCommand {
    pub(crate) fn run(self, streams: Streams) -> ExitCode {
        let Self { task, global } = self;
        global.run(streams, |api, output| task.run(api, output))
    }
}

impl Task {
    fn run(self, api: &ApiClient, output: &Output) -> Result<(), Failure> {
        match self {
            Self::List => print_tenants(output, &api.read::<Vec<TenantView>>("/v1/tenants")?),
        }
    }
}

fn print_tenants(output: &Output, tenants: &[TenantView]) -> Result<(), Failure> {
    if output.json {
        return output.document(&tenants);
    }
    let rows = tenants.iter().map(|tenant| {
        let accounts = if tenant.accounts.is_empty() { "-".to_owned() } else { tenant.accounts.join(", ") };
        let rate = tenant.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
        let calls = tenant.plugins;
        let time = calls.map(|calls| format!("{:.1} ms", calls.nanoseconds as f64 / 1e6));
        vec![
            value_text(&tenant.name),
            value_text(&tenant.parent),
            rate,
            today(tenant.messages_per_day),
            value_text(&calls.map(|calls| calls.calls)),
            value_text(&calls.map(|calls| calls.faults)),
            value_text(&time),
            value_text(&accounts),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return output.line("no tenants");
    }
    output.table(&["TENANT", "PARENT", "RATE", "TODAY", "PLUGIN CALLS", "FAULTS", "TIME", "ACCOUNTS"], &rows)
}

/// The messages accepted today, and the limit.
pub(crate) fn today(quota: Option<DayQuotaView>) -> String {
    quota.map_or_else(|| "-".to_owned(), |quota| format!("{} of {}", quota.accepted, quota.limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_api::{FakeApi, run};

    #[test]
    fn tenants_are_listed_with_their_accounts() {
        let tenant = |name: &str, parent: Option<&str>, accounts: &[&str]| TenantView {
            name: name.to_owned(),
            parent: parent.map(str::to_owned),
            rate: parent.is_none().then_some(12.5),
            max_price: None,
            charged: false,
            messages_per_day: parent.is_none().then_some(DayQuotaView {
                limit: 1000,
                accepted: 998,
                day_ends: 0,
            }),
            accounts: accounts.iter().map(|account| (*account).to_owned()).collect(),
            plugins: None,
        };
        let calls = api::CallSumView { calls: 2_000, faults: 1, nanoseconds: 5_400_000 };
        let north = TenantView { plugins: Some(calls), ..tenant("north", None, &["bank", "shop"]) };
        let tenants = [north, tenant("north-shop", Some("north"), &[])];
        let api = FakeApi::default().with("GET /v1/tenants", 200, &tenants);
        let done = run(&api.start(), &["tenant", "list"]);
        let shown = "TENANT      PARENT  RATE  TODAY        PLUGIN CALLS  FAULTS  TIME    ACCOUNTS\n\
             north       -       12.5  998 of 1000  2000          1       5.4 ms  bank, shop\n\
             north-shop  north   -     -            -             -       -       -\n";
        assert_eq!((done.code, done.out.as_str()), (0, shown), "{}", done.error);
    }
}
