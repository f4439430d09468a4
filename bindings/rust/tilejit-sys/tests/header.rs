//! Every declaration of the crate against tl.h: a C program restates them, and the C compiler says whether
//! the two agree.
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tilejit_sys as sys;

fn include_dir() -> PathBuf {
    match std::env::var_os("TILEJIT_INCLUDE_DIR") {
        Some(dir) => dir.into(),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../include"),
    }
}

fn header() -> String {
    std::fs::read_to_string(include_dir().join("tl/tl.h")).expect("tl.h")
}

/// Compiles `text`, which follows the header; the compiler's output if it refuses.
fn compile(text: &str) -> Result<(), String> {
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".into());
    let mut child = Command::new(compiler)
        .args(["-x", "c", "-std=c11", "-fsyntax-only", "-I"])
        .arg(include_dir())
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a C compiler");
    let program = format!(
        "#define TL_EXPERIMENTAL\n#include <stddef.h>\n#include <tl/tl.h>\n{}",
        text
    );
    child
        .stdin
        .take()
        .unwrap()
        .write_all(program.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

fn assert_compiles(text: &str) {
    if let Err(messages) = compile(text) {
        panic!("tl.h declares something else:\n{}", messages);
    }
}

/// A Rust type as it is written in C.
fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    // How a macro prints the blanks of a type differs between compilers.
    if let Some(rest) = rust.strip_prefix('*') {
        let rest = rest.trim_start();
        if let Some(pointee) = rest.strip_prefix("const ") {
            return format!("{} const *", c_type(pointee));
        }
        if let Some(pointee) = rest.strip_prefix("mut ") {
            return format!("{} *", c_type(pointee));
        }
    }
    match rust {
        "" => "void",
        "i32" => "int32_t",
        "u32" => "uint32_t",
        "i64" => "int64_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "f64" => "double",
        "c_void" => "void",
        "c_char" => "char",
        "c_int" => "int",
        name if name.starts_with("tl_") => name,
        other => panic!("no C type is known for {:?}", other),
    }
    .into()
}

fn arguments(function: &sys::Function) -> String {
    if function.arguments.is_empty() {
        return "void".into();
    }
    let types: Vec<String> = function.arguments.iter().map(|t| c_type(t)).collect();
    types.join(", ")
}

fn functions() -> Vec<&'static sys::Function> {
    let all = sys::FUNCTIONS.iter();
    #[cfg(feature = "experimental")]
    let all = all.chain(sys::experimental::FUNCTIONS);
    all.collect()
}

fn callbacks() -> Vec<&'static sys::Function> {
    let all = sys::CALLBACKS.iter();
    #[cfg(feature = "experimental")]
    let all = all.chain(sys::experimental::CALLBACKS);
    all.collect()
}

fn constants() -> Vec<&'static (&'static str, i64)> {
    let all = sys::CONSTANTS.iter();
    #[cfg(feature = "experimental")]
    let all = all.chain(sys::experimental::CONSTANTS);
    all.collect()
}

fn structs() -> Vec<sys::Struct> {
    #[allow(unused_mut)]
    let mut all = sys::all_structs();
    #[cfg(feature = "experimental")]
    all.extend(sys::experimental::all_structs());
    all
}

#[test]
fn functions_have_the_types_of_the_header() {
    let mut text = String::new();
    for f in functions() {
        // A second declaration of another type is an error.
        writeln!(text, "{} {}({});", c_type(f.result), f.name, arguments(f)).unwrap();
        writeln!(text, "void* use_{0} = (void*)&{0};", f.name).unwrap();
    }
    for f in callbacks() {
        writeln!(
            text,
            "typedef {} (*{})({});",
            c_type(f.result),
            f.name,
            arguments(f)
        )
        .unwrap();
    }
    assert_compiles(&text);
}

#[test]
fn structs_have_the_layout_of_the_header() {
    let mut text = String::new();
    for s in structs() {
        writeln!(
            text,
            "_Static_assert(sizeof({0}) == {1}, \"size of {0}\");",
            s.name, s.size
        )
        .unwrap();
        for f in &s.fields {
            let place = format!("{}.{}", s.name, f.name);
            writeln!(
                text,
                "_Static_assert(offsetof({}, {}) == {}, \"offset of {}\");",
                s.name, f.name, f.offset, place
            )
            .unwrap();
            writeln!(
                text,
                "_Static_assert(_Generic(&(({}*)0)->{}, {}*: 1, default: 0), \"type of {}\");",
                s.name,
                f.name,
                c_type(f.kind),
                place
            )
            .unwrap();
        }
    }
    writeln!(
        text,
        "_Static_assert(sizeof(tl_scalar) == {}, \"\");",
        std::mem::size_of::<sys::tl_scalar>()
    )
    .unwrap();
    assert_compiles(&text);
}

#[test]
fn constants_have_the_values_of_the_header() {
    let mut text = String::new();
    for (name, value) in constants() {
        writeln!(text, "_Static_assert({0} == {1}, \"{0}\");", name, value).unwrap();
    }
    assert_compiles(&text);
}

#[test]
fn a_declaration_that_differs_is_found() {
    for wrong in [
        "uint64_t tl_version(void);",
        "tl_status tl_launch(tl_kernel*, const tl_context*);",
        "typedef void (*tl_log_callback)(void*, tl_log_level);",
        "_Static_assert(offsetof(tl_param, value) == 4, \"\");",
        "_Static_assert(TL_OK == 1, \"\");",
        "void* use = (void*)&tl_no_such_function;",
    ] {
        assert!(compile(wrong).is_err(), "{}", wrong);
    }
}

/// Words that follow `before` in `text`, up to a character that is in no name.
fn names_after<'a>(text: &'a str, before: &str) -> BTreeSet<&'a str> {
    text.match_indices(before)
        .map(|(at, _)| {
            let rest = &text[at + before.len()..];
            let end = rest
                .find(|c: char| !c.is_alphanumeric() && c != '_')
                .unwrap_or(rest.len());
            &rest[..end]
        })
        .collect()
}

#[test]
fn nothing_is_missing() {
    let header = header();
    let experimental = header
        .find("#ifdef TL_EXPERIMENTAL")
        .expect("an experimental part");
    let covered = if cfg!(feature = "experimental") {
        header.len()
    } else {
        experimental
    };
    let stable = &header[..covered];

    let declared: BTreeSet<&str> = functions().iter().map(|f| f.name).collect();
    for statement in stable.split("TL_API ").skip(1) {
        let name = statement[..statement.find('(').unwrap_or(0)]
            .rsplit(&[' ', '*'][..])
            .next()
            .unwrap();
        // tl_worker_main is for the library's own helper program.
        if name.starts_with("tl_") && name != "tl_worker_main" {
            assert!(declared.contains(name), "function {}", name);
        }
    }
    let all = structs();
    for name in names_after(stable, "typedef struct ") {
        let opaque = ["tl_context", "tl_kernel"].contains(&name);
        assert!(
            opaque || all.iter().any(|s| s.name == name),
            "struct {}",
            name
        );
    }
    let names: BTreeSet<&str> = constants().iter().map(|c| c.0).collect();
    for (at, _) in stable.match_indices(" =") {
        let word = stable[..at].rsplit(&[' ', '{', '\n'][..]).next().unwrap();
        if word.starts_with("TL_") {
            assert!(names.contains(word), "constant {}", word);
        }
    }
}
