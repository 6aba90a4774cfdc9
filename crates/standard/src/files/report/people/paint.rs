//! A terminal's colours, each with one meaning.

/// Whether there are colours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    pub(super) coloured: bool,
}

/// A colour with a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    /// It stops you.
    Bad,
    /// An approval is needed.
    Careful,
    /// It is advice.
    Mild,
    /// It is all right.
    Good,
    /// It leads.
    Strong,
    /// It is a line around the text.
    Frame,
}

impl Paint {
    /// `text` in a colour, where there are colours.
    pub(super) fn over(self, text: &str, colour: Colour) -> String {
        let code = match colour {
            Colour::Bad => "1;31",
            Colour::Careful => "1;33",
            Colour::Mild => "1;36",
            Colour::Good => "32",
            Colour::Strong => "1",
            Colour::Frame => "34",
        };
        if self.coloured { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
