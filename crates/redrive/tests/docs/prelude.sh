# What the documents run "in another terminal" runs in the background here; the block continues once it says that it is ready.
set -o pipefail

redrive() {
    case "$1 ${2-}" in
    serve*) in_background 'listens on http://' "$@" ;;
    target*) in_background 'listens on http://' target --listen "127.0.0.1:$TARGET_PORT" "${@:2}" ;;
    'outbox relay') in_background '^relaying ' "$@" ;;
    *) command redrive "$@" ;;
    esac
}

in_background() {
    local ready=$1 log
    shift
    log=$(mktemp "$LOGS/XXXXXX")
    if [ "$1" = target ]; then target_log=$log; fi
    command redrive "$@" >"$log" 2>&1 </dev/null &
    running+=($!)
    if ! grep -q "$ready" <(tail -n +1 -f --pid=$! "$log" 2>/dev/null); then
        cat "$log"
        return 1
    fi
}

# Ends all of them, by a signal.
stop() {
    local process
    for process in "${running[@]}"; do
        kill "-$1" "$process" 2>/dev/null || true
        wait "$process" || true
    done
    running=()
}

running=()
trap 'stop KILL' EXIT
