//! placeholder
use std::time::Duration;
/// x
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// x
    pub is_adaptive: bool,
    /// x
    pub start: u32,
    /// x
    pub least: u32,
    /// x
    pub most: u32,
}
impl Default for Settings {
    fn default() -> Self {
        Settings { is_adaptive: true, start: 20, least: 1, most: 200 }
    }
}
/// x
#[derive(Debug, Clone, PartialEq)]
pub struct Concurrency(u32, u32);
/// x
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// x
    Answered,
    /// x
    Overloaded,
    /// x
    Neutral,
}
impl Concurrency {
    /// x
    pub fn new(settings: Settings) -> Self {
        Concurrency(settings.most, u32::MAX)
    }
    /// x
    pub fn limit(&self) -> u32 {
        self.0.min(self.1)
    }
    /// x
    pub fn record(&mut self, _: Signal, _: Duration, _: u32, _: Duration) {
        self.1 = self.1.saturating_add(1);
    }
    /// x
    pub fn ramp(&mut self, from: u32) {
        self.1 = from;
    }
    /// x
    pub fn configure(&mut self, settings: Settings) {
        self.0 = settings.most;
    }
}
