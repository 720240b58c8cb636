//! What editors and shells get: the JSON Schema of `config.toml`, completions, man pages.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{self, Project, repository, schema_complaints};
use clap::CommandFactory as _;
use sparsek_gate::cli::Cli;

/// The schema's path as editors read it, in the first line of a configuration.
fn directive(config: &str) -> &str {
    config
        .lines()
        .next()
        .unwrap()
        .strip_prefix("#:schema ")
        .unwrap()
}

fn names_of_subcommands() -> Vec<String> {
    Cli::command()
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| command.get_name().to_owned())
        .collect()
}

#[test]
fn the_schema_in_the_repository_is_the_one_of_the_types() {
    let committed = fs::read_to_string(repository().join("docs/config.schema.json")).unwrap();
    let printed = Project::empty().run("generate schema").exits(0).out;
    assert!(
        committed == printed,
        "docs/config.schema.json is not what the types in src/config/raw.rs say; write it again:\n  \
         cargo run -- generate schema > docs/config.schema.json"
    );
}

#[test]
fn every_configuration_in_the_repository_fits_the_schema_it_names() {
    for path in ["config.toml", "tests/gpu/config.toml"] {
        let path = repository().join(path);
        let config = fs::read_to_string(&path).unwrap();
        assert_eq!(schema_complaints(&config), Vec::<String>::new());
        let named = path.with_file_name(directive(&config));
        let committed = repository().join("docs/config.schema.json");
        assert_eq!(named.canonicalize().unwrap(), committed);
    }
}

#[test]
fn the_configuration_that_the_gpu_tier_edits_says_what_that_of_the_repository_says() {
    let repository = repository();
    let lines = Command::new("python3")
        .arg(repository.join("tests/gpu/lines.py"))
        .stdin(fs::File::open(repository.join("config.toml")).unwrap())
        .output()
        .unwrap();
    let table = |text: &[u8]| -> toml::Table { toml::from_slice(text).unwrap() };
    let mut lines = table(&lines.stdout);
    let whole = table(&fs::read(repository.join("config.toml")).unwrap());
    // Defaults are stated.
    lines["profile"] = whole["profile"].clone();
    lines.remove("verify");
    assert_eq!(lines, whole);
}

#[test]
fn a_new_project_gets_the_schema_that_its_configuration_names() {
    for (config, more) in [
        ("config.toml", &[][..]),
        ("below/gate.toml", &[]),
        ("all.toml", &["--all"]),
    ] {
        let project = Project::empty();
        fs::create_dir(project.path("below")).unwrap();
        let arguments = [&["init", "--config", config], more].concat();
        project.run(&arguments).exits(0);
        let text = project.read(config);
        assert_eq!(schema_complaints(&text), Vec::<String>::new());
        let named = Path::new(config).with_file_name(directive(&text));
        let schema = project.read(named.to_str().unwrap());
        assert_eq!(schema, project.run("generate schema").out);
    }
}

#[test]
fn an_init_that_is_refused_writes_no_schema_either() {
    let project = Project::empty();
    project.write("config.toml", "");
    project.run("init").exits(2);
    assert_eq!(fs::read_dir(project.path("")).unwrap().count(), 1);
}

#[test]
fn every_table_of_the_schema_says_what_its_keys_mean_and_refuses_others() {
    let schema = sparsek_gate::config::schema();
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let definitions = schema["definitions"].as_object().unwrap();
    let mut keys = 0;
    for (name, table) in definitions.iter().chain([(&String::new(), &schema)]) {
        let Some(properties) = table["properties"].as_object() else {
            continue;
        };
        assert_eq!(table["additionalProperties"], false, "{name}");
        for (key, property) in properties {
            assert!(property["description"].is_string(), "`{key}` of {name}");
            keys += 1;
        }
    }
    assert!(keys > 60, "{keys}");
}

#[test]
fn the_schema_knows_no_null() {
    assert!(!sparsek_gate::config::schema().contains("null"));
}

#[test]
fn every_shell_gets_completions_that_know_every_subcommand() {
    let project = Project::empty();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = project
            .run(&["generate", "completions", shell])
            .exits(0)
            .out;
        for name in names_of_subcommands() {
            assert!(script.contains(&name), "{shell}: {name}");
        }
        if ["bash", "zsh", "fish"].contains(&shell) {
            // The others complete no values.
            assert!(script.contains("racecheck"), "{shell}");
        }
    }
    project.run("generate completions tcsh").exits(2);
}

