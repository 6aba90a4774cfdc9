//! The browser.

#![allow(clippy::unwrap_used, reason = "an error that is not expected fails the test")]

use redrive_testbed::browser::keys;
use redrive_testbed::{Browser, ColorScheme};
use serde_json::json;

/// A page that is wrong in every way that is looked for, without what only URLs escape.
const PAGE: &str = "data:text/html,<!doctype html><title>t</title><style>body{margin:0;color:white;background:white}\
    @media (prefers-color-scheme:dark){body{background:black}}</style><p>pale</p><input><button onclick='go()'>b</button>\
    <div style='width:300px;overflow:auto'><p style='width:900px'>scrolls</p></div><pre style='width:500px'>wide</pre>\
    <script>let went=0;function go(){went+=1}</script>";

#[test]
fn a_page_is_seen_as_its_reader_sees_it() {
    let browser = Browser::start();
    browser.resize(400, 300);
    browser.open(PAGE);
    assert_eq!(browser.evaluate("[innerWidth, innerHeight]"), json!([400, 300]));
    let (pixels, wide) = browser.beyond_the_edge();
    assert_eq!((pixels, wide.as_slice()), (100, ["pre. to 500: wide".to_owned()].as_slice()));

    assert!(browser.low_contrast().contains(&"p. 1.00: pale".to_owned()));
    browser.prefer(ColorScheme::Dark);
    assert!(browser.low_contrast().iter().all(|text| !text.starts_with("p.")));

    browser.click("button");
    browser.wait_until("went === 1");
    browser.click("input");
    browser.press("ab");
    browser.press(keys::ENTER);
    assert_eq!(browser.evaluate("document.querySelector('input').value"), "ab");

    browser.evaluate("console.error('loudly')");
    let complaints = browser.complaints();
    assert!(complaints.len() == 1 && complaints[0].contains("loudly"), "{complaints:?}");

    browser.forbid_scripts();
    browser.open(PAGE);
    assert_eq!(browser.evaluate("typeof went"), "undefined");
}
