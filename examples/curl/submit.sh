#!/usr/bin/env bash
# Announces an order: submit.sh ORDER AMOUNT URL
set -euo pipefail
redrive=${REDRIVE:-http://127.0.0.1:8620}
order=$1 amount=$2 url=$3
answer=$(mktemp)
trap 'rm -f "$answer"' EXIT

# `jq` builds the JSON: a quote in a value cannot break out of it.
task=$(jq -n --arg url "$url" --arg order "$order" --arg amount "$amount" \
    '{targetUrl: $url, bodyJson: {order: $order, amount: $amount}}')

# The key names the order, not this run: submitted again after a crash or a lost answer, it is the same task. That is
# why curl may repeat the POST by itself, after any error. (A 422 is no error to curl here.)
status=$(curl -sS --retry 5 --retry-all-errors -o "$answer" -w '%{http_code}' "$redrive/retry-tasks" \
    -H 'Content-Type: application/json' -H "Idempotency-Key: $order" -H 'Prefer: wait=30' -d "$task")

case $status in
200 | 201 | 202) ;; # the same task as before, a new one, not ended yet
422)
    # 422 is also the answer to an invalid field, so the type decides.
    if [[ $(jq -r .type "$answer") == */idempotency-key-reused ]]; then
        echo "$order was announced before with other contents" >&2
        exit 2
    fi
    cat "$answer" >&2
    exit 1
    ;;
*)
    cat "$answer" >&2
    exit 1
    ;;
esac

# 202: the wait was over before the task has ended. Wait again; do not submit again.
id=$(jq -r .taskId "$answer")
while [[ $(jq -r .status "$answer") == @(PENDING|IN_FLIGHT) ]]; do
    curl -sS --fail --retry 5 --retry-all-errors -o "$answer" "$redrive/retry-tasks/$id" -H 'Prefer: wait=30'
done

jq -r --arg order "$order" '"\($order): \(.status) after \(.attemptNumber) attempt(s)"' "$answer"
# What is not SUCCEEDED is a dead letter: `redrive tasks replay ID` sends it again.
[[ $(jq -r .status "$answer") == SUCCEEDED ]] || exit 3
