//! The alerts that a service has raised, from its log.

/// The event `alert="dead-letter"`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alert {
    /// The task.
    pub task: String,
    /// The run that ended so.
    pub run: u32,
}

/// The alerts in a log; a last line that a kill truncated is ignored.
pub fn alerts(log: &str) -> impl Iterator<Item = Alert> {
    let whole = log.rfind('\n').map_or("", |end| &log[..end]);
    whole.lines().filter(|line| line.contains("alert=\"dead-letter\"")).filter_map(|line| {
        let task = field(line, "task_id=")?.to_owned();
        Some(Alert { task, run: field(line, "run=")?.parse().ok()? })
    })
}

fn field<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    line.split(' ').find_map(|word| word.strip_prefix(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_are_found_in_the_log() {
        let log = "\
            2026-11-15T23:31:54Z  INFO redrive: dead letter task_id=no run=1\n\
            2026-11-15T23:31:56Z ERROR redrive_engine::announcer: dead letter alert=\"dead-letter\" correlation_id=x task_id=a-1 run=2\n\
            2026-11-15T23:31:57Z ERROR redrive_engine::announcer: dead letter alert=\"dead-letter\" correlation_id=y task_id=b run=1";
        assert_eq!(alerts(log).collect::<Vec<_>>(), [Alert { task: "a-1".to_owned(), run: 2 }]);
    }
}
