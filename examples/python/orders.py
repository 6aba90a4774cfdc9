#!/usr/bin/env python3
"""Announces orders through Redrive, and receives them: with the standard library only.

orders.py submit ORDER AMOUNT URL
orders.py receive PORT
"""

import json
import os
import sys
import time
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

REDRIVE = os.environ.get("REDRIVE", "http://127.0.0.1:8620")
TRIES = 5
NO_ANSWER = (URLError, TimeoutError, ConnectionError, HTTPException)


def call(method, path, document=None, **headers):
    """The status, the headers and the document of an answer."""
    body = None if document is None else json.dumps(document).encode()
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = Request(REDRIVE + path, body, {"Content-Type": "application/json", **headers}, method=method)
    try:
        # Longer than the longest wait that is asked for.
        with urlopen(request, timeout=40) as answer:
            return answer.status, answer.headers, json.load(answer)
    except HTTPError as answer:  # 4xx and 5xx are answers, too.
        with answer:
            return answer.status, answer.headers, json.load(answer)


def call_until_answered(method, path, document=None, **headers):
    """The same, repeated while there is no answer or one that says "later"."""
    for last in [False] * (TRIES - 1) + [True]:
        wait = 1
        try:
            status, headers_of_answer, answer = call(method, path, document, **headers)
            if status not in (429, 503):
                return status, answer
            wait = int(headers_of_answer.get("Retry-After", wait))
        except (*NO_ANSWER, ValueError) as error:  # ValueError: a part of a document
            answer = error
        if last:
            sys.exit(f"Redrive cannot be reached: {answer!r}")
        time.sleep(wait)


def is_problem(answer, name):
    return answer.get("type", "").endswith("/" + name)


def submit(order, amount, url):
    task = {"targetUrl": url, "bodyJson": {"order": order, "amount": amount}}
    # The key names the order, not this run: submitted again after a crash or a lost answer, it is the same task.
    status, answer = call_until_answered("POST", "/retry-tasks", task, Idempotency_Key=order, Prefer="wait=30")
    # 422 is also the answer to an invalid field, so the type decides.
    if status == 422 and is_problem(answer, "idempotency-key-reused"):
        print(f"{order} was announced before with other contents", file=sys.stderr)
        return 2
    if status not in (200, 201, 202):
        sys.exit(f"{status}: {answer}")
    # 202: the wait was over before the task has ended. Wait again; do not submit again.
    while answer["status"] in ("PENDING", "IN_FLIGHT"):
        status, answer = call_until_answered("GET", f"/retry-tasks/{answer['taskId']}", Prefer="wait=30")
        if status != 200:
            sys.exit(f"{status}: {answer}")
    print(f"{order}: {answer['status']} after {answer['attemptNumber']} attempt(s)")
    # What is not SUCCEEDED is a dead letter: `redrive tasks replay ID` sends it again.
    return 0 if answer["status"] == "SUCCEEDED" else 3


class Receiver(BaseHTTPRequestHandler):
    """Applies each order once, although it may be delivered several times."""

    def do_POST(self):
        try:
            status, retry_after = self.receive()
        except NO_ANSWER as error:
            # Without an answer of Redrive nothing is known to be applied: the sender comes again.
            print(f"Redrive cannot be reached: {error}", file=sys.stderr)
            status, retry_after = 503, "1"
        self.send_response(status)
        if retry_after:
            self.send_header("Retry-After", retry_after)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def receive(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = self.headers.get("Idempotency-Key")  # the same on every attempt
        if self.path != "/orders":
            return 404, None
        if not key:
            return 400, None
        event = f"/inboxes/orders/events/{quote(key, safe='')}"
        status, headers, begun = call("POST", event, {"mode": "begin", "leaseMs": 30_000})
        if status == 200:
            return 200, None  # applied before
        if status != 201:
            # 409: another process is applying it. The sender must come again, so this is a 503: most senders take 409 for
            # "never again".
            return 503, headers.get("Retry-After", "1")
        owner = {"executionId": begun["executionId"], "epoch": begun["epoch"]}
        try:
            apply(json.loads(body))
        except Exception as error:
            print(f"{key} was not applied: {error!r}", file=sys.stderr)
            call("POST", event + "/release", owner)  # The next attempt need not wait for the lease.
            return 503, "1"
        status, _, _ = call("POST", event + "/confirm", owner)
        return (200, None) if status == 200 else (503, "1")  # 409: another process has taken over after the lease.

    def log_message(self, *_):
        pass


def apply(order):
    # The effect comes here. If this process dies before it has confirmed, the event is new again when its lease is over: the
    # effect must be harmless if it happens twice.
    print(f"{order['order']}: paid {order['amount']}", flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["submit", order, amount, url]:
            sys.exit(submit(order, amount, url))
        case ["receive", port]:
            ThreadingHTTPServer(("127.0.0.1", int(port)), Receiver).serve_forever()
        case _:
            sys.exit(__doc__)
