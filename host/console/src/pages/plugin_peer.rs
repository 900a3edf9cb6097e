//! The additional region on the page of a plugin peer.

use crate::api_caller::ApiError;
use crate::format::{ago, count, state_badge, version_tag};
use crate::live::Region;
use crate::pages::faults;
use crate::request_context::RequestContext;
use crate::table::detail_list;
use api::{HookStateView, PluginPeerView};
use maud::{Markup, html};

/// The plugin and the figures of a peer; `None` if no plugin is configured for it.
pub(crate) async fn region(context: &RequestContext, name: &str) -> Result<Option<Region>, ApiError> {
    let all = context.get::<Vec<PluginPeerView>>("/v1/plugin-peers").await?;
    Ok(all.iter().find(|peer| peer.peer == name).map(|peer| ("plugin", figures(peer))))
}

/// The figures of `GET /v1/plugin-peers`.
fn figures(peer: &PluginPeerView) -> Markup {
    let attempts = peer.accepted + peer.refused + peer.uncertain;
    let callbacks = &peer.callbacks;
    let mean = peer.busy_ms.checked_div(attempts);
    html! {
        h2 { "Plugin" }
        (detail_list(&[
            ("Plugin", html! {
                @match (&peer.plugin, &peer.version) {
                    (Some(plugin), Some(version)) => { a href="/plugins/peer" { (plugin) } " " (version_tag(version)) }
                    _ => { (state_badge("not bound")) " " a href="/plugins/peer" { "Bind one" } }
                }
            }),
            ("In flight", html! { (peer.in_flight) " of " (peer.window) }),
            ("Accepted", html! { (count(peer.accepted)) }),
            ("Refused", html! { (count(peer.refused)) }),
            ("Uncertain", html! { @if peer.uncertain > 0 { a href="/uncertain" { (count(peer.uncertain)) } } @else { "0" } }),
            ("Back in the queue", html! { (count(peer.not_sent)) }),
            ("Mean time", html! { @match mean { Some(ms) => { (ms) " ms" } None => { "—" } } }),
            ("Last failure", html! {
                @match &peer.last_failure {
                    Some(why) => { (why) " " span.muted { (ago(peer.last_failure_at.unwrap_or_default())) } }
                    None => { "—" }
                }
            }),
            ("Callbacks accepted", html! { (count(callbacks.accepted)) }),
            ("Callbacks refused", html! { (count(callbacks.refused)) }),
            ("Callbacks failed", html! { (count(callbacks.failed)) }),
            ("Callbacks beyond the limits", html! { (count(callbacks.limited)) }),
            ("DLRs in callbacks", html! { (count(callbacks.receipts)) }),
            ("Messages in callbacks", html! { (count(callbacks.messages)) }),
        ]))
        p.muted { "Since the start of the daemon." }
    }
}

/// The faults of the peer's plugin, from the page of its hook.
pub(crate) async fn faults_section(context: &RequestContext, name: &str) -> Option<Markup> {
    let mut hook = context.get::<HookStateView>("/v1/hooks/peer").await.ok()?;
    let serves = hook.live.chain.iter().filter(|binding| binding.peers.iter().any(|peer| peer == name));
    let plugins: Vec<String> = serves.map(|binding| binding.plugin.clone()).collect();
    hook.faults.retain(|one| plugins.contains(&one.plugin));
    Some(html! {
        section.card #faults {
            h2 { "Faults of its plugin" }
            (faults::faults(&hook, context.may_read_bodies()))
            p { a href="/plugins/peer" { "Versions, policy, trials and rollback of the hook" } }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use api::PeerCallbacksView;

    #[test]
    fn all_figures_are_shown() {
        let peer = PluginPeerView {
            peer: "upstream".to_owned(),
            plugin: Some("http-peer".to_owned()),
            version: Some("0123456789ab".to_owned()),
            window: 8,
            in_flight: 3,
            accepted: 1_007,
            refused: 11,
            uncertain: 2,
            not_sent: 5,
            busy_ms: 10_200,
            callbacks: PeerCallbacksView {
                accepted: 21,
                refused: 22,
                failed: 23,
                limited: 24,
                receipts: 25,
                messages: 26,
            },
            last_failure: Some("refused with code 402: <no credit>".to_owned()),
            last_failure_at: Some(1),
        };
        let text = figures(&peer).into_string();
        for part in ["http-peer", "3 of 8", ">11<", "href=\"/uncertain\"", "10 ms", "&lt;no credit&gt;"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!((21..=26).all(|number| text.contains(&format!(">{number}<"))), "{text}");
        let unbound = figures(&PluginPeerView { plugin: None, ..peer }).into_string();
        assert!(unbound.contains("not bound") && unbound.contains("/plugins/peer"), "{unbound}");
    }
}
