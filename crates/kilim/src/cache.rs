//! What was learnt of devices, as bytes: compiled pipelines, and which kernels are the fastest.
//!
//! A cache is `KILIMCCH`, the version of Kilim, and for each backend its id, its device, the bytes it
//! gave and its tuning table, each with its length before it; a checksum stands at the end.

use kilim_core::order::sort_indices;
use kilim_core::{BackendId, Error, ErrorCode, Result};

use crate::Runtime;

const MAGIC: &[u8; 8] = b"KILIMCCH";
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// FNV-1a, which tells a damaged file from a whole one.
fn checksum(bytes: &[u8]) -> [u8; 8] {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, &b| {
        (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.to_le_bytes()
}

/// What became of a cache that a runtime was given.
#[derive(Debug)]
pub enum CacheUse {
    /// Everything in it is known now.
    Taken,
    /// The cache is of no use here, for this reason: nothing in it is used, and everything is found out anew.
    Ignored(Error),
}

fn mismatch(what: &str) -> Error {
    Error::new(ErrorCode::InvalidValue, format!("the cache {what}"))
}

fn put(to: &mut Vec<u8>, part: &[u8]) {
    to.extend((part.len() as u64).to_le_bytes());
    to.extend(part);
}

/// Takes a length and as many bytes from the front.
fn take<'a>(from: &mut &'a [u8]) -> Result<&'a [u8]> {
    let cut = || mismatch("ends too early");
    let (length, rest) = from.split_first_chunk::<8>().ok_or_else(cut)?;
    let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
    let (part, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
    *from = rest;
    Ok(part)
}

impl Runtime {
    /// What was learnt of the backends that are open and would have to be found out again in another
    /// process, for [`Runtime::load_cache`]: what they compiled, where they give that out, and what
    /// sessions measured ([`kilim_core::SessionOptions::tune`]).
    pub fn save_cache(&self) -> Vec<u8> {
        let mut cache = MAGIC.to_vec();
        put(&mut cache, VERSION.as_bytes());
        let opened: Vec<_> = self.opened().values().cloned().collect();
        let mut order: Vec<usize> = (0..opened.len()).collect();
        sort_indices(&mut order, &mut |a, b| {
            opened[a].describe().id.cmp(&opened[b].describe().id)
        });
        for backend in order.into_iter().map(|i| &opened[i]) {
            let device = backend.describe();
            let learnt = backend.save_cache().unwrap_or_default();
            let tuned = self.tuning.of(&device.key()).save();
            if !learnt.is_empty() || !tuned.is_empty() {
                put(&mut cache, device.id.as_str().as_bytes());
                put(&mut cache, device.device.as_bytes());
                put(&mut cache, &learnt);
                put(&mut cache, tuned.as_bytes());
            }
        }
        let sum = checksum(&cache);
        cache.extend(sum);
        cache
    }

    /// Gives the backends back what they had learnt, before the sessions that are to profit from it
    /// are made. Backends that the cache names are opened.
    ///
    /// A cache that is damaged, of another version of Kilim, or of a backend, device or driver that is
    /// not here, is ignored as a whole. The reports of sessions that are made afterwards say why
    /// ([`kilim_core::Report::cache`]).
    ///
    /// # Safety
    /// `cache` must be what [`Runtime::save_cache`] gave, here or in an earlier process: drivers do
    /// not check what they compiled.
    ///
    /// # Errors
    /// `InvalidValue` where the bytes are something else than a cache of Kilim's.
    pub async unsafe fn load_cache(&self, cache: &[u8]) -> Result<CacheUse> {
        if !cache.starts_with(MAGIC) && !MAGIC.starts_with(cache) {
            return Err(mismatch("is not one of Kilim's"));
        }
        // SAFETY: the bytes are what `save_cache` gave, here or in an earlier process.
        let taken = unsafe { self.take_cache(cache) }.await;
        *self.cache_ignored() = taken.as_ref().err().map(ToString::to_string);
        Ok(match taken {
            Ok(()) => CacheUse::Taken,
            Err(why) => CacheUse::Ignored(why),
        })
    }

    /// # Safety
    /// As of [`Runtime::load_cache`].
    async unsafe fn take_cache(&self, cache: &[u8]) -> Result<()> {
        let (body, sum) = cache
            .split_last_chunk::<8>()
            .ok_or_else(|| mismatch("ends too early"))?;
        let mut rest = body
            .strip_prefix(MAGIC)
            .ok_or_else(|| mismatch("ends too early"))?;
        if checksum(body) != *sum {
            return Err(mismatch("is damaged"));
        }
        let version = take(&mut rest)?;
        if version != VERSION.as_bytes() {
            return Err(mismatch("is of another version of Kilim")
                .with_expected(VERSION)
                .with_got(String::from_utf8_lossy(version)));
        }
        let mut known = Vec::new();
        while !rest.is_empty() {
            let id = String::from_utf8_lossy(take(&mut rest)?);
            let device = String::from_utf8_lossy(take(&mut rest)?);
            let (learnt, tuned) = (take(&mut rest)?, take(&mut rest)?);
            let backend = self
                .on_device(&BackendId::from(id.as_ref()), &device)
                .await?;
            let own = &backend.describe().device;
            if device != own.as_str() {
                return Err(mismatch("is of another device or driver")
                    .with_expected(own)
                    .with_got(device));
            }
            known.push((backend, learnt, tuned));
        }
        for (backend, learnt, _) in &known {
            if !learnt.is_empty() {
                // SAFETY: the bytes are those that this backend saved on this device: the caller
                // says so, and checksum, version and device agree.
                unsafe { backend.load_cache(learnt)? };
            }
        }
        for (backend, _, tuned) in known {
            self.tuning.of(&backend.describe().key()).load(tuned)?;
        }
        Ok(())
    }
}
