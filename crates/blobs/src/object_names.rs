//! The names of objects.
//!
//! `bodies/TENANT/ba/ba7816…-COPY` is a body, `incoming/NUMBER` an unfinished upload. A body's name is its hash and a
//! random number (COPY), so that a name is never used again after its object was deleted. `place` is the marker: it
//! holds the identity of the storage.

use object_store::path::Path;
use redrive_core::{BodyRef, TenantId};

pub(crate) const BODIES: &str = "bodies";
pub(crate) const INCOMING: &str = "incoming";
pub(crate) const MARKER: &str = "place";

/// The names of objects below a prefix.
#[derive(Debug, Clone)]
pub(crate) struct ObjectNames {
    root: Path,
}

impl ObjectNames {
    /// Names that begin with `prefix`.
    pub(crate) fn below(prefix: &str) -> Self {
        ObjectNames { root: Path::from(prefix) }
    }

    /// The name of a body.
    pub(crate) fn body(&self, tenant: &TenantId, body: &BodyRef) -> Path {
        let hex = body.hash.hex();
        let object = format!("{hex}-{:016x}", body.copy);
        [BODIES, tenant.as_str(), &hex[..2], &object].into_iter().fold(self.root.clone(), |path, part| path.join(part))
    }

    /// The name of the marker.
    pub(crate) fn marker(&self) -> Path {
        self.root.clone().join(MARKER)
    }

    /// The name of an unfinished upload with this number.
    pub(crate) fn incoming(&self, number: u64) -> Path {
        self.all_incoming().join(format!("{number:016x}"))
    }

    /// The prefix of all unfinished uploads.
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
        let names = ObjectNames::below("redrive/prod");
        let expected = format!("redrive/prod/bodies/default/ba/{hex}-000000000000002a");
        assert_eq!(names.body(&TenantId::default_tenant(), &body).as_ref(), expected);
        assert_eq!(names.marker().as_ref(), "redrive/prod/place");
        assert_eq!(ObjectNames::below("").incoming(0x2A).as_ref(), "incoming/000000000000002a");
    }
}
