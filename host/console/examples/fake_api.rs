//! The console with a fake API, to look at pages. `cargo run -p console --example fake_api -- 127.0.0.1:8090 6 4`
//! (address, peers, accounts); log in with the token `test-token`, or as admin, operator, viewer or account with `password`.

use std::net::SocketAddr;
use testkit::fake_api::FakeApi;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, usual| given.get(index).and_then(|text| text.parse().ok()).unwrap_or(usual);
    let address = given.first().map_or("127.0.0.1:8090", String::as_str);
    let listener = tokio::net::TcpListener::bind(address).await?;
    let console = console::router(FakeApi::appliance(number(1, 6), number(2, 4)).router());
    axum::serve(listener, console.into_make_service_with_connect_info::<SocketAddr>()).await
}
