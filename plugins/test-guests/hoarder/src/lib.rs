//! A test guest: a router that uses WASI's clock. For messages from "bad" it creates pollables and never drops them;
//! for others it drops each one, and forwards to the peer in its document.

mod bindings {
    wit_bindgen::generate!({
        inline: "
            package test:hoarder;

            world hoarder {
                include switchyard:hooks/router@0.3.0;
                import wasi:clocks/monotonic-clock@0.2.0;
            }

            package wasi:io@0.2.0 {
                interface poll {
                    resource pollable {
                        ready: func() -> bool;
                    }
                }
            }

            package wasi:clocks@0.2.0 {
                interface monotonic-clock {
                    use wasi:io/poll@0.2.0.{pollable};
                    type duration = u64;
                    subscribe-duration: func(when: duration) -> pollable;
                }
            }
        ",
        path: "../../../wit",
        world: "test:hoarder/hoarder",
        generate_all,
    });
}

use bindings::exports::switchyard::hooks::routing::{Decision, Guest, Leg, Message, Verdict};
use bindings::wasi::clocks::monotonic_clock;
use std::cell::RefCell;

struct Hoarder;

thread_local! {
    static PEER: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Guest for Hoarder {
    fn configure(document: String) -> Result<(), String> {
        PEER.set(document);
        Ok(())
    }

    fn route(message: Message) -> Decision {
        if message.source.value == "bad" {
            loop {
                std::mem::forget(monotonic_clock::subscribe_duration(1));
            }
        }
        let ready = (0..10_000).filter(|_| monotonic_clock::subscribe_duration(1).ready()).count();
        let peer = PEER.with_borrow(Clone::clone);
        let (rank, weight, cost) = (0, 1, 0);
        let leg = Leg { peer, rank, weight, cost, longest_wait: None, source: None, destination: None };
        Decision {
            verdict: Verdict::Forward(vec![leg]),
            note: Some(format!("{ready} were ready")),
            changes: Vec::new(),
        }
    }
}

bindings::export!(Hoarder with_types_in bindings);
