//! Checks that `docs/ops.md` matches the op table.

use std::fs;

#[test]
fn the_document_is_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/ops.md");
    let made = castwise::ops_markdown();
    let kept = fs::read_to_string(path).unwrap_or_default();
    if made == kept {
        return;
    }
    if std::env::var_os("CASTWISE_BLESS").is_some() {
        fs::write(path, made).unwrap();
        return;
    }
    let differ = made.lines().zip(kept.lines()).position(|(a, b)| a != b);
    let line = differ.unwrap_or(made.lines().count().min(kept.lines().count()));
    panic!(
        "docs/ops.md is not what the table says, first at line {}:\n  made: {}\n  kept: {}\n\
        `CASTWISE_BLESS=1 cargo test --test suite -- ops_doc::` writes it anew",
        line + 1,
        made.lines().nth(line).unwrap_or("(end)"),
        kept.lines().nth(line).unwrap_or("(end)"),
    );
}
