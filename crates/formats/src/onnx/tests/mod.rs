//! What the interpreter makes of small models.

mod garbage;
mod microsoft;
mod structure;
mod tensors;
mod upgrades;
mod writer;
