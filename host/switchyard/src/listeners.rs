//! Opens the listeners of the admin API, business systems and links, and dials the peers.

use crate::api_services::DaemonServices;
use crate::config::Config;
use crate::config_manager::RuntimeComponents;
use crate::front_ends::FrontEnds;
use crate::http_listeners::{AdminCallers, BusinessCallers, certificate};
use crate::leading_node::LeadingNode;
use crate::memory;
use crate::service_manager;
use anyhow::{Context as _, Result};
use axum::Router;
use ports::{
    ConnectionCounts, HttpLimits, HttpListener, HttpListenerLimits, LoginInterface, LoginLimiter,
    PassedInterface, ServerCertificate,
};
use replication::PassedHandlers;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};

/// Opens the admin listener. Also returns its API, without the console.
async fn open_admin_listener(
    config: &Config,
    services: &DaemonServices,
    (access, limiter): (Arc<access::Access>, Arc<LoginLimiter>),
    threads: &tokio::runtime::Handle,
) -> Result<(HttpListenerLimits, Router)> {
    let token = admin::RootToken::load_or_create(&config.token_file())?;
    token.announce(&config.token_file());
    let authenticator = admin::Authenticator::new(access, token, limiter)?;
    let certificate = certificate(config, &config.http.tls(), config.http.listen)?;
    let tls = certificate.is_some();
    if tls {
        authenticator.require_secure_cookies();
    }
    let (counts, listen, http_limits) =
        (services.status.http_connections.clone(), config.http.listen, config.http.limits());
    let api = admin::router(services.api(), authenticator.clone());
    let router = console::router(api.clone());
    // A socket belongs to the runtime that opens it.
    let opened = threads.spawn(async move {
        let listener = HttpListener::open("http", listen, certificate, http_limits, counts).await?;
        let (address, limits) = (listener.address(), listener.limits().clone());
        tokio::spawn(listener.serve(router, Arc::new(AdminCallers(authenticator))));
        Ok::<_, std::io::Error>((address, limits))
    });
    let (address, limits) = opened.await.context("opening the admin listener")?.with_context(|| {
        format!("[http] listen = \"{}\": is another program using it?", config.http.listen)
    })?;
    service_manager::write_admin_url(tls, address);
    tracing::info!(%address, tls, "admin listener open");
    Ok((limits, api))
}

/// Opens and serves the listener of a section whose callers are not admins.
async fn open_front_end(
    (section, listen, limits): (&str, SocketAddr, HttpLimits),
    certificate: Option<Arc<ServerCertificate>>,
    counts: Arc<ConnectionCounts>,
    router: Router,
) -> Result<(SocketAddr, HttpListenerLimits)> {
    let listener = HttpListener::open(section, listen, certificate, limits, counts)
        .await
        .with_context(|| format!("[{section}] listen = \"{listen}\": is another program using it?"))?;
    let opened = (listener.address(), listener.limits().clone());
    tokio::spawn(listener.serve(router, Arc::new(BusinessCallers)));
    Ok(opened)
}

/// From now on, accepts requests and links that other nodes pass on to this leader.
pub(crate) fn serve_passed(node: &LeadingNode, front_ends: &FrontEnds, admin: Router) {
    let FrontEnds { links, business, plugin_peers, redis, .. } = front_ends;
    let (links, redis) = (links.clone(), redis.clone());
    node.serve_passed(PassedHandlers {
        connection: Arc::new(move |socket, connection| match (connection.interface, &redis) {
            (PassedInterface::Login(LoginInterface::Redis), Some(redis)) => {
                redis.accept_passed(socket, &connection)
            }
            (PassedInterface::Login(LoginInterface::Redis), None) => Err("the Redis listener is not open"),
            _ => links.accept_passed(socket, connection),
        }),
        business: business.router(),
        admin,
        peer_callbacks: plugin_peers.router(),
    });
}

/// Opens all listeners and dials the peers. Returns the admin API.
pub(crate) async fn open(
    config: &Config,
    FrontEnds { links, business, plugin_peers, .. }: &FrontEnds,
    services: &DaemonServices,
    mut live: RuntimeComponents,
    limiter: Arc<LoginLimiter>,
    admin_threads: &tokio::runtime::Handle,
) -> Result<Router> {
    let mut hangups = signal(SignalKind::hangup())?;
    let (http_limits, api) =
        open_admin_listener(config, services, (live.access.clone(), limiter), admin_threads).await?;
    live.http_limits = Some(http_limits);

    for account in &config.accounts {
        links.set_account(account.links.clone())?;
        if let Some(options) = &account.business {
            business.set_account(options.clone())?;
        }
    }
    if let Some(listener) = &config.business {
        let counts = services.status.business_connections.clone();
        let certificate = certificate(config, &listener.tls, listener.listen)?;
        let tls = certificate.is_some();
        let place = ("business", listener.listen, listener.limits());
        let (address, limits) = open_front_end(place, certificate, counts, business.router()).await?;
        live.business_limits = Some(limits);
        tracing::info!(%address, tls, "business listener open");
    }
    if let Some(listener) = &config.peer_callbacks {
        let certificate = certificate(config, &listener.tls, listener.listen)?;
        let tls = certificate.is_some();
        let place = ("peer-callbacks", listener.listen, listener.limits());
        let router = plugin_peers.router();
        let (address, limits) = open_front_end(place, certificate, Arc::default(), router).await?;
        live.callback_limits = Some(limits);
        tracing::info!(%address, tls, "callback listener open");
    }
    links.set_partition_accounts(config.partition_account_options());
    links.set_remote_peers(config.remote_peer_options())?;
    for peer in config.plugin_peers_here() {
        plugin_peers.set_peer(peer.link.clone())?;
    }
    for gateway in config.gateways_here() {
        links.set_gateway(gateway.links.clone())?;
    }
    for peer in config.peers_here() {
        links.set_peer(peer.links.clone())?;
    }
    for listener in &config.listeners {
        let address = links.listen(listener.clone()).await?;
        tracing::info!(listener = listener.name(), %address, "listening");
    }
    // Configuration changes are permitted only now: the setup above would undo an earlier change.
    services.config_manager.open(live)?;
    services.operation.set_ready();
    tracing::info!(ms = services.status.started.elapsed().as_millis(), "ready");
    memory::release_free_memory();
    service_manager::ready();
    let config_manager = services.config_manager.clone();
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            service_manager::reloading();
            let config_manager = config_manager.clone();
            let _ = tokio::task::spawn_blocking(move || config_manager.reload()).await;
            service_manager::ready();
        }
    });
    Ok(api)
}
