//! A configuration of mergekit, as the arguments of `castwise eval` with a recipe.
//!
//! Guarantees: a key or a value that is not understood is an error with its line; nothing is left out; a model is given once, as in mergekit. Does not: open models, but `config.json` for the
//! number of layers where slices are given.

use std::path::{Path, PathBuf};

use castwise::DType;
use castwise::io::read_text;

use super::super::recipe::{Recipe, Setting};
use super::super::report;
use super::super::yaml::{Node, Value};

/// A mistake and its line.
pub(super) type Wrong = (u64, String);

/// The methods, and what the base model is to them.
const METHODS: [(&str, Base); 12] = [
    ("linear", Base::Model),
    ("slerp", Base::Needed),
    ("nuslerp", Base::Optional),
    ("task_arithmetic", Base::Needed),
    ("ties", Base::Needed),
    ("dare_linear", Base::Needed),
    ("dare_ties", Base::Needed),
    ("breadcrumbs", Base::Needed),
    ("breadcrumbs_ties", Base::Needed),
    ("della", Base::Needed),
    ("della_linear", Base::Needed),
    ("model_stock", Base::Needed),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    /// One of the models.
    Model,
    Needed,
    Optional,
}

/// A configuration.
#[derive(Debug, Default)]
pub(super) struct Config {
    pub(super) method: String,
    /// The inputs by name, in order, with their lines.
    pub(super) inputs: Vec<(String, PathBuf, u64)>,
    /// The parameters: of a model, or of all.
    pub(super) parameters: Vec<(String, Option<String>, Setting)>,
    pub(super) dtype: Option<DType>,
    pub(super) out_dtype: Option<DType>,
    pub(super) notes: Vec<String>,
}

/// A model, its parameters and where it is written.
struct Model {
    path: String,
    line: u64,
    parameters: Vec<(String, u64, Setting)>,
}

/// What the keys of a configuration say, before models have names.
#[derive(Default)]
struct Keys {
    base: Option<(String, u64)>,
    models: Vec<Model>,
    parameters: Vec<(String, u64, Setting)>,
    tokenizer: Option<u64>,
}

impl Config {
    /// Reads a configuration.
    pub(super) fn read(text: &str) -> Result<Config, Wrong> {
        let node = Node::read(text)?;
        // First, since what the other keys may be depends on it.
        let given = map(&node, "the configuration")?.iter().find(|(key, ..)| key == "merge_method");
        let (_, _, value) = given.ok_or((node.line, "`merge_method` is missing".to_string()))?;
        let (method, line) = (text_of("merge_method", value)?, value.line);
        let known = METHODS.iter().find(|(name, _)| *name == method);
        let (_, base) = *known.ok_or_else(|| (line, no_recipe(&method)))?;
        let mut config = Config { method, ..Config::default() };
        let keys = config.keys(&node)?;
        config.name(keys, base, line)?;
        Ok(config)
    }

    fn keys(&mut self, node: &Node) -> Result<Keys, Wrong> {
        let mut keys = Keys::default();
        let all = map(node, "the configuration")?;
        let line = |name: &str| all.iter().find(|(key, ..)| key == name).map(|(_, line, _)| *line);
        if let (Some(one), Some(two)) = (line("models"), line("slices")) {
            return Err((one.max(two), "`models` and `slices` both say what is merged: give one of them".into()));
        }
        for (key, line, value) in all {
            match key.as_str() {
                "merge_method" => {}
                "base_model" => keys.base = Some((path(key, value)?, value.line)),
                "dtype" => self.dtype = Some(dtype(key, value)?),
                "out_dtype" => self.out_dtype = Some(dtype(key, value)?),
                "models" => keys.models.extend(models(value)?),
                "slices" => slices(value, &mut keys)?,
                "parameters" => {
                    // Those of a slice come first.
                    let own = parameters(value)?;
                    keys.parameters.extend(own);
                }
                "name" => {}
                "tokenizer_source" if value.value == Value::Text("base".into()) => keys.tokenizer = Some(*line),
                "tokenizer_source" | "tokenizer" | "chat_template" => {
                    let what = report::escaped(key);
                    return Err((
                        *line,
                        format!(
                            "`{what}`: the tokenizer is that of the base or first model, and vocabularies are not merged: remove the key if \
                             the models have one vocabulary; otherwise give them one with mergekit-tokensurgeon first"
                        ),
                    ));
                }
                "modules" => {
                    return Err((
                        *line,
                        "`modules`: models are merged as a whole; merge each module by --select".into(),
                    ));
                }
                _ => return Err((*line, format!("`{}` is not understood", report::escaped(key)))),
            }
        }
        Ok(keys)
    }

