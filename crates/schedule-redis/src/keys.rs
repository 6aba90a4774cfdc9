//! The names of the keys in Redis.
//!
//! Lanes are spread over [`PARTITIONS`] partitions by a hash of their names. All keys of a partition have the same hash
//! tag, so that a cluster keeps them in one slot and one script can use them together. These are the due tasks of each
//! class of a lane, and the partition's *book*, which records whether the partition is complete and how many tasks each
//! class of its lanes holds.
//!
//! Two lanes never share a key, because the key ends with the lane's full name. The name may contain braces, but a
//! cluster uses only the first pair, which is the partition's, because a prefix cannot contain braces.
//!
//! The keys of the index contain its [`VERSION`]. An index of another version is not read, and the one of this version
//! is filled from the store.
//!
//! | key | type and content |
//! | --- | --- |
//! | `<prefix>:2:{<partition>}:book` | hash: `epoch`, `building`, and `<class>:<lane>` → its number of tasks |
//! | `<prefix>:2:{<partition>}:due:<class>:<lane>` | sorted set: pending tasks of a class of the lane, by due time |
//! | `<prefix>:2:{<partition>}:rebuild` | string: the builder that is filling this partition and others |
//! | `<prefix>:2:news` | not a key but a channel: classes of lanes with due tasks, cancels, lanes whose guards changed |

use redrive_core::{Class, Dependency, Lane, TenantId};

/// The version of the index. The first one had no classes, and its keys contained no version.
const VERSION: u8 = 2;

/// The number of partitions: enough to spread over any cluster, few enough to query all of them at once. It must never
/// change while an index is in use: processes with different numbers would not find each other's tasks.
pub(crate) const PARTITIONS: u16 = 256;

/// A part of the index. Lanes are spread over 256 partitions by their names, and each partition is complete or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition(u16);

impl Partition {
    /// All partitions.
    pub fn all() -> impl Iterator<Item = Partition> {
        (0..PARTITIONS).map(Partition)
    }

    /// The partition of a lane.
    pub fn of(lane: &Lane) -> Self {
        let (tenant, dependency) = (lane.tenant.as_str().bytes(), lane.dependency.as_str().bytes());
        // FNV-1a: the same on every machine and in every version, which the standard library's hash does not guarantee.
        let hash = tenant
            .chain([b'/'])
            .chain(dependency)
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        Partition((hash % u64::from(PARTITIONS)) as u16)
    }

    /// The partition's index in a list of all partitions.
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// Makes the names of keys.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: String,
}

/// A text that is not a valid prefix for keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be 1 to {} letters, digits, '.', '_', '-' and ':'", Keys::LIMIT)]
pub struct InvalidPrefix;

impl Keys {
    /// The most characters in a prefix.
    const LIMIT: usize = 100;

    pub(crate) fn try_new(prefix: &str) -> Result<Self, InvalidPrefix> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
        match prefix {
            "" => Err(InvalidPrefix),
            _ if prefix.len() > Self::LIMIT || !prefix.chars().all(is_allowed) => Err(InvalidPrefix),
            _ => Ok(Keys { prefix: prefix.to_owned() }),
        }
    }

    pub(crate) fn book(&self, partition: Partition) -> String {
        format!("{}:{VERSION}:{{{}}}:book", self.prefix, partition.0)
    }

    pub(crate) fn due(&self, lane: &Lane, class: Class) -> String {
        format!("{}:{VERSION}:{{{}}}:due:{}", self.prefix, Partition::of(lane).0, in_book(lane, class))
    }

    pub(crate) fn rebuild(&self, partition: Partition) -> String {
        format!("{}:{VERSION}:{{{}}}:rebuild", self.prefix, partition.0)
    }

    pub(crate) fn news(&self) -> String {
        format!("{}:{VERSION}:news", self.prefix)
    }
}

/// The name of a class of a lane in the book.
pub(crate) fn in_book(lane: &Lane, class: Class) -> String {
    format!("{}:{lane}", class.code())
}

/// The lane with this name; `None` if the name is invalid.
pub(crate) fn parse_lane(name: &str) -> Option<Lane> {
    // A tenant's name contains no slash, so the first one ends it.
    let (tenant, dependency) = name.split_once('/')?;
    Some(Lane { tenant: TenantId::try_new(tenant).ok()?, dependency: Dependency::try_new(dependency).ok()? })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn lane(tenant: &str, dependency: &str) -> Lane {
        parse_lane(&format!("{tenant}/{dependency}")).unwrap()
    }

    #[test]
    fn the_keys_of_a_lane_share_a_slot_with_its_book() {
        let keys = Keys::try_new("redrive").unwrap();
        let lane = lane("default", "billing");
        // This must never change: another hash would hide the tasks of one version from the other.
        assert_eq!(keys.due(&lane, Class::First), "redrive:2:{146}:due:0:default/billing");
        assert_eq!(keys.due(&lane, Class::Retry), "redrive:2:{146}:due:1:default/billing");
        assert_eq!(keys.book(Partition::of(&lane)), "redrive:2:{146}:book");
    }

    #[test]
    fn lanes_with_names_like_keys_have_keys_of_their_own() {
        let keys = Keys::try_new("a").unwrap();
        let lanes = [("t", "x"), ("t", "t/x"), ("t", "{0}"), ("t", "}:{"), ("t", "a:{1}:due:t/x"), ("t.", "x")];
        let due: BTreeSet<String> = lanes
            .iter()
            .flat_map(|(tenant, dependency)| Class::ALL.map(|class| keys.due(&lane(tenant, dependency), class)))
            .collect();
        assert_eq!(due.len(), lanes.len() * Class::ALL.len());
        for key in due {
            let tag = key.split_once('{').unwrap().1.split_once('}').unwrap().0;
            assert!(tag.parse::<u16>().unwrap() < PARTITIONS, "{key}");
        }
    }

    #[test]
    fn the_name_of_a_lane_leads_back_to_it() {
        for (tenant, dependency) in [("default", "billing"), ("a.b:c", "https://api.example.com/v1"), ("t", "/")] {
            let lane = lane(tenant, dependency);
            assert_eq!(parse_lane(&lane.to_string()), Some(lane));
        }
        for name in ["", "t", "t/", "/x", "t t/x"] {
            assert_eq!(parse_lane(name), None, "{name:?}");
        }
    }

    #[test]
    fn lanes_spread_over_all_partitions() {
        let used: BTreeSet<Partition> =
            (0..4_000).map(|number| Partition::of(&lane("default", &format!("dependency-{number}")))).collect();
        assert_eq!(used.len(), usize::from(PARTITIONS));
    }

    #[test]
    fn a_prefix_is_short_and_plain() {
        for prefix in ["r", "redrive", "team-1:redrive.eu_2", &"p".repeat(100)] {
            assert!(Keys::try_new(prefix).is_ok(), "{prefix:?}");
        }
        for prefix in ["", "a b", "{a}", "a/b", "é", &"p".repeat(101)] {
            assert_eq!(Keys::try_new(prefix).unwrap_err(), InvalidPrefix, "{prefix:?}");
        }
    }
}
