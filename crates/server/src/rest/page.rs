//! A page of a list: it ends at a number of bytes, or of items, whichever comes first.
//!
//! Items are written one by one as they are read, so that a page is in memory once and its items only a few at a time.

use serde::Serialize;

use super::problem::Refusal;
use super::reply::Reply;

/// A page that is being written.
pub(crate) struct Page {
    json: Vec<u8>,
    items: usize,
    most_bytes: usize,
}

/// Whether there was room for an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Addition {
    /// The item is on the page.
    Added,
    /// The page is full: the item belongs to the next one.
    PageFull,
}

impl Page {
    /// An empty page of at most `most_bytes`, whose items are in the member `name`.
    pub(crate) fn new(name: &str, most_bytes: usize) -> Self {
        Page { json: format!("{{\"{name}\":[").into_bytes(), items: 0, most_bytes }
    }

    /// Adds an item if there is room. The first one is always added, or the list could not continue.
    pub(crate) fn add<T: Serialize>(&mut self, item: &T) -> Result<Addition, Refusal> {
        let before = self.json.len();
        if self.items > 0 {
            self.json.push(b',');
        }
        serde_json::to_writer(&mut self.json, item)?;
        if self.items > 0 && self.json.len() > self.most_bytes {
            self.json.truncate(before);
            return Ok(Addition::PageFull);
        }
        self.items += 1;
        Ok(Addition::Added)
    }

    /// How many items there are.
    pub(crate) fn items(&self) -> usize {
        self.items
    }

    /// How many bytes there are.
    pub(crate) fn bytes(&self) -> usize {
        self.json.len()
    }

    /// The last items have been added: the cursor of the next page follows.
    pub(crate) fn end(&mut self, next_cursor: Option<String>) -> Result<(), Refusal> {
        self.json.push(b']');
        self.member("nextCursor", &next_cursor)
    }

    /// One more member, behind the items.
    pub(crate) fn member<T: Serialize>(&mut self, name: &str, value: &T) -> Result<(), Refusal> {
        self.json.extend_from_slice(format!(",\"{name}\":").as_bytes());
        serde_json::to_writer(&mut self.json, value)?;
        Ok(())
    }

    pub(crate) fn into_reply(mut self) -> Reply {
        self.json.push(b'}');
        self.json.shrink_to_fit();
        Reply::written_json(self.json.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_before_the_item_that_does_not_fit() {
        let mut page = Page::new("items", 20);
        assert_eq!(page.add(&"far too long for any page").unwrap(), Addition::Added);
        assert_eq!(page.add(&"b").unwrap(), Addition::PageFull);
        assert_eq!(page.items(), 1);

        let mut page = Page::new("items", 20);
        let added = ["a", "b", "c", "d"].map(|item| page.add(&item).unwrap());
        assert_eq!(added, [Addition::Added, Addition::Added, Addition::PageFull, Addition::PageFull]);
        assert_eq!((page.items(), page.bytes()), (2, 17));
        page.end(Some("b".into())).unwrap();
        page.member("count", &4).unwrap();
        assert_eq!(page.json, br#"{"items":["a","b"],"nextCursor":"b","count":4"#);
    }
}
