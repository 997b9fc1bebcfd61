//! wasm-bindgen's script as a function that makes an instance of the binary. As it comes, a script has one instance for ever, and a
//! thread whose instance has trapped could never have another.

use anyhow::{Context, Result, bail};

/// Where the script takes an instance's exports; every call into the binary goes by the object that it keeps.
const EXPORTS: &str = "    wasm = instance.exports;\n";
/// Where it gives an instance its imports.
const IMPORTS: &str = "        \"./kilim_bg.js\": import0,\n";

/// Makes of wasm-bindgen's script for the target `web` one that exports `createGlue(guard, loaders)`, which gives what the script would
/// have exported, with `init` for its default. `guard` is handed the instance's exports and gives those that the script is to call;
/// `loaders` is what the instance imports as `kilim`: what loads its parts ([`crate::parts`]).
///
/// # Errors
/// Where the script is not of the form that this wasm-bindgen writes.
pub fn factory(script: &str) -> Result<String> {
    let script = replace(script, EXPORTS, "    wasm = guard(instance.exports);\n")
        .context("wasm-bindgen's script does not take the exports in one place")?;
    let script = replace(
        &script,
        IMPORTS,
        &format!("{IMPORTS}        kilim: loaders,\n"),
    )
    .context("wasm-bindgen's script does not give the imports in one place")?;
    let mut body = String::new();
    let mut names = vec!["init: __wbg_init".to_owned()];
    for line in script.lines() {
        match line.strip_prefix("export ") {
            None => body.push_str(line),
            Some("{ initSync, __wbg_init as default };") => {}
            Some(item) => {
                names.push(name(item).with_context(|| format!("what does `{line}` export?"))?);
                body.push_str(item);
            }
        }
        body.push('\n');
    }
    if names.len() == 1 {
        bail!("wasm-bindgen's script exports nothing");
    }
    let names = names.join(", ");
    Ok(format!(
        "export function createGlue(guard, loaders) {{\n{body}return {{ {names} }};\n}}\n"
    ))
}

/// The text with its only `old` replaced.
fn replace(text: &str, old: &str, new: &str) -> Option<String> {
    let (before, after) = text.split_once(old)?;
    (!after.contains(old)).then(|| format!("{before}{new}{after}"))
}

/// The name of an exported class or function.
fn name(item: &str) -> Option<String> {
    let rest = item
        .strip_prefix("class ")
        .or_else(|| item.strip_prefix("function "))?;
    let end = rest.find([' ', '('])?;
    Some(rest[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::factory;

    const SCRIPT: &str = "export class Session {\n}\nexport function measure(x) {\n}\nlet wasm;\n\
        function imports() {\n    return {\n        \"./kilim_bg.js\": import0,\n    };\n}\n\
        function finish(instance) {\n    wasm = instance.exports;\n}\nexport { initSync, __wbg_init as default };\n";

    #[test]
    fn a_script_becomes_a_function() {
        let made = factory(SCRIPT).unwrap();
        assert_eq!(
            made,
            "export function createGlue(guard, loaders) {\nclass Session {\n}\nfunction measure(x) {\n}\nlet wasm;\n\
            function imports() {\n    return {\n        \"./kilim_bg.js\": import0,\n        kilim: loaders,\n    };\n}\n\
            function finish(instance) {\n    wasm = guard(instance.exports);\n}\n\n\
            return { init: __wbg_init, Session, measure };\n}\n"
        );
    }

    #[test]
    fn a_script_of_another_form_is_refused() {
        let exports = "    wasm = instance.exports;\n";
        for other in [
            SCRIPT.replace("instance.exports", "exports"),
            SCRIPT.replace(exports, &exports.repeat(2)),
            SCRIPT.replace("import0", "import1"),
            SCRIPT.replace("export class", "export const"),
            exports.to_owned(),
        ] {
            assert!(factory(&other).is_err(), "{other}");
        }
    }
}
