//! Why a transport cannot be made.

pub use redrive_dial::SetupError as Error;
