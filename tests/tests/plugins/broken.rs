//! The library of `tests/plugins/broken.c`, which goes wrong as it is told to.

use kilim::Error;

use crate::*;

pub const BROKEN: &str = "tests/plugins/broken.c";

/// Values of the macro `BROKEN`: the library is compiled to go wrong in one way.
pub const CREATION_FAILS: u32 = 1;
pub const CREATION_GIVES_NOTHING: u32 = 2;
pub const OTHER_VERSION: u32 = 3;
pub const SMALL_TABLE: u32 = 4;
pub const NO_RUN: u32 = 5;
pub const REFUSES_ALL: u32 = 6;
pub const RUN_FAILS: u32 = 7;
pub const PREPARE_FAILS: u32 = 8;
pub const READ_FAILS: u32 = 9;
pub const BAD_SPEED: u32 = 10;
pub const LONGER_TABLE: u32 = 11;
pub const NO_MEMORY: u32 = 12;
pub const NO_BIND: u32 = 13;
pub const TABLE_BEFORE_MEMORY: u32 = 14;
pub const BIND_FAILS: u32 = 15;
pub const ABSURD_BYTES: u32 = 16;
pub const PADS: u32 = 17;
pub const CREATION_CRASHES: u32 = 18;
pub const CREATION_ABORTS: u32 = 19;
pub const NO_DESTROY: u32 = 20;
pub const CREATION_EXITS: u32 = 21;
pub const PREPARE_REFUSES: u32 = 23;
pub const SMALL_TENSORS: u32 = 24;
pub const WAITS_AT_EXIT: u32 = 25;

pub fn relu() -> Vec<u8> {
    let nodes = [node("", "Relu", &["x"], &["y"])];
    model(&nodes, &[("x", &["2"])], &[("y", &["2"])])
}

pub fn broken(how: u32, others: &[&str]) -> Result<Session> {
    let folder = folder(&format!("broken{how}"));
    compile(BROKEN, &folder, "broken", &[format!("BROKEN={how}")]);
    let backends = [&["broken"], others].concat();
    load(&relu(), options(&backends, &folder))
}

/// The error of a library that goes wrong, whatever else there is.
pub fn refused(how: u32) -> Error {
    error(broken(how, &["cpu"]))
}

/// The error of a library that goes wrong, where nothing else runs what it does not.
pub fn refused_alone(how: u32) -> Error {
    error(broken(how, &[]))
}

fn error(made: Result<Session>) -> Error {
    let error = made.err().unwrap();
    // The runtime goes on, whatever the library did.
    let mut other = load(&relu(), options(&["cpu"], Path::new("."))).unwrap();
    assert_eq!(run(&mut other, &[-1.0, 1.0]).unwrap(), [0.0, 1.0]);
    error
}
