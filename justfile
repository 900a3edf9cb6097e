# The few commands that people use. Everything is in `cargo xtask`; this is the short way to it.

# see it work: an appliance, a sample ESME, a sample peer
demo *arguments:
    cargo xtask demo {{arguments}}

# run the appliance with the sample configuration
run config="host/switchyard/switchyard.toml":
    cargo run --release --package switchyard -- serve --config {{config}}

# formatting, lints and all tests
test:
    cargo xtask test

# one table of what it does and what it costs
bench *arguments:
    cargo xtask bench {{arguments}}

# SIGKILL under full load
crash *arguments:
    cargo xtask crash {{arguments}}

# the router exchanged under full load
swap *arguments:
    cargo xtask swap {{arguments}}

# the configuration changed under load
reconfigure *arguments:
    cargo xtask reconfigure {{arguments}}

# the guests, as components in target/plugins
plugins:
    cargo xtask plugins
