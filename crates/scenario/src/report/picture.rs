//! A picture: SVG, with a title and a description for screen readers.

use super::number::place;
use super::text::{escape, fitting, shorten};

/// The size of small writing: what stands at an axis.
pub(super) const SMALL: f64 = 11.5;
/// The size of names.
pub(super) const NORMAL: f64 = 12.5;

/// How large a picture is, in its own units: about a pixel each.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Size {
    pub(super) width: f64,
    pub(super) height: f64,
}

/// Which end of a text is at its place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture in the making.
pub(super) struct Picture {
    pub(super) size: Size,
    body: String,
}

impl Picture {
    pub(super) fn new(size: Size) -> Self {
        Picture { size, body: String::new() }
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(place);
        self.body += &format!("<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>");
    }

    /// A line or an area along a path; nothing if the path is empty.
    pub(super) fn path(&mut self, class: &str, path: &str) {
        if !path.is_empty() {
            self.body += &format!("<path class=\"{class}\" d=\"{path}\"/>");
        }
    }

    /// A rectangle.
    pub(super) fn rectangle(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let [x, y, width, height] = [x, y, width.max(0.0), height.max(0.0)].map(place);
        self.body += &format!("<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>");
    }

    /// A circle.
    pub(super) fn circle(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        let [x, y, radius] = [x, y, radius].map(place);
        self.body += &format!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>");
    }

    /// Words.
    pub(super) fn text(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str) {
        self.titled(class, anchor, (x, y), text, None);
    }

    /// A name in small or normal writing, shortened to the room there is; the whole of it is in its title.
    pub(super) fn name(&mut self, class: &str, at: (f64, f64), name: &str, room: f64) {
        let short = shorten(name, fitting(room, NORMAL));
        self.titled(class, Anchor::Start, at, &short, (short != name).then_some(name));
    }

    fn titled(&mut self, class: &str, anchor: Anchor, (x, y): (f64, f64), text: &str, title: Option<&str>) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let title = title.map_or_else(String::new, |title| format!("<title>{}</title>", escape(title)));
        let (x, y, text) = (place(x), place(y), escape(text));
        self.body +=
            &format!("<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x}\" y=\"{y}\">{title}{text}</text>");
    }

    /// The whole, under an identifier that nothing else on the page has.
    pub(super) fn finish(self, id: &str, title: &str, description: &str) -> String {
        let (title, description) = (escape(title), escape(description));
        let [width, height] = [self.size.width, self.size.height].map(place);
        format!(
            "<svg id=\"{id}\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{description}</desc>{}</svg>\n",
            self.body
        )
    }
}
