//! The example routers' policy without a guest: the host itself reads and follows `plugins/examples/policy.txt`.

use crate::Outcome;
use crate::bench_fixture::BenchFixture;
use hooks::PrefixTable;
use model::{Leg, Message, PeerId, PluginVersion, RejectReason, RoutingDecision, Verdict};
use std::sync::Arc;

pub(crate) struct Native {
    by: Arc<PluginVersion>,
    prefixes: PrefixTable,
    /// Prefix and peer; without a peer: refused.
    rules: Vec<(String, Option<PeerId>)>,
    sender: Option<(Vec<u8>, PeerId)>,
}

impl Native {
    pub(crate) fn read(fixture: &BenchFixture, document: &str) -> Outcome<Self> {
        let peer = |name: &str| match name {
            "north" => Ok(fixture.north),
            "south" => Ok(fixture.south),
            "bulk" => Ok(fixture.bulk),
            _ => Err(format!("no peer {name:?} here")),
        };
        let by = Arc::new(PluginVersion { plugin: "native".to_owned(), version: String::new() });
        let mut native = Self { by, prefixes: PrefixTable::default(), rules: Vec::new(), sender: None };
        for line in document.lines() {
            match line.split_whitespace().collect::<Vec<_>>()[..] {
                ["route", prefix, name] => native.rules.push((prefix.to_owned(), Some(peer(name)?))),
                ["reject", prefix] => native.rules.push((prefix.to_owned(), None)),
                ["sender", name, to] => native.sender = Some((name.as_bytes().to_vec(), peer(to)?)),
                _ => {}
            }
        }
        for (index, (prefix, _)) in native.rules.iter().enumerate() {
            native.prefixes.insert(prefix, u32::try_from(index)?)?;
        }
        Ok(native)
    }

    pub(crate) fn route(&self, message: &Message) -> RoutingDecision {
        let text = message.destination.text();
        let found = self.prefixes.longest(text.strip_prefix('+').unwrap_or(&text));
        let rule = found.and_then(|(index, _)| self.rules.get(index as usize));
        if let Some((prefix, None)) = rule {
            return self
                .decided(Verdict::Reject(RejectReason::Prohibited), format!("prefix {prefix} is refused"));
        }
        if let Some((name, peer)) = &self.sender
            && message.source.value[..] == name[..]
        {
            let name = String::from_utf8_lossy(name);
            return self.decided(Verdict::Forward(vec![Leg::to(*peer)]), format!("sender {name}"));
        }
        match rule {
            Some((prefix, Some(peer))) => {
                self.decided(Verdict::Forward(vec![Leg::to(*peer)]), format!("prefix {prefix}"))
            }
            _ => RoutingDecision::new(Verdict::Reject(RejectReason::NoRoute), self.by.clone()),
        }
    }

    fn decided(&self, verdict: Verdict, note: String) -> RoutingDecision {
        RoutingDecision::new(verdict, self.by.clone()).with_note(note)
    }
}
