//! Makes sure at the start that this node keeps large bodies where the others do, and that it can.
//!
//! A node that looks elsewhere would find nothing and give tasks up whose bodies are there. An address does not tell: so a
//! place has an identity of its own, and the shared store remembers the one that its bodies are in.

use std::sync::Arc;

use anyhow::Context;
use redrive_blobs::{Blobs, Location};
use redrive_store::{PlaceId, Shared, Store};

use crate::exit::{Exit, Failure};

/// Where this node keeps large bodies.
pub(super) struct Place {
    pub(super) blobs: Arc<Blobs>,
    pub(super) location: Location,
    /// Whether a setting names it, and not a default.
    pub(super) is_named: bool,
}

/// Whether this is the place that the store's bodies are kept in. The first node makes it so.
pub(super) async fn check(place: Option<&Place>, store: &dyn Store) -> anyhow::Result<()> {
    let Some(shared) = store.shared() else {
        // Nobody else is there to disagree with, so all that is to be known is whether it can be used.
        return match place {
            Some(place) if place.is_named => place.mark().await.map(drop),
            _ => Ok(()),
        };
    };
    let recorded = recorded(shared, None).await?;
    match (place, recorded) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(refuse(
            "large bodies of this store's tasks are kept apart, and this node does not know where: it needs the same \
             --blobs as the others"
                .into(),
        )),
        // Looked at and not marked: what is not the place should not look like one.
        (Some(place), Some(recorded)) => place.must_be(recorded, place.identity().await?),
        (Some(place), None) => {
            let mine = place.mark().await?;
            let recorded = self::recorded(shared, Some(mine)).await?.unwrap_or(mine);
            place.must_be(recorded, Some(mine))
        }
    }
}

async fn recorded(shared: &dyn Shared, mine: Option<PlaceId>) -> anyhow::Result<Option<PlaceId>> {
    shared.body_place(mine).await.context("cannot ask the store where large bodies are kept")
}

impl Place {
    async fn identity(&self) -> anyhow::Result<Option<PlaceId>> {
        self.blobs.identity().await.with_context(|| self.unusable())
    }

    async fn mark(&self) -> anyhow::Result<PlaceId> {
        self.blobs.mark().await.with_context(|| self.unusable())
    }

    fn unusable(&self) -> String {
        format!("cannot keep large bodies in {}", self.location)
    }

    fn must_be(&self, recorded: PlaceId, found: Option<PlaceId>) -> anyhow::Result<()> {
        let found = match found {
            Some(found) if found == recorded => return Ok(()),
            Some(found) => format!("it is the place {found}"),
            None => "it has no marker \"place\"".into(),
        };
        let location = &self.location;
        Err(refuse(format!(
            "large bodies of this store's tasks are not kept in {location}: {found}, and theirs is {recorded}. Every node \
             needs the same --blobs; bodies that were moved need their marker, the object \"place\", beside them"
        )))
    }
}

fn refuse(message: String) -> anyhow::Error {
    Failure::error(Exit::BadConfiguration, message)
}
