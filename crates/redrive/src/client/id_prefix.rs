//! Ids that are given by their first characters.

use redrive_core::{TaskId, TaskIdPrefix};

use super::{Client, Pages, Task};
use crate::exit::{Exit, ExitError};

/// How many of the ids with the same beginning an error lists.
const MOST_LISTED: usize = 5;

impl Client {
    /// The id of the task that `given` is, or is the unique beginning of. What is no beginning of a task id is left to the
    /// server to refuse.
    pub async fn task_id(&mut self, given: &str) -> anyhow::Result<String> {
        let given = given.trim();
        if given.parse::<TaskId>().is_ok() || given.parse::<TaskIdPrefix>().is_err() {
            return Ok(given.to_owned());
        }
        let query = vec![("idPrefix", given.to_owned())];
        let mut pages = Pages::new("/retry-tasks".into(), query, "tasks", MOST_LISTED + 1);
        let mut tasks: Vec<Task> = Vec::new();
        while let Some(page) = pages.next(self).await? {
            tasks.extend(page.read::<Task>()?);
        }
        let ids = tasks.iter().map(|task| (task.task_id.as_str(), format!("{} {}", task.status, task.request_text())));
        the_only(given, "task", ids.collect())
    }
}

/// The only one of these ids, each of which comes with what it stands for.
pub fn the_only(given: &str, kind: &str, found: Vec<(&str, String)>) -> anyhow::Result<String> {
    match found.as_slice() {
        [] => Err(ExitError::of(Exit::NotFound, format!("there is no {kind} with an id that begins with {given}"))),
        [(id, _)] => Ok((*id).to_owned()),
        many => {
            let listed = many.iter().take(MOST_LISTED).map(|(id, what)| format!("\n  {id} {what}"));
            let more = if many.len() > MOST_LISTED { "\n  and more" } else { "" };
            let listed = listed.collect::<String>();
            let message =
                format!("several {kind}s have an id that begins with {given}; give more of it:{listed}{more}");
            Err(ExitError::of(Exit::Failed, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::exit_of;

    #[test]
    fn an_id_is_found_only_if_it_is_the_only_one() {
        let found =
            |ids: &[&'static str]| the_only("01", "task", ids.iter().map(|id| (*id, "PENDING".into())).collect());
        assert_eq!(found(&["01a"]).unwrap(), "01a");
        let none = found(&[]).unwrap_err();
        assert_eq!(none.to_string(), "there is no task with an id that begins with 01");
        assert_eq!(exit_of(&none), Exit::NotFound);
        let two = found(&["01a", "01b"]).unwrap_err();
        assert_eq!(
            two.to_string(),
            "several tasks have an id that begins with 01; give more of it:\n  01a PENDING\n  01b PENDING"
        );
        assert_eq!(exit_of(&two), Exit::Failed);
        let six = found(&["01a", "01b", "01c", "01d", "01e", "01f"]).unwrap_err().to_string();
        assert!(six.ends_with("01e PENDING\n  and more"), "{six}");
    }
}
