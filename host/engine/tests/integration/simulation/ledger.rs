//! The witness of the ledger, and its users: submitters, an admin, a biller.

use crate::simulation::Random;
use crate::simulation::disk::Disk;
use engine::{BranchLimits, LedgerAnswer};
use model::{
    Balance, Charge, FinalRecord, FinalState, LedgerChange, LedgerOperation, Message, MessageId,
    OperationRecord, PeerId, PluginVersion, Quote, RejectReason, Settlement, StepKind, Verdict,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The accounts that the biller names. The last one is never opened.
const ACCOUNTS: [&str; 3] = ["rich", "poor", "nobody"];
/// The tenants above the account, from itself up. All other submitters belong to the second one.
const TENANTS: [&str; 2] = ["shop", "reseller"];
/// The ledger accounts that the admin opens and funds, with their first credit and the largest funds.
const OPENED: [(&str, u64, usize); 4] =
    [("rich", 300, 500), ("poor", 20, 60), (TENANTS[0], 250, 400), (TENANTS[1], 400, 500)];
/// The highest price that the account may be charged; some quotes are above it.
const MAX_PRICE: u64 = 36;
const ACCOUNT: PeerId = PeerId(0);

/// The tenants that may be charged for the messages of a submitter. After some restarts, the first one is not.
fn tenants_of(submitter: PeerId) -> &'static [&'static str] {
    if submitter == ACCOUNT { &TENANTS } else { &TENANTS[1..] }
}

/// Sets the tenants that are charged for a submitter's messages, and the account's highest price.
pub(crate) fn charge_branch(submitter: PeerId, is_shop_charged: bool, branch: &mut BranchLimits) {
    let charged = tenants_of(submitter).iter().filter(|tenant| is_shop_charged || **tenant != TENANTS[0]);
    branch.charged = charged.map(|tenant| Arc::from(*tenant)).collect();
    branch.max_price = (submitter == ACCOUNT).then_some(MAX_PRICE);
}

fn charge(message: &Message) -> Option<&Charge> {
    // If it could not be paid when it was priced, it was never reserved.
    let unpaid = matches!(
        message.routed.verdict,
        Verdict::Reject(RejectReason::NoCredit | RejectReason::PriceTooHigh)
    );
    let charge = message.routed.quote.as_ref()?.charge.as_ref().filter(|_| !unpaid)?;
    let tenants: Vec<&str> = charge.tenants.iter().map(|tenant| &**tenant).collect();
    let all = tenants_of(message.origin);
    assert!(!tenants.is_empty() && all.ends_with(&tenants), "{:?} charges {tenants:?}", message.id);
    assert!(message.origin != ACCOUNT || charge.amount <= MAX_PRICE, "{:?} is too expensive", message.id);
    Some(charge)
}

/// The expected ledger, computed from the other records on disk.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct ExpectedLedger {
    funded: HashMap<Arc<str>, i64>,
    captured: HashMap<Arc<str>, u64>,
    /// The expected notifications of the biller, by message.
    expected: BTreeMap<MessageId, (Arc<str>, u64, bool)>,
    /// The stored settlements.
    written: BTreeMap<MessageId, (Arc<str>, u64, bool)>,
}

impl ExpectedLedger {
    pub(crate) fn ended(&mut self, message: &Message, ended: &FinalRecord) {
        let ledger_steps: Vec<(bool, u64)> = ended
            .steps
            .iter()
            .filter_map(|step| match step.kind {
                StepKind::Charged { amount } => Some((true, amount)),
                StepKind::Refunded { amount } => Some((false, amount)),
                _ => None,
            })
            .collect();
        let Some(charge) = charge(message) else {
            assert!(ledger_steps.is_empty(), "{message:?} costs nothing: {ended:?}");
            return;
        };
        let left = ended.steps.iter().any(|step| matches!(step.kind, StepKind::Submitted { .. }));
        let captured = match ended.state {
            FinalState::Delivered | FinalState::Relayed | FinalState::Unknown => true,
            FinalState::Failed | FinalState::Expired => left && charge.keep_on_failure,
            FinalState::Cancelled | FinalState::Rejected => false,
        };
        assert_eq!(ledger_steps, [(captured, charge.amount)], "{:?} ended {ended:?}", message.id);
        if captured {
            for account in charge.accounts() {
                *self.captured.entry(account.clone()).or_default() += charge.amount;
            }
        }
        if charge.settle {
            self.expected.insert(message.id, (charge.account.clone(), charge.amount, captured));
        }
    }

    pub(crate) fn operated(&mut self, record: &OperationRecord) {
        if let LedgerChange::Fund { amount } = record.operation.change {
            *self.funded.entry(record.operation.account.clone()).or_default() += amount;
        }
    }

    pub(crate) fn settlement(&mut self, settlement: &Settlement) {
        let Settlement { message, account, amount, captured, .. } = settlement;
        let old = self.written.insert(*message, (account.clone(), *amount, *captured));
        assert_eq!(old, None, "{message:?} is settled twice");
    }

