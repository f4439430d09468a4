//! Links libtilejit: from TILEJIT_LIB_DIR, else from where the linker looks.
fn main() {
    println!("cargo:rerun-if-env-changed=TILEJIT_LIB_DIR");
    if let Ok(dir) = std::env::var("TILEJIT_LIB_DIR") {
        println!("cargo:rustc-link-search=native={}", dir);
    }
    println!("cargo:rustc-link-lib=dylib=tilejit");
}
