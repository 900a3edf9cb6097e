//! The users: submitters with their requests, admins, and the answers of plugins.

use super::{ACCOUNT, FEW, PEERS, SERIAL, World};
use crate::simulation::plugins::Plugins;
use crate::simulation::sender_numbers;
use crate::simulation::{lookups, pace_limits, queue_actions, screens};
use bytes::Bytes;
use engine::{EngineCommand, Event, ReplyTo};
use model::{
    Address, DlrRequest, IdempotencyKey, Leg, LinkId, Message, MessageId, MessageKind, PeerId, PluginVersion,
    Priority, RoutingDecision, Text, Timestamp, Verdict,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

impl World {
    /// Submits some messages under a key, at times a used one.
    pub(super) fn submit_keyed(&mut self) {
        let fresh = self.submitted;
        let key = if self.random.chance(40) { self.random.below(fresh as usize + 1) as u64 } else { fresh };
        let count = 1 + key as usize % 3;
        let shared_id = key.is_multiple_of(2);
        let messages = (0..count).map(|_| self.message(false)).collect();
        self.submitted += 1;
        let token = self.token();
        self.keys_by_token.insert(token, key);
        let key = IdempotencyKey {
            octets: key.to_be_bytes().as_slice().into(),
            digest: key,
            required: true,
            lifetime: None,
        };
        let reply = ReplyTo { link: LinkId(0), token };
        self.apply(Event::AcceptMany { messages, shared_id, key: Some(key), reply });
    }

    pub(super) fn submit(&mut self) {
        // Some come from a handset, which gets the DLRs.
        let mobile = self.plan.serial && self.random.chance(10);
        let message = self.message(mobile);
        self.submitted += 1;
        let reply = ReplyTo { link: LinkId(0), token: self.submitted };
        self.apply(Event::Accept { message: Box::new(message), reply });
    }

    pub(super) fn message(&mut self, mobile: bool) -> Message {
        let mut legs = Vec::new();
        for _ in 0..=self.random.below(2) {
            let mut leg = Leg::to(PEERS[self.random.below(3)]);
            leg.rank = self.random.below(2) as u8;
            leg.longest_wait = self.random.chance(20).then(|| Duration::from_secs(3));
            if self.plan.plugins {
                Plugins::touch(&mut self.random, &mut leg);
            }
            legs.push(leg);
        }
        if mobile {
            legs.iter_mut().for_each(|leg| leg.peer = PEERS[self.random.below(2)]);
        }
        let numbers = if self.plan.serial { FEW } else { 50 };
        let destination = format!("861{}", self.random.below(numbers));
        let source = if mobile { format!("861{}", self.random.below(FEW)) } else { "10655".to_owned() };
        let verdict = if self.random.chance(5) {
            Verdict::Hold(Timestamp(self.wall + 5_000))
        } else {
            Verdict::Forward(legs)
        };
        let dlr_request = if self.random.chance(60) { DlrRequest::FINAL } else { DlrRequest::NONE };
        let mut message = Message {
            id: MessageId(0),
            kind: MessageKind::Text,
            origin: if mobile { SERIAL } else { ACCOUNT },
            source: Address::international(&source),
            destination: Address::international(&destination),
            service_type: Bytes::new(),
            protocol_id: 0,
            esm_class: 0,
            priority: Priority::new(self.random.below(4) as u8),
            dlr_request,
            replace_if_present: self.random.chance(2),
            submission: None,
            text: Text { octets: Bytes::from_static(b"text"), ..Text::default() },
            tlvs: Bytes::new(),
            protocol_fields: Bytes::new(),
            sealed: None,
            accepted_at: Timestamp(0),
            scheduled: self.random.chance(10).then(|| Timestamp(self.wall + 4_000)),
            expires_at: Timestamp(self.wall + 3_000_000 + self.random.below(10_000_000) as u64),
            routed: RoutingDecision::new(
                verdict,
                Arc::new(PluginVersion { plugin: "sim".to_owned(), version: "1".to_owned() }),
            ),
        };
        if self.plan.ledger {
            message.routed.quote = self.ledger_clients.quote(&mut self.random);
        }
        if self.plan.senders {
            message.routed.sender = sender_numbers::sender_request(&mut self.random, self.healthy);
        }
        if self.plan.screens {
            message.routed = screens::screen(&mut self.random, &message, message.routed.clone());
        }
        if self.plan.lookups {
            message.routed = lookups::look_up(&mut self.random, &message, message.routed.clone());
        }
        if self.plan.pace {
            pace_limits::limit(&mut self.random, &mut message);
        }
        message
    }

    /// Whether DLRs may be purged too.
    pub(super) fn purges(&self) -> bool {
        self.plan.queue_actions && self.seed.is_multiple_of(4)
    }

    /// An admin's queue action.
    pub(super) fn random_queue_action(&mut self) {
        let parties = queue_actions::Parties { account: ACCOUNT, peers: PEERS };
        let purges = self.purges();
        let event = queue_actions::random_event(&mut self.random, &self.engine, &parties, purges);
        self.apply(event);
    }

    pub(super) fn operate(&mut self) {
        let operation = self.ledger_clients.operation(&mut self.random);
        let token = self.token();
        self.ledger_clients.note_operation(token, operation.clone());
        self.apply(Event::Ledger { operation, reply: ReplyTo { link: LinkId(0), token } });
    }

    pub(super) fn answer_biller(&mut self) {
        if let Some((upto, ok)) = self.ledger_clients.answer(&mut self.random, self.healthy) {
            self.apply(Event::BillerNotified { upto, ok });
        }
    }

    /// An answer of a plugin, or another plugin.
    pub(super) fn random_plugin_event(&mut self) {
        let event = match self.random.below(20) {
            0..9 => return self.resolve(),
            9..18 => self.plugins.decide(&mut self.random, false),
            18 => Some(Plugins::alert(&mut self.random)),
            _ => {
                let (resolver, policy) = (self.random.chance(70), self.random.chance(70));
                return self.reroute(resolver, policy);
            }
        };
        if let Some(event) = event {
            self.apply(event);
        }
    }

    /// An answer of the resolver. Released messages leave in order.
    pub(super) fn resolve(&mut self) {
        self.commit();
        let Some(event) = self.plugins.resolve(&mut self.random, self.healthy) else { return };
        let Event::Resolved { msisdn, .. } = &event else { return };
        let waiting = Plugins::waiting_messages(msisdn, &self.disk, &self.engine);
        self.apply(event);
        self.settle();
        let mut newest: HashMap<(PeerId, Priority), MessageId> = HashMap::new();
        for command in &self.out.commands {
            let EngineCommand::Send { link, message, .. } = command else { continue };
            if let Some((_, peer)) = self.links.iter().find(|(known, _)| known == link)
                && waiting.contains(&message.id)
                && let Some(before) = newest.insert((*peer, message.priority), message.id)
            {
                assert!(before < message.id, "seed {}: {before:?} before {:?}", self.seed, message.id);
            }
        }
    }

    /// An answer of the lookups.
    pub(super) fn answer_lookup(&mut self) {
        self.commit();
        if let Some(event) = self.lookups.answer(&mut self.random, self.healthy) {
            self.apply(event);
        }
    }

    /// Binds and unbinds plugins. Messages with pending questions must have left the old ones.
    pub(super) fn reroute(&mut self, resolver: bool, policy: bool) {
        self.commit();
        if (self.plugins.resolver, self.plugins.policy) != (resolver, policy) {
            (self.plugins.resolver, self.plugins.policy) = (resolver, policy);
            self.plugins.unbind_all();
            // Both are replaced.
            self.apply(Event::HooksChanged {
                resolver: false,
                delivery_policy: false,
                receipt: self.receipts.bound,
                biller: true,
            });
        }
        self.apply(Event::HooksChanged {
            resolver,
            delivery_policy: policy,
            receipt: self.receipts.bound,
            biller: true,
        });
    }

    pub(super) fn send_random_request(&mut self) {
        let Some(id) = self.acknowledged.last().copied() else { return };
        let reply = ReplyTo { link: LinkId(0), token: 0 };
        let source = Some(Address::international("10655"));
        // If it was submitted with others, its submitter knows one id for all.
        let id = self.disk.submissions.get(&id).copied().unwrap_or(id);
        let destination = self.random.chance(50).then(|| Address::international("8617"));
        let event = match self.random.below(4) {
            0 => Event::Cancel { origin: ACCOUNT, id, source, destination, reply },
            1 => Event::Query { origin: ACCOUNT, id, source, reply },
            2 => Event::Replace {
                origin: ACCOUNT,
                id,
                source: Address::international("10655"),
                text: Text { octets: Bytes::from_static(b"new text"), ..Text::default() },
                scheduled: None,
                expires_at: None,
                dlr_request: DlrRequest::FINAL,
                reply,
            },
            _ => Event::CancelMatching {
                origin: ACCOUNT,
                source: Address::international("10655"),
                destination: Address::international("8617"),
                service_type: Bytes::new(),
                reply,
            },
        };
        self.apply(event);
    }

    pub(super) fn answer_questions(&mut self) {
        let loads = std::mem::take(&mut self.loads);
        for id in loads {
            let message = self.disk.messages.get(&id).cloned();
            self.apply(Event::Loaded { id, message });
        }
        for message in std::mem::take(&mut self.routes) {
            let mut leg = Leg::to(PEERS[self.random.below(3)]);
            if self.plan.plugins {
                Plugins::touch(&mut self.random, &mut leg);
            }
            let mut routed =
                RoutingDecision { verdict: Verdict::Forward(vec![leg]), ..message.routed.clone() };
            if self.plan.ledger {
                routed.quote = self.ledger_clients.quote(&mut self.random);
            }
            if self.plan.senders {
                routed.sender = sender_numbers::sender_request(&mut self.random, self.healthy);
            }
            if self.plan.screens {
                routed = screens::screen(&mut self.random, &message, routed);
            }
            if self.plan.lookups {
                routed = lookups::look_up(&mut self.random, &message, routed);
            }
            if self.plan.pace && matches!(routed.verdict, Verdict::Forward(_)) {
                routed.changes = pace_limits::changes(&mut self.random);
            }
            self.apply(Event::Rerouted { id: message.id, routed, text: None });
        }
    }
}
