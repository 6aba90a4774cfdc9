//! The kinds of problem that a caller can meet: each has a stable name, and a page that explains it.

/// A kind of problem.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    /// The last part of its type, `/problems/{name}`. Never changed: programs depend on it.
    pub(crate) name: &'static str,
    /// In a few words.
    pub(crate) title: &'static str,
    /// The status code that it comes with.
    pub(crate) status: u16,
    /// The meaning, and what to do about it.
    pub(crate) explanation: &'static str,
}

impl Kind {
    /// The `type` of its problem details: a path of this server.
    pub(crate) fn uri(&self) -> String {
        format!("/problems/{}", self.name)
    }

    /// The kind with this name.
    pub(crate) fn named(name: &str) -> Option<&'static Kind> {
        ALL.into_iter().find(|kind| kind.name == name)
    }
}

macro_rules! kinds {
    ($($constant:ident = $status:literal $name:literal $title:literal: $explanation:literal;)*) => {
        $(pub(crate) static $constant: Kind =
            Kind { name: $name, title: $title, status: $status, explanation: $explanation };)*

        /// Every kind, by status code.
        pub(crate) static ALL: [&Kind; kinds!(@count $($constant)*)] = [$(&$constant),*];
    };
    (@count) => { 0 };
    (@count $first:ident $($rest:ident)*) => { 1 + kinds!(@count $($rest)*) };
}

