//! A test guest: a biller that sends a request to another system, whose address is its document, for each price and
//! settlement. A price's note has the result; a settlement succeeds if the response has status 200.

use switchyard_sdk::{Biller, FirstLeg, Message, Quote, Settlement, free, http};

struct Guest(String);

impl Guest {
    fn ask(&self) -> Result<u16, String> {
        let url = self.0.clone();
        let request = http::Request { method: "POST".to_owned(), url, headers: Vec::new(), body: Vec::new() };
        http::fetch(&request).map(|response| response.status).map_err(|failure| format!("{failure:?}"))
    }
}

impl Biller for Guest {
    fn configure(document: &str) -> Result<Self, String> {
        Ok(Self(document.trim().to_owned()))
    }

    fn price(&self, _message: &Message, _leg: Option<&FirstLeg>) -> Quote {
        free().because(format!("{:?}", self.ask()))
    }

    fn settle(&self, _settlements: &[Settlement]) -> Result<(), String> {
        match self.ask()? {
            200 => Ok(()),
            status => Err(format!("status {status}")),
        }
    }
}

switchyard_sdk::export_biller!(Guest);
