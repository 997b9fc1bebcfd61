//! A browser for the page and the wasm tests: an installed Chromium, Chrome or Edge, or Firefox for the wasm tests alone.

use super::apt;
use crate::sh;
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// A browser and the WebDriver program that belongs to it.
pub struct Browser {
    pub exe: PathBuf,
    pub driver: PathBuf,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Chrome,
    Edge,
    Firefox,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Chrome, Kind::Edge, Kind::Firefox];

    fn names(self) -> &'static [&'static str] {
        match self {
            Kind::Chrome => &[
                "chromium",
                "chromium-browser",
                "google-chrome",
                "google-chrome-stable",
                "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
                "/Applications/Chromium.app/Contents/MacOS/Chromium",
                "C:/Program Files/Google/Chrome/Application/chrome.exe",
            ],
            Kind::Edge => &[
                "microsoft-edge",
                "microsoft-edge-stable",
                "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
                "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
            ],
            Kind::Firefox => &[
                "firefox",
                "firefox-esr",
                "/Applications/Firefox.app/Contents/MacOS/firefox",
                "C:/Program Files/Mozilla Firefox/firefox.exe",
            ],
        }
    }

    /// The driver's program, and the variable by which wasm-bindgen-test-runner is told of it.
    fn driver(self) -> (&'static str, &'static str) {
        match self {
            Kind::Chrome => ("chromedriver", "CHROMEDRIVER"),
            Kind::Edge => ("msedgedriver", "MSEDGEDRIVER"),
            Kind::Firefox => ("geckodriver", "GECKODRIVER"),
        }
    }

    fn find(self) -> Option<Browser> {
        let chosen = std::env::var("CHROMIUM")
            .ok()
            .filter(|_| self == Kind::Chrome);
        let exe = chosen
            .as_deref()
            .and_then(|exe| sh::find(&[exe]))
            .or_else(|| sh::find(self.names()))?;
        let (program, variable) = self.driver();
        let driver = std::env::var(variable)
            .ok()
            .and_then(|driver| sh::find(&[driver.as_str()]))
            .or_else(|| sh::find(&[program]))?;
        Some(Browser {
            exe,
            driver,
            kind: self,
        })
    }
}

impl Browser {
    /// Tells wasm-bindgen-test-runner and the scripts under tools/ and www/ of this browser.
    pub fn tell(&self, command: &mut Command) {
        command.env(self.kind.driver().1, &self.driver);
        if self.kind != Kind::Firefox {
            command.env("CHROMIUM", &self.exe);
        }
    }

    /// Fails for a browser that Playwright cannot drive as it is installed.
    pub fn require_playwright(&self) -> Result<()> {
        if self.kind == Kind::Firefox {
            bail!(
                "Playwright drives an installed Chromium, Chrome or Edge, not an installed Firefox; install one of them"
            );
        }
        Ok(())
    }
}

/// The browser to use; Chromium is installed where that is possible and no browser with its driver is there.
pub fn browser() -> Result<Browser> {
    let found = || Kind::ALL.into_iter().find_map(Kind::find);
    if let Some(browser) = found() {
        return Ok(browser);
    }
    apt::install(
        &["chromium", "chromium-driver"],
        "install Chrome with chromedriver of the same version (https://googlechromelabs.github.io/chrome-for-testing), \
         or Edge with msedgedriver, or Firefox with geckodriver, and put the driver into PATH",
    )?;
    found().context("no browser with its driver was found after installing Chromium")
}
