#!/usr/bin/env bash
# Holds a commit up if the staged changes have an obvious mistake. `CALIBAN_REVIEW_BUDGET` is what it may cost.
set -euo pipefail
if git diff --cached --quiet; then exit 0; fi
verdict=$({ printf 'The staged changes:\n\n'; git diff --cached; } | "${CALIBAN_PROGRAM:-caliban}" --bare --no-save --no-tools \
  --max-turns 1 --max-budget-usd "${CALIBAN_REVIEW_BUDGET:-0.10}" --output-format json \
  --json-schema '{"type":"object","required":["verdict","reason"],"additionalProperties":false,"properties":{"verdict":{"enum":["pass","fail"]},"reason":{"type":"string"}}}' \
  --system 'You review changes. Fail them only for an obvious mistake: what breaks the build, loses data or tells a secret.' \
  --print) || {
  echo "caliban-review: the review could not be made; commit with SKIP=caliban-review to go on without it" >&2
  exit 1
}
reason=$(jq -r '.structured_output.reason' <<<"$verdict")
if [[ $(jq -r '.structured_output.verdict' <<<"$verdict") != pass ]]; then
  printf 'caliban-review: %s\n' "$reason" >&2
  exit 1
fi
