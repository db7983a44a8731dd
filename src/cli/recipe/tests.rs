//! Tests of recipes: settings, layers, texts from outside.

use super::layers::Layers;
use super::setting::{Number, Setting};
use super::{ALL, Recipe};

#[test]
fn settings_mean_what_they_mean_in_mergekit() {
    let read = |text: &str| Setting::read(text).unwrap();
    let at = |text: &str, name: &str, place: f64| read(text).resolve(name, place);
    assert_eq!(at("0.5", "x", 0.3), Some(Number::Real(0.5)));
    assert_eq!(at("true", "x", 0.3), Some(Number::Bool(true)));
    assert_eq!(at("[0, 0.5, 1]", "x", 0.25), Some(Number::Real(0.25)));
    assert_eq!(at("[0, 0.5, 1]", "x", 1.0), Some(Number::Real(1.0)));
    assert_eq!(at("[3]", "x", 1.0), Some(Number::Real(3.0)));
    let filters = "[{filter: attn, value: [0, 1]}, {filter: mlp, value: 2}]";
    assert_eq!(at(filters, "layers.1.attn.q", 0.5), Some(Number::Real(0.5)));
    assert_eq!(at(filters, "layers.1.mlp", 0.5), Some(Number::Real(2.0)));
    assert_eq!(at(filters, "norm", 0.5), None);
    assert_eq!(at("[{filter: '*', value: 2}]", "norm", 0.5), Some(Number::Real(2.0)));
    // Numbers in quotes, words, and one filter without a list.
    assert_eq!(at("' +2 '", "x", 0.0), Some(Number::Real(2.0)));
    assert_eq!(at("['0.5', 1]", "x", 0.5), Some(Number::Real(0.75)));
    assert_eq!(at("[{value: \"1e-3\"}]", "x", 0.0), Some(Number::Real(1e-3)));
    assert_eq!(at("{filter: x, value: 2}", "x", 0.0), Some(Number::Real(2.0)));
    assert_eq!(at("{filter: x, value: 2}", "y", 0.0), None);
    assert_eq!(read("no").truth(), Ok(Setting::One(Number::Bool(false))));
    for (text, truth) in [("'no'", false), ("'off'", false), ("\"True\"", true), ("'Y'", true)] {
        assert_eq!(read(text).truth(), Ok(Setting::One(Number::Bool(truth))), "{text}");
        assert!(read(text).number().is_err() && read(&format!("[{{value: {text}}}]")).number().is_err(), "{text}");
    }
    for text in ["0.1", "-1e-3", "false", "[0, 0.5]", filters, "[{value: 1}]", "1e300"] {
        assert_eq!(Setting::read(&read(text).text()).unwrap(), read(text), "{text}");
    }
    for text in [
        "heavy",
        "''",
        "'inf'",
        "'010'",
        "'1_0'",
        "'0x1'",
        ".inf",
        "[]",
        "[a]",
        "{a: 1}",
        "[{filter: 1, value: 1}]",
        "[{value: [{value: 1}]}]",
        "[[1]]",
        "",
        "a: b: c",
    ] {
        assert!(Setting::read(text).is_err(), "{text}");
    }
}

/// As `evaluate_setting` of mergekit 0.1.5 has them for five layers.
#[test]
fn lists_of_truth_values_have_steps() {
    let places = [0.0, 0.25, 0.5, 0.75, 1.0];
    for (text, expected) in [
        ("[true, false]", [true, true, true, true, false]),
        ("[true, false, true]", [true, true, false, false, true]),
        ("[1, 0]", [true, true, true, true, false]),
        ("['no', 'yes']", [false, false, false, false, true]),
        ("[true, 0, \"off\"]", [true, true, false, false, false]),
        ("[\"0\", true]", [false, false, false, false, true]),
        ("{filter: x, value: [false, true]}", [false, false, false, false, true]),
    ] {
        let steps = Setting::read(text).unwrap().truth().unwrap();
        let all = places.map(|place| steps.resolve("x", place));
        assert_eq!(all, expected.map(|truth| Some(Number::Bool(truth))), "{text}");
        assert_eq!(Setting::read(&steps.text()).unwrap().truth().unwrap(), steps, "{text}");
    }
    // For a number, true is 1, and the list is interpolated.
    let mixed = Setting::read("[true, 0.5]").unwrap().number().unwrap();
    let all = places.map(|place| mixed.resolve("x", place));
    assert_eq!(all, [1.0, 0.875, 0.75, 0.625, 0.5].map(|n| Some(Number::Real(n))));
    for text in ["[true, 0.5]", "[true, 2]"] {
        assert!(Setting::read(text).unwrap().truth().is_err(), "{text}");
    }
    for text in ["['yes', 0.5]", "[{value: [true, 'no']}]"] {
        assert!(Setting::read(text).unwrap().number().is_err(), "{text}");
    }
    for text in ["[true, maybe]", "[true, [1]]", "[true, {value: true}]"] {
        assert!(Setting::read(text).is_err(), "{text}");
    }
}

#[test]
fn places_are_those_of_layers() {
    let layers = Layers::of(["model.layers.0.x", "model.layers.4.x", "norm"].into_iter());
    assert_eq!(layers.place("model.layers.1.x"), 0.25);
    assert_eq!(layers.place("transformer.h.4.x"), 1.0);
    assert_eq!(layers.place("norm"), 0.0);
    // As mergekit has it for the only layer.
    assert_eq!(Layers::of(["layers.0.x"].into_iter()).place("layers.0.x"), 1.0);
}

#[test]
fn shipped_recipes_are_read_and_say_what_they_do() {
    for (name, _) in ALL {
        let recipe = Recipe::load(name).unwrap_or_else(|f| panic!("{name}: {}", f.text));
        assert!(recipe.summary.ends_with('.'), "{name}");
        assert!(recipe.parameters.iter().all(|p| !p.doc.is_empty()), "{name}");
        // What is printed is read again.
        Recipe::read(name, name, &recipe.text).unwrap_or_else(|f| panic!("{name}: {}", f.text));
    }
}

/// Texts from outside give errors.
#[test]
fn no_text_panics() {
    let deep = format!("models x 1\n{}x[last]{}\n", "(".repeat(100_000), ")".repeat(100_000));
    for text in [
        "",
        "\n",
        "#",
        "# a",
        "input",
        "input a b",
        "models",
        "models x 0",
        "models x 99",
        "models x 1\nmodels y 1\nx[last]",
        "parameter",
        "parameter p = x",
        "parameter dtype = 1",
        "let",
        "let a",
        "let a = b\nlet b = a\nb",
        "let a = a\na",
        "require",
        "require 1",
        "include no",
        "include",
        "sibling s",
        "sibling s = w",
        "sibling s = w:(=b",
        "dtype x",
        "accepts x",
        "a = ",
        "a[k] = 1\nb",
        "a\nb",
        "[",
        "]",
        "\"",
        "é",
        "é[i] = 1\ny",
        "choose(\nx",
        &deep,
    ] {
        let _ = Recipe::read("text", "text", text);
    }
    assert!(Recipe::read("deep", "deep", &deep).is_err());
    assert!(Recipe::read("deep", "deep", "models x 1\na = b\nb = a\na").is_ok(), "found when it is used");
    assert!(Recipe::read("cycle", "cycle", "let a = b\nlet b = a\nb").is_err());
}
