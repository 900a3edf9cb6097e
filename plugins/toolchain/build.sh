#!/usr/bin/env bash
# Builds a compiler for wasm32-unknown-unknown if `rustup target add` is not possible: Debian's rustc-web, unpacked into a
# private folder and never installed, with a standard library built from Debian's rust-web-src.
#
#   build.sh FOLDER      then: RUSTC=FOLDER/bin/rustc cargo build --target wasm32-unknown-unknown
#
# Needs: apt's package lists (apt-get update), a Rust toolchain for cargo and rust-lld, about 600 MB of disk, two
# minutes. Needs root only for the package lists. Does nothing if FOLDER is complete.
set -euo pipefail

folder=$(realpath -m "$1")
[ -e "$folder/complete" ] && exit 0
sysroot=$(rustc --print sysroot)
host=$(rustc -vV | sed -n 's/^host: //p')
lib=$(uname -m)-linux-gnu
tools="$sysroot/lib/rustlib/$host/bin"
for tool in rust-lld wasm-component-ld; do
  [ -e "$tools/$tool" ] || { echo "no $tool in $tools: this needs a Rust toolchain as rustup installs it" >&2; exit 1; }
done

rm -rf "$folder"
mkdir -p "$folder/debs" "$folder/bin"
version=$(apt-cache show rustc-web 2>/dev/null | sed -n 's/^Version: //p' | head -n 1)
[ -n "$version" ] || { echo "apt knows no package rustc-web: run 'apt-get update' (Debian 12 or later)" >&2; exit 1; }
short=${version%%.*}.$(echo "$version" | cut -d. -f2)
llvm=$(apt-cache show "libstd-rust-web-$short=$version" | grep -oE 'libllvm[0-9]+' | head -n 1)
echo "guest toolchain: unpacking Debian's rustc-web $version into $folder" >&2
(
  cd "$folder/debs"
  apt-get download -q "rustc-web=$version" "libstd-rust-web-$short=$version" "libstd-rust-web-dev=$version" \
    "rust-web-src=$version" "$llvm" >&2
  sha256sum ./*.deb > ../SHA256SUMS
)
for package in "$folder"/debs/*.deb; do dpkg -x "$package" "$folder"; done
rm -rf "$folder/debs" "$folder/usr/share" "$folder"/usr/src/rustc-*/{compiler,src,debian}

for program in rustc rustdoc; do
  cat > "$folder/bin/$program" <<EOF
#!/bin/sh
LD_LIBRARY_PATH=$folder/usr/lib/$lib\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH} exec $folder/usr/bin/$program "\$@"
EOF
  chmod +x "$folder/bin/$program"
done
mkdir -p "$folder/usr/lib/rustlib/$host/bin"
cp -r "$tools/rust-lld" "$tools/wasm-component-ld" "$tools/gcc-ld" "$folder/usr/lib/rustlib/$host/bin/"

echo "guest toolchain: building the standard library for wasm32-unknown-unknown, once" >&2
work="$folder/std"
mkdir -p "$work/src"
echo '#![no_std]' > "$work/src/lib.rs"
cat > "$work/Cargo.toml" <<'EOF'
[package]
name = "std-for-guests"
version = "0.0.0"
edition = "2021"

[profile.release]
debug = 0
codegen-units = 1

[workspace]
EOF
remap="--remap-path-prefix=$folder=/guest-toolchain"
export RUSTC="$folder/bin/rustc" RUSTC_BOOTSTRAP=1
unset CARGO_TARGET_DIR RUSTFLAGS CARGO_ENCODED_RUSTFLAGS RUSTUP_TOOLCHAIN_ORIGIN
cd "$work"
flags=(-Zbuild-std=std,panic_abort --target wasm32-unknown-unknown)
cargo fetch -q "${flags[@]}"
for sources in "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*; do
  remap="$remap --remap-path-prefix=$sources=/crates"
done
RUSTFLAGS="-Cembed-bitcode=yes $remap" cargo build -q --offline --release "${flags[@]}"
target="$folder/usr/lib/rustlib/wasm32-unknown-unknown/lib"
mkdir -p "$target"
cp target/wasm32-unknown-unknown/release/deps/*.rlib "$target/"
rm -f "$target"/libstd_for_guests*
cd /
rm -rf "$work"
touch "$folder/complete"
echo "guest toolchain: ready" >&2
