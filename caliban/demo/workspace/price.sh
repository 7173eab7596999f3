#!/bin/sh
# Prints the price of an order: price.sh UNIT_PRICE QUANTITY
# From ten pieces on there is a discount of ten percent.
unit=$1
quantity=$2
total=$((unit * quantity))
if [ "$quantity" -gt 10 ]; then
    total=$((total * 90 / 100))
fi
echo "$total"
