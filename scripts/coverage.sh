#!/usr/bin/env bash
# Line coverage of the workspace by cargo-llvm-cov, and a floor under it. `cargo xtask coverage` counts lines
# per crate without any tool beside cargo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

usage() {
  cat <<'END'
Usage: scripts/coverage.sh [--html] [--open] [--no-fail]

Measures line coverage and fails below COVERAGE_MIN per cent (80 unless set).
Writes lcov.info and coverage.json under target/llvm-cov/.

  --html     Also write an HTML report
  --open     Write it and open it
  --no-fail  Report without failing
  --help     Print this
END
}

report=()
floor=(--fail-under-lines "${COVERAGE_MIN:-80}")
for word in "$@"; do
  case $word in
    --html | --open) report+=("$word") ;;
    --no-fail) floor=() ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      echo "scripts/coverage.sh: unknown option \`$word\`" >&2
      usage >&2
      exit 64
      ;;
  esac
done
if ! cargo llvm-cov --version >/dev/null 2>&1; then
  echo "scripts/coverage.sh: cargo-llvm-cov is not installed (cargo install cargo-llvm-cov)" >&2
  exit 69
fi
mkdir -p target/llvm-cov
cargo llvm-cov --workspace --no-report
cargo llvm-cov report --lcov --output-path target/llvm-cov/lcov.info
cargo llvm-cov report --json --output-path target/llvm-cov/coverage.json
for option in "${report[@]}"; do
  cargo llvm-cov report "$option"
done
cargo llvm-cov report --summary-only "${floor[@]}"
