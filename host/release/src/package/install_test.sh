#!/bin/bash
# Runs in a clean, booted Debian 12: the package's lifecycle from installation to purge.
# $1 is the package, $2 the package of the next version.
set -euo pipefail

step() { echo "install test: $*"; }
fails() { echo "install test: FAILED: $*"; exit 1; }
trap 'echo "install test: FAILED at line $LINENO: $BASH_COMMAND"; journalctl --no-pager --unit switchyard | tail -40' ERR

export NO_COLOR=1 DEBIAN_FRONTEND=noninteractive
export SWITCHYARD_TOKEN_FILE=/var/lib/switchyard/token
pid() { systemctl show --property MainPID --value switchyard; }
property() { systemctl show --property "$1" --value switchyard; }
version() { dpkg-query --show --showformat '${Version}' switchyard; }
# A file that the admin wrote before the installation is not changed.
mkdir -p /etc/switchyard
printf '[default]\nlegs = [{ peer = "upstream" }]\n' > /etc/switchyard/routes.toml
install_package() { dpkg --install --force-confold "$1"; }

step "installs"
install_package "$1"
systemctl is-active switchyard && fails "started before its configuration was reviewed"
systemctl is-enabled switchyard
[ ! -e /var/lib/switchyard/switchyard.redb ] || fails "used before it was started"

step "starts on request"
systemctl start switchyard
systemctl is-active switchyard
[ "$(property SubState)" = running ] || fails "not running"
[ "$(property Type)" = notify ] || fails "its readiness is not notified"
[ "$(stat -c %U:%a /var/lib/switchyard)" = switchyard:700 ] || fails "state: $(stat -c %U:%a /var/lib/switchyard)"
[ "$(stat -c %U:%G:%a /etc/switchyard/switchyard.toml)" = root:switchyard:640 ] || fails "the configuration's owner"
[ "$(stat -c %U "/proc/$(pid)")" = switchyard ] || fails "the daemon does not run as its own user"
grep -q '^NoNewPrivs:.*1$' "/proc/$(pid)/status"
grep -q '^Seccomp:.*2$' "/proc/$(pid)/status"
grep -q '^CapEff:.*0000000000000000$' "/proc/$(pid)/status"
switchyard status
systemd-analyze security --no-pager switchyard | tail -1
systemd-analyze security --no-pager --threshold=20 switchyard > /dev/null || fails "exposed by 2.0 or more"
for file in /usr/share/man/man1/switchyard.1.gz /usr/share/bash-completion/completions/switchyard \
    /usr/share/zsh/vendor-completions/_switchyard /usr/share/fish/vendor_completions.d/switchyard.fish; do
    [ -s "$file" ] || fails "no $file"
done
bash -n /usr/share/bash-completion/completions/switchyard

step "takes a message that waits for its peer"
echo -n secret | switchyard hash-password | switchyard account set shop password-hash=@-
switchyard peer set upstream address=127.0.0.1:9 system-id=us password=secret
ID=$(switchyard message send --account shop --from 10655 --to 8613012345678 "kept")
switchyard message show "$ID"
TOKEN=$(sha256sum < /var/lib/switchyard/token)

step "reloads"
systemctl reload switchyard
systemctl is-active switchyard

step "is restarted when it hangs"
HUNG=$(pid)
kill -STOP "$HUNG"
for _ in $(seq 120); do
    [ "$(property NRestarts)" = 1 ] && [ "$(property ActiveState)" = active ] && break
    sleep 0.5
done
[ "$(property NRestarts)" = 1 ] || fails "the watchdog did not restart it"
[ "$(pid)" != "$HUNG" ] || fails "the same process"
switchyard message show "$ID" > /dev/null

step "upgrades"
BEFORE=$(pid)
echo '# mine' >> /etc/switchyard/switchyard.toml
WAS=$(version)
install_package "$2"
[ "$(version)" != "$WAS" ] || fails "the version is still $WAS"
systemctl is-active switchyard
[ "$(pid)" != "$BEFORE" ] || fails "not restarted"
switchyard message show "$ID" > /dev/null
[ "$(sha256sum < /var/lib/switchyard/token)" = "$TOKEN" ] || fails "another token"
tail -1 /etc/switchyard/switchyard.toml | grep -qx '# mine'
grep -q upstream /etc/switchyard/routes.toml
[ "$(stat -c %U:%G:%a /etc/switchyard/switchyard.toml)" = root:switchyard:640 ] || fails "the configuration's owner"

step "is removed, and keeps its state"
dpkg --remove switchyard
systemctl is-active switchyard && fails "still running"
[ -e /var/lib/switchyard/switchyard.redb ] || fails "the state is missing"
[ -e /etc/switchyard/switchyard.toml ] || fails "the configuration is missing"
[ ! -e /usr/bin/switchyard ] || fails "the binary is still there"

step "is reinstalled and has its former state"
install_package "$2"
systemctl start switchyard
switchyard message show "$ID" > /dev/null

step "is purged"
dpkg --purge switchyard
systemctl is-active switchyard && fails "still running"
for path in /var/lib/switchyard /etc/switchyard /usr/bin/switchyard /usr/lib/switchyard /run/switchyard \
    /usr/lib/systemd/system/switchyard.service /etc/systemd/system/multi-user.target.wants/switchyard.service; do
    [ ! -e "$path" ] && [ ! -L "$path" ] || fails "$path is still there"
done
[ -z "$(find / -xdev -user switchyard -print -quit 2> /dev/null)" ] || fails "files of its user are left"
step "all steps passed"
