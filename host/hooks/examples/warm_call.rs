//! What a warm router call costs beyond a native one: `cargo run --release -p hooks --example warm_call`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a measurement run by hand")]

use arc_swap::ArcSwap;
use capabilities::{
    CounterOptions, Counters, Fetch, FetchFailure, Grants, LogBudgets, MemoryValues, Request, Response,
    Shelf, ShelfOptions, TableHlr,
};
use hooks::{Binding, Board, Hooks, HooksOptions, Powers};
use model::{Address, Directory, Hook, Leg, Message, Timestamp, Verdict};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const POLICY: &str = "[[route]]\nprefix = \"99\"\nlegs = [{ peer = \"elsewhere\" }]\n\
                      [default]\nlegs = [{ peer = \"upstream\" }]\nnote = \"everything upstream\"\n";

fn main() {
    let mut directory = Directory::new();
    let (origin, _) = directory.intern("acme").unwrap();
    let (upstream, _) = directory.intern("upstream").unwrap();
    directory.intern("elsewhere").unwrap();
    let folder = std::env::temp_dir().join(format!("switchyard-warm-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let hooks = Hooks::open(
        &folder,
        HooksOptions::default(),
        Arc::new(ArcSwap::from_pointee(directory)),
        powers(&folder),
    )
    .unwrap();
    let component = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/plugins/prefix_router.wasm");
    let version = hooks.upload("prefix-router", &std::fs::read(component).unwrap(), None).unwrap();
    hooks
        .activate(
            Hook::Router,
            Timestamp(0),
            vec![Binding::new("prefix-router", &version.version, POLICY)],
            None,
        )
        .unwrap();
    let by = Arc::new(model::DecidedBy { plugin: "native".to_owned(), version: String::new() });
    let native = model::Routed {
        verdict: Verdict::Forward(vec![Leg::to(upstream)]),
        by,
        note: None,
        quote: None,
        seen: None,
    };
    let message = Message {
        id: model::MessageId(0),
        kind: model::Kind::Text,
        origin,
        source: Address::international("10655912345"),
        destination: Address::international("8613012345678"),
        service_type: bytes::Bytes::new(),
        protocol_id: 0,
        esm_class: 0,
        priority: model::Priority::default(),
        receipts: model::ReceiptRequest::NONE,
        replace_if_present: false,
        text: model::Text { octets: bytes::Bytes::from_static(&[b'x'; 140]), ..model::Text::default() },
        tlvs: bytes::Bytes::new(),
        accepted_at: Timestamp(0),
        scheduled: None,
        expires_at: Timestamp(0),
        routed: native.clone(),
    };
    const CALLS: u32 = 300_000;
    let (mut hook, mut constant) = (f64::MAX, f64::MAX);
    for _ in 0..5 {
        let begun = Instant::now();
        for _ in 0..CALLS {
            black_box(hooks.route(black_box(&message), Timestamp(1)));
        }
        hook = hook.min(begun.elapsed().as_nanos() as f64 / f64::from(CALLS));
        let begun = Instant::now();
        for _ in 0..CALLS {
            black_box(black_box(&native).clone());
        }
        constant = constant.min(begun.elapsed().as_nanos() as f64 / f64::from(CALLS));
    }
    println!(
        "warm router call {hook:.0} ns, native constant {constant:.0} ns, beyond it {:.0} ns",
        hook - constant
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

struct Offline;

impl Fetch for Offline {
    fn fetch(&self, _: &str, _: &Grants, _: Request) -> Result<Response, FetchFailure> {
        Err(FetchFailure::Unreachable("offline".to_owned()))
    }
}

fn powers(folder: &std::path::Path) -> Powers {
    let shelf = Arc::new(Shelf::open(&folder.join("tables"), ShelfOptions::default()).unwrap());
    Powers {
        board: Arc::new(Board::default()),
        counters: Arc::new(Counters::new(CounterOptions::default())),
        values: Arc::new(MemoryValues::default()),
        fetch: Arc::new(Offline),
        hlr: Arc::new(TableHlr::new(shelf.clone())),
        shelf,
        lines: LogBudgets::default(),
    }
}