    /// Gives the models names, and says which is the base.
    fn name(&mut self, keys: Keys, base: Base, line: u64) -> Result<(), Wrong> {
        let method = self.method.clone();
        if keys.models.is_empty() {
            return Err((line, "there are no `models`".into()));
        }
        let recipe = Recipe::load(&method).map_err(|f| (line, f.text))?;
        let mut models = keys.models;
        if let Some((_, twice)) =
            models.iter().enumerate().find(|(i, m)| models[..*i].iter().any(|other| other.path == m.path))
        {
            let path = report::escaped(&twice.path);
            return Err((
                twice.line,
                format!("the model `{path}` is given twice: give it once, with the sum of its weights"),
            ));
        }
        match (&keys.base, base) {
            (None, Base::Needed) => return Err((line, format!("`{method}` needs a `base_model`"))),
            (Some((path, at)), Base::Model) if !models.iter().any(|m| m.path == *path) => {
                let model = Model { path: path.clone(), line: *at, parameters: Vec::new() };
                models.push(model);
            }
            (Some((path, at)), Base::Needed | Base::Optional) => {
                self.inputs.push(("base".into(), path.into(), *at));
                models.retain(|m| m.path != *path);
            }
            _ => {}
        }
        if let (Some(at), Some((path, _))) = (keys.tokenizer, &keys.base)
            && self.inputs.first().map(|(_, p, _)| p.as_path()).or(models.first().map(|m| Path::new(&m.path)))
                != Some(Path::new(path))
        {
            return Err((
                at,
                "`tokenizer_source`: files are copied from the first model, which is not `base_model`".into(),
            ));
        }
        let own = |name: &str| recipe.parameters.iter().find(|p| p.name == name);
        for Model { path, line, parameters } in models {
            let name = self.free_name(&path, &recipe);
            self.inputs.push((name.clone(), PathBuf::from(&path), line));
            for (parameter, at, setting) in parameters {
                match own(&parameter) {
                    Some(p) if p.each => {
                        let setting = p.takes(setting).map_err(|why| (at, format!("`{parameter}`: {why}")))?;
                        self.parameters.push((parameter, Some(name.clone()), setting));
                    }
                    Some(_) => return Err((at, format!("`{parameter}` is a parameter of the merge, not of a model"))),
                    None => self.unknown(&parameter, at)?,
                }
            }
            // mergekit has no default for it.
            let weight = |(p, m, _): &(String, Option<String>, Setting)| p == "weight" && m.as_ref() == Some(&name);
            if own("weight").is_some()
                && !self.parameters.iter().any(weight)
                && !keys.parameters.iter().any(|p| p.0 == "weight")
            {
                return Err((line, format!("`weight` of this model is missing, which `{method}` needs")));
            }
        }
        for (parameter, at, setting) in keys.parameters {
            let Some(own) = own(&parameter) else {
                self.unknown(&parameter, at)?;
                continue;
            };
            let setting = own.takes(setting).map_err(|why| (at, format!("`{parameter}`: {why}")))?;
            match self.parameters.iter_mut().find(|(p, m, _)| *p == parameter && m.is_none()) {
                Some((_, _, first)) => *first = first.clone().or(setting),
                None => self.parameters.push((parameter, None, setting)),
            }
        }
        Ok(())
    }

    fn unknown(&mut self, parameter: &str, line: u64) -> Result<(), Wrong> {
        if parameter == "int8_mask" {
            self.notes.push(format!("note: line {line}: `int8_mask` changes no result"));
            return Ok(());
        }
        Err((line, format!("`{}` has no parameter `{}`", self.method, report::escaped(parameter))))
    }

    /// A name for a model, by the last part of its path, that none of the recipe's other inputs has.
    fn free_name(&self, path: &str, recipe: &Recipe) -> String {
        let name = Path::new(path).file_name().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        // Of a folder, what follows a dot is no extension: Qwen2.5-7B.
        let stem =
            [".index.json", ".safetensors", ".npz"].iter().fold(&name[..], |n, end| n.strip_suffix(end).unwrap_or(n));
        let stem: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
        let taken = |name: &str| {
            name.is_empty() || name == "base" || recipe.names(name) || self.inputs.iter().any(|(n, ..)| n == name)
        };
        let numbered = (2..).map(|n| format!("{stem}_{n}"));
        std::iter::once(stem.clone()).chain(numbered).find(|n| !taken(n)).unwrap_or(stem)
    }
}

fn map<'n>(node: &'n Node, what: &str) -> Result<&'n [(String, u64, Node)], Wrong> {
    match &node.value {
        Value::Map(entries) => Ok(entries),
        _ => Err((node.line, format!("{what} is a mapping, not {}", node.kind()))),
    }
}

fn list<'n>(node: &'n Node, what: &str) -> Result<&'n [Node], Wrong> {
    match &node.value {
        Value::List(all) => Ok(all),
        _ => Err((node.line, format!("`{what}` is a list, not {}", node.kind()))),
    }
}

/// Why there is no recipe for a method.
fn no_recipe(method: &str) -> String {
    let all: Vec<&str> = METHODS.iter().map(|(n, _)| *n).collect();
    let why = match method {
        "passthrough" => {
            "`passthrough` puts layers of models together, and castwise merges whole models, tensor by tensor".into()
        }
        _ => format!("there is no recipe for `{}`", report::escaped(method)),
    };
    format!("merge_method: {why}; there are {}", all.join(", "))
}

