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

# A field of the event. That the file can be read was looked at before anything else.
event() { jq -r "$1 // empty" "$GITHUB_EVENT_PATH"; }

# Whether who wrote something belongs to the repository; whoever is not said to does not.
belongs() {
  case $(event "$1") in
    OWNER | MEMBER | COLLABORATOR) return 0 ;;
    *) return 1 ;;
  esac
}

# Whether a branch is of this repository: who could push it there belongs to it. A fork that is gone has no name.
is_own() {
  local head own
  head=$(event "$1")
  own=$(event '.repository.full_name')
  [[ -n $head && $head == "${own:-$GITHUB_REPOSITORY}" ]]
}

# Whether only somebody who may write to the repository makes such an event happen.
is_of_writers() {
  case $1 in
    push | schedule | workflow_dispatch | repository_dispatch | create | delete | release | deployment | merge_group)
      return 0
      ;;
    *) return 1 ;;
  esac
}

# Whether the event comes from somebody who could push to the repository. What is not known is from outside.
is_insider() {
  local from
  case $GITHUB_EVENT_NAME in
    pull_request | pull_request_target) is_own '.pull_request.head.repo.full_name' ;;
    pull_request_review) is_own '.pull_request.head.repo.full_name' && belongs '.review.author_association' ;;
    pull_request_review_comment)
      is_own '.pull_request.head.repo.full_name' && belongs '.comment.author_association'
      ;;
    issues) belongs '.issue.author_association' ;;
    issue_comment | commit_comment | discussion_comment) belongs '.comment.author_association' ;;
    discussion) belongs '.discussion.author_association' ;;
    workflow_run)
      from=$(event '.workflow_run.event')
      [[ $from == pull_request ]] || is_of_writers "$from" || return 1
      is_own '.workflow_run.head_repository.full_name'
      ;;
    *) is_of_writers "$GITHUB_EVENT_NAME" ;;
  esac
}

# Takes the token of the job out of the configurations of git, where a checkout leaves it for later steps.
forget_tokens() {
  local config name names
  while IFS= read -r -d '' config; do
    names=$(git config --file "$config" --name-only --get-regexp \
      '^(http\..*\.extraheader|core\.sshcommand|include(if\..*)?\.path|credential\..*)$') || continue
    while IFS= read -r name; do
      git config --file "$config" --unset-all "$name" || refuse "the job's token stays in \`$config\` ($name)"
    done < <(sort --unique <<<"$names")
  done < <(find "${GITHUB_WORKSPACE:-.}" -path '*/objects/*' -prune -o \
    -path '*/.git/*' \( -name config -o -name config.worktree \) -type f -print0)
}

# The program out of the archive that is named, into a place of this step's own.
fetch_program() {
  local place
  [[ $INPUT_ARCHIVE == *.tar.gz ]] || refuse "archive: \`$INPUT_ARCHIVE\` is no .tar.gz"
  [[ ${INPUT_SHA256:-} =~ ^[0-9a-f]{64}$ ]] || refuse "sha256: the checksum of the archive is required with it"
  place=$(mktemp -d "${RUNNER_TEMP:-/tmp}/caliban.XXXXXX")
  curl --silent --show-error --fail --location --max-time 300 --output "$place/archive" "$INPUT_ARCHIVE" ||
    refuse "archive: \`$INPUT_ARCHIVE\` cannot be fetched"
  sha256sum --check --quiet <<<"$INPUT_SHA256  $place/archive" >/dev/null 2>&1 ||
    refuse "archive: \`$INPUT_ARCHIVE\` is not what the checksum says"
  tar -xzf "$place/archive" -C "$place" --strip-components=1 || refuse "archive: \`$INPUT_ARCHIVE\` cannot be unpacked"
  INPUT_PROGRAM=$place/caliban
}

# Writes an output whose text may have several lines and whatever else in them.
output() {
  local mark
  mark="end-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
  printf '%s<<%s\n%s\n%s\n' "$1" "$mark" "$2" "$mark" >>"$GITHUB_OUTPUT"
}

publish() {
  local text=$1 subtype=$2 sha conclusion
  case $INPUT_OUTPUT in
    none) ;;
    summary) printf '%s\n' "$text" >>"$GITHUB_STEP_SUMMARY" ;;
    comment) printf '%s' "$text" | jq --raw-input --slurp '{body: .}' | post "issues/$number/comments" ;;
    check)
      sha=$(event '.pull_request.head.sha')
      conclusion=failure
      [[ $subtype == success ]] && conclusion=success
      printf '%s' "$text" |
        jq --raw-input --slurp --arg sha "${sha:-$GITHUB_SHA}" --arg conclusion "$conclusion" \
          '{name: "caliban", head_sha: $sha, status: "completed", $conclusion,
            output: {title: "caliban", summary: .}}' |
        post check-runs
      ;;
  esac
}

post() {
  curl --silent --show-error --fail-with-body --max-time 60 --output /dev/null \
    --header "Authorization: Bearer $GITHUB_TOKEN" --header "Accept: application/vnd.github+json" \
    --data-binary @- "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/$1" && return
  echo "::error::caliban: the answer could not be published ($1); has the job the permission to write there?"
  return 1
}

# Whose event it is decides what may be done: without being able to read it, nothing is.
command -v jq >/dev/null ||
  refuse "\`jq\` is not there, without which the event cannot be read; install it in an earlier step"
[[ -n ${GITHUB_EVENT_NAME:-} ]] || refuse "GITHUB_EVENT_NAME does not say which event this is"
jq --exit-status 'type == "object"' "${GITHUB_EVENT_PATH:-}" >/dev/null 2>&1 ||
  refuse "the event cannot be read from \`${GITHUB_EVENT_PATH:-GITHUB_EVENT_PATH, which is not set}\`"

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
if ! is_insider; then
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
# Before the run is paid for.
number=$(event '.pull_request.number // .issue.number')
[[ $INPUT_OUTPUT != comment || -n $number ]] ||
  refuse "output: \`comment\` needs an event of a pull request or an issue"
if [[ -n ${INPUT_ARCHIVE:-} ]]; then fetch_program; fi
command -v "${INPUT_PROGRAM:=caliban}" >/dev/null ||
  refuse "program: \`$INPUT_PROGRAM\` is not there; name \`archive\` and \`sha256\`, or install it in an earlier step"
forget_tokens
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
answer=$(env "${hidden[@]}" "$INPUT_PROGRAM" "${words[@]}" < <(printf "%s" "$INPUT_PROMPT")) || code=$?
field() { jq -r "$1 // empty" <<<"$answer" 2>/dev/null || true; }
text=$(field .result)
subtype=$(field .subtype)
output result "$text"
output cost-usd "$(field .total_cost_usd)"
output subtype "${subtype:-error}"
output exit-code "$code"
if [[ -z $text ]]; then
  text="The run ended with ${subtype:-an error} (exit code $code) and without an answer."
fi
published=0
publish "${text:0:MOST}" "${subtype:-error}" || published=1
if ((code != 0)); then
  echo "::error::caliban: the run ended with ${subtype:-an error} (exit code $code)"
  exit "$code"
fi
exit "$published"
