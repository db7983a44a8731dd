//! Where a diagnostic says that something was written.

use super::*;

#[test]
fn a_location_is_small() {
    assert_eq!(size_of::<SourceLocation>(), 16);
}

#[test]
fn locations_nest_and_end_also_by_panics() {
    let at = |line: u32| SourceLine::new("a.py", line);
    let line = line!() + 1;
    let rust = |l: SourceLocation| matches!(l, SourceLocation::Rust(l) if l.line() == line + 1);
    assert!(rust(here()));
    with_location(at(1), || {
        assert_eq!(here(), at(1).into());
        let caught = std::panic::catch_unwind(|| with_location(at(2), || std::panic::resume_unwind(Box::new(here()))));
        assert_eq!(caught.unwrap_err().downcast_ref::<SourceLocation>(), Some(&at(2).into()));
        assert_eq!(here(), at(1).into());
        // Other threads are elsewhere.
        assert!(matches!(std::thread::spawn(here).join().unwrap(), SourceLocation::Rust(_)));
        with_location(SourceLocation::None, || assert_eq!(here(), SourceLocation::None));
        assert_eq!(here(), at(1).into());
    });
    assert!(matches!(here(), SourceLocation::Rust(_)));
}

#[test]
fn names_in_lines_are_escaped() {
    let line = SourceLine::new("a\u{1b}[2J.py", 3).in_function("f\n\u{202e}");
    assert_eq!(line.to_string(), "a\\u{1b}[2J.py:3, in f\\u{a}\\u{202e}");
}
