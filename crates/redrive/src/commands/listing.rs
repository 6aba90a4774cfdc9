//! Lists for programs: the server's document as it is, or one document of several pages.

use crate::client::{Client, Page, Pages};
use crate::output::Output;

/// Prints the list as one JSON document, page by page: however long it is, only one page is in memory.
pub(crate) async fn print_json(
    output: Output,
    client: &mut Client,
    pages: &mut Pages,
    list: &str,
) -> anyhow::Result<()> {
    let Some(first) = pages.next(client).await? else { return Ok(()) };
    if first.is_last {
        output.json(&first.document)?;
        return Ok(());
    }
    output.text(&format!("{{\"{list}\":["))?;
    let mut separator = "";
    let mut page = first;
    loop {
        for item in &page.items {
            output.text(&format!("{separator}\n{item}"))?;
            separator = ",";
        }
        match pages.next(client).await? {
            Some(next) => page = next,
            None => break,
        }
    }
    output.text(&format!("],\n\"nextCursor\":{}{}}}\n", pages.cursor_json(), rest(&page)))?;
    Ok(())
}

/// What the last page said besides its items, such as the counts.
fn rest(page: &Page) -> String {
    page.rest.iter().map(|(name, value)| format!(",\n\"{name}\":{value}")).collect()
}
