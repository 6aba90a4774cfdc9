//! A caller's connection to the service: to any node, and to another one whenever the first does not answer.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use fastrand::Rng;

use super::addresses::Addresses;
use crate::api::{Answered, Api};

/// How long a caller retries: some node must answer within this time.
const PATIENCE: Duration = Duration::from_secs(90);
/// The timeout for one node.
const ANSWER_LIMIT: Duration = Duration::from_secs(2);
/// The pause before a retry.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// How many calls of 100 go to another node although the last one had answered.
const WANDER_PERCENT: u32 = 30;

/// A kept connection to some node.
#[derive(Default)]
pub struct Line {
    open: Option<(SocketAddr, Api)>,
    /// The node that failed last.
    avoid: Option<SocketAddr>,
    /// How often the answer was 503.
    pub refused: u64,
}

impl Line {
    /// Sends the same request, to one node after the other, until there is an answer other than 503.
    pub async fn call(
        &mut self,
        nodes: &Addresses,
        random: &mut Rng,
        (method, path, body): (&str, &str, &str),
    ) -> Result<Answered> {
        let begin = Instant::now();
        if random.u32(..100) < WANDER_PERCENT {
            self.avoid = self.open.take().map(|(address, _)| address);
        }
        loop {
            let said = match tokio::time::timeout(ANSWER_LIMIT, self.ask(nodes, random, (method, path, body))).await {
                Ok(Ok(answer)) if answer.status != 503 => return Ok(answer),
                Ok(Ok(answer)) => {
                    self.refused += 1;
                    answer.describe()
                }
                Ok(Err(error)) => format!("{error:#}"),
                Err(_) => format!("nothing within {ANSWER_LIMIT:?}"),
            };
            if begin.elapsed() > PATIENCE {
                bail!("{method} {path} had no answer for {PATIENCE:?}, last: {said}");
            }
            // It is unknown whether the request has taken effect.
            self.avoid = self.open.take().map(|(address, _)| address).or(self.avoid);
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }

    async fn ask(
        &mut self,
        nodes: &Addresses,
        random: &mut Rng,
        (method, path, body): (&str, &str, &str),
    ) -> Result<Answered> {
        if self.open.is_none() {
            let Some(address) = nodes.pick(self.avoid, random) else { bail!("no node listens") };
            self.avoid = Some(address);
            self.open = Some((address, Api::connect(address).await?));
        }
        match &mut self.open {
            Some((_, api)) => api.call(method, path, body).await,
            None => bail!("no connection"),
        }
    }
}
