//! The objects that hold bodies, and which of them are condemned.

use std::collections::BTreeMap;
use std::ops::Bound;

use redrive_core::{BodyHash, BodyRef, TenantId, Timestamp};

use super::state::State;
use crate::{Blob, Condemned};

/// The record of a blob.
#[derive(Debug)]
pub(super) struct Kept {
    /// When the blob was last adopted.
    adopted_at: Timestamp,
    is_condemned: bool,
}

/// Whether a task may refer to this blob.
pub(super) fn is_kept(blobs: &BTreeMap<Blob, Kept>, tenant: &TenantId, body: &BodyRef) -> bool {
    blobs.get(&Blob { tenant: tenant.clone(), body: *body }).is_some_and(|kept| !kept.is_condemned)
}

impl State {
    pub(super) fn adopt_blob(&mut self, tenant: TenantId, fresh: BodyRef, now: Timestamp) -> BodyRef {
        let body = self.find_blob(&tenant, fresh.hash).unwrap_or(fresh);
        let kept = self.blobs.entry(Blob { tenant, body });
        let kept = kept.or_insert(Kept { adopted_at: now, is_condemned: false });
        kept.adopted_at = kept.adopted_at.max(now);
        body
    }

    pub(super) fn find_blob(&self, tenant: &TenantId, hash: BodyHash) -> Option<BodyRef> {
        let place = |length, copy| Blob { tenant: tenant.clone(), body: BodyRef { hash, length, copy } };
        let copies = self.blobs.range(place(0, 0)..=place(u64::MAX, u64::MAX));
        copies.filter(|(_, kept)| !kept.is_condemned).map(|(blob, _)| blob.body).next()
    }

    pub(super) fn condemn_blobs(&mut self, adopted_before: Timestamp, after: Option<Blob>, limit: usize) -> Condemned {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let mut blobs = self.blobs.range_mut((from, Bound::Unbounded));
        let (mut condemned, mut looked_at) = (Condemned::default(), None);
        // A step that looks at nothing would repeat endlessly.
        for (blob, kept) in blobs.by_ref().take(limit.max(1)) {
            looked_at = Some(blob.clone());
            kept.is_condemned |= kept.adopted_at < adopted_before && !self.indexes.bodies.contains_key(blob);
            if kept.is_condemned {
                condemned.blobs.push(blob.clone());
            }
        }
        condemned.next = looked_at.filter(|_| blobs.next().is_some());
        condemned
    }

    pub(super) fn forget_blobs(&mut self, blobs: &[Blob]) {
        for blob in blobs {
            if self.blobs.get(blob).is_some_and(|kept| kept.is_condemned) {
                self.blobs.remove(blob);
            }
        }
    }
}
