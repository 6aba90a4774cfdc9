//! The settings of the guards. A guard that is turned off keeps its numbers, so the order in which they are given does
//! not matter.

use redrive_core::guards::{self, breaker, budget, concurrency};
use redrive_server::Standard;

use super::Config;

/// The most retries for every hundred first attempts that the retry standard allows.
const STANDARD_PERCENT: u32 = 20;

/// The settings of the guards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guards {
    /// Whether there is a retry budget.
    pub has_budget: bool,
    /// How large it is.
    pub budget: budget::Settings,
    /// Whether there is a circuit breaker.
    pub has_breaker: bool,
    /// When it opens and closes.
    pub breaker: breaker::Settings,
    /// The limit of attempts in flight; `engine.lane_concurrency` is its upper bound.
    pub concurrency: concurrency::Settings,
}

impl Default for Guards {
    fn default() -> Self {
        Guards {
            has_budget: true,
            budget: budget::Settings::default(),
            has_breaker: true,
            breaker: breaker::Settings::default(),
            concurrency: concurrency::Settings::default(),
        }
    }
}

impl Guards {
    /// What the engine is started with, if one lane may have `lane_concurrency` attempts in flight.
    pub(super) fn settings(&self, lane_concurrency: usize) -> guards::Settings {
        let most = u32::try_from(lane_concurrency).unwrap_or(u32::MAX);
        guards::Settings {
            budget: self.has_budget.then_some(self.budget),
            breaker: self.has_breaker.then_some(self.breaker),
            concurrency: concurrency::Settings { most, least: self.concurrency.least.min(most), ..self.concurrency },
            ..guards::Settings::default()
        }
    }
}

/// The settings that do not fit together: each with its key and what would be right.
pub(super) fn problems(config: &Config) -> Vec<(&'static str, String)> {
    let Guards { has_budget, budget, breaker, concurrency, .. } = &config.guards;
    let mut problems = Vec::new();
    if config.standard == Standard::Enforce {
        if !has_budget {
            let wrong = "must be on with standard = \"enforce\": services must have a retry budget (R-7)";
            problems.push(("guards.budget", wrong.to_owned()));
        } else if budget.percent > STANDARD_PERCENT {
            let wrong = format!("must be at most {STANDARD_PERCENT} with standard = \"enforce\" (R-7)");
            problems.push(("guards.budget_percent", wrong));
        }
    }
    if breaker.longest_open < breaker.open {
        let open = super::duration_text(breaker.open);
        problems.push(("guards.breaker_longest_open", format!("must be at least guards.breaker_open ({open})")));
    }
    let most = config.engine.lane_concurrency;
    if usize::try_from(concurrency.least).is_ok_and(|least| least > most) {
        problems.push(("guards.concurrency_min", format!("must be at most engine.lane_concurrency ({most})")));
    } else if concurrency.is_adaptive && concurrency.start < concurrency.least {
        let wrong = format!("must be at least guards.concurrency_min ({})", concurrency.least);
        problems.push(("guards.concurrency_start", wrong));
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_engine_with_its_own_limit_of_a_lane() {
        let settings = Guards::default().settings(128);
        let engine = guards::Settings::default();
        let concurrency = concurrency::Settings { most: 128, ..engine.concurrency };
        assert_eq!(settings, guards::Settings { concurrency, ..engine });
        assert_eq!(problems(&Config::default()), []);
    }

    #[test]
    fn a_guard_that_is_off_is_not_there_whatever_its_numbers_are() {
        let off = Guards { has_budget: false, has_breaker: false, ..Guards::default() }.settings(5);
        assert_eq!((off.budget, off.breaker, off.concurrency.most), (None, None, 5));
        let large = concurrency::Settings { least: 50, ..Default::default() };
        assert_eq!(Guards { concurrency: large, ..Guards::default() }.settings(5).concurrency.least, 5);
    }
}
