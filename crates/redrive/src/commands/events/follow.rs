//! Reads events and prints them. A stream that breaks is resumed where it was.

use std::time::Duration;

use rand::{Rng, rngs::SmallRng};
use tokio::time::Instant;

use super::Args;
use super::line::{Gap, line};
use crate::client::{Client, EventStream, ServerEvent};
use crate::output::{Output, duration, notice};

/// The longest wait before the first attempt to reconnect. It doubles with every further one, and each wait is drawn at
/// random between half of it and all of it, so that many readers do not come back at once.
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The longest wait between two attempts to reconnect.
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How long to try to reconnect.
const PATIENCE: Duration = Duration::from_secs(300);

/// Prints events until there are no more: never, if more are followed and the server can be reached.
pub(super) async fn follow(args: &Args) -> anyhow::Result<()> {
    let output = args.connection.output();
    let mut client = args.connection.client()?;
    let task = match &args.task {
        Some(given) => Some(client.task_id(given).await?),
        None => None,
    };
    let path = args.path(task.as_deref());
    let mut last_id = None;
    let mut stream = client.events(&path, None).await?;
    loop {
        let broken = print(&mut stream, output, args.connection.json).await;
        last_id = stream.last_id().map(str::to_owned).or(last_id);
        let why = match broken {
            Ok(()) if !args.follow => return Ok(()),
            Ok(()) => "the server ended the stream".to_owned(),
            Err(Broken::Output(error)) => return Err(error.into()),
            Err(Broken::Stream(error)) if !args.follow => return Err(error),
            Err(Broken::Stream(error)) => format!("{error:#}"),
        };
        notice(format!("{why}; reconnecting for up to {}", duration(PATIENCE)));
        stream = reconnect(&mut client, &path, last_id.as_deref()).await?;
        notice("connected again");
    }
}

/// Why printing stopped before the end of the stream.
enum Broken {
    Output(std::io::Error),
    Stream(anyhow::Error),
}

/// Prints events until the server ends the stream.
async fn print(stream: &mut EventStream, output: Output, is_json: bool) -> Result<(), Broken> {
    while let Some(ServerEvent { name, data }) = stream.next().await.map_err(Broken::Stream)? {
        match (is_json, name.as_str()) {
            (true, _) => output.json(data.as_bytes()).map_err(Broken::Output)?,
            (false, "gap") => notice(serde_json::from_str::<Gap>(&data).map_err(unreadable)?),
            (false, _) => {
                let event = serde_json::from_str(&data).map_err(unreadable)?;
                output.line(line(output, &event)).map_err(Broken::Output)?;
            }
        }
    }
    Ok(())
}

fn unreadable(error: serde_json::Error) -> Broken {
    Broken::Stream(anyhow::Error::new(error).context("the answer is not that of a Redrive server; check --server"))
}

/// Connects again, as often as it takes within [`PATIENCE`].
async fn reconnect(client: &mut Client, path: &str, last_id: Option<&str>) -> anyhow::Result<EventStream> {
    let until = Instant::now() + PATIENCE;
    let mut random: SmallRng = rand::make_rng();
    let mut longest = FIRST_WAIT;
    loop {
        let unit = f64::from(random.next_u32()) / f64::from(u32::MAX);
        tokio::time::sleep(longest.mul_f64(0.5 + unit / 2.0)).await;
        longest = (longest * 2).min(LONGEST_WAIT);
        match client.events(path, last_id).await {
            Ok(stream) => return Ok(stream),
            // A server that starts or stops refuses connections and requests.
            Err(error) if Instant::now() >= until => return Err(error),
            Err(error) => tracing::debug!(%error, "reconnecting"),
        }
    }
}
