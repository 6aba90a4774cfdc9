// Announces orders through Redrive, and receives them: with Node's own fetch and http, and no packages.
//
//   node orders.ts submit ORDER AMOUNT URL
//   node orders.ts receive PORT
//
// Node 22.18 and newer run this file as it is. Only types are used that can be erased.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";

const redrive = process.env.REDRIVE ?? "http://127.0.0.1:8620";
const TRIES = 5;

type Order = { order: string; amount: string };
type Task = { taskId: string; status: string; attemptNumber: number };
type Execution = { executionId: string; epoch: number };
type Problem = { type: string };

function call(method: string, path: string, document?: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(redrive + path, {
    method,
    headers: { "content-type": "application/json", ...headers },
    body: document === undefined ? undefined : JSON.stringify(document),
    // Longer than the longest wait that is asked for.
    signal: AbortSignal.timeout(40_000),
  });
}

// The same, repeated while there is no answer or one that says "later". fetch throws only if there is no answer: a 503 has
// to be looked at.
async function callUntilAnswered(...request: Parameters<typeof call>): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    let seconds = 1;
    try {
      const answer = await call(...request);
      if (![429, 503].includes(answer.status) || attempt === TRIES) return answer;
      seconds = Number(answer.headers.get("retry-after") ?? seconds);
    } catch (error) {
      if (attempt === TRIES) throw error;
    }
    await sleep(seconds * 1000);
  }
}

async function submit(order: Order, url: string): Promise<number> {
  const task = { targetUrl: url, bodyJson: order };
  // The key names the order, not this run: submitted again after a crash or a lost answer, it is the same task.
  const headers = { "idempotency-key": order.order, prefer: "wait=30" };
  const answer = await callUntilAnswered("POST", "/retry-tasks", task, headers);
  if (!answer.ok) {
    const problem = (await answer.json()) as Problem;
    // 422 is also the answer to an invalid field, so the type decides.
    if (answer.status === 422 && problem.type.endsWith("/idempotency-key-reused")) {
      console.error(`${order.order} was announced before with other contents`);
      return 2;
    }
    console.error(answer.status, problem);
    return 1;
  }
  let state = (await answer.json()) as Task;
  // 202: the wait was over before the task has ended. Wait again; do not submit again.
  while (state.status === "PENDING" || state.status === "IN_FLIGHT") {
    const later = await callUntilAnswered("GET", `/retry-tasks/${state.taskId}`, undefined, { prefer: "wait=30" });
    if (!later.ok) throw new Error(`${later.status} ${await later.text()}`);
    state = (await later.json()) as Task;
  }
  console.log(`${order.order}: ${state.status} after ${state.attemptNumber} attempt(s)`);
  // What is not SUCCEEDED is a dead letter: `redrive tasks replay ID` sends it again.
  return state.status === "SUCCEEDED" ? 0 : 3;
}

// Applies each order once, although it may be delivered several times.
async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request);
  const key = request.headers["idempotency-key"]; // the same on every attempt
  if (request.method !== "POST" || request.url !== "/orders") return end(response, 404);
  if (typeof key !== "string") return end(response, 400);
  const event = `/inboxes/orders/events/${encodeURIComponent(key)}`;
  const begun = await call("POST", event, { mode: "begin", leaseMs: 30_000 });
  if (begun.status === 200) return end(response, 200); // applied before
  // 409: another process is applying it. The sender must come again, so this is a 503: most senders take 409 for "never
  // again".
  if (begun.status !== 201) return end(response, 503, begun.headers.get("retry-after") ?? "1");
  const { executionId, epoch } = (await begun.json()) as Execution;
  try {
    apply(JSON.parse(body) as Order);
  } catch (error) {
    console.error(`${key} was not applied:`, error);
    await call("POST", `${event}/release`, { executionId, epoch }); // The next attempt need not wait for the lease.
    return end(response, 503, "1");
  }
  const confirmed = await call("POST", `${event}/confirm`, { executionId, epoch });
  end(response, confirmed.ok ? 200 : 503); // 409: the lease was over and another process has taken over.
}

function apply(order: Order): void {
  // The effect comes here. If this process dies before it has confirmed, the event is new again when its lease is over: the
  // effect must be harmless if it happens twice.
  console.log(`${order.order}: paid ${order.amount}`);
}

function end(response: ServerResponse, status: number, retryAfter?: string): void {
  response.writeHead(status, retryAfter === undefined ? {} : { "retry-after": retryAfter }).end();
}

const [command, ...words] = process.argv.slice(2);
if (command === "submit" && words.length === 3) {
  const [order, amount, url] = words;
  process.exitCode = await submit({ order, amount }, url);
} else if (command === "receive" && words.length === 1) {
  const server = createServer((request, response) => {
    // Without an answer of Redrive nothing is known to be applied: the sender comes again.
    receive(request, response).catch((error) => {
      console.error(error);
      end(response, 503, "1");
    });
  });
  server.listen(Number(words[0]), "127.0.0.1");
} else {
  console.error("orders.ts submit ORDER AMOUNT URL | receive PORT");
  process.exitCode = 1;
}
