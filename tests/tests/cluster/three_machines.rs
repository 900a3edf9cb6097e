//! The manual's steps from three machines to a cluster, in three network namespaces.

use anyhow::{Context, Result, ensure};
use behaviour_tests::Fixture;
use behaviour_tests::manual::{CommandBlock, ManualPage, Substitutions, missing_line};
use std::path::Path;
use std::process::Command;

const PAGE: &str = "docs/guide/cluster.md";
const MARKS: [&str; 2] = ["sh certificates", "sh cluster"];
/// Substitutes for the service manager, the package manager and root on a machine.
const SHIMS: [(&str, &str); 4] = [
    ("sudo", "exec \"$@\""),
    ("apt-get", "echo already installed"),
    ("hostname", "echo $MACHINE"),
    (
        "systemctl",
        r#"
unit=${!#}
case $1 in
restart)
    kill $(cat $ROOT/$unit.pid 2> /dev/null) 2> /dev/null || true
    if [ $unit = etcd ]; then
        set -a; . $ROOT/etc/default/etcd; set +a
        ETCD_DATA_DIR=$ROOT/etcd setsid etcd > $ROOT/etcd.log 2>&1 < /dev/null &
    else
        setsid switchyard serve --config $ROOT/etc/switchyard/switchyard.toml > $ROOT/switchyard.log 2>&1 < /dev/null &
    fi
    echo $! > $ROOT/$unit.pid ;;
kill) kill -9 $(cat $ROOT/$unit.pid) ;;
esac
"#,
    ),
];
/// The network, then the blocks of the page. Output that takes time is polled.
const RUN: &str = r#"
set -eu -o pipefail
mount -t tmpfs tmpfs /run && mkdir -p /run/netns
trap 'kill -9 $(cat */*.pid) 2> kill.log || true' EXIT
ip link set lo up
ip link add bridge type bridge && ip link set bridge up
number=1
for machine in a b w; do
    ip netns add $machine
    ip link add to-$machine type veth peer name eth0 netns $machine
    ip link set to-$machine master bridge up
    ip -netns $machine link set lo up
    ip -netns $machine address add 192.0.2.$number/24 dev eth0
    ip -netns $machine link set eth0 up
    number=$((number + 1))
done
on() {
    MACHINE=$1 ROOT=$PWD/$1 SWITCHYARD_CONFIG=$PWD/$1/etc/switchyard/switchyard.toml \
    SWITCHYARD_TOKEN_FILE=$PWD/$1/data/token SWITCHYARD_CA=$PWD/$1/data/tls/certificate.pem SWITCHYARD_URL=$2 \
    ip netns exec $1 bash -eu -o pipefail $3
}
for block in block-*.*; do
    machine=${block#*.}
    echo "=== $block"
    sed "s|/etc/|$PWD/$machine/etc/|g" $block > run.sh
    url=https://127.0.0.1:8443
    for turn in $(seq 300); do
        on $machine $url run.sh > output 2>&1 || true
        if [ ! -e expected-${block#*-} ] || { grep -q "$(cat expected-${block#*-})" output && ! grep -q " lacks " output; }; then break; fi
        sleep 0.2
    done
    cat output
done
"#;

/// A block for a machine, as on the page.
fn machines(block: &CommandBlock) -> Result<Vec<String>> {
    let first = block.script.lines().next().unwrap_or_default();
    let names = first.strip_prefix("# on ").context("a block must begin with `# on` and the machines")?;
    Ok(names.split_whitespace().map(str::to_owned).collect())
}

fn write_program(path: &Path, text: &str) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, text)?;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?)
}

#[test]
fn three_machines_become_a_cluster_as_the_manual_says() -> Result<()> {
    become_a_cluster(false)
}

#[test]
fn three_machines_become_a_cluster_with_tls_as_the_manual_says() -> Result<()> {
    become_a_cluster(true)
}

/// Makes the certificates of the page in this folder, and copies them to the machines. Returns the options of the page.
fn certificates(folder: &Path) -> Result<String> {
    let page = ManualPage::read(PAGE, &MARKS)?;
    let made = folder.join("certificates");
    std::fs::create_dir_all(&made)?;
    let block = page.blocks.iter().find(|block| block.mark == "sh certificates").context("no block")?;
    let output = Command::new("bash")
        .args(["-eu", "-o", "pipefail", "-c", &block.script])
        .current_dir(&made)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for machine in ["a", "b", "w"] {
        let etc = folder.join(machine).join("etc/etcd");
        std::fs::create_dir_all(&etc)?;
        for (from, to) in [("ca.pem", "ca.pem"), (machine, "machine.pem"), (machine, "machine.key")] {
            let ending = Path::new(to).extension().unwrap_or_default();
            std::fs::copy(made.join(from).with_extension(ending), etc.join(to))?;
        }
    }
    let options = page.spans.into_iter().find(|span| span.starts_with("--etcd-ca "));
    options.context("the page has no options for TLS")
}

