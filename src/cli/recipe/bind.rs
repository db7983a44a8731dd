//! Recipes of a command: which inputs are which, what the parameters are, and the expression for each tensor.
//!
//! Guarantees: a parameter that no recipe has, a missing one, and an input that a recipe lacks are errors before any tensor is read. Extents are
//! equal in all inputs, so nothing is broadcast. Does not: infer dtypes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use castwise::io::read_text;
use castwise::shape::Dim;
use castwise::{DType, Rules, Scalar, promote_types};
use regex::Regex;
use sha2::{Digest, Sha256};

use super::super::args::Common;
use super::super::expression::Expression;
use super::super::failure::Failure;
use super::super::inputs::Input;
use super::super::report;
use super::expand::{Dtypes, Expansion, Info};
use super::layers::Layers;
use super::setting::{Number, Setting};
use super::shipped;
use super::text::{Default_, Recipe, Role};

/// The maximum size of a recipe, or of a file with a setting, in bytes.
const MOST: u64 = 1 << 20;

/// Numbers by their names in an expression.
type Numbers = Arc<Vec<(String, Scalar)>>;

/// The numbers that the expressions of tensors use, by the tensors' names, and tensors that must be equal in several inputs.
#[derive(Default)]
pub(in crate::cli) struct Values {
    pub(in crate::cli) numbers: HashMap<String, Numbers>,
    /// A tensor's name, and the positions of inputs.
    pub(in crate::cli) equal: Vec<(String, Vec<usize>)>,
    /// Warnings.
    pub(in crate::cli) notes: Vec<String>,
}

/// The recipes of a command.
#[derive(Default)]
pub(in crate::cli) struct Recipes {
    all: Vec<Recipe>,
    /// Parameters, those of one model with its name.
    settings: Vec<(String, Option<String>, Setting)>,
    dtype: Option<DType>,
    seed: u64,
    /// The files of parameters.
    files: Vec<PathBuf>,
}

fn usage(text: String) -> Failure {
    Failure::usage(text)
}

impl Recipe {
    /// The recipe of an expression `@NAME` or `@FILE`.
    pub(in crate::cli) fn load(name: &str) -> Result<Recipe, Failure> {
        if let Some(text) = shipped::recipe(name) {
            return Recipe::read(name, &format!("@{name}"), text);
        }
        let is_path = name.contains(['/', '\\']) || name.ends_with(".recipe");
        let own = shipped::folder().map(|f| f.join(format!("{name}.recipe"))).filter(|f| !is_path && f.is_file());
        let path = match (is_path, own) {
            (true, _) => Path::new(name).to_path_buf(),
            (false, Some(path)) => path,
            (false, None) => {
                let known: Vec<&str> = shipped::ALL.iter().map(|(n, _)| *n).collect();
                let name = report::escaped(name);
                return Err(usage(format!("there is no recipe `{name}`; there are {}", known.join(", "))));
            }
        };
        let recipe = Recipe::read(name, &path.display().to_string(), &read_text(&path, MOST)?)?;
        Ok(Recipe { file: Some(path), ..recipe })
    }

    /// Whether the recipe has an input of this name that is no model.
    pub(in crate::cli) fn names(&self, input: &str) -> bool {
        self.roles.iter().any(|r| match input.split_once('.') {
            Some((role, _)) if r.each => r.name == role,
            _ => r.name == input,
        })
    }

    /// What an input of one model, such as its mask, is to the recipe.
    fn of_model(&self, input: &str) -> Option<&Role> {
        let (role, _) = input.split_once('.')?;
        self.roles.iter().find(|r| r.each && r.name == role)
    }

    /// The inputs that are models.
    fn models(&self, inputs: &[&str]) -> Vec<String> {
        inputs.iter().filter(|i| self.models.is_some() && !self.names(i)).map(|i| i.to_string()).collect()
    }

