//! Ledger accounts in the admin API.

use crate::core_handle::{self, CoreHandle};
use crate::problems::shutting_down_problem;
use admin::{Problem, ProblemKind, unknown_ledger_account as unknown_account};
use api::{BalanceChangeView, BalanceView, BalancesView, LedgerChangeRequest, LedgerOperationView};
use engine::{EngineAnswer, Event, LedgerAnswer};
use model::{AccountScope, Balance, LedgerChange, LedgerOperation, OperationRecord};
use ports::LinkRegistry;
use std::sync::Arc;
use store::Store;

/// Maximum length of an actor's name and of a reason, in octets.
const MAX_ACTOR_OCTETS: usize = 64;
const MAX_REASON_OCTETS: usize = 256;

fn balance_view(account: &str, balance: &Balance) -> BalanceView {
    BalanceView {
        account: account.to_owned(),
        balance: balance.balance,
        reserved: balance.reserved,
        captured: balance.captured,
        funded: balance.funded,
        credit: balance.credit,
    }
}

fn bad_request(what: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::BadRequest, what)
}

fn parse_operation(
    account: &str,
    key: &str,
    request: LedgerChangeRequest,
) -> Result<LedgerOperation, Problem> {
    let LedgerChangeRequest { fund, credit, actor, reason } = request;
    for (name, text, most) in [("actor", &actor, MAX_ACTOR_OCTETS), ("reason", &reason, MAX_REASON_OCTETS)] {
        if text.as_ref().is_some_and(|text| text.len() > most) {
            return Err(bad_request(format!("`{name}` must be a string of at most {most} octets")));
        }
    }
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    let reason =
        reason.ok_or_else(|| bad_request("`reason` is mandatory: it is recorded in the audit log"))?;
    let change = match (fund, credit) {
        (Some(amount), None) => LedgerChange::Fund { amount },
        (None, Some(credit)) if i64::try_from(credit).is_ok() => LedgerChange::Limit { credit },
        (None, Some(_)) => {
            return Err(bad_request(format!("`credit` must be at most {}, in millionths", i64::MAX)));
        }
        _ => {
            return Err(bad_request(
                "either `fund` or `credit` is mandatory, in millionths of the operator's currency",
            ));
        }
    };
    Ok(LedgerOperation {
        key: key.into(),
        account: account.into(),
        change,
        actor: actor.unwrap_or_else(|| "admin".to_owned()).into(),
        reason: reason.into(),
    })
}

fn operation_view(record: OperationRecord) -> LedgerOperationView {
    let OperationRecord { serial, operation, at, balance } = record;
    let (fund, credit) = match operation.change {
        LedgerChange::Fund { amount } => (Some(amount), None),
        LedgerChange::Limit { credit } => (None, Some(credit)),
    };
    LedgerOperationView {
        serial,
        idempotency_key: operation.key.into(),
        at: at.0,
        actor: operation.actor.into(),
        reason: operation.reason.into(),
        fund,
        credit,
        after: balance_view(&operation.account, &balance),
    }
}

/// The service of ledger accounts.
pub(crate) struct LedgerService {
    pub(crate) core: CoreHandle,
    pub(crate) registry: Arc<LinkRegistry>,
    pub(crate) store: Arc<Store>,
}

impl admin::Ledger for LedgerService {
    fn balances(&self, scope: &AccountScope) -> Result<BalancesView, Problem> {
        let balances = self.core.query(|engine, _| {
            let all = engine.balances().map(|(name, balance)| (name.clone(), balance));
            (all.collect::<Vec<_>>(), engine.unsettled())
        });
        let (mut all, unsettled) = balances.ok_or_else(shutting_down_problem)?;
        all.retain(|(name, _)| scope.has_ledger_account(name));
        // The count includes messages of all accounts, so only callers who may see all get it.
        let unsettled = (*scope == AccountScope::Everything).then_some(unsettled as u64);
        all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let accounts = all.iter().map(|(name, balance)| balance_view(name, balance)).collect();
        Ok(BalancesView { accounts, unsettled })
    }

    fn balance(&self, account: &str) -> Result<BalanceView, Problem> {
        let name = account.to_owned();
        let found =
            self.core.query(move |engine, _| engine.balance(&name)).ok_or_else(shutting_down_problem)?;
        found.map(|balance| balance_view(account, &balance)).ok_or_else(|| unknown_account(account))
    }

    fn change(
        &self,
        account: &str,
        key: &str,
        request: LedgerChangeRequest,
    ) -> Result<BalanceChangeView, Problem> {
        let operation = parse_operation(account, key, request)?;
        let answer =
            core_handle::request(&self.core, &self.registry, |reply| Event::Ledger { operation, reply });
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
        Ok(BalanceChangeView { account: balance_view(account, &balance), repeated })
    }

    fn operations(
        &self,
        account: &str,
        most: usize,
        before: Option<u64>,
    ) -> Result<Vec<LedgerOperationView>, Problem> {
        let found = self.store.operations(account, before, most);
        let found = found.map_err(|error| Problem::new(ProblemKind::Internal, error.to_string()))?;
        Ok(found.into_iter().map(operation_view).collect())
    }
}