    /// Checks the ledger at every commit.
    pub(crate) fn check<'a>(
        &self,
        balances: &BTreeMap<Arc<str>, Balance>,
        messages: impl Iterator<Item = &'a Arc<Message>>,
    ) {
        if balances.is_empty() {
            return;
        }
        let mut reserved: HashMap<&str, u64> = HashMap::new();
        for charge in messages.filter_map(|message| charge(message)) {
            for account in charge.accounts() {
                *reserved.entry(account).or_default() += charge.amount;
            }
        }
        for (name, balance) in balances {
            let sum =
                i128::from(balance.balance) + i128::from(balance.reserved) + i128::from(balance.captured);
            assert_eq!(sum, i128::from(balance.funded), "{name}: {balance:?} is not conserved");
            assert!(
                i128::from(balance.balance) >= -i128::from(balance.credit),
                "{name}: {balance:?} is below its limit"
            );
            assert_eq!(balance.reserved, reserved.remove(&**name).unwrap_or(0), "{name}: reserved");
            assert_eq!(balance.captured, self.captured.get(name).copied().unwrap_or(0), "{name}: captured");
            assert_eq!(balance.funded, self.funded.get(name).copied().unwrap_or(0), "{name}: funded");
        }
        assert!(reserved.is_empty(), "reserved for unknown accounts: {reserved:?}");
    }
}

/// The biller and the admin.
#[derive(Default)]
pub(crate) struct LedgerClients {
    operations_by_token: HashMap<u64, LedgerOperation>,
    operations: usize,
    /// The pending notification.
    with_biller: Option<Vec<Settlement>>,
    taken: BTreeMap<u64, Settlement>,
}

impl LedgerClients {
    pub(crate) fn crashed(&mut self) {
        self.operations_by_token.clear();
        self.with_biller = None;
    }

    pub(crate) fn quote(&mut self, random: &mut Random) -> Option<Box<Quote>> {
        let charge = random.chance(60).then(|| Charge {
            account: ACCOUNTS[[0, 0, 0, 0, 1, 1, 2][random.below(7)]].into(),
            amount: random.below(40) as u64,
            keep_on_failure: random.chance(50),
            settle: random.chance(50),
            tenants: Vec::new(),
        });
        let by = Arc::new(PluginVersion { plugin: "prices".to_owned(), version: "1".to_owned() });
        random.chance(90).then(|| Box::new(Quote { charge, by, note: None }))
    }

    /// A balance operation; about every third is a repetition, sometimes with another content.
    pub(crate) fn operation(&mut self, random: &mut Random) -> LedgerOperation {
        let number = match self.operations {
            first @ 0..4 => first,
            _ if random.chance(35) => random.below(self.operations),
            other => other,
        };
        self.operations = self.operations.max(number + 1);
        let mut dice = Random::new(number as u64);
        let (account, credit, most) = OPENED[number % OPENED.len()];
        let mut change = match number {
            0..4 => LedgerChange::Limit { credit },
            _ if dice.chance(20) => LedgerChange::Limit { credit: dice.below(most) as u64 * 3 / 4 },
            _ => LedgerChange::Fund { amount: dice.below(most) as i64 - 20 },
        };
        if random.chance(5) {
            change = LedgerChange::Fund { amount: 1 };
        }
        LedgerOperation {
            key: format!("operation {number}").into(),
            account: account.into(),
            change,
            actor: "admin".into(),
            reason: "".into(),
        }
    }

    pub(crate) fn note_operation(&mut self, token: u64, operation: LedgerOperation) {
        self.operations_by_token.insert(token, operation);
    }

    /// Checks an answer against the disk.
    pub(crate) fn answered(&mut self, token: u64, answer: LedgerAnswer, disk: &Disk) {
        let Some(operation) = self.operations_by_token.remove(&token) else {
            panic!("an answer without a request: {answer:?}")
        };
        let done: Vec<&OperationRecord> =
            disk.operations.values().filter(|record| record.operation.key == operation.key).collect();
        assert!(done.len() <= 1, "{} counts {} times", operation.key, done.len());
        let same = done.first().map(|record| record.operation.change == operation.change);
        match answer {
            LedgerAnswer::Done { .. } | LedgerAnswer::Repeated { .. } => assert_eq!(same, Some(true)),
            LedgerAnswer::KeyReused => assert_eq!(same, Some(false)),
            // Another operation with the same key may be in the same batch.
            LedgerAnswer::WouldExceed { .. } | LedgerAnswer::UnknownAccount => {}
            LedgerAnswer::BadName => panic!("{} is a good name", operation.key),
        }
    }

    pub(crate) fn notify(&mut self, settlements: Vec<Settlement>) {
        assert!(self.with_biller.is_none(), "the biller has two batches");
        assert!(settlements.len() <= 500 && settlements.is_sorted_by_key(|one| one.serial));
        self.with_biller = Some(settlements);
    }

    /// The biller's answer to its notification.
    pub(crate) fn answer(&mut self, random: &mut Random, healthy: bool) -> Option<(u64, bool)> {
        let batch = self.with_biller.take()?;
        let upto = batch.last()?.serial;
        let ok = healthy || random.chance(60);
        if ok || random.chance(30) {
            for one in batch {
                let serial = one.serial;
                if let Some(old) = self.taken.insert(serial, one.clone()) {
                    assert_eq!(old, one, "{serial} was something else before");
                }
            }
        }
        Some((upto, ok))
    }

    pub(crate) fn check_end(&self, disk: &Disk, seed: u64) {
        assert!(disk.settlements.is_empty(), "seed {seed}: settlements are left");
        assert_eq!(disk.expected_ledger.written, disk.expected_ledger.expected, "seed {seed}: settlements");
        let settled: BTreeMap<_, _> = self
            .taken
            .values()
            .map(|one| (one.message, (one.account.clone(), one.amount, one.captured)))
            .collect();
        assert_eq!(settled, disk.expected_ledger.expected, "seed {seed}: the biller's settlements");
        assert_eq!(settled.len(), self.taken.len(), "seed {seed}: a message was settled under two numbers");
    }
}
