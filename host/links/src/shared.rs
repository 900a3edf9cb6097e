use crate::LinksOptions;
use crate::accounts::Accounts;
use crate::sgip::bind_authenticator::Logins;
use crate::sp::state::SpState;
use ports::PasswordVerifier;
use ports::link::LinkDeps;
use std::sync::Arc;

/// State that all links share.
pub(crate) struct Shared {
    pub(crate) options: LinksOptions,
    pub(crate) deps: Arc<LinkDeps>,
    pub(crate) accounts: Accounts,
    /// The SGIP logins.
    pub(crate) logins: Logins,
    /// State that CMPP links share.
    pub(crate) cmpp: SpState,
    /// State that SMGP links share.
    pub(crate) smgp: SpState,
    pub(crate) verifier: PasswordVerifier,
}
