//! Control characters that could forge or garble a log.

/// Whether a character ends a line, steers a terminal, turns the direction of writing or cannot be seen.
pub(super) fn is_hidden(c: char) -> bool {
    // C0, DEL and C1: line ends, ESC, and CSI as a single character.
    c.is_control()
        || matches!(c,
            // Marks, embeddings, overrides and isolates of direction.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Line and paragraph separators.
            | '\u{2028}' | '\u{2029}'
            // What has no width.
            | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
