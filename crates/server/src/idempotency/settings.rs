//! How long records and event ids are kept, and how long an execution may take.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use redrive_core::{Consumer, OperationName};

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// The settings of idempotency records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long a record is kept after its end. 24 h by default.
    pub retention: Duration,
    /// How long a record of a financial operation is kept after its end. 7 days by default.
    pub financial_retention: Duration,
    /// How long no other execution may take over, if the caller does not say. 60 s by default.
    pub lease: Duration,
    /// How long the id of an event is kept. 7 days by default.
    pub inbox_window: Duration,
    /// Operations with settings of their own.
    pub operations: BTreeMap<OperationName, OperationSettings>,
    /// Consumers with a window of their own.
    pub consumers: BTreeMap<Consumer, Duration>,
}

/// The settings of one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OperationSettings {
    /// How long its records are kept; the general setting if not given.
    pub retention: Option<Duration>,
    /// Whether it is financial: then no request may ask for a shorter retention than the setting.
    pub is_financial: bool,
}

impl Settings {
    /// The leases that a caller may ask for.
    pub const LEASES: RangeInclusive<Duration> = Duration::from_secs(1)..=DAY;
    /// The retentions and windows that a caller may ask for.
    pub const RETENTIONS: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(90 * 86_400);
    /// The shortest retention of keys that the retry standard allows.
    pub const STANDARD_RETENTION: Duration = Duration::from_secs(24 * HOUR.as_secs());
    /// The shortest retention of event ids that the retry standard allows.
    pub const STANDARD_WINDOW: Duration = Duration::from_secs(7 * DAY.as_secs());

    /// How long records of this operation are kept if the caller does not say.
    pub fn retention_of(&self, operation: &OperationName) -> Duration {
        let own = self.operations.get(operation).copied().unwrap_or_default();
        let general = if own.is_financial { self.financial_retention } else { self.retention };
        own.retention.unwrap_or(general)
    }

    /// Whether the operation is financial.
    pub fn is_financial(&self, operation: &OperationName) -> bool {
        self.operations.get(operation).is_some_and(|own| own.is_financial)
    }

    /// How long the ids of events of this consumer are kept if the caller does not say.
    pub fn window_of(&self, consumer: &Consumer) -> Duration {
        self.consumers.get(consumer).copied().unwrap_or(self.inbox_window)
    }
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            retention: DAY,
            financial_retention: 7 * DAY,
            lease: Duration::from_secs(60),
            inbox_window: 7 * DAY,
            operations: BTreeMap::new(),
            consumers: BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_of_an_operation_goes_before_the_general_ones() {
        let name = |name: &str| OperationName::try_new(name).unwrap();
        let own = |retention, is_financial| OperationSettings { retention, is_financial };
        let settings = Settings {
            operations: [
                (name("pay"), own(None, true)),
                (name("refund"), own(Some(30 * DAY), true)),
                (name("export"), own(Some(2 * DAY), false)),
            ]
            .into(),
            consumers: [(Consumer::try_new("billing").unwrap(), 14 * DAY)].into(),
            ..Settings::default()
        };
        for (operation, retention, is_financial) in
            [("pay", 7, true), ("refund", 30, true), ("export", 2, false), ("other", 1, false)]
        {
            let operation = name(operation);
            assert_eq!(settings.retention_of(&operation), retention * DAY, "{operation}");
            assert_eq!(settings.is_financial(&operation), is_financial, "{operation}");
        }
        for (consumer, days) in [("billing", 14), ("other", 7)] {
            assert_eq!(settings.window_of(&Consumer::try_new(consumer).unwrap()), days * DAY, "{consumer}");
        }
    }
}