    /// Checks the names of the inputs.
    fn check(&self, inputs: &[&str]) -> Result<(), Failure> {
        let name = report::escaped(&self.name);
        let needed = |r: &&Role| !r.optional && !inputs.contains(&r.name.as_str());
        if let Some(r) = self.roles.iter().find(needed) {
            return Err(usage(format!("the recipe `{name}` needs an input `{0}`: -i {0}=FILE", r.name)));
        }
        let models = self.models(inputs);
        for i in inputs {
            let (role, of) = i.split_once('.').unwrap_or((i, ""));
            if self.roles.iter().any(|r| r.each && r.name == role) && !models.iter().any(|m| m == of) {
                let all = report::names(models.iter().map(String::as_str));
                let text = format!("the input `{}` is of no model: it is {role}.MODEL, of {all}", report::escaped(i));
                return Err(usage(text));
            }
        }
        match &self.models {
            None => match inputs.iter().find(|i| !self.names(i)) {
                Some(i) => Err(usage(format!("the recipe `{name}` has no input `{}`", report::escaped(i)))),
                None => Ok(()),
            },
            Some(m) if models.len() < m.least || models.len() > m.most => {
                let (s, most) = (if m.least == 1 { "" } else { "s" }, m.most);
                let takes = match m.most {
                    super::MODELS => format!("at least {} model{s}", m.least),
                    most if most == m.least => format!("{most} model{s}"),
                    _ => format!("{} to {most} models", m.least),
                };
                let besides: Vec<String> =
                    self.roles.iter().filter(|r| !r.optional).map(|r| format!("`{}`", r.name)).collect();
                let besides = if besides.is_empty() {
                    String::new()
                } else {
                    format!(" besides {}", report::listed(&besides, "and"))
                };
                Err(usage(format!("the recipe `{name}` takes {takes}{besides}, not {}", models.len())))
            }
            Some(_) => Ok(()),
        }
    }
}

