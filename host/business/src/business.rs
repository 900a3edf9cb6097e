use crate::accounts::{Account, Accounts};
use crate::calls::Shared;
use crate::options::{BusinessAccountOptions, BusinessOptions};
use crate::push::{PushClients, PushError, Pusher};
use api::BusinessView;
use axum::Router;
use hooks::Hooks;
use parking_lot::Mutex;
use ports::{EngineClient, EventSink, LinkRegistry, PasswordVerifier, Protocol, Routing};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// The HTTP and XML-RPC interface of business systems. Its methods must be called within a tokio runtime.
pub struct Business {
    shared: Arc<Shared>,
    pushers: Mutex<HashMap<String, RunningPusher>>,
    clients: PushClients,
}

struct RunningPusher {
    stop: watch::Sender<Option<Instant>>,
    task: JoinHandle<()>,
}

/// Maximum time for the pushes of a removed or changed account to end.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

impl Business {
    /// Creates the interface without accounts. `plugins` serve the paths of other products' APIs.
    ///
    /// # Errors
    /// Fails if the HTTP client cannot be set up or the system has no randomness.
    pub fn new(
        options: BusinessOptions,
        core: Arc<dyn EventSink>,
        routing: Arc<dyn Routing>,
        registry: Arc<LinkRegistry>,
        plugins: Option<Arc<Hooks>>,
    ) -> Result<Self, PushError> {
        let shared = Shared {
            accounts: Accounts::default(),
            verifier: PasswordVerifier::new(options.verifications).map_err(PushError::Random)?,
            engine_client: EngineClient::open_for(&registry, Protocol::Http),
            inbox: Arc::default(),
            core,
            routing,
            registry,
            plugins,
            options: Mutex::new(options),
        };
        Ok(Self { shared: Arc::new(shared), pushers: Mutex::default(), clients: PushClients::new()? })
    }

    /// Changes the options for the next calls, except for the size of a request.
    pub fn set_options(&self, options: BusinessOptions) {
        *self.shared.options.lock() = options;
    }

    /// Adds or changes an account. Its pushes start, or continue with the new URL.
    ///
    /// # Errors
    /// Fails if the push URL is invalid; the account works without pushes then.
    pub fn set_account(&self, options: BusinessAccountOptions) -> Result<(), PushError> {
        let name = options.name.clone();
        let account = self.shared.accounts.set(options, self.shared.registry.accounts());
        self.stop_pushes(&name, Instant::now() + STOP_TIMEOUT);
        let Some(push) = account.options.push.clone() else { return Ok(()) };
        if !push.has_url() {
            return Err(PushError::Url { account: name, url: push.url });
        }
        let (stop, orders) = watch::channel(None);
        let pusher = Pusher {
            core: self.shared.core.clone(),
            registry: self.shared.registry.clone(),
            account,
            push,
            clients: self.clients.clone(),
        };
        let task = tokio::spawn(pusher.run(orders));
        self.pushers.lock().insert(name, RunningPusher { stop, task });
        Ok(())
    }

    /// Removes an account: its calls are rejected, its pushes end. Returns whether it existed.
    pub fn remove_account(&self, name: &str) -> bool {
        self.stop_pushes(name, Instant::now() + STOP_TIMEOUT);
        self.shared.accounts.remove(name)
    }

    fn stop_pushes(&self, name: &str, until: Instant) {
        if let Some(running) = self.pushers.lock().remove(name) {
            running.stop.send_replace(Some(until));
        }
    }

    /// The HTTP routes. Serve them with the remote address as connection info.
    pub fn router(&self) -> Router {
        crate::http_json::router(self.shared.clone())
    }

    /// The state of all accounts.
    #[must_use]
    pub fn states(&self) -> Vec<BusinessView> {
        let view = |account: Arc<Account>| {
            let url = account.options.push.as_ref().map(|push| push.url.as_str());
            account.counts.view(&account.options.name, url)
        };
        self.shared.accounts.all().into_iter().map(view).collect()
    }

    /// Ends pushes within the given time and releases fetched items that were not acknowledged. The core must keep
    /// running meanwhile.
    pub async fn shutdown(&self, within: Duration) {
        let until = Instant::now() + within;
        let running: Vec<RunningPusher> = self.pushers.lock().drain().map(|(_, running)| running).collect();
        for one in &running {
            one.stop.send_replace(Some(until));
        }
        for one in running {
            let _ = one.task.await;
        }
        self.shared.inbox.close().await;
        self.shared.engine_client.close();
    }
}
