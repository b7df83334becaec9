#!/bin/sh
# On a machine: takes the card at $1 off the bus and back, $2 times. The others are its functions as they are planned,
# each INTERFACE,MAC,MTU,ADDRESS/PREFIX.
pci=$1 times=$2
shift 2

whole() {
  for function; do
    IFS=, read -r name mac mtu address <<END
$function
END
    [ "$(cat "$name/address" "$name/mtu" 2>/dev/null | tr '\n' ' ')" = "$mac $mtu " ] || return 1
    ip -4 -o address show dev "$name" | grep -q " $address " || return 1
  done
}

cd /sys/class/net || exit 1
for number in $(seq "$times"); do
  echo 1 >"/sys/bus/pci/devices/$pci/remove"
  whole "$@" && echo "removal $number: nothing went" && exit 1
  sleep 1
  echo 1 >/sys/bus/pci/rescan
  second=0
  until whole "$@"; do
    second=$((second + 1))
    if [ "$second" -gt 120 ]; then
      echo "removal $number: not back"
      ip address
      journalctl -n 40 -u 'sparkloom-functions-back@*'
      exit 1
    fi
    sleep 1
  done
  echo "removal $number: back after $second looks"
done