impl Recipes {
    /// The recipes that these expressions name. Also returns the arguments without what the recipes take.
    pub(in crate::cli) fn of<'c, 't>(
        common: &'c Common,
        texts: impl Iterator<Item = &'t str>,
    ) -> Result<(Recipes, Cow<'c, Common>), Failure> {
        let mut recipes = Recipes { seed: common.seed.unwrap_or(0), ..Recipes::default() };
        for name in texts.filter_map(|t| t.trim().strip_prefix('@')) {
            if !recipes.all.iter().any(|r| r.name == name) {
                recipes.all.push(Recipe::load(name)?);
            }
        }
        if recipes.all.is_empty() {
            return Ok((recipes, Cow::Borrowed(common)));
        }
        let rules = common.settings().rules;
        if rules != Rules::Torch {
            return Err(usage(format!("recipes are written for --rules torch, not {rules}")));
        }
        let mut common = common.clone();
        for r in &recipes.all {
            for (name, rule) in &r.siblings {
                if !common.inputs.iter().map(|(n, _)| n).chain(common.sibling.iter().map(|(n, _)| n)).any(|n| n == name)
                {
                    common.sibling.push((name.clone(), rule.clone()));
                }
            }
            let inputs: Vec<String> = common.specs().iter().map(|(n, _)| n.to_string()).collect();
            r.check(&inputs.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        recipes.take_parameters(&mut common)?;
        Ok((recipes, Cow::Owned(common)))
    }

    /// Whether there are none.
    pub(in crate::cli) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether an input belongs to one model, such as its mask.
    pub(in crate::cli) fn is_of_model(&self, input: &str) -> bool {
        self.all.iter().any(|r| r.of_model(input).is_some())
    }

    /// The files that recipes and their parameters are from.
    pub(in crate::cli) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.all.iter().filter_map(|r| r.file.as_ref()).chain(&self.files)
    }

    /// Takes the recipes' parameters from the arguments.
    fn take_parameters(&mut self, common: &mut Common) -> Result<(), Failure> {
        let inputs: Vec<&str> = common.inputs.iter().map(|(n, _)| n.as_str()).collect();
        let mut left = Vec::new();
        for (name, value) in std::mem::take(&mut common.parameters) {
            let wrong = |why: String| usage(format!("the parameter `{}`: {why}", report::escaped(&name)));
            let text = value.to_str().ok_or_else(|| wrong("not UTF-8".into()));
            if name == "dtype" {
                let dtype: DType = text?.parse().map_err(|e: castwise::UnknownDType| wrong(e.to_string()))?;
                if !dtype.is_float() {
                    return Err(wrong(format!("{dtype} is no float dtype")));
                }
                self.dtype = Some(dtype);
                continue;
            }
            let (parameter, model) = name.split_once('.').map_or((name.as_str(), None), |(p, m)| (p, Some(m)));
            let found = self.all.iter().flat_map(|r| r.parameters.iter().map(move |p| (r, p)));
            let found: Vec<_> = found.filter(|(_, p)| p.name == parameter).collect();
            if found.is_empty() {
                left.push((name, value));
                continue;
            }
            let models = |m: &str| found.iter().any(|(r, p)| p.each && r.models(&inputs).iter().any(|n| n == m));
            if let Some(m) = model.filter(|m| !models(m)) {
                return Err(wrong(format!("there is no model `{}` that has one of its own", report::escaped(m))));
            }
            let text = text?;
            let file = Path::new(text);
            let setting = match Setting::read(text) {
                Err(_) if file.is_file() => {
                    self.files.push(file.to_path_buf());
                    Setting::read(&read_text(file, MOST)?)
                }
                setting => setting,
            };
            let setting = setting
                .map_err(|why| wrong(format!("{why}; it is a number, or a list (see `castwise recipes --help`)")))?;
            let setting = found.iter().try_fold(setting, |s, (_, p)| p.takes(s)).map_err(wrong)?;
            if self.settings.iter().any(|(p, m, _)| p == parameter && m.as_deref() == model) {
                return Err(wrong("it is given twice".into()));
            }
            self.settings.push((parameter.to_string(), model.map(str::to_string), setting));
        }
        common.parameters = left;
        let all = self.all.iter().flat_map(|r| r.parameters.iter().map(|p| p.name.as_str()).chain(["dtype"]));
        let all: Vec<String> = all.map(|p| format!("`{p}`")).collect();
        match common.parameters.first().filter(|_| self.all.len() == 1) {
            Some((name, _)) => {
                let (name, all) = (report::escaped(name), report::listed(&all, "and"));
                Err(usage(format!("the recipe `{}` has no parameter `{name}`; it has {all}", self.all[0].name)))
            }
            None => Ok(()),
        }
    }

    /// The expression for an argument that names a recipe, before its tensors are known.
    pub(in crate::cli) fn expression(
        &self,
        common: &Common,
        text: &str,
        pattern: &Option<Regex>,
    ) -> Option<Expression> {
        let name = text.trim().strip_prefix('@')?;
        let recipe = self.all.iter().position(|r| r.name == name)?;
        let of = &self.all[recipe];
        let used = |(_, n): &(usize, &str)| of.names(n) || of.models.is_some();
        let uses = common.specs().iter().map(|(n, _)| *n).enumerate().filter(used).map(|(i, _)| i).collect();
        let (text, path, pattern) = (text.trim().to_string(), format!("@{name}"), pattern.clone());
        Some(Expression { text, path, pattern, uses, parameters: Vec::new(), recipe: Some(recipe) })
    }

    /// What makes the expressions of tensors.
    pub(in crate::cli) fn specialiser<'a>(&'a self, inputs: &'a [Input]) -> Specialiser<'a> {
        let named = inputs.iter().filter(|_| !self.is_empty());
        let layers = Layers::of(named.filter_map(Input::names).flatten());
        Specialiser { recipes: self, inputs, layers, made: Made::default(), values: Values::default() }
    }

    /// Warnings about inputs of one model, such as masks, that are used for no tensor.
    fn unused(&self, inputs: &[Input], expressions: &[Expression], used: impl Iterator<Item = usize>) -> Vec<String> {
        let used: HashSet<usize> = used.collect();
        let used: HashSet<usize> =
            used.into_iter().filter_map(|e| expressions.get(e)).flat_map(|e| e.uses.iter().copied()).collect();
        let mut notes = Vec::new();
        for (_, input) in inputs.iter().enumerate().filter(|(i, _)| !used.contains(i)) {
            let found = self.all.iter().find_map(|r| Some((r, r.of_model(&input.name)?)));
            let Some((recipe, own)) = found else { continue };
            let (name, recipe) = (report::escaped(&input.name), report::escaped(&recipe.name));
            let what = match own.doc.as_str() {
                "" => String::new(),
                doc => format!("; it says of `{}`: {}", own.name, report::escape_controls(doc)),
            };
            notes.push(format!("warning: the recipe `{recipe}` uses `{name}` for no tensor{what}"));
        }
        notes
    }

    /// The seed of a tensor's random numbers.
    pub(in crate::cli) fn seed(seed: u64, tensor: &str) -> Scalar {
        let hash = Sha256::new().chain_update(seed.to_le_bytes()).chain_update(tensor.as_bytes()).finalize();
        let mut word = [0; 8];
        word.copy_from_slice(&hash[..8]);
        Scalar::Int(u64::from_le_bytes(word).into())
    }
}

/// An error about a tensor.
enum Refused {
    /// It is about this tensor.
    Data(String),
    /// It is about the arguments.
    Usage(String),
}

impl Refused {
    fn for_tensor(self, name: &str) -> Failure {
        match self {
            Refused::Data(text) => {
                Failure { text: report::error(&format!("{text} (tensor `{}`)", report::escaped(name))), code: 1 }
            }
            Refused::Usage(text) => Failure::usage(text),
        }
    }
}

impl From<castwise::Error> for Refused {
    fn from(e: castwise::Error) -> Refused {
        Refused::Data(e.to_string())
    }
}

/// What an expression depends on: the recipe, the dtypes and extents, the parameters, and the siblings that there are.
type Key = (String, DType, usize, Vec<Dim>, Vec<String>, Vec<Option<Info>>);

/// The position of an expression, its numbers, and whether it uses the seed.
type Specialised = (usize, Numbers, bool);

/// The expressions that were made.
#[derive(Default)]
struct Made {
    by_key: HashMap<Key, Specialised>,
    by_text: HashMap<(String, Vec<usize>), usize>,
}

/// Makes the expressions of tensors whose expression names a recipe.
pub(in crate::cli) struct Specialiser<'a> {
    recipes: &'a Recipes,
    inputs: &'a [Input],
    layers: Layers,
    made: Made,
    values: Values,
}

