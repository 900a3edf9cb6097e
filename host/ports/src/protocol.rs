/// The protocol of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Protocol {
    /// SMPP.
    Smpp,
    /// SGIP.
    Sgip,
    /// CMPP.
    Cmpp,
    /// SMGP.
    Smgp,
    /// HTTP of business systems: JSON or XML-RPC.
    Http,
    /// GSUP, from a core network.
    Gsup,
    /// Another partition of the cluster.
    Partition,
    /// The command line of subscribers.
    Shell,
    /// The appliance itself: test messages of admins.
    #[default]
    Internal,
}

impl Protocol {
    /// The protocol's name in the API and in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Smpp => "smpp",
            Self::Sgip => "sgip",
            Self::Cmpp => "cmpp",
            Self::Smgp => "smgp",
            Self::Http => "http",
            Self::Gsup => "gsup",
            Self::Partition => "partition",
            Self::Shell => "shell",
            Self::Internal => "internal",
        }
    }
}
