#!/usr/bin/env bash
# The one step of action.yml: decides whose event this is, runs the program, publishes the answer.
#
# What the program writes is never printed: a line of a job's log can be a command to the runner. The program
# gets neither the job's tokens nor the files by which a step tells later ones what to do.
set -euo pipefail

# At most so many characters of an answer are published; the service takes 65,536.
readonly MOST=60000

refuse() {
  echo "::error::caliban: $1"
  exit 64
}

event() { jq -r "$1 // empty" "${GITHUB_EVENT_PATH:-/dev/null}" 2>/dev/null || true; }

# Whether the event comes from somebody who could push to the repository.
is_outsider() {
  local head own association
  head=$(event '.pull_request.head.repo.full_name')
  own=$(event '.repository.full_name')
  if [[ -n $head && $head != "$own" ]]; then return 0; fi
  # A deleted fork leaves a pull request without a repository.
  if [[ -z $head && -n $(event '.pull_request.number') ]]; then return 0; fi
  association=$(event '.comment.author_association // .review.author_association // .issue.author_association')
  case $association in
    '' | OWNER | MEMBER | COLLABORATOR) return 1 ;;
    *) return 0 ;;
  esac
}

# Writes an output whose text may have several lines and whatever else in them.
output() {
  local mark
  mark="end-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
  printf '%s<<%s\n%s\n%s\n' "$1" "$mark" "$2" "$mark" >>"$GITHUB_OUTPUT"
}

publish() {
  local text=$1 subtype=$2 number sha conclusion
  case $INPUT_OUTPUT in
    none) ;;
    summary) printf '%s\n' "$text" >>"$GITHUB_STEP_SUMMARY" ;;
    comment)
      number=$(event '.pull_request.number // .issue.number')
      [[ -n $number ]] || refuse "output \`comment\` needs an event of a pull request or an issue"
      jq -n --arg body "$text" '{$body}' | post "issues/$number/comments"
      ;;
    check)
      sha=$(event '.pull_request.head.sha')
      conclusion=failure
      [[ $subtype == success ]] && conclusion=success
      jq -n --arg sha "${sha:-$GITHUB_SHA}" --arg conclusion "$conclusion" --arg summary "$text" \
        '{name: "caliban", head_sha: $sha, status: "completed", $conclusion, output: {title: "caliban", $summary}}' |
        post check-runs
      ;;
  esac
}

post() {
  curl --silent --show-error --fail-with-body --max-time 60 --output /dev/null \
    --header "Authorization: Bearer $GITHUB_TOKEN" --header "Accept: application/vnd.github+json" \
    --data-binary @- "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/$1" ||
    refuse "the answer could not be published ($1); has the job the permission to write there?"
}

case ${INPUT_OUTPUT:=summary} in
  none | summary | comment | check) ;;
  *) refuse "output: \`$INPUT_OUTPUT\` is none of none, summary, comment, check" ;;
esac
case ${INPUT_PERMISSION_MODE:=default} in
  default | acceptEdits | plan) ;;
  *) refuse "permission-mode: \`$INPUT_PERMISSION_MODE\` is none of default, acceptEdits, plan" ;;
esac
[[ -n ${INPUT_PROMPT:-} ]] || refuse "prompt: it is empty"

words=(--print --output-format json --no-save)
words+=(--max-budget-usd "${INPUT_MAX_BUDGET_USD:-1.00}" --max-turns "${INPUT_MAX_TURNS:-30}")
case ${INPUT_SETTINGS:=none} in
  none) words+=(--bare) ;;
  repository) ;;
  *) refuse "settings: \`$INPUT_SETTINGS\` is none of none, repository" ;;
esac
if is_outsider; then
  case ${INPUT_OUTSIDERS:=skip} in
    skip)
      echo "::notice::caliban: not run for an event from outside the repository; see the input \`outsiders\`"
      output subtype skipped
      exit 0
      ;;
    read-only)
      INPUT_PERMISSION_MODE=plan
      INPUT_ALLOW=
      [[ $INPUT_SETTINGS == none ]] || words+=(--bare)
      ;;
    *) refuse "outsiders: \`$INPUT_OUTSIDERS\` is none of skip, read-only" ;;
  esac
fi
words+=(--permission-mode "$INPUT_PERMISSION_MODE")
[[ -z ${INPUT_MODEL:-} ]] || words+=(--model "$INPUT_MODEL")
[[ -z ${INPUT_PROVIDER:-} ]] || words+=(--provider "$INPUT_PROVIDER")
while IFS= read -r pattern; do
  [[ -z $pattern ]] || words+=(--allow "$pattern")
done <<<"${INPUT_ALLOW:-}"
while IFS= read -r pattern; do
  [[ -z $pattern ]] || words+=(--deny "$pattern")
done <<<"${INPUT_DENY:-}"

hidden=()
for name in GITHUB_TOKEN GITHUB_ENV GITHUB_PATH GITHUB_OUTPUT GITHUB_STATE GITHUB_STEP_SUMMARY \
  ACTIONS_RUNTIME_TOKEN ACTIONS_ID_TOKEN_REQUEST_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL ACTIONS_CACHE_URL \
  ACTIONS_RESULTS_URL ACTIONS_RUNTIME_URL; do
  hidden+=(--unset="$name")
done

code=0
answer=$(printf '%s' "$INPUT_PROMPT" | env "${hidden[@]}" "${INPUT_PROGRAM:-caliban}" "${words[@]}") || code=$?
field() { jq -r "$1 // empty" <<<"$answer" 2>/dev/null || true; }
text=$(field .result)
subtype=$(field .subtype)
output result "$text"
output cost-usd "$(field .total_cost_usd)"
output subtype "${subtype:-error}"
output exit-code "$code"
publish "${text:0:MOST}" "${subtype:-error}"
if ((code != 0)); then
  echo "::error::caliban: the run ended with ${subtype:-an error} (exit code $code)"
fi
exit "$code"