/// A tensor that a recipe is for.
struct Tensor<'a> {
    recipes: &'a Recipes,
    recipe: &'a Recipe,
    inputs: &'a [Input],
    models: Vec<String>,
    name: &'a str,
    place: f64,
}

impl Tensor<'_> {
    fn input(&self, name: &str) -> Option<(usize, &Input)> {
        self.inputs.iter().enumerate().find(|(_, i)| i.name == name)
    }

    /// The inputs whose tensors a result is computed from, in order.
    fn operands(&self) -> Vec<usize> {
        let role = |r: &&Role| !r.each && !self.recipe.siblings.iter().any(|(s, _)| *s == r.name);
        let roles = self.recipe.roles.iter().filter(role).map(|r| r.name.as_str());
        let mut all: Vec<usize> =
            roles.chain(self.models.iter().map(String::as_str)).filter_map(|n| self.input(n)).map(|(i, _)| i).collect();
        all.sort_unstable();
        all
    }

    /// The position of the expression for this tensor.
    fn expression(
        &self,
        e: usize,
        expressions: &mut Vec<Expression>,
        made: &mut Made,
        values: &mut Values,
    ) -> Result<usize, Refused> {
        let operands = self.operands();
        let (path, text) = (expressions[e].path.clone(), expressions[e].text.clone());
        if operands.iter().any(|i| !self.inputs[*i].has(self.name)) {
            // `--missing` says what becomes of it.
            return Ok(made.add(expressions, text, path, operands));
        }
        let dtype = self.recipe.uses_dtype("T");
        if let Some(same) = if dtype { self.copied(&operands)? } else { None } {
            if operands.len() > 1 {
                values.equal.push((self.name.to_string(), operands));
            }
            return Ok(made.add(expressions, self.inputs[same].name.clone(), path, vec![same]));
        }
        let types = operands.iter().map(|i| self.inputs[*i].info(self.name)).collect::<Result<Vec<_>, _>>()?;
        if dtype {
            self.same_extents(&operands, &types)?;
            self.check_masks(types.first().map_or(&[], |t| &t.1))?;
        }
        let first = types.first().cloned().unwrap_or((DType::F32, Vec::new()));
        let t = if dtype { self.arithmetic(&operands, &types)? } else { DType::F32 };
        let parameters = self.parameters()?;
        let sibling =
            |(s, _): &(String, _)| self.input(s).filter(|(_, i)| i.has(self.name)).map(|(_, i)| i.info(self.name));
        let siblings = self.recipe.siblings.iter().map(|s| sibling(s).transpose()).collect::<Result<Vec<_>, _>>()?;
        let written = parameters.iter().map(|p| format!("{p:?}")).collect();
        let key: Key = (text.clone(), t, first.0.size(), first.1.clone(), written, siblings.clone());
        if !made.by_key.contains_key(&key) {
            let specialised = self.expand(t, &first, &siblings, &parameters, &path, expressions, made)?;
            made.by_key.insert(key.clone(), specialised);
        }
        let Some((position, numbers, seeded)) = made.by_key.get(&key) else { return Ok(e) };
        let mut numbers = numbers.clone();
        if *seeded {
            let mut own = numbers.to_vec();
            let mut name = "seed".to_string();
            while self.input(&name).is_some() {
                name.push('_');
            }
            own.push((name, Recipes::seed(self.recipes.seed, self.name)));
            numbers = Arc::new(own);
        }
        values.numbers.insert(self.name.to_string(), numbers);
        Ok(*position)
    }

    /// The input that the tensor is copied from, if it is integer or bool in all of them, or of a dtype that castwise lacks.
    fn copied(&self, operands: &[usize]) -> Result<Option<usize>, Refused> {
        let kind = |i: &usize| -> Result<Option<(String, Vec<Dim>)>, Refused> {
            let input = &self.inputs[*i];
            if let Some((dtype, shape)) = input.foreign(self.name) {
                return Ok(Some((dtype.to_string(), shape.iter().map(|n| Dim::Fixed(*n)).collect())));
            }
            let (dtype, dims) = input.info(self.name)?;
            Ok(dtype.is_integral().then(|| (dtype.to_string(), dims)))
        };
        let kinds = operands.iter().map(kind).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = operands.first().filter(|_| kinds.iter().any(Option::is_some)) else { return Ok(None) };
        match kinds.iter().position(|k| *k != kinds[0]) {
            Some(at) => {
                let shown = |k: &Option<(String, Vec<Dim>)>| {
                    k.as_ref().map_or("floats".to_string(), |(d, s)| format!("{d}{}", castwise::shape::Dims(s.clone())))
                };
                let (a, b) = (&self.inputs[*first].name, &self.inputs[operands[at]].name);
                Err(Refused::Data(format!(
                    "integers are copied if they are equal in all inputs: `{}` has {}, `{}` has {}",
                    report::escaped(a),
                    shown(&kinds[0]),
                    report::escaped(b),
                    shown(&kinds[at])
                )))
            }
            None => Ok(Some(*first)),
        }
    }

    /// Refuses masks that are not bools of the extents of what they belong to.
    fn check_masks(&self, dims: &[Dim]) -> Result<(), Refused> {
        for role in self.recipe.roles.iter().filter(|r| r.each && r.name == "mask") {
            for model in &self.models {
                let name = format!("{}.{model}", role.name);
                let Some((_, input)) = self.input(&name).filter(|(_, i)| i.has(self.name)) else { continue };
                let (dtype, own) = input.info(self.name)?;
                if dtype != DType::Bool || own != dims {
                    let (own, dims) = (castwise::shape::Dims(own), castwise::shape::Dims(dims.to_vec()));
                    let name = report::escaped(&name);
                    return Err(Refused::Data(format!("the mask `{name}` is {dtype}{own}, not bool{dims}")));
                }
            }
        }
        Ok(())
    }

    fn same_extents(&self, operands: &[usize], types: &[(DType, Vec<Dim>)]) -> Result<(), Refused> {
        let shown = |at: usize| {
            let name = report::escaped(&self.inputs[operands[at]].name);
            format!("{} in `{name}`", castwise::shape::Dims(types[at].1.clone()))
        };
        let other = types.iter().position(|t| t.1 != types[0].1);
        other.map_or(Ok(()), |at| Err(Refused::Data(format!("the shapes differ: {}, {}", shown(0), shown(at)))))
    }

    /// The dtype of the arithmetic.
    fn arithmetic(&self, operands: &[usize], types: &[(DType, Vec<Dim>)]) -> Result<DType, Refused> {
        let f8 = types.iter().position(|(d, _)| d.is_byte_float());
        if let Some(at) = f8.filter(|_| !self.recipe.takes_f8) {
            let (name, dtype) = (report::escaped(&self.inputs[operands[at]].name), types[at].0);
            return Err(Refused::Data(format!(
                "`{name}` has {dtype}, whose scales a merge would forget: convert it first, by `castwise eval @fp8_dequant`"
            )));
        }
        if let Some(dtype) = self.recipes.dtype.or(self.recipe.dtype) {
            return Ok(dtype);
        }
        let mut all = types.iter().map(|(d, _)| *d);
        let first = all.next().unwrap_or(DType::F32);
        all.try_fold(first, |a, b| promote_types(a, b).ok_or((a, b)))
            .map_err(|(a, b)| Refused::Data(format!("{a} and {b} have no common dtype: give one, as in -p dtype=f32")))
    }

    fn has(&self, input: &str) -> bool {
        self.input(input).is_some_and(|(_, i)| i.has(self.name))
    }

    /// The parameters for this tensor: of each model, if each has its own.
    fn parameters(&self) -> Result<Vec<Vec<Number>>, Refused> {
        let one = |p: &super::text::Parameter, model: Option<&String>| {
            let of = |m: Option<&String>| {
                let found = self.recipes.settings.iter().find(|(n, of, _)| *n == p.name && of.as_ref() == m);
                found.map(|(_, _, s)| s.resolve(self.name, self.place))
            };
            let own = model.and_then(|m| of(Some(m)));
            let (given, value) = match (own, of(None)) {
                (Some(Some(n)), _) => (true, Some(n)),
                (own, all) => (own.is_some() || all.is_some(), all.flatten()),
            };
            let name = model.map_or(p.name.clone(), |m| format!("{}.{m}", p.name));
            match (value, p.default) {
                (Some(n), _) | (None, Default_::Where(n)) => Ok(n),
                (None, Default_::Unless(n)) if !given => Ok(n),
                (None, Default_::None) if !given => {
                    let recipe = &self.recipe.name;
                    let doc = if p.doc.is_empty() { String::new() } else { format!(" ({})", p.doc) };
                    Err(Refused::Usage(format!(
                        "the recipe `{recipe}` needs the parameter `{0}`{doc}: -p {0}=…",
                        p.name
                    )))
                }
                (None, _) => Err(Refused::Data(format!("no filter of `{}` matches", report::escaped(&name)))),
            }
        };
        let all = |p: &super::text::Parameter| match p.each {
            true => self.models.iter().map(|m| one(p, Some(m))).collect(),
            false => one(p, None).map(|n| vec![n]),
        };
        self.recipe.parameters.iter().map(all).collect()
    }

    /// Writes the expression.
    #[expect(clippy::too_many_arguments, reason = "what an expression depends on, and where it goes")]
    fn expand(
        &self,
        arithmetic: DType,
        first: &Info,
        siblings: &[Option<Info>],
        parameters: &[Vec<Number>],
        path: &str,
        expressions: &mut Vec<Expression>,
        made: &mut Made,
    ) -> Result<Specialised, Refused> {
        let given = |name: &str| match self.recipe.siblings.iter().any(|(s, _)| s == name) {
            true => self.has(name),
            false => self.input(name).is_some(),
        };
        let parameter = |at: usize, model: Option<usize>| {
            let value = parameters.get(at).and_then(|all| all.get(model.unwrap_or(0)));
            value.copied().ok_or_else(|| "a parameter without a value".to_string())
        };
        let dtypes = Dtypes { arithmetic };
        let expansion = Expansion::new(self.recipe, &self.models, &given, dtypes, &parameter, first, siblings);
        let expanded = expansion.text().map_err(|why| Refused::Data(format!("@{}: {why}", self.recipe.name)))?;
        let mut uses: Vec<usize> = expanded.inputs.iter().filter_map(|n| self.input(n)).map(|(i, _)| i).collect();
        uses.sort_unstable();
        let position = made.add(expressions, expanded.text, path.to_string(), uses);
        Ok((position, Arc::new(expanded.numbers), expanded.seeded))
    }
}

