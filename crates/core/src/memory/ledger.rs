//! The accounts of a context: what it has acquired, and for how long.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Result;
use crate::limits::Limits;

/// How long memory is needed, and whether it is reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// Never reused; stays when a context is cleared: constants and packed weights.
    Static,
    /// Reused by every stage of the context, since stages run one after another: intermediates and
    /// scratch. All of it is one arena, as large as the largest claim.
    Dynamic,
    /// Memory of one planned stage alone, reused by nothing while that stage is kept: parameters of kernels,
    /// values known when the stage was planned, buffers of outputs.
    DynamicSeparate,
}

#[derive(Debug, Default)]
struct Accounts {
    /// A device may hold more than the host can address.
    constant: u64,
    separate: u64,
    /// How many claims there are of each size.
    dynamic: BTreeMap<usize, usize>,
}

/// What a context has acquired. Clones keep the same accounts.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    accounts: Arc<Mutex<Accounts>>,
    limits: Arc<Limits>,
}

impl Ledger {
    /// An account that refuses more than `limits` allow.
    pub fn limited(limits: &Limits) -> Ledger {
        Ledger {
            accounts: Arc::default(),
            limits: Arc::new(limits.clone()),
        }
    }

    /// An account of its own with the same limits.
    pub fn another(&self) -> Ledger {
        Ledger {
            accounts: Arc::default(),
            limits: self.limits.clone(),
        }
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes `bytes` of `storage`, until the claim is dropped. Nothing is allocated: for
    /// [`Storage::Dynamic`] that happens in one go, when all claims are known.
    ///
    /// # Errors
    /// `Limit` where that is more than the session's [`Limits`] allow.
    pub fn acquire(&self, storage: Storage, bytes: usize) -> Result<Claim> {
        let mut accounts = self.accounts();
        let (name, what, most, held) = match storage {
            Storage::Static => {
                let most = self.limits.weight_bytes;
                ("weight_bytes", "weights", most, accounts.constant)
            }
            Storage::Dynamic => {
                let most = self.limits.intermediate_bytes;
                ("intermediate_bytes", "intermediates", most, 0)
            }
            Storage::DynamicSeparate => {
                let most = self.limits.output_bytes;
                ("output_bytes", "outputs", most, accounts.separate)
            }
        };
        let sum = held.saturating_add(bytes as u64);
        if most < usize::MAX && sum > most as u64 {
            let what = format!("the model's {what} are too large");
            let in_bytes = |n: u64| format!("{n} bytes");
            return Err(Limits::exceeded(
                name,
                what,
                in_bytes(most as u64),
                in_bytes(sum),
            ));
        }
        match storage {
            Storage::Static => accounts.constant = sum,
            Storage::DynamicSeparate => accounts.separate = sum,
            Storage::Dynamic => *accounts.dynamic.entry(bytes).or_default() += 1,
        }
        drop(accounts);
        Ok(Claim {
            ledger: self.clone(),
            storage,
            bytes,
        })
    }

    /// Bytes of `storage` that are claimed: for [`Storage::Dynamic`] the largest claim, for the
    /// others their sum, or as many as a number of this type can be.
    pub fn bytes(&self, storage: Storage) -> usize {
        let accounts = self.accounts();
        let sum = match storage {
            Storage::Static => accounts.constant,
            Storage::DynamicSeparate => accounts.separate,
            Storage::Dynamic => return accounts.dynamic.keys().next_back().copied().unwrap_or(0),
        };
        usize::try_from(sum).unwrap_or(usize::MAX)
    }

    fn release(&self, storage: Storage, bytes: usize) {
        let mut accounts = self.accounts();
        match storage {
            Storage::Static => accounts.constant -= bytes as u64,
            Storage::DynamicSeparate => accounts.separate -= bytes as u64,
            Storage::Dynamic => {
                if let Some(count) = accounts.dynamic.get_mut(&bytes) {
                    *count -= 1;
                    if *count == 0 {
                        accounts.dynamic.remove(&bytes);
                    }
                }
            }
        }
    }
}

/// Memory on a [`Ledger`]; dropping it releases it.
#[derive(Debug)]
pub struct Claim {
    ledger: Ledger,
    storage: Storage,
    bytes: usize,
}

impl Claim {
    /// How many bytes are claimed.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.ledger.release(self.storage, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dynamic_claims_share_what_the_largest_needs() {
        let ledger = Ledger::default();
        let acquire = |storage, bytes| ledger.acquire(storage, bytes).unwrap();
        let weights = acquire(Storage::Static, 100);
        let small = acquire(Storage::Dynamic, 10);
        let large = acquire(Storage::Dynamic, 40);
        let twin = acquire(Storage::Dynamic, 40);
        let parameters = acquire(Storage::DynamicSeparate, 5);
        let more = acquire(Storage::DynamicSeparate, 6);
        assert_eq!(ledger.bytes(Storage::Static), 100);
        assert_eq!(ledger.bytes(Storage::Dynamic), 40);
        assert_eq!(ledger.bytes(Storage::DynamicSeparate), 11);
        drop((large, parameters));
        assert_eq!(ledger.bytes(Storage::Dynamic), 40);
        drop(twin);
        assert_eq!(ledger.bytes(Storage::Dynamic), 10);
        assert_eq!(ledger.bytes(Storage::DynamicSeparate), 6);
        drop((small, weights, more));
        for storage in [Storage::Static, Storage::Dynamic, Storage::DynamicSeparate] {
            assert_eq!(ledger.bytes(storage), 0);
        }
    }

    #[test]
    fn more_than_the_limits_allow_is_refused() {
        let ledger = Ledger::limited(&Limits {
            weight_bytes: 10,
            intermediate_bytes: 20,
            output_bytes: 30,
            ..Limits::default()
        });
        let storages = [
            (Storage::Static, 10),
            (Storage::Dynamic, 20),
            (Storage::DynamicSeparate, 30),
        ];
        for (storage, most) in storages {
            let held = ledger.acquire(storage, most - 1).unwrap();
            assert!(ledger.acquire(storage, most + 1).is_err());
            assert!(ledger.acquire(storage, usize::MAX).is_err());
            let shared = storage == Storage::Dynamic;
            assert_eq!(ledger.acquire(storage, 2).is_ok(), shared, "{storage:?}");
            assert!(ledger.another().acquire(storage, most).is_ok());
            drop(held);
            assert!(ledger.acquire(storage, most).is_ok());
        }
    }
}
