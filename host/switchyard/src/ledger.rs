//! Ledger accounts in the admin API.

use crate::api_backend::{Switchyard, shutting_down_problem};
use crate::core_loop;
use crate::plugins::object;
use admin::{Problem, ProblemKind};
use engine::{EngineAnswer, Event, LedgerAnswer, OperationRecord};
use model::{Balance, LedgerChange, LedgerOperation};
use serde_json::{Value, json};

/// Maximum length of an actor's name and of a reason, in octets.
const MAX_ACTOR_OCTETS: usize = 64;
const MAX_REASON_OCTETS: usize = 256;

fn balance_json(account: &str, balance: &Balance) -> Value {
    json!({
        "account": account,
        "balance": balance.balance,
        "reserved": balance.reserved,
        "captured": balance.captured,
        "funded": balance.funded,
        "credit": balance.credit,
    })
}

fn bad_request(what: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::BadRequest, what)
}

fn unknown_account(account: &str) -> Problem {
    let what = format!("ledger account {account:?} does not exist; setting its `credit` creates it");
    Problem::new(ProblemKind::NotFound, what)
}

fn parse_operation(account: &str, key: &str, request: Value) -> Result<LedgerOperation, Problem> {
    let mut request = object(request)?;
    let mut text = |name: &str, most: usize| match request.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() <= most => Ok(Some(text)),
        Some(_) => Err(bad_request(format!("`{name}` must be a string of at most {most} octets"))),
    };
    let (actor, reason) = (text("actor", MAX_ACTOR_OCTETS)?, text("reason", MAX_REASON_OCTETS)?);
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let reason = reason.ok_or_else(|| bad_request("`reason` is mandatory: it is kept for the audit"))?;
    let change = match (request.remove("fund"), request.remove("credit")) {
        (Some(amount), None) => amount.as_i64().map(|amount| LedgerChange::Fund { amount }),
        (None, Some(credit)) => credit
            .as_u64()
            .filter(|credit| i64::try_from(*credit).is_ok())
            .map(|credit| LedgerChange::Limit { credit }),
        _ => {
            return Err(bad_request(
                "either `fund` or `credit` is mandatory, in millionths of the operator's currency",
            ));
        }
    };
    let change = change.ok_or_else(|| {
        bad_request("`fund` must be an integer in millionths, negative for a withdrawal; `credit` must not be negative")
    })?;
    if let Some(key) = request.keys().next() {
        return Err(bad_request(format!("`{key}` is unknown; known are fund, credit, actor and reason")));
    }
    Ok(LedgerOperation {
        key: key.into(),
        account: account.into(),
        change,
        actor: actor.unwrap_or_else(|| "admin".to_owned()).into(),
        reason: reason.into(),
    })
}

fn operation_json(record: &OperationRecord) -> Value {
    let OperationRecord { serial, operation, at, balance } = record;
    let mut value = json!({
        "serial": serial,
        "idempotency_key": operation.key,
        "at": at.0,
        "actor": operation.actor,
        "reason": operation.reason,
        "after": balance_json(&operation.account, balance),
    });
    match operation.change {
        LedgerChange::Fund { amount } => value["fund"] = amount.into(),
        LedgerChange::Limit { credit } => value["credit"] = credit.into(),
    }
    value
}

impl admin::Ledger for Switchyard {
    fn balances(&self) -> Result<Value, Problem> {
        let balances = self.core.query(|engine, _| {
            let all = engine.balances().map(|(name, balance)| (name.clone(), balance));
            (all.collect::<Vec<_>>(), engine.unsettled())
        });
        let (mut all, unsettled) = balances.ok_or_else(shutting_down_problem)?;
        all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let accounts: Vec<Value> = all.iter().map(|(name, balance)| balance_json(name, balance)).collect();
        Ok(json!({ "accounts": accounts, "unsettled": unsettled }))
    }

    fn balance(&self, account: &str) -> Result<Value, Problem> {
        let name = account.to_owned();
        let found =
            self.core.query(move |engine, _| engine.balance(&name)).ok_or_else(shutting_down_problem)?;
        found.map(|balance| balance_json(account, &balance)).ok_or_else(|| unknown_account(account))
    }

    fn change(&self, account: &str, key: &str, request: Value) -> Result<Value, Problem> {
        let operation = parse_operation(account, key, request)?;
        let answer = core_loop::request(&self.core, &self.links.registry(), |reply| Event::Ledger {
            operation,
            reply,
        });
        let (balance, repeated) = match answer.ok_or_else(shutting_down_problem)? {
            EngineAnswer::Ledger(LedgerAnswer::Done { balance }) => (balance, false),
            EngineAnswer::Ledger(LedgerAnswer::Repeated { balance }) => (balance, true),
            EngineAnswer::Ledger(LedgerAnswer::KeyReused) => {
                let what = "this Idempotency-Key was used for another operation; nothing has changed";
                return Err(Problem::new(ProblemKind::Conflict, what));
            }
            EngineAnswer::Ledger(LedgerAnswer::WouldExceed { balance }) => {
                let what = format!(
                    "the account would exceed its limit: balance {}, credit {}; nothing has changed",
                    balance.balance, balance.credit
                );
                return Err(Problem::new(ProblemKind::Conflict, what));
            }
            EngineAnswer::Ledger(LedgerAnswer::UnknownAccount) => return Err(unknown_account(account)),
            EngineAnswer::Ledger(LedgerAnswer::BadName) => {
                return Err(bad_request("account names and keys must have 1 to 64 octets"));
            }
            _ => return Err(shutting_down_problem()),
        };
        if !repeated {
            tracing::info!(account, balance = balance.balance, credit = balance.credit, "ledger changed");
        }
        let mut value = balance_json(account, &balance);
        value["repeated"] = repeated.into();
        Ok(value)
    }

    fn operations(&self, account: &str, most: usize, before: Option<u64>) -> Result<Value, Problem> {
        let found = self.store.operations(account, before, most);
        let found = found.map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
        Ok(found.iter().map(operation_json).collect())
    }
}
