use model::Message;

/// Screens, routers and billers. The daemon implements it.
pub trait Routing: Send + Sync {
    /// Screens and routes a submission, or an MO of a peer: sets its routing decision, and its text if a screen replaces
    /// it. Runs on the link's thread for every message, before the engine gets the message. A refusal is a verdict too; the
    /// engine turns it into an answer.
    fn route(&self, message: &mut Message);

    /// Screens and routes messages that arrived together, in order, and sets the decision of each. The decisions are those of
    /// [`Routing::route`]; together they may cost less.
    fn route_many(&self, messages: &mut [&mut Message]) {
        for message in messages {
            self.route(message);
        }
    }
}
