//! The schemas of texts that are one of a few: made from the domain's own lists, so that they cannot drift.

use std::borrow::Cow;

use redrive_core::{ErrorType, Outcome, Reason, Status};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

macro_rules! one_of {
    ($name:ident, $description:literal, $all:expr) => {
        #[doc = $description]
        #[derive(Debug)]
        pub enum $name {}

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                let names: Vec<&str> = $all.iter().map(|each| each.as_str()).collect();
                json_schema!({ "type": "string", "description": $description, "enum": names })
            }
        }
    };
}

one_of!(TaskStatus, "Where a task stands.", Status::ALL);
one_of!(StatusReason, "Why a task ended as it did.", Reason::ALL);
one_of!(AttemptOutcome, "What an attempt meant; `unknown` if a crash cut it off.", Outcome::ALL);
one_of!(ErrorKind, "What kind of thing went wrong.", ErrorType::ALL);

/// A UUID, as text.
#[derive(Debug)]
pub enum Uuid {}

impl JsonSchema for Uuid {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Uuid".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "uuid" })
    }
}
