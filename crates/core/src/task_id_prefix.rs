//! The beginning of task ids, as people type it instead of the whole id.

use std::str::FromStr;

use crate::TaskId;

/// The lowest and the highest task id: between their digits lies what version 7 and its variant leave free.
const LOWEST: &str = "00000000-0000-7000-8000-000000000000";
const HIGHEST: &str = "ffffffff-ffff-7fff-bfff-ffffffffffff";

/// The beginning of task ids. Ids with the same beginning are a range, because ids are ordered as their text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskIdPrefix {
    first: TaskId,
    last: TaskId,
}

/// A text that no task id begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be the beginning of a task id, such as 01a1e0fa-0fc2: hexadecimal digits and dashes as in the id")]
pub struct NotAPrefix;

impl TaskIdPrefix {
    /// The lowest id that begins so.
    pub fn first(self) -> TaskId {
        self.first
    }

    /// The highest id that begins so.
    pub fn last(self) -> TaskId {
        self.last
    }

    /// Whether this id begins so.
    pub fn includes(self, id: TaskId) -> bool {
        self.first <= id && id <= self.last
    }
}

impl FromStr for TaskIdPrefix {
    type Err = NotAPrefix;

    fn from_str(text: &str) -> Result<Self, NotAPrefix> {
        let completed = |with: &str| -> Option<TaskId> { format!("{text}{}", with.get(text.len()..)?).parse().ok() };
        match (completed(LOWEST), completed(HIGHEST)) {
            (Some(first), Some(last)) if !text.is_empty() => Ok(TaskIdPrefix { first, last }),
            _ => Err(NotAPrefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_the_range_of_the_ids_that_begin_so() {
        for (text, first, last) in [
            ("0", "00000000-0000-7000-8000-000000000000", "0fffffff-ffff-7fff-bfff-ffffffffffff"),
            ("01a1e0fa-0fc2", "01a1e0fa-0fc2-7000-8000-000000000000", "01a1e0fa-0fc2-7fff-bfff-ffffffffffff"),
            ("01A1E0FA-0fc2-", "01a1e0fa-0fc2-7000-8000-000000000000", "01a1e0fa-0fc2-7fff-bfff-ffffffffffff"),
            ("01a1e0fa-0fc2-7012-8", "01a1e0fa-0fc2-7012-8000-000000000000", "01a1e0fa-0fc2-7012-8fff-ffffffffffff"),
            (
                "01a1e0fa-0fc2-7012-b400-9fbd5c39023f",
                "01a1e0fa-0fc2-7012-b400-9fbd5c39023f",
                "01a1e0fa-0fc2-7012-b400-9fbd5c39023f",
            ),
        ] {
            let prefix: TaskIdPrefix = text.parse().unwrap();
            assert_eq!((prefix.first().to_string().as_str(), prefix.last().to_string().as_str()), (first, last));
            assert!(prefix.includes(prefix.first()) && prefix.includes(prefix.last()), "{text}");
        }
        let prefix: TaskIdPrefix = "01a1e0fa-0fc2".parse().unwrap();
        for outside in ["01a1e0fa-0fc1-7fff-bfff-ffffffffffff", "01a1e0fa-0fc3-7000-8000-000000000000"] {
            assert!(!prefix.includes(outside.parse().unwrap()), "{outside}");
        }
    }

    #[test]
    fn what_no_task_id_begins_with_is_refused() {
        for text in [
            "",
            "-",
            "xyz",
            "01a1e0fa0fc2",
            "01a1e0fa-0fc2-4",
            "01a1e0fa-0fc2-7012-c",
            "01a1e0fa-0fc2-7012-b400-9fbd5c39023f0",
            " 01",
            "ä",
        ] {
            assert_eq!(text.parse::<TaskIdPrefix>(), Err(NotAPrefix), "{text:?}");
        }
    }
}
