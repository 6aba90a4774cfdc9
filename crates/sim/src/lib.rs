//! A seeded world that tries to break Redrive, and a model that says when it succeeded.
#![forbid(unsafe_code)]

pub mod disk;
