//! Sharded checkpoints: round trips, and indexes with false entries.

use super::*;

type Listed = (String, DType, Vec<usize>);

fn listed(all: &[(String, Tensor)]) -> Vec<Listed> {
    all.iter().map(|(n, t)| (n.clone(), t.dtype(), t.shape().to_vec())).collect()
}

fn tensors(sizes: &[usize]) -> Vec<(String, Tensor)> {
    let tensor = |(i, n): (usize, &usize)| {
        let values: Vec<f32> = (0..*n).map(|v| (v + 100 * i) as f32).collect();
        (format!("layer.{i}"), Tensor::from_vec(values, [*n]).unwrap())
    };
    sizes.iter().enumerate().map(tensor).collect()
}

fn write(index: &Path, all: &[(String, Tensor)], max: u64, existing: Existing) -> Result<()> {
    let metadata = BTreeMap::from([("format".to_string(), "pt".to_string())]);
    let mut out = ShardedWriter::create(index, &listed(all), &metadata, max, existing)?;
    for (name, t) in all {
        out.write(name, t)?;
    }
    out.finish()
}

fn shard(dir: &Dir, name: &str, tensors: &[&str]) {
    let entry =
        |(i, n): (usize, &&str)| format!(r#""{n}":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{}]}}"#, i + 1);
    let entries: Vec<String> = tensors.iter().enumerate().map(entry).collect();
    dir.file(name, &safetensors(&format!("{{{}}}", entries.join(",")), &vec![7; tensors.len()]));
}

fn index(dir: &Dir, map: &str) -> PathBuf {
    dir.file(
        "model.safetensors.index.json",
        format!(r#"{{"metadata":{{"total_size":1}},"weight_map":{map}}}"#).as_bytes(),
    )
}

#[test]
fn shards_come_back_as_they_were_written() {
    let dir = Dir::new("shards");
    let path = dir.0.join("model.safetensors.index.json");
    // 40 bytes per shard: two tensors fit, one is larger on its own, and an empty one joins the next one's shard.
    let all = tensors(&[5, 5, 30, 0, 8, 1]);
    write(&path, &all, 40, Existing::Keep).unwrap();
    let names: Vec<String> = (1..=3).map(|i| format!("model-{i:05}-of-00003.safetensors")).collect();
    assert_eq!(dir.names(), [&names[..], &["model.safetensors.index.json".into()]].concat());

    let mut file = ShardedSafeTensors::open(&path).unwrap();
    assert_eq!(file.metadata().unwrap().get("format").unwrap(), "pt");
    assert_eq!(file.files().count(), 3);
    // Forward and backward, so that shards are reopened.
    for (name, t) in all.iter().chain(all.iter().rev()) {
        assert!(file.has(name));
        assert_eq!(file.info(name).unwrap(), (t.dtype(), t.shape()));
        assert_same(&file.load(name).unwrap(), t);
    }
    assert!(!file.has("none") && file.info("none").is_err() && file.load("none").is_err());

    // The form of the Hugging Face libraries: two spaces, sorted keys, a final newline.
    let text = std::fs::read_to_string(&path).unwrap();
    let expected = r#"{
  "metadata": {
    "total_size": 196
  },
  "weight_map": {
    "layer.0": "model-00001-of-00003.safetensors",
    "layer.1": "model-00001-of-00003.safetensors",
    "layer.2": "model-00002-of-00003.safetensors",
    "layer.3": "model-00003-of-00003.safetensors",
    "layer.4": "model-00003-of-00003.safetensors",
    "layer.5": "model-00003-of-00003.safetensors"
  }
}
"#;
    assert_eq!(text, expected);
    for (file, count) in names.iter().zip([2, 1, 3]) {
        let bytes = std::fs::read(dir.0.join(file)).unwrap();
        assert_eq!(::safetensors::SafeTensors::deserialize(&bytes).unwrap().len(), count);
    }
}

#[test]
fn shards_are_written_all_or_not_at_all() {
    let dir = Dir::new("shards-whole");
    let path = dir.0.join("m.safetensors.index.json");
    let all = tensors(&[10, 10, 10]);
    let create = |existing| ShardedWriter::create(&path, &listed(&all), &BTreeMap::new(), 40, existing);
    let mut out = create(Existing::Keep).unwrap();
    // In another order: the second shard is complete before the first one is started.
    out.write("layer.1", &all[1].1).unwrap();
    out.write("layer.0", &all[0].1).unwrap();
    assert!(out.write("layer.0", &all[0].1).is_err() && out.write("x", &all[0].1).is_err());
    assert!(dir.names().iter().all(|n| n.ends_with(".tmp")));
    let e = out.finish().unwrap_err().to_string();
    assert!(e.contains("1 listed"), "{e}");
    assert!(dir.names().is_empty());
    drop(create(Existing::Keep).unwrap());
    assert!(dir.names().is_empty());

    // A shard's name is taken, before the start and in the meantime.
    let taken = dir.file("m-00002-of-00003.safetensors", b"precious");
    assert!(matches!(create(Existing::Keep), Err(Error::Io { .. })));
    std::fs::remove_file(&taken).unwrap();
    let mut out = create(Existing::Keep).unwrap();
    for (name, t) in &all {
        out.write(name, t).unwrap();
    }
    dir.file("m-00002-of-00003.safetensors", b"precious");
    assert!(matches!(out.finish(), Err(Error::Io { .. })));
    assert_eq!(dir.names(), ["m-00002-of-00003.safetensors"]);
    assert_eq!(std::fs::read(&taken).unwrap(), b"precious");

    // Replacing a checkpoint leaves a complete one.
    write(&path, &all, 40, Existing::Replace).unwrap();
    let other = tensors(&[10, 20, 10]);
    write(&path, &other, 40, Existing::Replace).unwrap();
    assert_same(&ShardedSafeTensors::open(&path).unwrap().load("layer.1").unwrap(), &other[1].1);
    assert!(matches!(write(&path, &other, 40, Existing::Keep), Err(Error::Io { .. })));
    assert_eq!(dir.names().len(), 4);

    let c128 = [("z".to_string(), DType::C128, vec![])];
    let e = ShardedWriter::create(&path, &c128, &BTreeMap::new(), 40, Existing::Replace).err().unwrap().to_string();
    assert!(e.contains("c128") && e.contains("`z`"), "{e}");
    let twice = [listed(&all)[0].clone(), listed(&all)[0].clone()];
    assert!(ShardedWriter::create(&path, &twice, &BTreeMap::new(), 40, Existing::Replace).is_err());
    for name in ["model.json", ".index.json", ".safetensors.index.json"] {
        let e = write(&dir.0.join(name), &all, 40, Existing::Keep).unwrap_err().to_string();
        assert!(e.contains("NAME.safetensors.index.json"), "{e}");
    }
    let files = ShardedWriter::files(dir.0.join("a.index.json"), &listed(&all), u64::MAX).unwrap();
    assert_eq!(files, [dir.0.join("a-00001-of-00001.safetensors"), dir.0.join("a.index.json")]);
}

#[test]
fn indexes_that_lie_are_refused() {
    let dir = Dir::new("shards-lies");
    let inner = Dir::new("shards-lies-elsewhere");
    shard(&dir, "1.safetensors", &["a", "b"]);
    shard(&dir, "2.safetensors", &["c"]);
    shard(&dir, "b.safetensors", &["b"]);
    shard(&dir, "more.safetensors", &["c", "d"]);
    shard(&inner, "c.safetensors", &["c"]);
    dir.file("broken.safetensors", b"\x05\0\0\0\0\0\0\0hello");
    std::fs::create_dir(dir.0.join("sub.safetensors")).unwrap();
    let absolute = format!(r#"{{"c":"{}"}}"#, inner.0.join("c.safetensors").display());
    let up = format!(r#"{{"c":"../{}/c.safetensors"}}"#, inner.0.file_name().unwrap().to_str().unwrap());
    let cases: Vec<(String, &str)> = vec![
        (absolute, "is not the name of a file in the directory of the index"),
        (up, "is not the name of a file in the directory of the index"),
        (r#"{"c":".."}"#.into(), "`..` is not the name"),
        (r#"{"c":"."}"#.into(), "`.` is not the name"),
        (r#"{"c":""}"#.into(), "`` is not the name"),
        (r#"{"c":"./2.safetensors"}"#.into(), "is not the name"),
        (r#"{"c":"x\\..\\2.safetensors"}"#.into(), "is not the name"),
        (r#"{"c":"2.safetensors\u0000"}"#.into(), "is not the name"),
        (r#"{"c":"2.bin"}"#.into(), "`2.bin` is not a .safetensors file"),
        (r#"{"c":"3.safetensors"}"#.into(), "`3.safetensors` can't be read"),
        (r#"{"c":"sub.safetensors"}"#.into(), "not a regular file"),
        (r#"{"c":"broken.safetensors"}"#.into(), "broken.safetensors: header"),
        (
            r#"{"a":"1.safetensors","b":"1.safetensors","c":"1.safetensors"}"#.into(),
            "`c` is listed in `1.safetensors`, but is in no shard",
        ),
        (
            r#"{"a":"1.safetensors","b":"2.safetensors","c":"2.safetensors"}"#.into(),
            "`b` is listed in `2.safetensors`, but is in `1.safetensors`",
        ),
        (
            r#"{"a":"1.safetensors","b":"b.safetensors"}"#.into(),
            "`b` is in two shards, `b.safetensors` and `1.safetensors`",
        ),
        (r#"{"c":"more.safetensors"}"#.into(), "`d` of `more.safetensors` is not in the index"),
        (r#"{"c":"2.safetensors","c":"2.safetensors"}"#.into(), "duplicate tensor `c`"),
        (r#"{"c":2}"#.into(), "not an index"),
        (r#"["c"]"#.into(), "an object that maps tensors to shards"),
    ];
    let mut wrong = Vec::new();
    for (map, message) in cases {
        match ShardedSafeTensors::open(index(&dir, &map)) {
            Err(e @ Error::Format { .. }) if e.to_string().contains(message) => {}
            other => wrong.push(format!("{map}: {message}: {other:?}")),
        }
    }
    let deep = format!(r#"{{"metadata":{}{},"weight_map":{{}}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let twice = r#"{"weight_map":{},"weight_map":{}}"#;
    for text in ["", "[]", "{}", "\0", r#"{"weight_map":null}"#, twice, &deep[..50_000], r#"{"weight_map":{}}x"#] {
        let opened = ShardedSafeTensors::open(dir.file("model.safetensors.index.json", text.as_bytes()));
        if !matches!(&opened, Err(Error::Format { message, .. }) if message.contains("not an index")) {
            wrong.push(format!("{}: {opened:?}", &text[..text.len().min(40)]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let fine = index(&dir, r#"{"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"}"#);
    let mut file = ShardedSafeTensors::open(fine).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["a", "b", "c"]);
    // A shard that changes in the meantime gives an error or other data, nothing worse.
    dir.file("2.safetensors", b"short");
    let e = file.load("c").unwrap_err().to_string();
    assert!(e.contains("to 5 bytes"), "{e}");
    std::fs::remove_file(dir.0.join("1.safetensors")).unwrap();
    assert!(matches!(file.load("a"), Err(Error::Io { .. })));
}
