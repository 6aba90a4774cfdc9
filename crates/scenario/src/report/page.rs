//! The page of a comparison.

use redrive_core::Date;

use super::palette::style;
use super::{calls, completion, lead, notes, policies, verdict, waiting};
use crate::story::Comparison;

/// One page, complete in itself, that puts the contenders side by side. `command` is what repeats the run; approvals in
/// the policies are judged as of `today`.
pub fn page(comparison: &Comparison, command: &str, today: Date) -> String {
    let body = [
        lead::lead(comparison, command),
        calls::section(comparison),
        verdict::section(comparison),
        waiting::section(comparison),
        completion::section(comparison),
        policies::section(comparison, today),
        notes::section(comparison),
    ];
    document(&lead::headline(comparison), &body.concat())
}

/// What all pages have around them, and the hatching that pictures refer to.
pub(super) fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n<meta name=\"generator\" content=\"redrive simulate\"/>\n\
         <title>{title}</title>\n<style>\n{}</style>\n</head>\n<body>\n\
         <svg class=\"defs\" width=\"0\" height=\"0\" aria-hidden=\"true\"><defs>\
         <pattern id=\"hatching\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><line class=\"hatch-line\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"5\"/></pattern>\
         </defs></svg>\n<main>\n{body}</main>\n</body>\n</html>\n",
        style()
    )
}
