//! Colours, and how to tell contenders apart without them: everyone has a letter and a dash as well.
//!
//! Each colour has at least 4.5 to 1 of contrast to the page it is on, so that a letter of the page's colour can be
//! read on it. The page's own colours are in `style.css`.

/// How one contender is drawn.
pub(super) struct Series {
    /// On a light page.
    pub(super) light: &'static str,
    /// On a dark page.
    pub(super) dark: &'static str,
    /// The dashes of its line.
    pub(super) dash: &'static str,
}

/// The most that are drawn; the rest is in tables only.
pub(super) const DRAWN: usize = 8;

/// How each is drawn, in order.
pub(super) const SERIES: [Series; DRAWN] = [
    Series { light: "#b3420c", dark: "#ff9a5c", dash: "none" },
    Series { light: "#0b5cc4", dark: "#6cb2ff", dash: "9 3" },
    Series { light: "#007058", dark: "#3ecfa5", dash: "3 2.5" },
    Series { light: "#8436a0", dark: "#d59bf0", dash: "12 3 3 3" },
    Series { light: "#7d5a00", dark: "#e0bd4a", dash: "6 4" },
    Series { light: "#006a87", dark: "#5fd0e6", dash: "9 3 2 3 2 3" },
    Series { light: "#b8245f", dark: "#ff8db8", dash: "1.5 3" },
    Series { light: "#4d5766", dark: "#b4bdc9", dash: "16 4" },
];

const STYLE: &str = include_str!("style.css");

/// The letter of a contender: A for the first.
pub(super) fn letter(number: usize) -> char {
    u8::try_from(number).ok().filter(|number| *number < 26).map_or('?', |number| char::from(b'A' + number))
}

/// The page's style.
pub(super) fn style() -> String {
    let colours = |pick: fn(&Series) -> &str| {
        let each = SERIES.iter().enumerate().map(|(number, series)| format!("--s{number}:{};", pick(series)));
        each.collect::<String>()
    };
    let (light, dark) = (colours(|series| series.light), colours(|series| series.dark));
    let classes = SERIES.iter().enumerate().map(|(number, series)| {
        format!(".s{number}{{--c:var(--s{number});}} .s{number}.curve{{stroke-dasharray:{};}}\n", series.dash)
    });
    let classes: String = classes.collect();
    format!(":root{{{light}}}\n@media screen and (prefers-color-scheme: dark){{:root{{{dark}}}}}\n{STYLE}{classes}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance(colour: &str) -> f64 {
        let part = |at: usize| f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
        let linear =
            |part: f64| if part <= 0.04 { part / 12.92 } else { f64::exp2(2.4 * ((part + 0.055) / 1.055).log2()) };
        0.2126 * linear(part(1)) + 0.7152 * linear(part(3)) + 0.0722 * linear(part(5))
    }

    fn contrast(one: &str, other: &str) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    /// The value of a variable of the style, on a light page and on a dark one.
    fn variable(name: &str) -> (&'static str, &'static str) {
        let name = format!("--{name}: ");
        let mut values = STYLE.match_indices(&name).map(|(at, found)| &STYLE[at + found.len()..][..7]);
        (values.next().unwrap(), values.next().unwrap())
    }

    #[test]
    fn everything_that_is_read_has_enough_contrast_in_light_and_in_dark() {
        let (page, page_dark) = variable("page");
        let (sunk, sunk_dark) = variable("sunk");
        for name in ["ink", "quiet", "good", "bad"] {
            let (light, dark) = variable(name);
            for (text, ground) in [(light, page), (light, sunk), (dark, page_dark), (dark, sunk_dark)] {
                assert!(contrast(text, ground) >= 4.5, "{name}: {text} on {ground}: {}", contrast(text, ground));
            }
        }
        for series in &SERIES {
            assert!(contrast(series.light, page) >= 4.5 && contrast(series.dark, page_dark) >= 4.5, "{}", series.light);
        }
    }

    #[test]
    fn what_is_drawn_stands_out_in_light_and_in_dark() {
        let (page, page_dark) = variable("page");
        for name in ["first", "retry"] {
            let (light, dark) = variable(name);
            assert!(contrast(light, page) >= 3.0 && contrast(dark, page_dark) >= 3.0, "{name}");
        }
    }

    #[test]
    fn no_two_contenders_share_a_colour_a_dash_or_a_letter() {
        for (at, one) in SERIES.iter().enumerate() {
            for (behind, other) in SERIES.iter().enumerate().skip(at + 1) {
                assert!(one.light != other.light && one.dark != other.dark && one.dash != other.dash, "{at}");
                assert_ne!(letter(at), letter(behind));
            }
        }
    }
}
