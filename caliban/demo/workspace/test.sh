#!/bin/sh
# Checks price.sh.
failures=0
expect() {
    got=$(sh price.sh "$1" "$2")
    if [ "$got" != "$3" ]; then
        echo "price $1 x $2: expected $3, got $got"
        failures=$((failures + 1))
    fi
}
expect 100 1 100
expect 100 9 900
expect 100 10 900
expect 100 20 1800
if [ "$failures" -gt 0 ]; then
    echo "$failures failed"
    exit 1
fi
echo "all passed"
