//! `redrive outbox table`: the statements that make an outbox table.

use super::name::TableName;
use crate::exit::Exit;
use crate::output::Output;

const EXAMPLES: &str = "\
Examples:
  redrive outbox table                                     # with the trigger as a comment
  redrive outbox table --table app.outbox --notify | psql  # with the trigger";

const TABLE: &str = include_str!("table.sql");
const NOTIFY: &str = include_str!("notify.sql");

/// A table in a schema needs the schema.
const ABOUT_SCHEMA: &str = "\
-- Needs CREATE on the database; leave it out if you may not create the schema.
CREATE SCHEMA IF NOT EXISTS {schema};

";

/// Why one may want the trigger, and why not.
const ABOUT_NOTIFY: &str = "
-- A trigger that wakes the relay at the commit. Without it the relay finds new rows when it next looks, every few
-- seconds. It costs: transactions that notify commit one after the other, across the whole server.
";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The table to create
    #[arg(long, value_name = "SCHEMA.NAME", default_value = "redrive_outbox")]
    table: TableName,
    /// Also create the trigger that wakes the relay
    #[arg(long)]
    notify: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    Output::standard().text(&statements(&args.table, args.notify))?;
    Ok(Exit::Done)
}

fn statements(table: &TableName, notify: bool) -> String {
    let function = table.beside("_notify");
    let trigger: String = match notify {
        true => NOTIFY.to_owned(),
        false => NOTIFY.lines().map(|line| format!("-- {line}\n")).collect(),
    };
    let schema = table.schema().map(|schema| ABOUT_SCHEMA.replace("{schema}", &schema)).unwrap_or_default();
    let optional = if notify { ABOUT_NOTIFY } else { &ABOUT_NOTIFY.replacen("A trigger", "Optional: a trigger", 1) };
    format!("{schema}{TABLE}{optional}{trigger}")
        .replace("{table}", &table.to_string())
        .replace("{function}", &function.to_string())
        .replace("{trigger}", &function.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_trigger_is_a_comment_unless_it_is_asked_for() {
        let table = "\"App\".outbox".parse().unwrap();
        let without = statements(&table, false);
        let trigger = "CREATE TRIGGER outbox_notify AFTER INSERT ON \"App\".outbox FOR EACH STATEMENT EXECUTE FUNCTION \
                       \"App\".outbox_notify();\n";
        assert!(without.ends_with(&format!("\n-- {trigger}")), "{without}");
        assert!(statements(&table, true).ends_with(&format!("\n{trigger}")));
        assert!(without.contains("\nCREATE SCHEMA IF NOT EXISTS \"App\";\n"), "{without}");
        assert!(!statements(&"outbox".parse().unwrap(), false).contains("CREATE SCHEMA"));
        assert!(without.contains("\nCREATE TABLE \"App\".outbox (\n"), "{without}");
    }
}
