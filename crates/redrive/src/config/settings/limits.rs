//! The settings of sizes.

use super::Setting;
use crate::config::value::{bytes, count, limit_inline};

pub(super) const MAX_BODY_BYTES: Setting = Setting {
    key: "limits.max_body_bytes",
    variable: "REDRIVE_LIMITS_MAX_BODY_BYTES",
    flag: "max-body-bytes",
    value_name: "BYTES",
    meaning: "the largest body of a submission; larger bodies must be uploaded first",
    repeats: false,
    read: |config, given| given.count(1_024..=1_073_741_824).map(|bytes| config.limits.body_bytes = bytes),
    show: |config| count(config.limits.body_bytes),
};

pub(super) const MAX_STORED_BODY_BYTES: Setting = Setting {
    key: "limits.max_stored_body_bytes",
    variable: "REDRIVE_LIMITS_MAX_STORED_BODY_BYTES",
    flag: "max-stored-body-bytes",
    value_name: "BYTES",
    meaning: "the largest body of an upload",
    repeats: false,
    read: |config, given| {
        given.count(1_024..=1_073_741_824).map(|bytes| config.limits.stored_body_bytes = bytes as u64)
    },
    show: |config| bytes(config.limits.stored_body_bytes),
};

pub(super) const INLINE_BODY_BYTES: Setting = Setting {
    key: "limits.inline_body_bytes",
    variable: "REDRIVE_LIMITS_INLINE_BODY_BYTES",
    flag: "inline-body-bytes",
    value_name: "BYTES",
    meaning: "the largest request body and answer that are stored in the task; larger ones are stored as blobs",
    repeats: false,
    read: |config, given| given.count(1_024..=16_777_216).map(|bytes| limit_inline(config, bytes)),
    show: |config| count(config.limits.inline_body_bytes),
};

pub(super) const KEPT_ANSWER_BYTES: Setting = Setting {
    key: "limits.kept_answer_bytes",
    variable: "REDRIVE_LIMITS_KEPT_ANSWER_BYTES",
    flag: "kept-answer-bytes",
    value_name: "BYTES",
    meaning: "how much of an answer's body is kept",
    repeats: false,
    read: |config, given| given.count(0..=67_108_864).map(|bytes| config.transport.kept_answer_bytes = bytes as u64),
    show: |config| bytes(config.transport.kept_answer_bytes),
};
