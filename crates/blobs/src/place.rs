//! The names of objects.
//!
//! `bodies/TENANT/ba/ba7816…-COPY` holds a body, `incoming/NUMBER` one that is still coming in. A body's name says what
//! is in it, and its copy makes sure that no name is ever used again after its object was deleted. `place` says which
//! place this is.

use object_store::path::Path;
use redrive_core::{BodyRef, TenantId};

pub(crate) const BODIES: &str = "bodies";
pub(crate) const INCOMING: &str = "incoming";
pub(crate) const MARKER: &str = "place";

/// Where all names begin.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    root: Path,
}

impl Places {
    /// Names that begin with `prefix`.
    pub(crate) fn below(prefix: &str) -> Self {
        Places { root: Path::from(prefix) }
    }

    /// Where a body is.
    pub(crate) fn body(&self, tenant: &TenantId, body: &BodyRef) -> Path {
        let hex = body.hash.hex();
        let object = format!("{hex}-{:016x}", body.copy);
        [BODIES, tenant.as_str(), &hex[..2], &object].into_iter().fold(self.root.clone(), |path, part| path.join(part))
    }

    /// Where the marker is.
    pub(crate) fn marker(&self) -> Path {
        self.root.clone().join(MARKER)
    }

    /// Where a body with this number is while it comes in.
    pub(crate) fn incoming(&self, number: u64) -> Path {
        self.all_incoming().join(format!("{number:016x}"))
    }

    /// Where everything is that is still coming in.
    pub(crate) fn all_incoming(&self) -> Path {
        self.root.clone().join(INCOMING)
    }
}

#[cfg(test)]
mod tests {
    use redrive_core::BodyHash;

    use super::*;

    /// Objects outlive the program that wrote them: another name would be another object.
    #[test]
    fn names_stay_the_same_from_release_to_release() {
        let body = BodyRef { hash: BodyHash::of(b"abc"), length: 3, copy: 0x2A };
        let hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let places = Places::below("redrive/prod");
        let expected = format!("redrive/prod/bodies/default/ba/{hex}-000000000000002a");
        assert_eq!(places.body(&TenantId::default_tenant(), &body).as_ref(), expected);
        assert_eq!(places.marker().as_ref(), "redrive/prod/place");
        assert_eq!(Places::below("").incoming(0x2A).as_ref(), "incoming/000000000000002a");
    }
}