impl Specialiser<'_> {
    /// The position of the expression for a tensor, whose given one is at `e`: the same, unless that names a recipe.
    pub(in crate::cli) fn expression(
        &mut self,
        name: &str,
        e: usize,
        expressions: &mut Vec<Expression>,
    ) -> Result<usize, Failure> {
        let Some(r) = expressions.get(e).and_then(|e| e.recipe) else { return Ok(e) };
        let recipe = &self.recipes.all[r];
        let names: Vec<&str> = expressions[e].uses.iter().map(|i| self.inputs[*i].name.as_str()).collect();
        let (models, place) = (recipe.models(&names), self.layers.place(name));
        let of = Tensor { recipes: self.recipes, recipe, inputs: self.inputs, models, name, place };
        of.expression(e, expressions, &mut self.made, &mut self.values).map_err(|f| f.for_tensor(name))
    }

    /// What the expressions use besides tensors, and warnings; `used` are the positions of those that are used.
    pub(in crate::cli) fn values(mut self, expressions: &[Expression], used: impl Iterator<Item = usize>) -> Values {
        self.values.notes = self.recipes.unused(self.inputs, expressions, used);
        self.values
    }
}

impl Made {
    /// The position of an expression.
    fn add(&mut self, all: &mut Vec<Expression>, text: String, path: String, uses: Vec<usize>) -> usize {
        *self.by_text.entry((text.clone(), uses.clone())).or_insert_with(|| {
            all.push(Expression { text, path, pattern: None, uses, parameters: Vec::new(), recipe: None });
            all.len() - 1
        })
    }
}
