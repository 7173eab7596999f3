#!/usr/bin/env bash
# Installs caliban in a development container: from an archive whose checksum is given, or from npm
# when that is asked for; and bubblewrap, in which its sandbox runs commands.
set -euo pipefail

fail() {
  echo "caliban: $1" >&2
  exit 1
}

bubblewrap() {
  if command -v bwrap >/dev/null; then return; fi
  if command -v apt-get >/dev/null; then
    apt-get update --quiet && DEBIAN_FRONTEND=noninteractive apt-get install --quiet --yes bubblewrap
  elif command -v dnf >/dev/null; then
    dnf install --assumeyes bubblewrap
  elif command -v apk >/dev/null; then
    apk add --no-cache bubblewrap
  else
    false
  fi || fail "bubblewrap cannot be installed here; install it yourself and set the option \`bubblewrap\` to false"
}

prefix=${CALIBAN_PREFIX:-/usr/local}
if [[ -z ${ARCHIVE:-}${VERSION:-} ]]; then
  fail "name an \`archive\` and its \`sha256\`, or the \`version\` of a package of npm"
fi
if [[ -z ${ARCHIVE:-} ]]; then
  command -v npm >/dev/null || fail "npm is not there; add the feature \`node\`, or name an archive"
  npm install --global "caliban@$VERSION"
  [[ ${BUBBLEWRAP:-true} != true ]] || bubblewrap
  exit
fi
[[ ${SHA256:-} =~ ^[0-9a-f]{64}$ ]] || fail "an archive needs its checksum in the option \`sha256\`"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
curl --silent --show-error --fail --location --output "$place/archive" "$ARCHIVE"
echo "$SHA256  $place/archive" | sha256sum --check --quiet || fail "$ARCHIVE is not what the checksum says"
case $ARCHIVE in
  *.deb) dpkg --install "$place/archive" ;;
  *.tar.gz)
    mkdir "$place/content"
    tar -xzf "$place/archive" -C "$place/content" --strip-components=1
    install -D -m 0755 "$place/content/caliban" "$prefix/bin/caliban"
    ln -sf caliban "$prefix/bin/caliband"
    install -D -m 0644 "$place/content/man/caliban.1" "$prefix/share/man/man1/caliban.1"
    install -D -m 0644 "$place/content/completions/caliban.bash" \
      "$prefix/share/bash-completion/completions/caliban"
    ;;
  *) fail "$ARCHIVE is neither a .tar.gz nor a .deb" ;;
esac
[[ ${BUBBLEWRAP:-true} != true ]] || bubblewrap
