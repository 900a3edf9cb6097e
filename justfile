# Shortcuts for the most common commands of `cargo xtask`.

# demo: an appliance, a sample ESME, a sample peer
demo *arguments:
    cargo xtask demo {{arguments}}

# run the appliance with the sample configuration
run config="host/switchyard/switchyard.toml":
    cargo run --release --package switchyard -- serve --config {{config}}

# formatting, lints, unit tests
check:
    cargo xtask test check

# and behaviour tests without foreign programs; `just test all`: with them, as continuous integration does
test *arguments:
    cargo xtask test {{arguments}}

# everything, and fuzzing, crash rounds, benchmarks, release artifacts and the image
nightly *arguments:
    cargo xtask test nightly {{arguments}}

# run one fuzz target, or `all`
fuzz target *arguments:
    cargo xtask fuzz {{target}} {{arguments}}

# one table of throughput and cost
bench *arguments:
    cargo xtask bench {{arguments}}

# crash test: SIGKILL under full load
crash *arguments:
    cargo xtask crash {{arguments}}

# replace the router under full load
swap *arguments:
    cargo xtask swap {{arguments}}

# change the configuration under load
reconfigure *arguments:
    cargo xtask reconfigure {{arguments}}

# build the plugins into target/plugins
plugins:
    cargo xtask plugins

# render the manual with mdBook into target/docs
docs:
    mdbook build docs
