//! A list that comes in pages.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Client, foreign};

/// The largest page of the server.
const PAGE: usize = 500;

/// Iterates over the pages of a list, up to a number of items.
#[derive(Debug)]
pub struct Pages {
    path: String,
    query: Vec<(&'static str, String)>,
    list: &'static str,
    left: usize,
    cursor: Option<String>,
    over: bool,
}

/// One page: its items as the server wrote them.
#[derive(Debug)]
pub struct Page {
    /// The items.
    pub items: Vec<Box<RawValue>>,
    /// The document that they came in.
    pub document: Bytes,
    /// Whether this is the last page, or the last one that was asked for.
    pub is_last: bool,
    /// Whatever else the document says.
    pub rest: BTreeMap<String, Box<RawValue>>,
}

impl Pages {
    /// The first `limit` items of the list named `list` in the documents at `path`.
    pub fn new(path: String, query: Vec<(&'static str, String)>, list: &'static str, limit: usize) -> Self {
        Pages { path, query, list, left: limit, cursor: None, over: false }
    }

    /// The next page, `None` after the last one. A page may be empty and not the last.
    pub async fn next(&mut self, client: &mut Client) -> anyhow::Result<Option<Page>> {
        if self.over {
            return Ok(None);
        }
        let answer = client.get(&self.next_path()).await?;
        let mut rest: BTreeMap<String, Box<RawValue>> = answer.read()?;
        let wrong = |why: &str| foreign(why, &answer.body);
        let list = rest.remove(self.list).ok_or_else(|| wrong("there is no list in it"))?;
        let items: Vec<Box<RawValue>> =
            serde_json::from_str(list.get()).map_err(|_| wrong("what should be a list is none"))?;
        self.cursor = match rest.remove("nextCursor") {
            Some(cursor) => serde_json::from_str(cursor.get()).map_err(|_| wrong("its cursor is no text"))?,
            None => None,
        };
        self.left = self.left.saturating_sub(items.len());
        self.over = self.left == 0 || self.cursor.is_none();
        Ok(Some(Page { items, document: answer.body, is_last: self.over, rest }))
    }

    /// Whether there are more items than were asked for.
    pub fn has_more(&self) -> bool {
        self.cursor.is_some()
    }

    /// The cursor of the next page as JSON.
    pub fn cursor_json(&self) -> String {
        self.cursor
            .as_ref()
            .map_or_else(|| "null".into(), |cursor| serde_json::Value::from(cursor.as_str()).to_string())
    }

    fn next_path(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("limit", &self.left.min(PAGE).to_string()).extend_pairs(&self.query);
        if let Some(cursor) = &self.cursor {
            query.append_pair("cursor", cursor);
        }
        format!("{}?{}", self.path, query.finish())
    }
}

impl Page {
    /// A number that the document has beside its items; 0 if it has none.
    pub fn number(&self, name: &str) -> anyhow::Result<u64> {
        let number = self.rest.get(name).map(|number| serde_json::from_str(number.get())).transpose()?;
        Ok(number.unwrap_or_default())
    }

    /// The items as values of `T`.
    pub fn read<T: DeserializeOwned>(&self) -> anyhow::Result<Vec<T>> {
        self.items.iter().map(|item| serde_json::from_str(item.get()).map_err(Into::into)).collect()
    }
}
