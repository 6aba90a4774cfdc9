//! YAML 1.2, from the parser's events to a tree.
//!
//! What a plain scalar means is in `scalar`. Aliases are written out, each use counted in full and in its depth, so
//! that a few lines cannot become a mountain.

mod scalar;
mod written;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use saphyr_parser::{Event, Marker, Parser, ScanError, Span, Tag};

use super::size_limit::SizeLimit;
use super::{Entry, Node, SyntaxError, Value};

pub(super) fn read(text: &str) -> Result<Node, SyntaxError> {
    let mut reader = Reader {
        text,
        offsets: Offsets::of(text),
        room: SizeLimit::default(),
        open: Vec::new(),
        anchors: HashMap::new(),
        document: None,
    };
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| reader.not_yaml(&error))?;
        reader.event(event, span)?;
    }
    // A file without a document is an empty one.
    let empty = Node { span: 0..0, value: Value::Table(Vec::new()) };
    Ok(reader.document.filter(|node| node.value != Value::Null).unwrap_or(empty))
}

struct Reader<'a> {
    text: &'a str,
    offsets: Offsets,
    room: SizeLimit,
    open: Vec<Open>,
    /// What each anchor stands for.
    anchors: HashMap<usize, (Node, Size)>,
    document: Option<Node>,
}

/// How much room a value takes.
#[derive(Debug, Clone, Copy)]
struct Size {
    /// How many values it is, itself included.
    values: usize,
    /// How many bytes of text are in it, keys included.
    text: usize,
    /// How deep the values in it lie.
    depth: usize,
}

impl Size {
    const ONE: Size = Size { values: 1, text: 0, depth: 0 };
}

/// A list or a table whose end has not been seen.
struct Open {
    anchor: usize,
    start: usize,
    end: usize,
    size: Size,
    content: Content,
}

enum Content {
    List(Vec<Node>),
    Table { entries: Vec<Entry>, names: HashSet<String>, key: Option<(String, Range<usize>)> },
}

impl Reader<'_> {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), SyntaxError> {
        let bytes = self.offsets.span(span);
        match event {
            Event::DocumentStart(_) if self.document.is_some() => {
                Err((bytes, "there is a second document here; a file has one".into()))
            }
            Event::Scalar(text, style, anchor, tag) => {
                let bytes = written::span(self.text, bytes, style);
                let value = scalar::value(&text, style, tag.as_deref()).map_err(|wrong| (bytes.clone(), wrong))?;
                let size = Size { text: text.len(), ..Size::ONE };
                self.take(size, &bytes)?;
                self.finished(Node { span: bytes, value }, anchor, size)
            }
            Event::SequenceStart(anchor, tag) => {
                self.opened(Content::List(Vec::new()), anchor, bytes, tag.as_deref(), "seq")
            }
            Event::MappingStart(anchor, tag) => {
                let content = Content::Table { entries: Vec::new(), names: HashSet::new(), key: None };
                self.opened(content, anchor, bytes, tag.as_deref(), "map")
            }
            Event::SequenceEnd | Event::MappingEnd => self.closed(bytes),
            Event::Alias(anchor) => {
                let Some((node, size)) = self.anchors.get(&anchor) else {
                    return Err((bytes, "this alias stands for a value that it is itself a part of".into()));
                };
                // There must be room before there is a copy.
                let size = *size;
                self.room.take(size.values, self.open.len() + size.depth, &bytes)?;
                self.room.take_text(size.text, &bytes)?;
                let value = node.value.clone();
                self.finished(Node { span: bytes, value }, 0, size)
            }
            _ => Ok(()),
        }
    }

    fn take(&mut self, size: Size, span: &Range<usize>) -> Result<(), SyntaxError> {
        self.room.take(size.values, self.open.len(), span)?;
        self.room.take_text(size.text, span)
    }

    fn opened(
        &mut self,
        content: Content,
        anchor: usize,
        span: Range<usize>,
        tag: Option<&Tag>,
        own_tag: &str,
    ) -> Result<(), SyntaxError> {
        if let Some(tag) = tag.filter(|tag| !(tag.is_yaml_core_schema() && tag.suffix == own_tag)) {
            return Err((span, scalar::unknown_tag(tag)));
        }
        self.room.take(1, self.open.len(), &span)?;
        self.open.push(Open { anchor, start: span.start, end: span.end, size: Size::ONE, content });
        Ok(())
    }

    fn closed(&mut self, end: Range<usize>) -> Result<(), SyntaxError> {
        let Some(Open { anchor, start, end: last, size, content }) = self.open.pop() else { return Ok(()) };
        // A block ends where its last value does, not where the parser notices that.
        let end = if end.is_empty() { last } else { end.end };
        let value = match content {
            Content::List(items) => Value::List(items),
            Content::Table { entries, .. } => Value::Table(entries),
        };
        self.finished(Node { span: start..end.max(start), value }, anchor, size)
    }

    /// Puts a value where it belongs: under its key, into its list, or at the top; or makes it the next key.
    fn finished(&mut self, node: Node, anchor: usize, size: Size) -> Result<(), SyntaxError> {
        if anchor != 0 {
            // It is kept a second time, for its aliases.
            self.take(size, &node.span)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        let Some(parent) = self.open.last_mut() else {
            self.document = Some(node);
            return Ok(());
        };
        parent.size.values += size.values;
        parent.size.text += size.text;
        parent.size.depth = parent.size.depth.max(size.depth + 1);
        parent.end = parent.end.max(node.span.end);
        match &mut parent.content {
            Content::List(items) => items.push(node),
            Content::Table { entries, names, key } => match key.take() {
                Some((name, key_span)) => entries.push(Entry { key: name, key_span, node }),
                None => {
                    let name = key_of(&node)?;
                    if !names.insert(name.clone()) {
                        return Err((node.span, format!("the key {name:?} is there twice")));
                    }
                    *key = Some((name, node.span));
                }
            },
        }
        Ok(())
    }

    fn not_yaml(&self, error: &ScanError) -> SyntaxError {
        let at = self.offsets.byte(error.marker());
        (at..at, format!("this is not YAML: {}", error.info()))
    }
}

fn key_of(node: &Node) -> Result<String, SyntaxError> {
    match &node.value {
        Value::Text(name) if name == "<<" => Err((
            node.span.clone(),
            "YAML 1.2 has no merge keys (<<); write the fields out, or name a context to inherit from".into(),
        )),
        Value::Text(name) => Ok(name.clone()),
        _ => Err((node.span.clone(), format!("a key must be text, not {}; put it into quotes", node.kind()))),
    }
}

/// The byte of each character: the parser counts characters.
struct Offsets(Vec<usize>);

impl Offsets {
    fn of(text: &str) -> Self {
        Offsets(text.char_indices().map(|(at, _)| at).chain([text.len()]).collect())
    }

    fn byte(&self, marker: &Marker) -> usize {
        self.0.get(marker.index()).or(self.0.last()).copied().unwrap_or_default()
    }

    fn span(&self, span: Span) -> Range<usize> {
        let start = self.byte(&span.start);
        start..self.byte(&span.end).max(start)
    }
}
