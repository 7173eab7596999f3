#!/usr/bin/env bash
# What a change must pass, step by step. `cargo xtask test` is the whole of it, with counterparts installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'END'
Usage: scripts/check.sh [--cloud] [--no-test]

Runs cargo fmt --check, cargo clippy, cargo build and cargo test over the workspace.

  --cloud    Also build with each cloud alone (bedrock, vertex, azure) and without any
  --no-test  Leave the tests out
  --help     Print this
END
}

cloud=no
tests=yes
for word in "$@"; do
  case $word in
    --cloud) cloud=yes ;;
    --no-test) tests=no ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      echo "scripts/check.sh: unknown option \`$word\`" >&2
      usage >&2
      exit 64
      ;;
  esac
done

step() {
  echo "==> $*" >&2
  "$@"
}

step cargo fmt --all --check
step cargo clippy --workspace --all-targets --quiet -- -D warnings
step cargo build --workspace --quiet
if [[ $cloud == yes ]]; then
  for features in "" bedrock vertex azure; do
    step cargo check --package caliban --no-default-features --features "$features" --quiet
  done
fi
if [[ $tests == yes ]]; then
  step cargo test --workspace --quiet
fi
