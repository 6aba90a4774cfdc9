#!/usr/bin/env python3
"""Kills and stops the payment service at its worst moments. It must charge every order once, whatever happens.

Usage: torture.py PAYMENTS_PROGRAM
Environment: REDRIVE (http://127.0.0.1:8620), DATABASE (the service's own: host=… user=… dbname=…).
"""
import atexit
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
import urllib.request

PAYMENT_MOMENTS = ["after-reserve", "after-intent", "after-charge", "before-complete", "after-complete"]
EVENT_MOMENTS = ["after-begin", "before-confirm"]
# An order that is not done by then has failed.
PATIENCE_S = 60


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Answer:
    """A status, whether it is a replay, and the bytes of the body."""

    def __init__(self, status, is_replay, body):
        self.status, self.is_replay, self.body = status, is_replay, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.body!r}{' (replay)' if self.is_replay else ''}"


class Service:
    """A process of the example, on a port of its own."""

    def __init__(self, role, **environment):
        self.port = free_port()
        settings = {**os.environ, "LISTEN": f"127.0.0.1:{self.port}", **environment}
        self.process = subprocess.Popen([sys.argv[1], role], env=settings, stderr=subprocess.DEVNULL)
        atexit.register(self.process.kill)
        self.origin = f"http://127.0.0.1:{self.port}"
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                return
            except ConnectionRefusedError:
                assert self.process.poll() is None, f"payments {role} did not start"
                time.sleep(0.01)

    def call(self, method, path, document=None, key=None):
        """The answer; None if the service died or is stopped."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
        try:
            connection.request(method, path, json.dumps(document) if document else None, headers)
            response = connection.getresponse()
            return Answer(response.status, response.getheader("Idempotent-Replayed") == "true", response.read())
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def begin(self, path, document, key=None):
        """Begins a request in a process of its own. `answer_of` waits for its answer."""
        headers = ["-H", "Content-Type: application/json", *(["-H", f"Idempotency-Key: {key}"] if key else [])]
        return subprocess.Popen(
            ["curl", "-s", "-w", "\n%{http_code}", "-X", "POST", self.origin + path, *headers, "-d", json.dumps(document)],
            stdout=subprocess.PIPE,
        )

    def end(self):
        self.process.kill()
        self.process.wait()


def answer_of(call):
    body, _, status = call.communicate(timeout=PATIENCE_S)[0].rpartition(b"\n")
    return Answer(int(status), False, body)


class Orders:
    """The orders of a run, and what is known of each."""

    def __init__(self):
        self.run = f"{random.randrange(16**8):08x}"
        # How often an owner of the key was killed or stopped between reserve and complete.
        self.interruptions = {}
        self.responses = {}
        self.replays = 0

    def new(self, name):
        key = f"{self.run}-{name}"
        self.interruptions[key] = 0
        return key

    def check(self, key, answer):
        """Every client of a key gets the same bytes, from the first answer on."""
        if answer.is_replay:
            self.replays += 1
        known = self.responses.setdefault(key, answer.body)
        assert answer.status == 201 and answer.body == known, f"{key}: {known} and then {answer}"
        return answer


def until_done(service, path, document, key=None):
    """Sends the same request again and again, as a client does, until it is answered."""
    give_up = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up:
        answer = service.call("POST", path, document, key)
        if answer and answer.status in (200, 201):
            return answer
        assert answer is None or answer.status in (409, 500, 503), answer
        time.sleep(0.1)
    raise AssertionError(f"{path} {document} was not done in {PATIENCE_S} s")


def kill_payment_at(moment, settings, orders, document, key):
    """The first process dies at this moment, and a second one is asked again."""
    first = Service("serve", CRASH_AT=moment, **settings)
    assert first.call("POST", "/payments", document, key) is None, f"it did not die {moment}"
    first.end()
    # A record that was completed is not interrupted: its response is replayed.
    is_complete = moment == "after-complete"
    orders.interruptions[key] += 0 if is_complete else 1
    second = Service("serve", **settings)
    answer = orders.check(key, until_done(second, "/payments", document, key))
    assert answer.is_replay == is_complete, f"{moment}: {answer}"
    for _ in range(2):
        assert orders.check(key, until_done(second, "/payments", document, key)).is_replay, "not a replay"
    second.end()


def kill_event_at(moment, settings, event):
    """The first process dies at this moment, and the event is delivered again."""
    first = Service("serve", CRASH_AT=moment, **settings)
    assert first.call("POST", "/webhooks", event) is None, f"it did not die {moment}"
    first.end()
    second = Service("serve", **settings)
    expected = "applied before" if moment == "before-confirm" else "applied"
    assert until_done(second, "/webhooks", event).json()["event"] == expected, moment
    assert until_done(second, "/webhooks", event).json()["event"] == "duplicate", moment
    second.end()


def stop_at(moment, settings, orders, document, key):
    """The first process is stopped past its lease; it cannot overwrite what the second one has done."""
    first = Service("serve", STOP_AT=moment, **settings)
    first_call = first.begin("/payments", document, key)
    while os.waitpid(first.process.pid, os.WUNTRACED | os.WNOHANG)[0] == 0:
        time.sleep(0.01)
    orders.interruptions[key] += 1
    second = Service("serve", **settings)
    newer = orders.check(key, until_done(second, "/payments", document, key)).json()
    os.kill(first.process.pid, signal.SIGCONT)
    stale = answer_of(first_call)
    assert stale.status == 409 and stale.json()["error"].startswith("fenced"), f"the stopped process answered {stale}"
    assert stale.json()["execution"] != newer["execution"] and stale.json()["epoch"] < newer["epoch"], (stale, newer)
    # The response of the newer owner stands, for clients and in Redrive.
    assert orders.check(key, until_done(second, "/payments", document, key)).is_replay, "not a replay"
    with urllib.request.urlopen(f"{os.environ['REDRIVE']}/idempotency-records/create-payment/{key}") as shown:
        record = json.load(shown)
    assert (record["executionId"], record["epoch"]) == (newer["execution"], newer["epoch"]), record
    first.end()
    second.end()


def at_once(settings, provider, orders, key):
    """Many clients of one key while its only owner waits for the provider: none of the others executes."""
    services = [Service("serve", LEASE_MS="60000", **settings) for _ in range(2)]
    calls = [services[at % 2].begin("/payments", {"amount": 3}, key) for at in range(20)]
    give_up = time.monotonic() + PATIENCE_S
    while True:
        ended = [call for call in calls if call.poll() is not None]
        asked = provider.call("GET", "/charges").json().get(key, 0)
        if len(ended) + asked >= len(calls):
            break
        assert time.monotonic() < give_up, f"{len(ended)} clients have an answer, and the provider was asked {asked} times"
        time.sleep(0.01)
    provider.call("POST", "/release")
    answers = [answer_of(call) for call in calls]
    assert asked == 1, f"the provider was asked {asked} times at once for {key}"
    assert sorted(answer.status for answer in answers) == [201] + [409] * 19, answers
    for answer in answers:
        if answer.status == 201:
            orders.check(key, answer)
    # The same for an event: it is applied once.
    event = {"id": f"evt-{key}", "charge": f"ch_{key}"}
    deliveries = [answer_of(call) for call in [services[at % 2].begin("/webhooks", event) for at in range(20)]]
    applied = [answer for answer in deliveries if answer.status == 200 and answer.json()["event"] == "applied"]
    assert len(applied) == 1, deliveries
    for service in services:
        service.end()


def kill_at_random(settings, orders):
    """Kills the service under load, and then asks for each order by several clients."""
    keys = [orders.new(f"random-{number}") for number in range(20)]
    for key in keys:
        service = Service("serve", **settings)
        calls = [service.begin("/payments", {"amount": 7}, key) for _ in range(3)]
        time.sleep(random.random() * 0.03)
        service.end()
        orders.interruptions[key] += 1
        for call in calls:
            call.communicate()
    service = Service("serve", **settings)
    for key in keys:
        for _ in range(3):
            last = orders.check(key, until_done(service, "/payments", {"amount": 7}, key))
        assert last.is_replay, f"{key}: not a replay"
    other = service.call("POST", "/payments", {"amount": 8}, keys[-1])
    assert other and other.status == 422, f"another amount with the same key: {other}"
    service.end()


def check_all(orders, events, payments, calls):
    """The ledger, the calls that the provider got, and the events."""
    for key, interruptions in orders.interruptions.items():
        response = json.loads(orders.responses[key])
        # Each owner calls at most once, and there is one more owner than there were interruptions.
        assert 1 <= calls[key] <= 1 + interruptions, f"{key}: {calls[key]} calls, {interruptions} interruptions"
        assert response["epoch"] <= 1 + interruptions, f"{key}: {response}, {interruptions} interruptions"
        assert payments[key]["charges"] == 1, f"{key} is {payments[key]['charges']} times in the ledger"
    assert set(calls) == set(orders.interruptions), "the provider was called with another key"
    for key in events:
        found = (payments[key]["settledBy"], payments[key]["settlements"])
        assert found == (f"evt-{key}", 1), f"the event of {key}: {found}"
    assert orders.replays >= len(orders.interruptions), f"only {orders.replays} replays"


def main():
    provider = Service("provider")
    settings = {"PROVIDER": provider.origin}
    orders = Orders()
    for moment in PAYMENT_MOMENTS:
        kill_payment_at(moment, settings, orders, {"amount": 1999}, orders.new(moment))
    events = list(orders.interruptions)[: len(EVENT_MOMENTS)]
    for moment in ["after-reserve", "after-intent", "before-complete"]:
        stop_at(moment, settings, orders, {"amount": 500}, orders.new(f"stopped-{moment}"))
    for key, moment in zip(events, EVENT_MOMENTS):
        kill_event_at(moment, settings, {"id": f"evt-{key}", "charge": f"ch_{key}"})
    events.append(orders.new("held"))
    at_once(settings, provider, orders, events[-1])
    kill_at_random(settings, orders)
    service = Service("serve", **settings)
    payments = {payment["key"]: payment for payment in service.call("GET", "/payments").json()}
    calls = provider.call("GET", "/charges").json()
    check_all(orders, events, payments, calls)
    service.end()
    provider.end()
    number, again = len(orders.interruptions), sum(count - 1 for count in calls.values())
    print(f"{number} orders, {number} charges; the provider was asked again {again} times, {orders.replays} replays")


if __name__ == "__main__":
    main()