kinds! {
    MALFORMED_JSON = 400 "malformed-json" "The body is not JSON":
        "The request's body could not be read as JSON. The detail says where reading stopped.";
    INVALID_DOCUMENT = 400 "invalid-document" "The document does not match its schema":
        "The body is JSON, but a field is unknown, missing, given twice or of the wrong type. `field` names it.";
    INVALID_PARAMETER = 400 "invalid-parameter" "A parameter is invalid":
        "A query parameter, a header or the body is missing, unknown, repeated or malformed. `field` names it.";
    KEY_MISMATCH = 400 "idempotency-key-mismatch" "Two different idempotency keys":
        "The document's `idempotencyKey` and the `Idempotency-Key` header differ. Give one of them, or the same key twice.";
    INVALID_KEY = 400 "invalid-idempotency-key" "The idempotency key is not valid":
        "An idempotency key has 1 to 64 visible ASCII characters. As the header `Idempotency-Key` it is given once, bare or as a quoted string. The detail says which rule was broken, and `field` where.";
    BROKEN_BODY = 400 "broken-body" "The upload is incomplete":
        "The upload stopped before its last byte. Nothing was stored; it is safe to try again.";
    CROSS_SITE = 403 "cross-site" "Requests from pages of other sites are refused":
        "A page of another site made this request: its `Origin` is another site than this server, or its `Sec-Fetch-Site` says so. Such a page could use a visitor's browser to reach a service on the visitor's machine or network. If the page is served under another name of this server, start the server with that name in `--host-names`.";
    UNKNOWN_HOST = 403 "unknown-host" "Unknown host name":
        "The `Host` header (`:authority` in HTTP/2) is not a name of this server. A page of another site can make its own name resolve to this server's address, so only known names are answered: loopback, the address that the server listens on, and those in `--host-names`. Only `/livez` and `/readyz` are answered under any name, and `/metrics` under any IP address.";
    NOT_FOUND = 404 "not-found" "No such path":
        "There is no route at this path. The API is described at /docs and in /openapi.json.";
    TASK_NOT_FOUND = 404 "task-not-found" "No such task":
        "There is no task with this id: it was never accepted here, or it was deleted after its retention.";
    POLICY_NOT_FOUND = 404 "policy-not-found" "No such policy":
        "There is no policy with this name.";
    DEPENDENCY_NOT_FOUND = 404 "dependency-not-found" "No such dependency":
        "This node knows no task of this dependency, and nothing is set for it. A dependency has the name that the submission gave it, or else the origin of the target, such as `https://api.example.com`; in a path it is percent-encoded. After a restart, a dependency is known again once it has a task that is not ended.";
    BODY_NOT_FOUND = 404 "body-not-found" "No such stored body":
        "There is no stored body with this hash: it was never uploaded here, or no task refers to it any more and it was deleted.";
    RECORD_NOT_FOUND = 404 "record-not-found" "No such idempotency record":
        "There is no record of this operation with this key, or of this consumer with this event: it was never reserved here, it was released or deleted, or its retention is over.";
    SILENCE_NOT_FOUND = 404 "silence-not-found" "No such silence":
        "There is no silence with this id, or it has ended. `GET /alerts` lists those that have not.";
    SINK_NOT_FOUND = 404 "sink-not-found" "No such sink":
        "No sink of alerts with this name is configured on this node (`[alerts.sinks.NAME]`).";
    METHOD_NOT_ALLOWED = 405 "method-not-allowed" "Method not allowed":
        "The path exists, but not with this method. The `Allow` header lists the methods that it has.";
    REQUEST_TIMEOUT = 408 "request-timeout" "The body did not arrive in time":
        "The request's body did not arrive in time. Nothing was changed; it is safe to try again.";
    TASK_ENDED = 409 "task-already-ended" "The task has already ended":
        "A task that has ended can neither be cancelled nor brought forward. A task that ended FAILED or EXHAUSTED can be replayed; see its `status`.";
    TASK_NOT_DEAD = 409 "task-not-dead" "The task is not a dead letter":
        "Only a task that ended FAILED or EXHAUSTED can be replayed. A task that is still waiting can be brought forward. A task that SUCCEEDED or was CANCELLED does not change any more: submit a new one.";
    POLICY_GONE = 409 "policy-gone" "The task's policy was deleted":
        "The task refers to the policy version that it was accepted with, and that version was deleted after the task had ended. The task cannot be replayed: submit its request again, with a policy that exists and a new idempotency key.";
    TASK_IN_FLIGHT = 409 "task-in-flight" "An attempt is under way":
        "An attempt of the task is under way or about to begin, so there is nothing to bring forward. If this attempt fails, the task waits again.";
    POLICY_IN_USE = 409 "policy-in-use" "Tasks still use this policy":
        "Tasks that have not ended use a version of this policy. `liveTasks` is their number.";
    POLICY_PROTECTED = 409 "policy-protected" "This policy cannot be deleted":
        "The policy `default` applies to tasks that name no policy, and the presets are built in. They can be changed, but not deleted.";
    BREAKER_OFF = 409 "breaker-off" "There is no circuit breaker":
        "The circuit breaker is turned off on this server (`guards.breaker`), so it cannot be opened. Pause the dependency instead.";
    TOO_MANY_CONTROLS = 409 "too-many-controls" "Too many dependencies are controlled":
        "Operators have set a pause, an open breaker or limits for 10,000 dependencies, the most that are allowed. Resume, close or remove limits where they are not needed any more. Nothing was changed.";
    TOO_MANY_SILENCES = 409 "too-many-silences" "Too many silences":
        "There are 100 silences, the most that are allowed at a time. End one that is not needed any more. Nothing was changed.";
    IN_PROGRESS = 409 "idempotency-in-progress" "Another execution is under way":
        "Another execution of the same operation with the same key, or of the same event, is under way. Do not execute it. Try again after `Retry-After`, or ask with `Prefer: wait=N`, or poll `pollUrl`. When its lease ends at `leaseUntil` without a result, the next reservation takes over.";
    FENCED = 409 "fenced" "Another execution has taken over":
        "The execution id and epoch are not those of the record's owner: the lease ended and another execution took over. Nothing was changed. Do not continue: the result of the other execution counts.";
    ALREADY_ENDED = 409 "already-ended" "The execution has already ended":
        "The record of this execution has ended before, in another way or with another result, or an operator has deleted it (RELEASED). Nothing was changed; the detail says how it ended. Repeating the call that ended it is answered like the first time.";
    VERSION_MISMATCH = 412 "version-mismatch" "The policy is at another version":
        "The policy is not in the state that `If-Match` or `If-None-Match` requires: it was changed meanwhile. Read it again, and send the new `ETag`.";
    RECORD_CHANGED = 412 "record-changed" "The record has changed":
        "The record is not the one that `If-Match` names: it has changed since. Nothing was deleted. Read it again, and send the new `ETag`.";
    TOO_LARGE = 413 "content-too-large" "Content too large":
        "The request, or the body that it carries, is larger than the limit in `limitBytes`.";
    NOT_JSON = 415 "unsupported-media-type" "The body must be JSON":
        "Send the document as `application/json`, not compressed. What a task is to deliver may be of any type: put it in `body`, `bodyJson` or `bodyBase64`.";
    INVALID_VALUE = 422 "invalid-value" "A value is invalid":
        "The document matches its schema, but one or more of its values are not allowed. `errors` lists each of them with its field.";
    BREAKS_STANDARD = 422 "breaks-standard" "Not allowed by the retry standard":
        "This service enforces the retry standard: it refuses policies and submissions that break a MUST. `findings` lists each broken rule with the field, why it matters and how to fix it; `redrive lint --explain R-1` explains a rule. Nothing was changed.";
    UNKNOWN_POLICY = 422 "unknown-policy" "No policy with this name":
        "The submission names a policy that does not exist. Register it first, or leave `policyId` out for the default.";
    UNKNOWN_BODY = 422 "unknown-body" "No stored body with this hash":
        "The submission's `bodyRef` refers to a body that is not stored: it was never uploaded here, or it was deleted because no task referred to it for a day. Upload it and submit again.";
    KEY_REUSED = 422 "idempotency-key-reused" "The idempotency key belongs to another request":
        "The idempotency key was used for a different request. Nothing was changed. Use a new key for a new request. After a submission, `taskId` names the task that has the key; of an idempotency record nothing is disclosed.";
    PRECONDITION_REQUIRED = 428 "precondition-required" "If-Match is required":
        "Deleting a record makes its operation executable again. Read the record, and send its `ETag` as `If-Match`: then only the record that you have seen is deleted. `If-Match: *` deletes whatever is there.";
    INTERNAL = 500 "internal-error" "Internal error":
        "The service failed because of a fault of its own. Its log has the details.";
    NO_BODY_STORAGE = 501 "no-body-storage" "No storage for large bodies":
        "Large bodies are stored separately from tasks, and this service has no storage for them. Retrying does not help: start every node with `--blobs`, the same storage for each.";
    EVENTS_OFF = 501 "events-off" "No events are kept":
        "This node was started with `--events 0`: it keeps no events, so there is nothing to read or to follow. Start it with another number of events.";
    DEPENDENCY_UNAVAILABLE = 503 "dependency-unavailable" "The dependency is not called now":
        "The circuit breaker of the dependency is open, and the caller waits for the answer (`Prefer: wait`, with a policy of the context `sync` or `grpc`): the task would not be sent in time. Nothing was stored, and the idempotency key is not used up. Try again after `Retry-After`.";
    UNAVAILABLE = 503 "unavailable" "Service unavailable":
        "The service cannot serve this request now: its store or its object storage cannot be reached, it is stopping, or its memory for requests and answers is used up. A write may have taken effect nevertheless, because the store's answer can get lost. Try again after `Retry-After`; repeat submissions with the same idempotency key, which makes that safe.";
    TOO_MANY_READERS = 503 "too-many-readers" "Too many readers of events":
        "64 readers follow the events of this node, the most that are allowed at a time. Close one that is not needed any more, or try again after `Retry-After`.";
    STORAGE_FULL = 507 "storage-full" "No space left":
        "The store has no space left. Nothing was changed. Reads still work; writes work again once there is space.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_in_the_order_of_their_status() {
        for pair in ALL.windows(2) {
            assert!(pair[0].status <= pair[1].status, "{}", pair[1].name);
        }
        for kind in ALL {
            assert_eq!(Kind::named(kind.name), Some(kind));
            assert_eq!(ALL.iter().filter(|other| other.name == kind.name).count(), 1);
        }
    }
}
