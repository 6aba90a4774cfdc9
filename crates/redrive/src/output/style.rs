//! Colours: a few, each with one meaning.

/// A colour with a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Success.
    Good,
    /// Failure.
    Bad,
    /// In progress.
    Busy,
    /// Less important text.
    Faint,
    /// Headings.
    Strong,
}

impl Colour {
    /// `text` between the terminal's codes for this colour.
    pub(crate) fn paint(self, text: &str) -> String {
        let code = match self {
            Colour::Good => "32",
            Colour::Bad => "31",
            Colour::Busy => "33",
            Colour::Faint => "2",
            Colour::Strong => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// The colour of a task's status.
pub(crate) fn status_colour(status: &str) -> Colour {
    match status {
        "SUCCEEDED" => Colour::Good,
        "FAILED" | "EXHAUSTED" => Colour::Bad,
        "CANCELLED" => Colour::Faint,
        _ => Colour::Busy,
    }
}
