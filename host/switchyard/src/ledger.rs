//! Ledger accounts as the admin's API sees them.

use crate::appliance::{Switchyard, gone};
use crate::core_loop;
use crate::plugins::object;
use admin::{Kind, Problem};
use engine::{Answer, Event, LedgerAnswer, OperationRecord};
use model::{Balance, LedgerChange, LedgerOperation};
use serde_json::{Value, json};

/// Octets of an actor's name and of a reason, at most.
const ACTOR: usize = 64;
const REASON: usize = 256;

fn shown(account: &str, balance: &Balance) -> Value {
    json!({
        "account": account,
        "balance": balance.balance,
        "reserved": balance.reserved,
        "captured": balance.captured,
        "funded": balance.funded,
        "credit": balance.credit,
    })
}

fn bad(what: impl Into<String>) -> Problem {
    Problem::new(Kind::BadRequest, what)
}

fn nowhere(account: &str) -> Problem {
    let what = format!("there is no ledger account {account:?}; to set its `credit` opens it");
    Problem::new(Kind::NotFound, what)
}

fn operation(account: &str, key: &str, request: Value) -> Result<LedgerOperation, Problem> {
    let mut request = object(request)?;
    let mut text = |name: &str, most: usize| match request.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() <= most => Ok(Some(text)),
        Some(_) => Err(bad(format!("`{name}` must be a text of at most {most} octets"))),
    };
    let (actor, reason) = (text("actor", ACTOR)?, text("reason", REASON)?);
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let reason = reason.ok_or_else(|| bad("`reason` must say why: it is kept for the audit"))?;
    let change = match (request.remove("fund"), request.remove("credit")) {
        (Some(amount), None) => amount.as_i64().map(|amount| LedgerChange::Fund { amount }),
        (None, Some(credit)) => credit
            .as_u64()
            .filter(|credit| i64::try_from(*credit).is_ok())
            .map(|credit| LedgerChange::Limit { credit }),
        _ => return Err(bad("say either `fund` or `credit`, in millionths of the house's currency")),
    };
    let change = change.ok_or_else(|| {
        bad("`fund` is a whole number of millionths, negative to take some back; `credit` is not negative")
    })?;
    if let Some(key) = request.keys().next() {
        return Err(bad(format!("`{key}` means nothing here; there are fund, credit, actor and reason")));
    }
    Ok(LedgerOperation {
        key: key.into(),
        account: account.into(),
        change,
        actor: actor.unwrap_or_else(|| "admin".to_owned()).into(),
        reason: reason.into(),
    })
}

fn operation_shown(record: &OperationRecord) -> Value {
    let OperationRecord { serial, operation, at, balance } = record;
    let mut value = json!({
        "serial": serial,
        "key": operation.key,
        "at": at.0,
        "actor": operation.actor,
        "reason": operation.reason,
        "after": shown(&operation.account, balance),
    });
    match operation.change {
        LedgerChange::Fund { amount } => value["fund"] = amount.into(),
        LedgerChange::Limit { credit } => value["credit"] = credit.into(),
    }
    value
}

impl admin::Ledger for Switchyard {
    fn balances(&self) -> Result<Value, Problem> {
        let look = self.core.look(|engine, _| {
            let all = engine.balances().map(|(name, balance)| (name.clone(), balance));
            (all.collect::<Vec<_>>(), engine.unsettled())
        });
        let (mut all, unsettled) = look.ok_or_else(gone)?;
        all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let accounts: Vec<Value> = all.iter().map(|(name, balance)| shown(name, balance)).collect();
        Ok(json!({ "accounts": accounts, "unsettled": unsettled }))
    }

    fn balance(&self, account: &str) -> Result<Value, Problem> {
        let name = account.to_owned();
        let found = self.core.look(move |engine, _| engine.balance(&name)).ok_or_else(gone)?;
        found.map(|balance| shown(account, &balance)).ok_or_else(|| nowhere(account))
    }

    fn change(&self, account: &str, key: &str, request: Value) -> Result<Value, Problem> {
        let operation = operation(account, key, request)?;
        let answer =
            core_loop::ask(&self.core, &self.links.hub(), |reply| Event::Ledger { operation, reply });
        let (balance, repeated) = match answer.ok_or_else(gone)? {
            Answer::Ledger(LedgerAnswer::Done { balance }) => (balance, false),
            Answer::Ledger(LedgerAnswer::Repeated { balance }) => (balance, true),
            Answer::Ledger(LedgerAnswer::KeyReused) => {
                let what = "this Idempotency-Key was used for another operation; nothing was done";
                return Err(Problem::new(Kind::Conflict, what));
            }
            Answer::Ledger(LedgerAnswer::WouldExceed { balance }) => {
                let what = format!(
                    "the account would go beyond its limit: balance {}, credit {}; nothing was done",
                    balance.balance, balance.credit
                );
                return Err(Problem::new(Kind::Conflict, what));
            }
            Answer::Ledger(LedgerAnswer::UnknownAccount) => return Err(nowhere(account)),
            Answer::Ledger(LedgerAnswer::BadName) => {
                return Err(bad("an account's name and a key have 1 to 64 octets each"));
            }
            _ => return Err(gone()),
        };
        if !repeated {
            tracing::info!(account, balance = balance.balance, credit = balance.credit, "ledger changed");
        }
        let mut value = shown(account, &balance);
        value["repeated"] = repeated.into();
        Ok(value)
    }

    fn operations(&self, account: &str, most: usize, before: Option<u64>) -> Result<Value, Problem> {
        let found = self.store.operations(account, before, most);
        let found = found.map_err(|error| Problem::new(Kind::Internal, error.to_string()))?;
        Ok(found.iter().map(operation_shown).collect())
    }
}
