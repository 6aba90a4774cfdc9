//! `redrive idempotency delete`.

use super::{RecordArgs, print};
use crate::exit::{Exit, ExitError};

const EXAMPLES: &str = "\
Examples:
  redrive idempotency delete create-payment order-7          # shows it, and deletes nothing
  redrive idempotency delete create-payment order-7 --yes    # deletes it as it is now
  redrive idempotency delete create-payment order-7 --etag 1-SUCCEEDED-1731600002140-1731600002140

After this the operation can be executed again with the same key. An execution that is under way
is fenced, but its effect may still take place. With --etag, which `redrive idempotency show`
prints, a record that has changed since is not deleted.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Delete the record as it is now
    #[arg(long, conflicts_with = "etag")]
    yes: bool,
    /// Delete the record only if this is still its ETag
    #[arg(long, value_name = "ETAG")]
    etag: Option<String>,
    #[command(flatten)]
    record: RecordArgs,
}

pub(crate) async fn run(Args { yes, etag, record }: Args) -> anyhow::Result<Exit> {
    let (mut client, output) = (record.connection.client()?, record.connection.output());
    let seen = match etag {
        Some(etag) => etag,
        None => {
            let shown = client.get(&record.path()).await?;
            let etag = shown.etag().to_owned();
            if !yes {
                match record.connection.json {
                    true => output.json(&shown.body)?,
                    false => print(output, &shown.read()?, &etag)?,
                }
                let RecordArgs { operation, key, .. } = &record;
                let line = record.connection.hint(&format!(
                    "idempotency delete {} {} --etag {etag}",
                    quote(operation),
                    quote(key)
                ));
                return Err(ExitError::of(
                    Exit::Usage,
                    format!("nothing was deleted; to delete the record as it is shown:\n  {line}"),
                ));
            }
            etag
        }
    };
    let answer = client.delete_if_match(&record.path(), &seen).await?;
    answer.expect_no_content()?;
    match record.connection.json {
        true if answer.body.is_empty() => output.json(b"{}")?,
        true => output.json(&answer.body)?,
        false => output.line(format!("{} {} deleted", record.operation, record.key))?,
    }
    Ok(Exit::Done)
}

/// A word for a shell to copy.
fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
