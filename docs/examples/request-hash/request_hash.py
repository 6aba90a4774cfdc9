"""The request hash of Redrive's idempotency records, version 1. See docs/idempotency.md.

As a program: reads test vectors (vectors.json) and prints the hash of each.
"""
import base64
import hashlib
import json
import sys

DEPTH = 128


def length(number):
    return number.to_bytes(8, "little")


def request_hash(method, path, content_type, body, comparison="bytes"):
    """The hash as 64 hexadecimal digits. `body` is bytes, `content_type` may be empty."""
    form = json_form(body) if comparison == "json" else None
    version = b"redrive-request-hash/1" if form is None else b"redrive-request-hash/1+json"
    media_type = content_type.split(";")[0].strip().lower()
    parts = [version, method.encode(), path.encode(), media_type.encode(), body if form is None else form]
    return hashlib.sha256(b"".join(length(len(part)) + part for part in parts)).hexdigest()


def json_form(body):
    """The same bytes for two JSON texts with the same meaning; None if the body is not clearly one JSON value."""
    try:
        value = json.loads(
            body.decode(),
            parse_int=Number,
            parse_float=Number,
            parse_constant=refuse,
            object_pairs_hook=members,
        )
        return form_of(value, DEPTH)
    except (ValueError, RecursionError):
        return None


class Number(str):
    """A number as it was written: as floating-point numbers 9007199254740993 and …992 would be equal."""


def refuse(constant):
    raise ValueError(f"{constant} is not JSON")


def members(pairs):
    if len({name for name, _ in pairs}) != len(pairs):
        raise ValueError("a name occurs twice")
    return dict(pairs)


def form_of(value, depth):
    if value is None or value is True or value is False:
        return {None: b"n", True: b"t", False: b"f"}[value]
    if isinstance(value, str):
        kind, text = (b"#" if isinstance(value, Number) else b'"'), value.encode()
        return kind + length(len(text)) + text
    if depth == 0:
        raise ValueError("nested too deeply")
    if isinstance(value, list):
        return b"[" + length(len(value)) + b"".join(form_of(item, depth - 1) for item in value)
    named = sorted((form_of(name, depth)[9:], name) for name in value)
    return b"{" + length(len(value)) + b"".join(
        form_of(name, depth) + form_of(value[name], depth - 1) for _, name in named
    )


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as vectors:
        for case in json.load(vectors):
            body = base64.b64decode(case["bodyBase64"])
            print(request_hash(case["method"], case["path"], case["contentType"], body, case["comparison"]))
