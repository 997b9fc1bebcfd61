//! Upper and lower case of texts. Unicode's tables would be a hundredth of the browser's binary, and the
//! browser has them: there, the facade brings its functions.

use crate::error::Result;

/// How texts change their case, by the rules of Unicode that hold for every language.
#[derive(Clone, Copy)]
pub struct CaseMapping {
    pub lower: fn(&str) -> String,
    pub upper: fn(&str) -> String,
}

#[cfg(not(target_arch = "wasm32"))]
pub(super) fn case_mapping() -> Result<CaseMapping> {
    Ok(CaseMapping {
        lower: str::to_lowercase,
        upper: str::to_uppercase,
    })
}

#[cfg(target_arch = "wasm32")]
static BROUGHT: std::sync::OnceLock<CaseMapping> = std::sync::OnceLock::new();

/// Brings the browser's functions; those that came first stay.
#[cfg(target_arch = "wasm32")]
pub fn set_case_mapping(mapping: CaseMapping) {
    BROUGHT.get_or_init(|| mapping);
}

/// What was brought; `State` where nothing was.
#[cfg(target_arch = "wasm32")]
pub(super) fn case_mapping() -> Result<CaseMapping> {
    let missing = || {
        use crate::error::{Error, ErrorCode};
        Error::new(
            ErrorCode::State,
            "upper and lower case of the browser were not brought",
        )
    };
    BROUGHT.get().copied().ok_or_else(missing)
}