fn become_a_cluster(tls: bool) -> Result<()> {
    let fixture = Fixture::new()?;
    let folder = fixture.folder().join("machines");
    let programs = folder.join("programs");
    std::fs::create_dir_all(&programs)?;
    for (name, text) in SHIMS {
        write_program(&programs.join(name), &format!("#!/bin/bash\n{text}\n"))?;
    }
    std::os::unix::fs::symlink(fixture.binary(), programs.join("switchyard"))?;
    // The package's configuration, with the folders of each machine.
    let package = workspace::root().join("appliance-image/package");
    let shipped = std::fs::read_to_string(package.join("switchyard.toml"))?;
    let component = fixture.guest("prefix_router").display().to_string();
    for machine in ["a", "b", "w"] {
        let etc = folder.join(machine).join("etc");
        std::fs::create_dir_all(etc.join("default"))?;
        std::fs::create_dir_all(etc.join("switchyard"))?;
        let data = folder.join(machine).join("data").display().to_string();
        let mut paths = Substitutions::default();
        paths.put("/usr/lib/switchyard/plugins/prefix_router.wasm", &component);
        paths.put("data = \"/var/lib/switchyard\"", &format!("data = \"{data}\""));
        std::fs::write(etc.join("switchyard/switchyard.toml"), paths.read(&shipped))?;
        std::fs::copy(package.join("routes.toml"), etc.join("switchyard/routes.toml"))?;
    }
    let options = if tls { certificates(&folder)? } else { String::new() };
    let mut page = ManualPage::read(PAGE, &MARKS)?;
    page.blocks.retain(|block| block.mark == "sh cluster");
    ensure!(page.blocks.len() >= 5, "the page has {} blocks", page.blocks.len());
    for (number, block) in page.blocks.iter().enumerate() {
        for machine in machines(block)? {
            let name = format!("block-{number}.{machine}");
            let script = block.script.replace(" --this", &format!(" {options} --this"));
            std::fs::write(folder.join(&name), script)?;
            // The last line is the last one to appear.
            if let Some(line) = block.printed.lines().last() {
                let words = line.split('…').next().unwrap_or_default().trim_end();
                std::fs::write(folder.join(format!("expected-{number}.{machine}")), words)?;
            }
        }
    }
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount"]);
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let output = command
        .args(["bash", "-c", RUN])
        .env("PATH", format!("{}:{path}", programs.display()))
        .current_dir(&folder)
        .output()
        .context("running unshare")?;
    let words = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    ensure!(
        output.status.success(),
        "in network namespaces, which need root or user namespaces: {words}\n{}",
        logs(&folder)
    );
    for (machine, file) in [("w", "default/etcd"), ("a", "default/etcd"), ("a", "switchyard/switchyard.toml")]
    {
        let settings = std::fs::read_to_string(folder.join(machine).join("etc").join(file))?;
        ensure!(settings.contains("\"https://192.0.2.1:2379") == (tls && machine == "a"), "{settings}");
        ensure!(settings.contains("http://192.0.2.") != tls, "{settings}");
    }
    let mut printed: Vec<&str> = words.split("=== block-").skip(1).collect();
    for (number, block) in page.blocks.iter().enumerate() {
        let machines = machines(block)?;
        for part in printed.drain(..machines.len()) {
            let missing = missing_line(part, &block.printed);
            ensure!(
                missing.is_none(),
                "block {number}: {missing:?} is missing in\n{part}\n{}",
                logs(&folder)
            );
        }
    }
    Ok(())
}

/// The ends of the machines' logs.
fn logs(folder: &Path) -> String {
    let mut all = String::new();
    for machine in ["a", "b", "w"] {
        for name in ["switchyard.log", "etcd.log"] {
            let text = std::fs::read_to_string(folder.join(machine).join(name)).unwrap_or_default();
            let lines: Vec<_> = text.lines().collect();
            all.push_str(&format!(
                "{machine} {name}:\n{}\n",
                lines[lines.len().saturating_sub(8)..].join("\n")
            ));
        }
    }
    all
}
