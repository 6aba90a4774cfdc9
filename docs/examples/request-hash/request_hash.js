// The request hash of Redrive's idempotency records, version 1. See docs/idempotency.md.
//
// As a program: reads test vectors (vectors.json) and prints the hash of each.
'use strict';
const { createHash } = require('node:crypto');
const { readFileSync } = require('node:fs');

const DEPTH = 128;

function length(number) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(number));
  return bytes;
}

// The hash as 64 hexadecimal digits. `body` is a Buffer, `contentType` may be empty.
function requestHash(method, path, contentType, body, comparison = 'bytes') {
  const form = comparison === 'json' ? jsonForm(body) : null;
  const version = form === null ? 'redrive-request-hash/1' : 'redrive-request-hash/1+json';
  const mediaType = contentType.split(';')[0].trim().toLowerCase();
  const parts = [version, method, path, mediaType].map((part) => Buffer.from(part));
  parts.push(form === null ? body : form);
  const hash = createHash('sha256');
  for (const part of parts) hash.update(length(part.length)).update(part);
  return hash.digest('hex');
}

// The same bytes for two JSON texts with the same meaning; null if the body is not clearly one JSON value.
function jsonForm(body) {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body);
    JSON.parse(text);
    // The text is valid JSON, so the reader below only finds where values begin and end. JSON.parse would turn numbers
    // into floating-point ones, in which 9007199254740993 and …992 are equal.
    return new Reader(text).value(DEPTH);
  } catch {
    return null;
  }
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  value(depth) {
    const first = this.peek();
    if (first === '"') return tagged('"', this.string());
    if (first !== '{' && first !== '[') {
      const literal = this.take(/[^,\]}\s]+/y);
      return 'ntf'.includes(first) ? Buffer.from(first) : tagged('#', literal);
    }
    if (depth === 0) throw new Error('nested too deeply');
    return first === '[' ? this.array(depth - 1) : this.object(depth - 1);
  }

  array(depth) {
    const items = this.items(']', () => this.value(depth));
    return Buffer.concat([Buffer.from('['), length(items.length), ...items]);
  }

  object(depth) {
    const members = new Map();
    const count = this.items('}', () => {
      const name = tagged('"', this.string());
      this.expect(':');
      members.set(name.toString('latin1'), [name, this.value(depth)]);
    }).length;
    if (members.size !== count) throw new Error('a name occurs twice');
    const sorted = [...members.values()].sort(([one], [other]) => one.subarray(9).compare(other.subarray(9)));
    return Buffer.concat([Buffer.from('{'), length(count), ...sorted.flat()]);
  }

  items(close, read) {
    const items = [];
    this.at += 1;
    for (let next = this.peek(); next !== close; next = this.peek()) {
      if (items.length > 0) this.expect(',');
      items.push(read());
    }
    this.expect(close);
    return items;
  }

  string() {
    this.peek();
    const string = JSON.parse(this.take(/"(?:[^"\\]|\\.)*"/y));
    if (!isWellFormed(string)) throw new Error('half of a surrogate pair');
    return string;
  }

  peek() {
    this.take(/[ \t\n\r]*/y);
    return this.text[this.at];
  }

  expect(character) {
    if (this.peek() !== character) throw new Error(`expected ${character}`);
    this.at += 1;
  }

  take(pattern) {
    pattern.lastIndex = this.at;
    const [found] = pattern.exec(this.text);
    this.at += found.length;
    return found;
  }
}

function isWellFormed(string) {
  return Buffer.from(string).toString() === string;
}

function tagged(kind, text) {
  const content = Buffer.from(text);
  return Buffer.concat([Buffer.from(kind), length(content.length), content]);
}

module.exports = { requestHash };

if (require.main === module) {
  for (const { method, path, contentType, bodyBase64, comparison } of JSON.parse(readFileSync(process.argv[2]))) {
    console.log(requestHash(method, path, contentType, Buffer.from(bodyBase64, 'base64'), comparison));
  }
}
