//! Text files of command lines with their expected output.
//!
//! A line that begins with `$ ` is a command. A `\` at its end continues it, `NAME=VALUE` at its start sets an
//! environment variable, and `< FILE` at its end is its standard input. The lines after it are its output; those of
//! standard error begin with `2| `. `? N` is its exit status, if that is not 0. Times, rates and memory sizes are
//! masked before the comparison.

use regex::Regex;

use crate::command::{Dir, Outcome};

/// A command of a script, with its line numbers.
pub struct Step {
    pub line: String,
    pub at: usize,
    pub expected: String,
}

/// The words of a line, split as by a shell with quotes and backslashes only.
pub fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut chars) = (Vec::new(), None::<String>, line.chars());
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\n' => words.extend(word.take()),
            '\'' => word.get_or_insert_default().extend(chars.by_ref().take_while(|c| *c != '\'')),
            '"' => word.get_or_insert_default().extend(chars.by_ref().take_while(|c| *c != '"')),
            '\\' => word.get_or_insert_default().extend(chars.next()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// The commands of a text, each with its expected output.
pub fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut continued = false;
    for (i, line) in text.lines().enumerate() {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => {
                steps.push(Step { line: command.to_string(), at: i + 1, expected: String::new() });
            }
            (None, Some(step)) if continued => {
                step.line = step.line.trim_end_matches('\\').to_string() + line.trim_start();
            }
            (None, Some(step)) => step.expected += &format!("{line}\n"),
            (None, None) => {}
        }
        continued = (continued || line.starts_with("$ ")) && line.ends_with('\\');
    }
    for step in &mut steps {
        step.expected = step.expected.trim_end().to_string();
    }
    steps
}

/// Runs a command line in a directory.
pub fn run(dir: &Dir, line: &str) -> Outcome {
    let words = words(line);
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let first = words.iter().position(|w| *w == "castwise").unwrap_or_else(|| panic!("no command of castwise: {line}"));
    let environment: Vec<_> = words.drain(..=first).filter_map(|w| w.split_once('=')).collect();
    let stdin = match &words[..] {
        [.., "<", file] => Some(std::fs::read(dir.0.join(file)).unwrap()),
        _ => None,
    };
    words.truncate(words.len() - if stdin.is_some() { 2 } else { 0 });
    dir.run(&words, &environment, stdin.as_deref())
}

/// The output of a run in the form of a script.
pub fn transcript(out: &Outcome) -> String {
    let mut text = out.stdout.clone();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.extend(out.stderr.lines().map(|l| format!("2| {l}").trim_end().to_string() + "\n"));
    if out.code != Some(0) {
        text += &format!("? {}\n", out.code.unwrap_or(-1));
    }
    text.trim_end().to_string()
}

/// The text with times, rates and memory sizes masked.
pub fn masked(text: &str) -> String {
    let masks = [
        (r"\d+\.\d\d s\b", "[TIME] s"),
        (r"\d+\.\d{3} ms\b", "[TIME] ms"),
        (r"[\d.,]+ [KMGT]?i?B/s", "[RATE]/s"),
        // Not every system reports the peak memory.
        (r", peak memory [\d.,]+ [KMGT]?i?B", ""),
        (r#"("(type|compile|read|compute|write|total)": )\d+(\.\d+(e-?\d+)?|e-?\d+)"#, "$1[TIME]"),
        (r#"("(bytes_per_second|peak_memory)": )(\d+|null)"#, "$1[NUMBER]"),
    ];
    let mut text = text.to_string();
    for (pattern, mask) in masks {
        text = Regex::new(pattern).unwrap().replace_all(&text, mask).into_owned();
    }
    text
}