fn text_of(key: &str, node: &Node) -> Result<String, Wrong> {
    match &node.value {
        Value::Text(t) => Ok(t.clone()),
        _ => Err((node.line, format!("`{key}`: expected a text, found {}", node.kind()))),
    }
}

/// A path, in one form for each: without a slash at its end.
fn path(key: &str, node: &Node) -> Result<String, Wrong> {
    let text = text_of(key, node)?;
    let cut = text.trim_end_matches('/');
    Ok(if cut.is_empty() { text } else { cut.to_string() })
}

fn dtype(key: &str, node: &Node) -> Result<DType, Wrong> {
    let name = text_of(key, node)?;
    match name.strip_prefix("torch.").unwrap_or(&name) {
        "bfloat16" => Ok(DType::BF16),
        "float16" => Ok(DType::F16),
        "float32" => Ok(DType::F32),
        "float64" => Ok(DType::F64),
        _ => {
            Err((node.line, format!("`{key}`: expected bfloat16, float16, float32 or float64, found {}", node.kind())))
        }
    }
}

fn parameters(node: &Node) -> Result<Vec<(String, u64, Setting)>, Wrong> {
    let one = |(key, line, value): &(String, u64, Node)| {
        let setting = Setting::of(value).map_err(|(at, why)| (at, format!("`{}`: {why}", report::escaped(key))))?;
        Ok((key.clone(), *line, setting))
    };
    map(node, "`parameters`")?.iter().map(one).collect()
}

fn models(node: &Node) -> Result<Vec<Model>, Wrong> {
    let one = |node: &Node| {
        let mut model = Model { path: String::new(), line: node.line, parameters: Vec::new() };
        for (key, line, value) in map(node, "a model")? {
            match key.as_str() {
                "model" => model.path = path(key, value)?,
                "parameters" => model.parameters = parameters(value)?,
                _ => return Err((*line, format!("`{}` of a model is not understood", report::escaped(key)))),
            }
        }
        if model.path.is_empty() { Err((node.line, "`model` is missing".into())) } else { Ok(model) }
    };
    list(node, "models")?.iter().map(one).collect()
}

/// Reads slices: one, of whole models.
fn slices(node: &Node, keys: &mut Keys) -> Result<(), Wrong> {
    let all = list(node, "slices")?;
    let [slice] = all else {
        let n = all.len();
        return Err((
            node.line,
            format!(
                "`slices`: there are {n}, and castwise merges whole models, which are one slice of all layers: use mergekit for models of several slices"
            ),
        ));
    };
    let mut own = Vec::new();
    for (key, line, value) in map(slice, "a slice")? {
        match key.as_str() {
            "parameters" => own = parameters(value)?,
            "sources" => {
                for source in list(value, key)? {
                    keys.models.push(source_of(source)?);
                }
            }
            _ => return Err((*line, format!("`{}` of a slice is not understood", report::escaped(key)))),
        }
    }
    keys.parameters.splice(0..0, own);
    Ok(())
}

fn source_of(node: &Node) -> Result<Model, Wrong> {
    let mut model = Model { path: String::new(), line: node.line, parameters: Vec::new() };
    let mut range = None;
    for (key, line, value) in map(node, "a source")? {
        match key.as_str() {
            "model" => model.path = path(key, value)?,
            "parameters" => model.parameters = parameters(value)?,
            "layer_range" => {
                let ends: Vec<Option<f64>> = list(value, key)?.iter().map(Node::number).collect();
                let [Some(from), Some(to)] = ends[..] else {
                    return Err((value.line, "`layer_range`: expected two numbers".into()));
                };
                range = Some((from, to, *line));
            }
            _ => return Err((*line, format!("`{}` of a source is not understood", report::escaped(key)))),
        }
    }
    if model.path.is_empty() {
        return Err((node.line, "`model` is missing".into()));
    }
    if let Some((from, to, line)) = range {
        let layers = layers(Path::new(&model.path));
        if from != 0.0 || layers.is_some_and(|n| n as f64 != to) {
            let has = layers.map_or(String::new(), |n| format!(", 0 to {n}"));
            return Err((line, format!("`layer_range`: whole models are merged{has}")));
        }
        if layers.is_none() {
            return Err((
                line,
                "`layer_range`: the model has no config.json with `num_hidden_layers`: remove the key".into(),
            ));
        }
    }
    Ok(model)
}

/// The number of layers of a model by its configuration.
fn layers(folder: &Path) -> Option<u64> {
    let text = read_text(folder.join("config.json"), 16 << 20).ok()?;
    let json: serde_json::Value = serde_json::from_str(&text).ok()?;
    let count = |v: &serde_json::Value| v.get("num_hidden_layers").and_then(serde_json::Value::as_u64);
    count(&json).or_else(|| json.get("text_config").and_then(count))
}
