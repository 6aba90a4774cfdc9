//! A page about a rule: what the standard asks for, why, how it looks done right and done wrong, and what is checked.

use crate::rules::{Check, Rule};

/// How wide a page is.
const WIDTH: usize = 96;

/// The subject of a page: a rule, and perhaps one of its checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Topic {
    rule: Rule,
    check: Option<&'static Check>,
}

impl Topic {
    /// The topic with this name: `R-7`, or a check's such as `fixed-interval`, in any case.
    pub fn named(name: &str) -> Option<Topic> {
        let by_check =
            || Check::named(&name.to_ascii_lowercase()).map(|check| Topic { rule: check.rule, check: Some(check) });
        Rule::from_id(name).map(|rule| Topic { rule, check: None }).or_else(by_check)
    }

    /// All topics, a line each.
    pub fn list() -> String {
        let mut list = String::new();
        for rule in Rule::ALL {
            let checks: Vec<_> = checks_of(rule).map(|check| check.id).collect();
            list.push_str(&wrapped(
                &format!("{:<4}  ", rule.id()),
                &format!("{}: {}", rule.title(), checks.join(", ")),
            ));
        }
        list
    }
}

fn checks_of(rule: Rule) -> impl Iterator<Item = &'static Check> {
    Check::ALL.iter().copied().filter(move |check| check.rule == rule)
}

/// The page about a topic.
pub fn page(topic: Topic) -> String {
    let rule = topic.rule;
    let mut page = format!("{} {}\n", rule.id(), rule.title());
    if let Some(check) = topic.check {
        page.push_str(&format!("\n{} ({})\n", check.id, check.gate.action()));
        page.push_str(&wrapped("  ", &format!("Looks for {}. {}", check.title, check.why)));
    }
    page.push_str("\nWhat the standard asks\n");
    for line in rule.asks() {
        page.push_str(&wrapped("  - ", line));
    }
    page.push_str("\nWhy\n");
    page.push_str(&wrapped("  ", rule.why()));
    page.push_str(&example("Right", rule.good()));
    page.push_str(&example("Wrong", rule.bad()));
    page.push_str("\nWhat is checked\n");
    let longest = checks_of(rule).map(|check| check.id.len()).max().unwrap_or(0);
    for check in checks_of(rule) {
        page.push_str(&wrapped(
            &format!("  {:<longest$}  ", check.id),
            &format!("{} ({})", check.title, check.gate.action()),
        ));
    }
    page
}

fn example(title: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("  {line}\n")).collect();
    format!("\n{title}\n{lines}")
}

/// `text` in lines of at most [`WIDTH`] columns, the first behind `start`, the others below its end.
fn wrapped(start: &str, text: &str) -> String {
    let indent = start.chars().count();
    let mut lines = String::from(start);
    let mut column = indent;
    for (at, word) in text.split_whitespace().enumerate() {
        let length = word.chars().count();
        if at > 0 && column + 1 + length > WIDTH {
            lines.push('\n');
            lines.push_str(&" ".repeat(indent));
            column = indent;
        } else if at > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_and_every_check_has_a_page() {
        for rule in Rule::ALL {
            let page = page(Topic::named(rule.id()).unwrap());
            assert!(page.starts_with(&format!("{} {}\n", rule.id(), rule.title())), "{page}");
            for part in [rule.asks()[0].split(' ').next().unwrap(), "\nWhy\n", "\nRight\n", "\nWrong\n"] {
                assert!(page.contains(part), "{part} in {page}");
            }
            for check in checks_of(rule) {
                assert!(page.contains(&format!("  {}  ", check.id)), "{} in {page}", check.id);
            }
        }
        for check in Check::ALL {
            let page = page(Topic::named(check.id).unwrap());
            assert!(page.contains(&format!("\n{} ({})\n", check.id, check.gate.action())), "{page}");
        }
        assert_eq!(Topic::named("Fixed-INTERVAL"), Topic::named("fixed-interval"));
        assert_eq!(Topic::named("R-11"), None);
        assert_eq!(Topic::named("fixed"), None);
    }

    #[test]
    fn every_topic_is_in_the_list() {
        let list = Topic::list();
        for check in Check::ALL {
            assert!(list.contains(check.id) && list.contains(check.rule.id()), "{}", check.id);
        }
    }

    #[test]
    fn lines_are_filled_up_to_the_width_and_hang_below_their_start() {
        let text = wrapped("  - ", &"word ".repeat(40));
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(lines[0].starts_with("  - word") && lines[1].starts_with("    word"), "{text}");
        assert_eq!(lines[0].chars().count(), 93);
    }
}
