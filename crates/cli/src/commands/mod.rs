//! One file for each command.

pub mod bench;
pub mod check;
pub mod devices;
pub mod inspect;
pub mod run;
pub mod verify;
