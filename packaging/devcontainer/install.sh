#!/usr/bin/env bash
# Installs caliban in a development container: from an archive whose checksum is given, or from npm.
set -euo pipefail

fail() {
  echo "caliban: $1" >&2
  exit 1
}

prefix=${CALIBAN_PREFIX:-/usr/local}
if [[ -z ${ARCHIVE:-} ]]; then
  command -v npm >/dev/null || fail "npm is not there; add the feature \`node\`, or name an archive"
  exec npm install --global "caliban@${VERSION:-latest}"
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
