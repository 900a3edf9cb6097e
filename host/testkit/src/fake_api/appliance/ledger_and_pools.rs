//! Balances and number pools.

use super::{account_name, now, problem};
use admin::ProblemKind;
use api::{
    BalanceChangeView, BalanceView, BalancesView, LedgerOperationView, PoolCountsView, PoolEntryNumberView,
    PoolEntryView, PoolHistoryPage, PoolNumberView, PoolNumbersPage, PoolRowView, PoolSettingsView, PoolView,
};
use axum::Json;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use model::{NumberState, PoolChange, Strategy, Timestamp};

pub(super) fn pool() -> PoolView {
    PoolView {
        name: "support".to_owned(),
        settings: PoolSettingsView { strategy: Strategy::LongestIdle, quarantine_ms: 30_000 },
        numbers: PoolCountsView { idle_up: 712, idle_down: 40, busy_up: 240, busy_down: 8, total: 1000 },
        ready: 700,
        next_ms: None,
        entries: 9_120,
        acquired: 4_410,
        none: 3,
        lapsed: 12,
    }
}

/// A number in use.
fn leased() -> PoolRowView {
    PoolRowView {
        state: NumberState::BusyUp,
        since: now() - 60_000,
        ticket: Some(4),
        holder: "dialler-2".to_owned(),
        reason: String::new(),
        message: None,
        lease_ends: None,
        rests_until: None,
        weight: 1,
        calls: 41,
        held_seconds: 812,
        lapsed: 0,
    }
}

pub(super) fn numbers() -> PoolNumbersPage {
    let down = PoolRowView {
        state: NumberState::IdleDown,
        since: now() - 600_000,
        ticket: None,
        holder: String::new(),
        reason: "spam list".to_owned(),
        calls: 9,
        held_seconds: 81,
        ..leased()
    };
    let numbers = [("+4930555001", leased()), ("+4930555002", down)].map(|(number, row)| PoolNumberView {
        number: number.to_owned(),
        row,
        lease_left_ms: None,
        rest_left_ms: None,
    });
    PoolNumbersPage { numbers: numbers.to_vec(), next: Some(2) }
}

pub(super) fn journal() -> PoolHistoryPage {
    let entry = PoolEntryView {
        id: 9,
        at: Timestamp(now() - 60_000),
        event: PoolChange::Call,
        number: "+4930555001".to_owned(),
        by: Some("dialler-2".to_owned()),
        row: PoolEntryNumberView::Present(leased()),
    };
    PoolHistoryPage { entries: vec![entry], next: None }
}

pub(super) fn balance(name: &str, balance: i64) -> BalanceView {
    BalanceView {
        account: name.to_owned(),
        balance,
        reserved: 1_250_000,
        captured: 812_004_500,
        funded: 900_000_000,
        credit: 5_000_000,
    }
}

pub(super) fn ledger(accounts: usize) -> BalancesView {
    let account = |index| balance(&account_name(index), if index == 1 { -5_000_000 } else { 86_745_500 });
    BalancesView { accounts: (0..accounts).map(account).collect(), unsettled: Some(31) }
}

/// The operations on an account, the newest first.
pub(super) fn operations() -> [LedgerOperationView; 2] {
    let opened = LedgerOperationView {
        serial: 1,
        idempotency_key: "k1".to_owned(),
        at: now() - 96_000_000,
        actor: "ada".to_owned(),
        reason: "opened".to_owned(),
        fund: None,
        credit: Some(5_000_000),
        after: balance("acme", 0),
    };
    let funded = LedgerOperationView {
        serial: 2,
        idempotency_key: "k2".to_owned(),
        at: now() - 86_000_000,
        reason: "invoice <17>".to_owned(),
        fund: Some(500_000_000),
        credit: None,
        after: balance("acme", 586_000_000),
        ..opened.clone()
    };
    [funded, opened]
}

pub(super) async fn change_balance(headers: HeaderMap, body: String) -> Response {
    if headers.get("idempotency-key").is_none() {
        return problem(ProblemKind::BadRequest, "send the header `Idempotency-Key`");
    }
    if body.contains("999") {
        return problem(ProblemKind::Conflict, "the account would exceed its limit");
    }
    Json(BalanceChangeView { account: balance("acme", 86_745_500), repeated: false }).into_response()
}