#[test]
fn bash_completes_options() {
    let project = Project::empty();
    project.write("script", project.run("generate completions bash").out);
    let gate = Path::new(env!("CARGO_BIN_EXE_sparsek-gate"));
    let folder = gate.parent().unwrap().display().to_string();
    let complete = |words: &str| {
        let script = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _sparsek__gate sparsek-gate \"${{COMP_WORDS[COMP_CWORD]}}\" check; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            project.path("script").display()
        );
        let path = std::env::var("PATH").unwrap();
        let output = Command::new("bash")
            .args(["--norc", "-c", &script])
            .current_dir(repository())
            .env("PATH", format!("{folder}:{path}"))
            .output()
            .unwrap();
        let ran = common::Ran::of(&output);
        let words: Vec<String> = ran.out.lines().map(str::to_owned).collect();
        words
    };
    assert!(complete("sparsek-gate check --measure-").contains(&"--measure-all".to_owned()));
}

#[test]
fn variants_are_listed_with_kernels_and_baselines_and_patterns_select_them() {
    let config = repository().join("config.toml").display().to_string();
    let project = Project::empty();
    let list =
        |arguments: &[&str]| project.run(&[&["--config", &config, "list"], arguments].concat());
    let names = |arguments: &[&str]| -> Vec<String> {
        let all = [&["--format", "json"], arguments].concat();
        let listed = list(&all).exits(0).json();
        let variants = listed.0["variants"].as_array().unwrap();
        let name = |one: &serde_json::Value| one["variant"].as_str().unwrap().to_owned();
        variants.iter().map(name).collect()
    };
    assert_eq!(
        names(&["bsr_gemm/tma*"]),
        ["bsr_gemm/tma", "bsr_gemm/tma_wgmma"]
    );
    assert_eq!(
        names(&["{attention,nothing}/w*"]),
        ["attention/wgmma", "attention/wmma"]
    );
    assert!(names(&["*/baseline"]).contains(&"bsr_gemm/baseline".to_owned()));
    // Experimental variants are listed, and a pattern selects them only if it is asked for.
    assert!(names(&[]).iter().any(|name| name.starts_with("faults/")));
    list(&["faults/*"]).ends(2, "--experimental");
    assert!(!names(&["faults/*", "--experimental"]).is_empty());

    let text = list(&["bsr_gemm/baseline"]).exits(0).out;
    for part in [
        "bsr_gemm/baseline (immutable)", "bsr_gemm_baseline", "kernels/bsr_gemm/baseline.cu",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let all = list(&["--names"]).exits(0).out;
    assert!(all.lines().any(|line| line == "bsr_gemm/cp_async"));
    list(&["x*"]).ends(2, "no variant or suite matches `x*`");
    list(&["tma["]).ends(2, "`tma[` is no pattern");

    // A description cannot look like another variant.
    let text = "[toolchain]\narch = \"sm_90a\"\n[metric.duration]\n\
        counter = \"gpu__time_duration.sum\"\ndirection = \"lower\"\n\
        tolerance = '1'\n[suite.s.variant.v]\n\
        description = \"a\\ns/other (immutable)\"\nrun = [\"a\"]\n";
    project.write("other.toml", text);
    let listed = project.run("--config other.toml list").exits(0);
    assert!(!listed.out.contains("\ns/other"), "{}", listed.out);
}

#[test]
fn there_is_a_man_page_for_the_program_and_for_each_subcommand() {
    let project = Project::empty();
    project.run("generate man --output pages/man1").exits(0);
    let page = |name: &str| project.read(&format!("pages/man1/{name}.1"));
    let names = names_of_subcommands();
    let whole = page("sparsek-gate");
    assert_eq!(whole, project.run("generate man").out);
    for name in &names {
        // A hyphen is escaped in a man page.
        assert!(
            whole.contains(&format!("sparsek\\-gate\\-{name}(1)")),
            "{name}"
        );
        assert!(
            page(&format!("sparsek-gate-{name}")).starts_with(".ie"),
            "{name}"
        );
    }
    assert!(page("sparsek-gate-verify").contains("memcheck"));
    let files = fs::read_dir(project.path("pages/man1")).unwrap().count();
    // And those of `generate schema`, `generate completions` and `generate man`.
    assert_eq!(files, names.len() + 4);
}
