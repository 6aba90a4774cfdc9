#!/usr/bin/env bash
# Applies one event: receive.sh KEY < EVENT
#
# KEY is the Idempotency-Key of the request, which is the same on every attempt. Exit code 0: answer 200. 75: answer 503, so
# that the sender comes again; not 409, which means "never again" to most senders.
set -euo pipefail
redrive=${REDRIVE:-http://127.0.0.1:8620}
event=$redrive/inboxes/orders/events/$(jq -rn --arg key "$1" '$key | @uri')
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

post() {
    curl -sS -o "$answer" -w '%{http_code}' -X POST "$1" -H 'Content-Type: application/json' -d "$2"
}

status=$(post "$event" '{"mode": "begin", "leaseMs": 30000}')
case $status in
201) ;;                     # new: apply it
200) exit 0 ;;              # applied before
409) exit 75 ;;             # another process is applying it
*)   exit 75 ;;
esac
owner=$(jq '{executionId, epoch}' "$answer")

# The effect comes here. If this process dies before it has confirmed, the event is new again when its lease is over: the
# effect must be harmless if it happens twice.
if ! jq -r '"\(.order): paid \(.amount)"'; then
    post "$event/release" "$owner" >/dev/null # nothing was done: the next attempt need not wait for the lease
    exit 75
fi

status=$(post "$event/confirm" "$owner")
[[ $status == 200 ]] || exit 75 # 409: the lease was over and another process has taken over
